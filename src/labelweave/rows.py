"""Concatenate sets of rows, and split many rows into chunks that fit into memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelweave.data.images.collection import Images, concatenate_images
from labelweave.labels import LabelMatrix, is_frame
from labelweave.tables.table import Table, concatenate_tables

__all__ = ["concatenate_features", "concatenate_labels", "count_rows", "row_chunks"]


def count_rows(X: Any) -> int:
    """Return the number of rows of an array, a sparse matrix, a DataFrame or a list of texts."""
    return X.shape[0] if hasattr(X, "shape") else len(X)


def concatenate_features(parts: Sequence[Any]) -> Any:
    """Return the rows of arrays, sparse matrices, DataFrames, Tables, Images or lists as one.

    Parts without rows are left out; the result is sparse if any part is.

    >>> concatenate_features([np.zeros((2, 3)), sp.csr_array(np.ones((1, 3)))]).shape
    (3, 3)
    >>> concatenate_features([["one text"], ["another"]])
    ['one text', 'another']
    """
    parts = [part for part in parts if count_rows(part)] or list(parts[:1])
    first = parts[0]
    if len(parts) == 1:
        return first
    if isinstance(first, Images):
        return concatenate_images(parts)
    if isinstance(first, Table):
        return concatenate_tables(parts)
    if is_frame(first):
        import pandas as pd

        return pd.concat(parts, ignore_index=True)
    if any(sp.issparse(part) for part in parts):
        return sp.vstack([sp.csr_array(part) for part in parts], format="csr")
    if isinstance(first, np.ndarray):
        return np.concatenate(parts)
    return [row for part in parts for row in part]


def concatenate_labels(parts: Sequence[LabelMatrix]) -> LabelMatrix:
    """Return the labels of all parts; names and descriptions are those of the first.

    The result is sparse if every part is sparse and leaves out the same state.

    >>> from labelweave.labels import as_labels
    >>> concatenate_labels([as_labels([[1, 0]]), as_labels([[np.nan, 1]])]).to_numpy()
    array([[ 1.,  0.],
           [nan,  1.]], dtype=float32)
    """
    first = parts[0]
    absent = {None if np.isnan(part.absent) else part.absent for part in parts}
    if all(part.is_sparse for part in parts) and len(absent) == 1:
        values: Any = sp.vstack([part.values for part in parts], format="csr")
    else:
        values = np.concatenate([part.to_numpy() for part in parts])
    return LabelMatrix(values, first.names, first.descriptions, absent=first.absent)


def row_chunks(n_rows: int, entries_per_row: int, max_entries: int = 4_000_000) -> list[slice]:
    """Split rows into slices of at most `max_entries` entries, or of one row if that has more.

    >>> row_chunks(5, 10, max_entries=20)
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    step = max(1, max_entries // max(entries_per_row, 1))
    return [slice(start, min(start + step, n_rows)) for start in range(0, n_rows, step)]
