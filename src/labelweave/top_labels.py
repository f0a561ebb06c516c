"""The best labels of each row as a sparse matrix, where rows x labels would not fit into memory.

A matrix of this kind stores the probabilities of the best labels of each row; a label that it does
not store is less probable than these.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelweave.capabilities import capabilities

__all__ = [
    "MANY_LABELS",
    "TOP_LABELS",
    "best_entries",
    "predicts_top_labels",
    "top_of_chunks",
    "top_of_dense",
]

MANY_LABELS = 5_000
"""From this number of labels on, a model that can predict the best labels of a row alone does."""

TOP_LABELS = 50
"""How many labels per row are then predicted, scored and written."""


_CHUNK_ENTRIES = 4_000_000


def predicts_top_labels(model: Any) -> bool:
    """Whether a fitted model has so many labels that it predicts the best of each row alone."""
    return capabilities(model).top_labels and model.n_labels_ >= MANY_LABELS


def best_entries(rows: np.ndarray, scores: np.ndarray, k: int) -> np.ndarray:
    """Positions of the k best entries of each row, by row and from the best down.

    >>> best_entries(np.array([1, 0, 1, 1]), np.array([0.2, 0.5, 0.9, 0.3]), 2)
    array([1, 2, 3])
    """
    order = np.lexsort((-scores, rows))
    ordered = rows[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=-1))
    place = np.arange(len(order)) - np.repeat(starts, np.diff(np.append(starts, len(order))))
    return order[place < k]


def top_of_dense(scores: Any, k: int) -> sp.csr_array:
    """The k best entries of each row of an array, as a sparse matrix.

    >>> top_of_dense(np.array([[0.1, 0.9, 0.5]]), 2).toarray()
    array([[0. , 0.9, 0.5]])
    """
    n_rows, n_labels = scores.shape
    k = min(k, n_labels)
    best = np.argpartition(-scores, k - 1, axis=1)[:, :k]
    best.sort(axis=1)
    values = np.take_along_axis(scores, best, axis=1)
    indptr = np.arange(0, n_rows * k + 1, k)
    return sp.csr_array((values.ravel(), best.ravel(), indptr), shape=scores.shape)


def top_of_chunks(
    predict: Callable[[Any], np.ndarray], X: Any, n_labels: int, k: int
) -> sp.csr_array:
    """The k best labels of each row by a function that predicts all, a few rows at a time."""
    n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
    step = max(1, _CHUNK_ENTRIES // n_labels)
    chunks = [X[start : start + step] for start in range(0, n_rows, step)]
    return sp.csr_array(sp.vstack([top_of_dense(predict(c), k) for c in chunks], format="csr"))
