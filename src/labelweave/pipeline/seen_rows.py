"""Rows as numbers, to tell later which of them a model was fitted on.

A score is worth little on rows that the model has learnt. A model folder therefore keeps one
64-bit number a row used, made of its features alone; the same row gives the same number
whether it is stored dense or sparse.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from labelweave.rows import row_chunks

__all__ = ["row_numbers"]

_CHUNK_ENTRIES = 4_000_000


def row_numbers(X: Any) -> np.ndarray:
    """One 64-bit number a row; equal rows get equal numbers.

    >>> X = np.array([[0.0, 1.5], [2.0, 0.0], [0.0, 1.5]])
    >>> numbers = row_numbers(X)
    >>> bool(numbers[0] == numbers[2]), bool(numbers[0] == numbers[1])
    (True, False)
    >>> bool((row_numbers(sp.csr_array(X)) == numbers).all())
    True
    """
    if hasattr(X, "hashes"):  # images: the content of their files, at any size
        return np.array([int(one[:16], 16) for one in X.hashes()], dtype=np.uint64)
    if not hasattr(X, "shape"):
        from pandas.util import hash_array

        return hash_array(np.asarray(X, dtype=object), categorize=False)
    if sp.issparse(X):
        return _of_sparse(sp.csr_array(X))
    if X.ndim > 2:
        X = X.reshape(len(X), -1)
    pieces = [
        _of_sparse(sp.csr_array(np.asarray(X[rows], dtype=np.float32)))
        for rows in row_chunks(X.shape[0], X.shape[1], _CHUNK_ENTRIES)
    ]
    return np.concatenate(pieces) if pieces else np.empty(0, dtype=np.uint64)


def _of_sparse(X: sp.csr_array) -> np.ndarray:
    """Sum of one mixed number a non-zero entry: the order in which entries lie is no matter."""
    values = np.ascontiguousarray(X.data, dtype=np.float32)
    mixed = _mix(X.indices.astype(np.uint64) << np.uint64(32) | values.view(np.uint32))
    mixed[values == 0] = 0  # a stored zero is no entry
    totals = np.concatenate([np.zeros(1, np.uint64), np.cumsum(mixed, dtype=np.uint64)])
    return _mix(totals[X.indptr[1:]] - totals[X.indptr[:-1]])  # wraps around, as it should


def _mix(numbers: np.ndarray) -> np.ndarray:
    """Spread neighbouring numbers over all 64 bits (the finaliser of SplitMix64)."""
    z = numbers + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
