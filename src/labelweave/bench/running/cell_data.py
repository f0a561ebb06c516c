"""Load the data of a cell, once per process, with a checksum of their content.

Data that the catalog does not have ("external", such as images that may not be handed on) are
read from a folder of their name, under `LABELWEAVE_DATA` or in the cache: files `train.*` and
`test.*` (and `validation.*`), or `all.*`, in any format that labelweave reads, such as .npz files
of features; or images in the layout of their publishers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelweave.bench.suite import DataEntry
from labelweave.data import Dataset
from labelweave.exceptions import DatasetUnavailableError
from labelweave.labels import LabelMatrix

_MOST_KEPT = 256e6  # bytes of data that a process keeps
_kept: dict[tuple[Any, ...], tuple[Dataset, str]] = {}  # the one used last stands last


def why_missing(entry: DataEntry) -> str | None:
    """Explain in one sentence why a data set is not available; None if it is.

    >>> why_missing(DataEntry("no-such-images", external="photographs"))
    'photographs: put train.* and test.*, or images as they are published, into a folder \
no-such-images under LABELWEAVE_DATA'
    """
    if entry.external is None or _external_files(entry.source) or _image_folder(entry.source):
        return None
    return (
        f"{entry.external}: put train.* and test.*, or images as they are published, into a "
        f"folder {entry.source} under LABELWEAVE_DATA"
    )


def load(entry: DataEntry) -> Dataset:
    """Return the data set, from memory if this process has just used it."""
    return load_with_checksum(entry)[0]


def load_with_checksum(entry: DataEntry) -> tuple[Dataset, str]:
    """Return the data set and the checksum of its content."""
    key = (entry.source, entry.external is not None, _frozen(entry.options))
    loaded = _kept.pop(key, None) or _load(*key)
    _kept[key] = loaded
    while len(_kept) > 1 and sum(_n_bytes(data) for data, _ in _kept.values()) > _MOST_KEPT:
        del _kept[next(iter(_kept))]
    return loaded


def _frozen(value: Any) -> Any:
    if isinstance(value, Mapping):
        return tuple(sorted((key, _frozen(item)) for key, item in value.items()))
    return tuple(_frozen(item) for item in value) if isinstance(value, list) else value


def _n_bytes(data: Dataset) -> int:
    if data.is_text:
        return sum(len(text) for text in data.X)
    X = data.X
    if data.is_table:
        return int(X.frame.memory_usage(deep=True).sum())
    if hasattr(X, "pixels"):
        return int(np.prod(X.shape))
    of_features = X.data.nbytes + X.indices.nbytes if sp.issparse(X) else np.asarray(X).nbytes
    return int(of_features + data.Y.n_rows * data.Y.n_labels)


def _load(source: str, is_external: bool, options: tuple[Any, ...]) -> tuple[Dataset, str]:
    reading = {k: list(v) if isinstance(v, tuple) else v for k, v in options}
    if is_external:
        data = _load_external(source, reading)
    else:
        from labelweave.pipeline.data_parts import Source

        data = Source(source, reading).load()
    return data, checksum(data)


def _external_files(name: str) -> dict[str, Path]:
    from labelweave.data.catalog import data_folders

    for _, folder in data_folders():
        files = {
            part: path
            for part in ("train", "validation", "test", "all")
            for path in sorted((folder / name).glob(f"{part}.*"))
        }
        if "all" in files or {"train", "test"} <= files.keys():
            return files
    return {}


def _image_folder(name: str) -> Path | None:
    """Find a folder of this name that has the layout of an image data set."""
    from labelweave.data.catalog import data_folders
    from labelweave.data.image_layouts import find_layout

    for _, folder in data_folders():
        place = folder / name
        if place.is_dir() and find_layout(place) is not None:
            return place
    return None


def _load_external(name: str, reading: Mapping[str, Any]) -> Dataset:
    from labelweave.data.reading import read_dataset
    from labelweave.data.splits import concatenate_parts

    files = _external_files(name)
    images = None if files else _image_folder(name)
    if images is not None:
        return replace(read_dataset(images, **reading), name=name)
    if not files:
        raise DatasetUnavailableError(f"{name} is not on this machine")
    parts = {part: read_dataset(path, **reading) for part, path in files.items()}
    return replace(parts["all"] if "all" in parts else concatenate_parts(parts), name=name)


def checksum(data: Dataset) -> str:
    """Hash the content of a data set: features, labels, names, parts and groups.

    It does not depend on the file that the data came from.

    >>> data = Dataset(np.eye(3), np.eye(3))
    >>> checksum(data) == checksum(Dataset(np.eye(3), np.eye(3), name="other"))
    True
    >>> checksum(data) == checksum(data[:2])
    False
    """
    digest = hashlib.sha256()
    for value in (data.X, data.Y, data.label_names, data.part, data.groups):
        _feed(digest, value)
    return digest.hexdigest()[:16]


def _feed(digest: Any, value: Any) -> None:
    """Add a value to the hash, with its kind and length, so that values cannot be confused."""
    if isinstance(value, LabelMatrix):
        _feed(digest, str(value.absent))
        _feed(digest, value.values)
    elif hasattr(value, "fingerprint"):  # a collection of images
        _feed(digest, value.fingerprint())
    elif sp.issparse(value):
        rows = sp.csr_array(value)
        rows.sort_indices()
        digest.update(f"sparse {rows.shape}".encode())
        for part in (rows.indptr.astype(np.int64), rows.indices.astype(np.int64), rows.data):
            _feed(digest, part)
    elif isinstance(value, np.ndarray) and value.dtype != object:
        digest.update(f"array {value.dtype.str} {value.shape}".encode())
        digest.update(np.ascontiguousarray(value).reshape(-1).view(np.uint8).data)
    elif value is None or isinstance(value, str | int | float):
        text = str(value).encode()
        digest.update(f"{type(value).__name__} {len(text)} ".encode())
        digest.update(text)
    else:
        frame = value.to_numpy() if hasattr(value, "to_numpy") else value
        digest.update(f"list {len(frame)}".encode())
        for item in frame:
            _feed(digest, item if isinstance(item, np.ndarray) else str(item))
