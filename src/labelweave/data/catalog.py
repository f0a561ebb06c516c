"""The catalog: data sets that are known by name.

`catalog.toml` describes them. A loaded data set is checked against its description, so that a name
means the same rows, features and labels everywhere.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from glob import has_magic
from importlib import resources
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from labelweave.data._catalog.locations import (
    data_folders,
    download_files,
    find_files,
    package_file,
    unavailable,
)
from labelweave.data.dataset import Dataset
from labelweave.exceptions import DataFileError, DatasetUnavailableError, InputError
from labelweave.files import cache_folder

__all__ = [
    "CatalogEntry",
    "data_folders",
    "get_entry",
    "is_catalog_name",
    "list_datasets",
    "load_dataset",
]


@dataclass(frozen=True)
class CatalogEntry:
    """Description of a data set; `catalog.toml` explains the fields.

    Examples
    --------
    >>> from labelweave.data.catalog import get_entry
    >>> entry = get_entry("scene")
    >>> entry.rows, entry.features, entry.labels
    (2407, 294, 6)
    """

    name: str
    title: str
    kind: str
    rows: int
    labels: int
    cardinality: float
    loader: str
    files: Mapping[str, str]
    source: str
    licence: str
    features: int | None = None
    parts: Mapping[str, int] | None = None
    extra_files: tuple[str, ...] = ()
    reader_options: Mapping[str, Any] = field(default_factory=dict)
    choices: Mapping[str, Any] = field(default_factory=dict)
    variants: tuple[Mapping[str, Any], ...] = ()
    notes: tuple[str, ...] = ()
    package: Mapping[str, Any] | None = None
    download: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    openml: Mapping[str, Any] | None = None

    @property
    def file_names(self) -> tuple[str, ...]:
        """All files of the data set, without the endings of compressions."""
        return (*self.files.values(), *self.extra_files)

    def local_source(self) -> str | None:
        """Where the data set is on this machine: a folder, the cache or a package; None if not."""
        files = find_files(self)
        if files is not None:
            return files.location
        return f"package {self.package['module']}" if self.package and package_file(self) else None

    def public_source(self) -> str | None:
        """The web site that the data set can be downloaded from, if there is one."""
        if self.download:
            return next(iter(self.download.values()))["url"].split("/")[2]
        return "openml.org" if self.openml else None

    def variant(self, choices: Mapping[str, Any]) -> CatalogEntry:
        """Return the entry with the counts for these choices."""
        for facts in self.variants:
            if all(choices[key] == value for key, value in facts["when"].items()):
                changed = {key: value for key, value in facts.items() if key != "when"}
                if changed.get("kind") == "text":
                    changed["features"] = None
                return replace(self, **changed)
        return self


@cache
def _catalog() -> dict[str, CatalogEntry]:
    text = resources.files("labelweave.data").joinpath("catalog.toml").read_text("utf-8")
    entries = {}
    for name, facts in tomllib.loads(text).items():
        for key in ("extra_files", "notes", "variants"):
            facts[key] = tuple(facts.get(key, ()))
        entries[name] = CatalogEntry(name=name, **facts)
    return entries


def list_datasets() -> list[CatalogEntry]:
    """List the data sets of the catalog, sorted by name.

    >>> [entry.name for entry in list_datasets()][:3]
    ['20ng', 'aapd-test', 'bibtex']
    """
    return sorted(_catalog().values(), key=lambda entry: entry.name)


def get_entry(name: str) -> CatalogEntry:
    """Return the catalog entry of this name; upper and lower case are the same.

    >>> get_entry("Yeast").parts
    {'train': 1500, 'test': 917}
    """
    entry = _catalog().get(name.lower())
    if entry is not None:
        return entry
    near = difflib.get_close_matches(name.lower(), _catalog(), n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(map(repr, near))}? " if near else ""
    raise InputError(
        f"{name!r} is neither a file nor a data set of the catalog: {hint}"
        "`labelweave datasets` lists the names"
    )


def is_catalog_name(name: str) -> bool:
    """Whether the catalog has a data set of this name.

    >>> is_catalog_name("Scene"), is_catalog_name("./scene")
    (True, False)
    """
    return name.lower() in _catalog()


def load_dataset(
    name_or_path: str | PathLike[str] | Sequence[str | PathLike[str]],
    *,
    drop_empty_labels: bool = False,
    download: bool = True,
    **options: Any,
) -> Dataset:
    r"""Load a data set by its catalog name, or read a file.

    A named data set is searched in the folder `LABELWEAVE_DATA`, in the cache, in an installed
    package and at its public source, in this order. Where it has official parts, the rows of the
    train part come first, and `part` names the part of each row.

    Parameters
    ----------
    name_or_path : str, path-like or sequence of path-like
        A name of :func:`list_datasets`, or a file (``"./scene"`` for a file that has the name of
        a data set), several files, a pattern such as ``"part-*.csv"``, or a folder.
    drop_empty_labels : bool, default=False
        Whether to leave out the labels that no row has. By default they are kept, because the
        literature counts them.
    download : bool, default=True
        Whether to download the data set if it is not on this machine.
    **options
        For a file, the options of :func:`~labelweave.data.reading.read_dataset`; for a name, the
        `choices` of its entry, such as ``major=True`` for cfc-mesh.

    Raises
    ------
    DatasetUnavailableError
        The data set is not on this machine and cannot be downloaded.
    DataFileError
        The files do not match the catalog.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "days.csv"
    ...     _ = path.write_text("degrees,sunny,windy\n21.5,1,0\n14,0,1\n")
    ...     load_dataset(path, labels=2)
    <Dataset days: 2 rows x 1 features, 2 labels, 1.000 labels per row>
    """
    if _is_path(name_or_path):
        from labelweave.data.reading import read_dataset

        data = read_dataset(name_or_path, **options)
    else:
        entry = get_entry(str(name_or_path))
        choices = _checked_choices(entry, options)
        data = _load(entry.variant(choices), choices, download)
    if drop_empty_labels:
        data = data.select_labels([data.Y.names[j] for j in np.flatnonzero(data.Y.counts()[0])])
    return data


def _is_path(name_or_path: str | PathLike[str] | Sequence[str | PathLike[str]]) -> bool:
    if not isinstance(name_or_path, str):
        return True
    path = Path(name_or_path)
    # No name of the catalog has an ending or a folder. A missing file gets the reader's error
    # message, which names the file.
    if path.suffix or len(path.parts) > 1 or has_magic(name_or_path):
        return True
    return not is_catalog_name(name_or_path) and path.exists()


def _checked_choices(entry: CatalogEntry, options: Mapping[str, Any]) -> dict[str, Any]:
    for key in options:
        if key not in entry.choices:
            known = ", ".join(entry.choices) or "none"
            raise InputError(
                f"data set {entry.name} has no option {key!r} (its options are: {known})"
            )
    return {**entry.choices, **options}


def _load(entry: CatalogEntry, choices: Mapping[str, Any], allow_download: bool) -> Dataset:
    data, location = _load_from_first_location(entry, choices, allow_download)
    facts = {
        **data.facts,
        "title": entry.title,
        "source": entry.source,
        "licence": entry.licence,
        "notes": list(entry.notes),
        "loaded_from": location,
    }
    data = replace(data, name=entry.name, facts=facts)
    _check_counts(entry, data, location)
    return data


def _load_from_first_location(
    entry: CatalogEntry, choices: Mapping[str, Any], allow_download: bool
) -> tuple[Dataset, str]:
    """Load a data set from the first location that has it, and name the location."""
    from labelweave.data._catalog.loaders import LOADERS, load_from_package

    files = find_files(entry)
    if files is None:
        packaged = package_file(entry)
        if packaged is not None:
            return load_from_package(entry, packaged), f"package {(entry.package or {})['module']}"
        if not allow_download:
            raise unavailable(entry, "it is not on this machine")
        if not entry.download and entry.openml is None:
            raise unavailable(entry, "it is not on this machine and has no public source")
        try:
            if not entry.download:
                return _load_from_openml(entry), "openml.org"
            files = download_files(entry)
        except DatasetUnavailableError as error:
            raise unavailable(entry, str(error)) from error
    return LOADERS[entry.loader](entry, files, choices), files.location


def _load_from_openml(entry: CatalogEntry) -> Dataset:
    from labelweave.data._catalog.openml import fetch_dataset

    assert entry.openml is not None
    return fetch_dataset(
        entry.openml["id"],
        entry.openml["name"],
        cache=cache_folder(),
        id_column=entry.reader_options.get("id_column"),
    )


def _check_counts(entry: CatalogEntry, data: Dataset, location: str) -> None:
    """Raise an error if the counts of a data set are not those of the catalog."""
    summary = data.summary()
    counts: dict[str, tuple[Any, Any]] = {
        "rows": (summary["rows"], entry.rows),
        "features": (summary["features"], entry.features),
        "labels": (summary["labels"], entry.labels),
        "labels per row": (round(summary["cardinality"], 3), entry.cardinality),
    }
    if location != "openml.org":  # OpenML does not keep the official parts
        parts = None if entry.parts is None else dict(sorted(entry.parts.items()))
        counts["rows of the official parts"] = (summary["official_parts"], parts)
    differences = [
        f"{loaded} {what} instead of {expected}"
        for what, (loaded, expected) in counts.items()
        if loaded != expected
    ]
    if differences:
        raise DataFileError(
            f"data set {entry.name} from {location} does not match the catalog: it has "
            f"{'; '.join(differences)}"
        )
