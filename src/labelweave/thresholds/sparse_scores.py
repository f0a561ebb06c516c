"""Label sets and thresholds from the scores of the best labels of each row, a sparse matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from labelweave.exceptions import InputError
from labelweave.labels import LabelMatrix
from labelweave.top_labels import best_entries

__all__ = ["best_of_rows", "chosen_entries", "dense_scores", "tune_on_sparse"]


def dense_scores(scores: Any, kind: str) -> np.ndarray:
    """The scores as an array; refused if only those of the best labels are there."""
    if sp.issparse(scores):
        raise InputError(
            f"the threshold {kind} needs the scores of all labels, but there are those of the best "
            "labels only: use a number, tuned, top-3 or cardinality"
        )
    return np.asarray(scores)


def best_of_rows(scores: sp.csr_array, k: int) -> np.ndarray:
    """Positions of the k best stored entries of each row."""
    return best_entries(_rows_of(scores), scores.data, k)


def chosen_entries(scores: sp.csr_array, positions: np.ndarray) -> sp.csr_array:
    """A matrix of ones at these stored entries.

    >>> scores = sp.csr_array([[0.2, 0.0, 0.7]])
    >>> chosen_entries(scores, np.array([1])).toarray()
    array([[0, 0, 1]], dtype=int8)
    """
    rows = _rows_of(scores)[positions]
    ones = np.ones(len(positions), dtype=np.int8)
    return sp.csr_array((ones, (rows, scores.indices[positions])), shape=scores.shape)


def tune_on_sparse(metric: str, Y: LabelMatrix, scores: sp.csr_array) -> tuple[float, float]:
    """The threshold with the best F1 of examples or of all entries, and that F1.

    Going down the scores of all rows, each one adds a label to the set of its row and changes the
    F1 of the row (or of all) by an amount that is known from the ranks within the row, so that one
    cumulative sum is the F1 at every threshold.

    >>> from labelweave.labels import as_labels
    >>> scores = sp.csr_array([[0.4, 0.1], [0.2, 0.5], [0.3, 0.6]])
    >>> tune_on_sparse("f1_example", as_labels([[1, 0], [0, 1], [1, 1]]), scores)
    (0.25, 1.0)
    """
    from labelweave.thresholds.threshold_search import threshold_between

    if metric not in ("f1_example", "f1_micro"):
        raise InputError(
            f"with many labels a threshold is tuned for f1_example or f1_micro, not {metric}"
        )
    order = best_of_rows(scores, scores.shape[1])
    rows, columns, values = _rows_of(scores)[order], scores.indices[order], scores.data[order]
    known, hits = _known_and_hits(Y, rows, columns)
    rows, values, hits = rows[known], values[known], hits[known]
    if not len(rows):
        raise InputError("no label is predicted in the validation rows: no threshold can be tuned")
    positives = np.asarray(Y.positive().sum(axis=1)).ravel()
    if metric == "f1_example":
        starts = np.flatnonzero(np.diff(rows, prepend=-1))
        first = np.repeat(starts, np.diff(np.append(starts, len(rows))))
        place = np.arange(len(rows)) - first + 1
        n_right = np.cumsum(hits)
        n_right = n_right - (n_right[first] - hits[first])
        f1 = 2 * n_right / (place + positives[rows])
        before = np.where(place == 1, 0, np.roll(f1, 1))
        down = np.argsort(-values, kind="stable")
        n_scored = max(int((_known_per_row(Y) > 0).sum()), 1)
        at = np.cumsum((f1 - before)[down]) / n_scored
    else:
        down = np.argsort(-values, kind="stable")
        n_right = np.cumsum(hits[down])
        at = 2 * n_right / (np.arange(1, len(down) + 1) + positives.sum())
    values = values[down]
    last = np.flatnonzero(np.append(values[1:] < values[:-1], True))  # of equal scores
    best = last[int(at[last].argmax())]
    below = values[best + 1] if best + 1 < len(values) else values[best]
    return float(threshold_between(below, values[best])), float(at[best])


def _rows_of(scores: sp.csr_array) -> np.ndarray:
    return np.repeat(np.arange(scores.shape[0]), np.diff(scores.indptr))


def _known_and_hits(
    Y: LabelMatrix, rows: np.ndarray, columns: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    values = np.asarray(Y.values[rows, columns]).ravel()
    known = ~np.isnan(values)
    if Y.unstored_is_unknown:
        stored = Y.values.copy()
        stored.data = np.ones_like(stored.data)
        known &= np.asarray(stored[rows, columns]).ravel() > 0
    return known, np.where(known, values, 0)


def _known_per_row(Y: LabelMatrix) -> np.ndarray:
    known = Y.known() if Y.unstored_is_unknown else None
    if known is not None:
        return np.asarray(known.sum(axis=1)).ravel()
    return Y.n_labels - np.asarray(Y.unknown().sum(axis=1)).ravel()
