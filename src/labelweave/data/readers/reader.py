"""The interface of a reader, and what all readers use to make data sets.

A reader is a module of :mod:`labelweave.data.readers` with a constant `READER`, listed in
``FORMATS`` of that package.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelweave.data.compressed_files import FilePath, uncompressed_stem
from labelweave.data.dataset import Dataset, no_labels
from labelweave.exceptions import DataFileError, InputError
from labelweave.labels import as_labels
from labelweave.rows import concatenate_features, count_rows
from labelweave.tables.table import Table, as_frame

__all__ = [
    "LABELS_LISTED",
    "MAX_DENSE_LABELS",
    "FeatureSpec",
    "FilePath",
    "Reader",
    "RowChunk",
    "concatenate_chunks",
    "feature_dtype",
    "make_dataset",
    "rebatch",
    "sparse_rows",
]

MAX_DENSE_LABELS = 64
"""Up to this number of labels the label matrices of sparse formats are dense, above it sparse."""

LABELS_LISTED = {"labels_listed": True}
"""Facts of a data set whose file lists the labels of each row: labels not listed are negative."""


@dataclass(frozen=True)
class Reader:
    """One file format.

    `read(path, **options)` returns a :class:`~labelweave.data.Dataset`. Its keyword-only parameters
    are the options of the format.

    `iter_features(path, features, **options)` yields a :class:`RowChunk` at a time, with the
    features that the :class:`FeatureSpec` asks for and without labels. It accepts the same options
    as `read`, except `require_labels`.
    """

    read: Callable[..., Dataset]
    iter_features: Callable[..., Iterator[RowChunk]]


@dataclass
class RowChunk:
    """Consecutive rows of a file: features and, where the file has them, labels and the rest."""

    X: Any
    Y: Any = None
    row_ids: list[Any] | None = None
    part: list[str] | None = None
    groups: list[Any] | None = None
    weights: np.ndarray | None = None

    def __len__(self) -> int:
        return count_rows(self.X)

    def rows(self, start: int, stop: int) -> RowChunk:
        """The rows from `start` up to `stop`."""
        return RowChunk(
            *(
                None if values is None else values[start:stop]
                for values in (getattr(self, field.name) for field in fields(self))
            )
        )


def concatenate_chunks(chunks: Sequence[RowChunk]) -> RowChunk:
    """Concatenate chunks of rows into one."""

    def concatenate(attribute: str) -> Any:
        values = [getattr(chunk, attribute) for chunk in chunks]
        return None if values[0] is None else concatenate_features(values)

    return RowChunk(*(concatenate(field.name) for field in fields(RowChunk)))


def rebatch(chunks: Iterable[RowChunk], batch_rows: int) -> Iterator[RowChunk]:
    """Split the same rows into chunks of exactly `batch_rows` rows; the last may be shorter."""
    collected: list[RowChunk] = []
    n_collected = 0
    for chunk in chunks:
        collected.append(chunk)
        n_collected += len(chunk)
        if n_collected < batch_rows:
            continue
        rows = concatenate_chunks(collected)
        start = 0
        for start in range(0, n_collected - batch_rows + 1, batch_rows):
            yield rows.rows(start, start + batch_rows)
        collected = [rows.rows(start + batch_rows, n_collected)]
        n_collected = len(collected[0])
    if n_collected:
        yield concatenate_chunks(collected)


@dataclass(frozen=True)
class FeatureSpec:
    """The feature columns that a fitted model needs, by name or by number.

    With `is_table` the model takes a mixed table: cells may be words or blank, and columns may be
    missing. `not_features` are columns that a file may have besides: those of labels.
    """

    names: Sequence[str] | None = None
    n_features: int | None = None
    is_table: bool = False
    not_features: Sequence[str] = ()

    @property
    def width(self) -> int | None:
        """The number of columns that are needed, where it is known."""
        return len(self.names) if self.names is not None else self.n_features

    def columns(self, available: Sequence[str], path: FilePath) -> np.ndarray | None:
        """Positions of the needed columns in a file; None for all columns in their order."""
        if self.names is not None and tuple(self.names) != tuple(available):
            position = {name: j for j, name in enumerate(available)}
            missing = [name for name in self.names if name not in position]
            if missing:
                raise DataFileError(
                    f"the feature {missing[0]!r} is missing ({len(missing)} of "
                    f"{len(self.names)} features are not among the {len(available)} columns)",
                    path=path,
                )
            return np.array([position[name] for name in self.names], dtype=np.intp)
        self.check_width(len(available), path)
        return None

    def check_width(self, width: int, path: FilePath) -> None:
        """Raise an error if a file has another number of feature columns."""
        if self.n_features is not None and self.n_features != width:
            raise DataFileError(
                f"the file has {width} feature columns, but {self.n_features} are needed: "
                "name its label columns with labels=, or the columns to leave out with drop=",
                path=path,
                parameter=("labels", "drop"),
            )


def sparse_rows(
    counts: np.ndarray, columns: np.ndarray, values: np.ndarray, width: int
) -> sp.csr_array:
    """Make a sparse array from the number of entries per row, their columns and values."""
    indptr = np.zeros(len(counts) + 1, dtype=np.int32)
    np.cumsum(counts, out=indptr[1:])
    matrix = sp.csr_array((values, columns, indptr), shape=(len(counts), width))
    matrix.sort_indices()
    return matrix


def feature_dtype(values: np.ndarray) -> type[np.floating]:
    """float32, or float64 where float32 would change the values noticeably.

    That is the case for values beyond the range of float32 and for whole numbers (counts,
    identifiers, seconds) above 2**24 that float32 would round.

    >>> feature_dtype(np.array([0.1, 3.0])), feature_dtype(np.array([2.0**24 + 1]))
    (<class 'numpy.float32'>, <class 'numpy.float64'>)
    """
    if values.dtype == np.float32:
        return np.float32
    if values.size and values.min() >= -(2**24) and values.max() <= 2**24:
        return np.float32  # as most are; NaN is compared below
    magnitudes = np.abs(values)
    if not (magnitudes > 2**24).any():
        return np.float32
    large = values[(magnitudes > 2**24) & np.isfinite(values)]
    with np.errstate(over="ignore"):
        rounded = large.astype(np.float32)
    damaged = ~np.isfinite(rounded) | ((large == np.rint(large)) & (rounded != large))
    return np.float64 if damaged.any() else np.float32


def make_dataset(
    path: FilePath,
    X: Any,
    Y: Any,
    label_names: Sequence[str] | None,
    *,
    descriptions: Mapping[str, str] | None = None,
    **attributes: Any,
) -> Dataset:
    """Make a data set named after its file; errors about the labels name the file.

    Empty descriptions, and those of labels that the data set does not have, are left out. An array
    with blanks becomes a table, which every method takes.
    """
    known = set(label_names or ())
    texts = {name: text for name, text in (descriptions or {}).items() if text and name in known}
    try:
        if Y is None:
            labels = no_labels(count_rows(X))
        else:
            labels = as_labels(Y, names=label_names, descriptions=texts or None)
        attributes.setdefault("name", uncompressed_stem(path))
        if isinstance(X, np.ndarray) and X.ndim == 2 and np.isnan(X.min(initial=0)):
            X = Table(as_frame(X, attributes.get("feature_names")))
        return Dataset(X, labels, **attributes)
    except DataFileError:
        raise
    except InputError as error:
        raise DataFileError(str(error), path=path) from None
