"""NumPy archives (.npz) of features or images, labels and label names."""

from __future__ import annotations

import json
import math
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from labelweave.data.compressed_files import check_expansion
from labelweave.data.dataset import Dataset
from labelweave.data.readers._shared.columns import first_of, part_name
from labelweave.data.readers.reader import FeatureSpec, FilePath, Reader, RowChunk, make_dataset
from labelweave.exceptions import DataFileError

_FEATURES = ("X", "features", "images", "data", "x")
_LABELS = ("Y", "labels", "y", "targets")
_LABEL_NAMES = ("label_names", "names", "classes")

MAX_ARRAY_BYTES = 8 * 2**30

MAX_ARRAY_EXPANSION = 500
"""Largest ratio of all arrays to the archive, beyond the first 256 MiB. Arrays of nothing but zeros
reach 1,000; unlike the lines of a text they are held in memory. `np.savez` does not compress."""


def read_npz(path: FilePath, *, require_labels: bool = True, flatten: bool = True) -> Dataset:
    """Read a NumPy archive; nothing in it is ever unpickled.

    The archive holds the features or images (`X`, `features`, `images` or `data`) and the labels as
    a matrix (`Y`, `labels`, `y` or `targets`). It may also hold `label_names`, `feature_names`,
    `ids`, `groups`, and the official parts as `part` (names) or `test` (true for test rows).

    Parameters
    ----------
    path : path-like
    require_labels : bool, default=True
        False accepts an archive without labels.
    flatten : bool, default=True
        Whether images become rows of float32; otherwise they keep their shape and type.
    """
    arrays = _arrays(path)
    features = first_of(_FEATURES, arrays)
    if features is None:
        raise DataFileError(
            f"no array is called {', '.join(_FEATURES)}; the arrays are {', '.join(arrays)}",
            path=path,
        )
    labels = first_of(_LABELS, arrays)
    if labels is None and require_labels:
        raise DataFileError(f"no array is called {', '.join(_LABELS)}", path=path)
    X = _features(arrays[features], features, flatten, path)
    Y = None
    if labels is not None:
        Y = arrays[labels]
        if Y.dtype.kind not in "biuf" or Y.ndim != 2:
            raise DataFileError(f"the array {labels!r} is not a matrix of 0 and 1", path=path)

    def values(name: str, n: int, what: str) -> np.ndarray:
        return _values(arrays[name], name, n, what, path)

    names = first_of(_LABEL_NAMES, arrays)
    label_names = None
    if names is not None and Y is not None:
        label_names = values(names, Y.shape[1], "labels").astype(str).tolist()
    attributes: dict[str, Any] = {}
    if "feature_names" in arrays:
        of_columns = values("feature_names", math.prod(X.shape[1:]), "features")
        attributes["feature_names"] = of_columns.astype(str).tolist()
    for attribute, name in (("row_ids", "ids"), ("groups", "groups")):
        if name in arrays:
            attributes[attribute] = values(name, len(X), "rows").tolist()
    if "part" in arrays:
        parts = values("part", len(X), "rows").tolist()
        attributes["part"] = [part_name(value) for value in parts]
    elif "test" in arrays:
        is_test = values("test", len(X), "rows").astype(bool)
        attributes["part"] = np.where(is_test, "test", "train").tolist()
    data = make_dataset(path, X, Y, label_names, **attributes)
    if "image_encoder" in arrays:
        facts = {**data.facts, **_made_by(arrays["image_encoder"], path)}
        data = replace(data, facts=facts)
    return data


def _made_by(array: np.ndarray, path: FilePath) -> dict[str, Any]:
    """Return which network has made the features of images, as `labelweave encode` writes it."""
    try:
        made_by = json.loads(str(array))
        checksum = made_by.pop("checksum")
        if not {"network"} <= set(made_by) <= {"network", "weights", "size"}:
            raise ValueError("not what `labelweave encode` writes")
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError):
        raise DataFileError("the array 'image_encoder' names no network", path=path) from None
    return {"image_encoder": made_by, "image_checksum": str(checksum)}


def _values(array: np.ndarray, name: str, n: int, what: str, path: FilePath) -> np.ndarray:
    """Return n numbers or texts; more of them would become many long texts for nothing."""
    if array.size != n:
        raise DataFileError(f"the array {name!r} has {array.size} values for {n} {what}", path=path)
    if array.dtype.kind in "biuf":
        return array.ravel()
    if array.dtype.kind not in "US":
        raise DataFileError(f"the array {name!r} holds neither numbers nor texts", path=path)
    try:
        texts = array.ravel().astype(str)
        texts.tolist()
    except (ValueError, SystemError):  # the latter where there is no such character
        raise DataFileError(
            f"the array {name!r} holds bytes that are not text: store it as an array of str",
            path=path,
        ) from None
    return texts


def _features(X: np.ndarray, name: str, flatten: bool, path: FilePath) -> np.ndarray:
    if X.dtype.kind not in "biuf" or X.ndim < 2 or len(X) == 0:
        raise DataFileError(f"the array {name!r} is not a table or a stack of images", path=path)
    if flatten:
        X = X.reshape(len(X), math.prod(X.shape[1:]))
        return X.astype(np.float64 if X.dtype == np.float64 else np.float32, copy=False)
    return X


def _arrays(path: FilePath) -> dict[str, np.ndarray]:
    """All arrays of the archive, each checked against its header before it is read."""
    arrays: dict[str, np.ndarray] = {}
    n_unpacked = 0
    try:
        n_packed = Path(path).stat().st_size
        with zipfile.ZipFile(path) as archive:
            for entry in archive.infolist():
                if not entry.filename.endswith(".npy"):
                    continue
                n_unpacked += entry.file_size
                check_expansion(n_unpacked, n_packed, path, most=MAX_ARRAY_EXPANSION)
                with archive.open(entry) as file:
                    _check_header(file, entry.file_size)
                with archive.open(entry) as file:
                    arrays[entry.filename.removesuffix(".npy")] = np.lib.format.read_array(
                        file, allow_pickle=False
                    )
    except FileNotFoundError:
        raise DataFileError("there is no such file", path=path) from None
    except DataFileError:
        raise
    except MemoryError:
        raise DataFileError("an array of the archive does not fit into memory", path=path) from None
    except Exception as error:
        # zipfile, zlib and NumPy raise a dozen error classes for damaged archives.
        raise DataFileError(f"the archive cannot be read ({error})", path=path) from None
    if not arrays:
        raise DataFileError("the archive holds no arrays", path=path)
    return arrays


def _check_header(file: Any, n_bytes: int) -> None:
    version = np.lib.format.read_magic(file)
    read_header = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }.get(version)
    if read_header is None:
        raise ValueError(f"array format {version} is not supported")
    shape, _, dtype = read_header(file)
    needed = math.prod(shape) * dtype.itemsize
    if dtype.hasobject:
        raise ValueError("an array holds Python objects, which are never loaded")
    if min(shape, default=0) < 0 or needed > n_bytes or needed > MAX_ARRAY_BYTES:
        raise ValueError(f"an array claims the shape {shape}, but there are {n_bytes} bytes")


def _iter_features(
    path: FilePath, features: FeatureSpec, *, flatten: bool = True
) -> Iterator[RowChunk]:
    data = read_npz(path, require_labels=False, flatten=flatten)
    columns = None
    if data.feature_names is not None:
        columns = features.columns(list(data.feature_names), path)
    elif features.width is not None:
        FeatureSpec(n_features=features.width).check_width(int(data.n_features or 0), path)
    X = data.X if columns is None else data.X[:, columns]
    yield RowChunk(X, row_ids=None if data.row_ids is None else list(data.row_ids))


READER = Reader(read_npz, _iter_features)
