"""The best k labels of each row, from dense or sparse scores."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from labelweave.labels import LabelMatrix
from labelweave.metrics._counts import count_known
from labelweave.metrics._inputs import chunks

__all__ = ["Top", "top_labels", "top_of_sparse"]


class Top(NamedTuple):
    """The best known labels of each row.

    Attributes
    ----------
    labels : int ndarray of shape (n_rows, k)
        From the best down; -1 where a row has fewer.
    hits : bool ndarray of shape (n_rows, k)
        Which of them are positive.
    positive, known : ndarray of shape (n_rows,)
        How many positive and how many known labels each row has.
    """

    labels: np.ndarray
    hits: np.ndarray
    positive: np.ndarray
    known: np.ndarray


def top_labels(Y_true: LabelMatrix, scores: np.ndarray | sp.csr_array, k: int) -> Top:
    """The k best known labels of each row; of equal scores the label that comes first wins."""
    k = min(k, Y_true.n_labels)
    positive = Y_true.positive()
    if sp.issparse(scores):
        labels = top_of_sparse(_only_known(Y_true, scores), k)
    else:
        labels = np.empty((Y_true.n_rows, k), dtype=np.int64)
        for rows in chunks(*Y_true.shape):
            block, unknown = scores[rows], None
            if Y_true.has_unknown:
                unknown = np.isnan(Y_true[rows].to_numpy())
                block = np.where(unknown, -np.inf, block)
            best = _top_of_dense(block, k)
            if unknown is not None:
                best[np.take_along_axis(unknown, best, axis=1)] = -1
            labels[rows] = best
    rows_of = np.repeat(np.arange(Y_true.n_rows), k)
    hits = _look_up(positive, rows_of, labels.ravel()).reshape(labels.shape) & (labels >= 0)
    n_positive = np.asarray(positive.sum(axis=1)).ravel()
    return Top(labels, hits, n_positive, count_known(Y_true, axis=1))


def _top_of_dense(scores: np.ndarray, k: int) -> np.ndarray:
    n_labels = scores.shape[1]
    best = np.argpartition(scores, n_labels - k, axis=1)[:, n_labels - k :]
    lowest = np.take_along_axis(scores, best, axis=1).min(axis=1)
    # argpartition takes any of several labels that tie for the last place.
    tied = np.flatnonzero((scores >= lowest[:, None]).sum(axis=1) > k)
    if len(tied):
        some, bar = scores[tied], lowest[tied, None]
        above, equal = some > bar, some == bar
        free = k - above.sum(axis=1, keepdims=True)
        chosen = above | (equal & (np.cumsum(equal, axis=1) <= free))
        best[tied] = np.nonzero(chosen)[1].reshape(-1, k)
    best.sort(axis=1)
    order = np.argsort(-np.take_along_axis(scores, best, axis=1), axis=1, kind="stable")
    return np.take_along_axis(best, order, axis=1)


def top_of_sparse(scores: sp.csr_array, k: int) -> np.ndarray:
    """The k best stored labels of each row, from the best down; -1 where a row has fewer."""
    n_rows = scores.shape[0]
    rows = np.repeat(np.arange(n_rows), np.diff(scores.indptr))
    order = np.lexsort((scores.indices, -scores.data, rows))
    place = np.arange(len(order)) - np.repeat(scores.indptr[:-1], np.diff(scores.indptr))
    kept = place < k
    labels = np.full((n_rows, k), -1, dtype=np.int64)
    labels[rows[kept], place[kept]] = scores.indices[order[kept]]
    return labels


def _only_known(Y_true: LabelMatrix, scores: sp.csr_array) -> sp.csr_array:
    """The stored scores of known entries."""
    if not Y_true.has_unknown:
        return scores
    rows = np.repeat(np.arange(Y_true.n_rows), np.diff(scores.indptr))
    if Y_true.is_sparse and np.isnan(Y_true.absent):
        known: Any = Y_true.known()
        kept = _look_up(known, rows, scores.indices)
    else:
        kept = ~_look_up(Y_true.unknown(), rows, scores.indices)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows[kept], minlength=Y_true.n_rows))])
    return sp.csr_array((scores.data[kept], scores.indices[kept], indptr), shape=scores.shape)


def _look_up(matrix: Any, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Single entries of a Boolean matrix, dense or sparse."""
    if len(rows) == 0:  # SciPy would answer with a sparse matrix
        return np.zeros(0, dtype=bool)
    return np.asarray(matrix[rows, columns], dtype=bool).ravel()
