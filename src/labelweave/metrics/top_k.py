"""Metrics of the first k labels of each row, as used with very many labels.

`Y_score` is a dense array, or a SciPy sparse matrix that holds the scores of the best labels
of each row; labels that it does not store are never among the first k. A sparse `Y_true` stays
sparse.

Each row ranks its known labels only, as if the unknown ones did not exist; a row without a
known label is ignored. Among equal scores the label that comes first wins. The other parameters
are those of :mod:`labelweave.metrics.labelwise`.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from labelweave.exceptions import InputError
from labelweave.labels import LabelMatrix, as_labels
from labelweave.metrics._counts import count_known
from labelweave.metrics._inputs import check_score, check_weight, chunks, mean_of_defined

__all__ = [
    "ndcg_at_k",
    "precision_at_k",
    "propensities",
    "psndcg_at_k",
    "psp_at_k",
    "recall_at_k",
]


def precision_at_k(Y_true: Any, Y_score: Any, k: int = 5, *, sample_weight: Any = None) -> float:
    """Share of positives among the k best labels of a row, averaged over the rows.

    A row with fewer than k known labels is divided by their number. A row without a positive
    label counts as 0.

    Examples
    --------
    >>> Y_true, Y_score = [[1, 0, 1], [0, 1, 0]], [[0.9, 0.8, 0.1], [0.2, 0.7, 0.6]]
    >>> precision_at_k(Y_true, Y_score, k=1), precision_at_k(Y_true, Y_score, k=2)
    (1.0, 0.5)
    """
    _, top, weight = _top(Y_true, Y_score, k, sample_weight)
    places = np.maximum(np.minimum(k, top.known), 1)
    return mean_of_defined(top.hits.sum(axis=1) / places, top.known > 0, weight)


def recall_at_k(Y_true: Any, Y_score: Any, k: int = 5, *, sample_weight: Any = None) -> float:
    """Share of a row's positive labels that are among its k best, averaged over the rows.

    Rows without a known positive are left out; nan if no row has one.

    Examples
    --------
    >>> recall_at_k([[1, 0, 1], [0, 1, 0]], [[0.9, 0.8, 0.1], [0.2, 0.7, 0.6]], k=2)
    0.75
    """
    _, top, weight = _top(Y_true, Y_score, k, sample_weight)
    recalls = top.hits.sum(axis=1) / np.maximum(top.positive, 1)
    return mean_of_defined(recalls, top.positive > 0, weight)


def ndcg_at_k(Y_true: Any, Y_score: Any, k: int = 5, *, sample_weight: Any = None) -> float:
    """Normalised discounted cumulative gain of the k best labels, averaged over the rows.

    A positive label at place r is worth 1 / log2(r + 1); the sum is divided by the largest that
    the row's number of positives allows. Rows without a known positive are left out (where
    scikit-learn's `ndcg_score` counts 0); nan if no row has one.

    Examples
    --------
    >>> ndcg_at_k([[1, 0, 1], [0, 1, 0]], [[0.9, 0.1, 0.8], [0.2, 0.7, 0.6]], k=2)
    1.0
    """
    _, top, weight = _top(Y_true, Y_score, k, sample_weight)
    gain = top.hits @ _discounts(top.hits.shape[1])
    return mean_of_defined(gain / _ideal_discount(top, k), top.positive > 0, weight)


def propensities(Y_train: Any, *, a: float = 0.55, b: float = 1.5) -> np.ndarray:
    """Estimate the probability that a positive of each label was annotated, from its frequency.

    p = 1 / (1 + C (n_l + b)^-a) with C = (log n - 1) (b + 1)^a, where n is the number of training
    rows and n_l the number of known positives of the label. The defaults are those of [1]_ for
    most data sets (Wikipedia: a = 0.5, b = 0.4; Amazon: a = 0.6, b = 2.6).

    References
    ----------
    .. [1] Jain, Prabhu, Varma (2016). Extreme multi-label loss functions for recommendation,
           tagging, ranking and other missing label applications. KDD.

    Examples
    --------
    >>> import numpy as np
    >>> Y_train = np.zeros((100, 2))
    >>> Y_train[:50, 0] = Y_train[:1, 1] = 1
    >>> propensities(Y_train).round(3)
    array([0.594, 0.217])
    """
    labels = as_labels(Y_train)
    if labels.n_rows == 0:
        raise InputError("Y_train has no rows: propensities are estimated from training rows")
    positives, _ = labels.counts()
    # Below three rows the logarithm makes C negative: every positive then counts as annotated.
    c = max(np.log(labels.n_rows) - 1, 0.0) * (b + 1) ** a
    return 1.0 / (1.0 + c * (positives + b) ** -a)


def psp_at_k(
    Y_true: Any, Y_score: Any, k: int = 5, *, propensities: Any, sample_weight: Any = None
) -> float:
    """Propensity-scored precision at k: a hit on a label counts 1 / its propensity.

    The total over all rows is divided by the largest possible total, as is usual, so
    a perfect ranking scores 1. nan if no row has a known positive. `propensities` has one number
    per label, estimated from the training labels by :func:`propensities`.

    Examples
    --------
    >>> Y_true, Y_score = [[1, 0, 1], [0, 1, 0]], [[0.9, 0.8, 0.1], [0.2, 0.7, 0.6]]
    >>> round(psp_at_k(Y_true, Y_score, k=1, propensities=[0.5, 0.5, 0.25]), 3)
    0.667
    """
    truth, top, weight = _top(Y_true, Y_score, k, sample_weight)
    worth = _worth(propensities, truth.n_labels)
    places = np.ones(top.hits.shape[1])
    gained, best = _gained(top, worth) @ places, _best_gains(truth, worth, k) @ places
    return _ratio_of_sums(gained, best, weight)


def psndcg_at_k(
    Y_true: Any, Y_score: Any, k: int = 5, *, propensities: Any, sample_weight: Any = None
) -> float:
    """Propensity-scored nDCG at k: :func:`ndcg_at_k` with a hit worth 1 / its label's propensity.

    Each row's sum is divided by that of min(k, positives) unit hits; the total over the rows is
    divided by the largest possible total, so a perfect ranking scores 1. nan if no row has a
    known positive.

    Examples
    --------
    >>> Y_true, Y_score = [[1, 0, 1], [0, 1, 0]], [[0.9, 0.8, 0.1], [0.2, 0.7, 0.6]]
    >>> round(psndcg_at_k(Y_true, Y_score, k=3, propensities=[0.5, 0.5, 0.25]), 3)
    0.852
    """
    truth, top, weight = _top(Y_true, Y_score, k, sample_weight)
    worth = _worth(propensities, truth.n_labels)
    discounts, ideal = _discounts(top.hits.shape[1]), _ideal_discount(top, k)
    gained = _gained(top, worth) @ discounts / ideal
    best = _best_gains(truth, worth, k) @ discounts / ideal
    return _ratio_of_sums(gained, best, weight)


class _Top(NamedTuple):
    """The best known labels of each row."""

    labels: np.ndarray  # (n_rows, k), from the best down; -1 if a row has fewer
    hits: np.ndarray  # (n_rows, k), which of them are positive
    positive: np.ndarray  # number of positive labels per row
    known: np.ndarray  # number of known labels per row


def _top(
    Y_true: Any, Y_score: Any, k: int, sample_weight: Any
) -> tuple[LabelMatrix, _Top, np.ndarray | None]:
    if not isinstance(k, Integral) or isinstance(k, bool) or k < 1:
        raise InputError(f"k must be a whole number of at least 1, not {k!r}")
    truth, scores = check_score(Y_true, Y_score, sparse=True)
    weight = check_weight(sample_weight, truth.n_rows)
    return truth, _top_labels(truth, scores, int(k)), weight


def _discounts(n_places: int) -> np.ndarray:
    return 1.0 / np.log2(np.arange(2, n_places + 2))


def _ideal_discount(top: _Top, k: int) -> np.ndarray:
    """The discounts that a row's positives could earn; 1 for a row without any."""
    largest = np.cumsum(_discounts(top.hits.shape[1]))
    return largest[np.clip(top.positive, 1, min(k, len(largest))) - 1]


def _worth(propensities: Any, n_labels: int) -> np.ndarray:
    values = np.asarray(propensities, dtype=np.float64)
    if values.shape != (n_labels,):
        raise InputError(f"propensities has shape {values.shape}, but there are {n_labels} labels")
    if not ((values > 0) & (values <= 1)).all():
        raise InputError("propensities must lie above 0 and not above 1")
    return 1.0 / values


def _gained(top: _Top, worth: np.ndarray) -> np.ndarray:
    return np.where(top.hits, worth[top.labels], 0.0)


def _best_gains(truth: LabelMatrix, worth: np.ndarray, k: int) -> np.ndarray:
    """What each place of the best possible ranking earns, shape (n_rows, k)."""
    positive = sp.csr_array(truth.positive())
    gains = sp.csr_array(
        (worth[positive.indices], positive.indices, positive.indptr), shape=positive.shape
    )
    ideal = _top_of_sparse(gains, min(k, truth.n_labels))
    return np.where(ideal >= 0, worth[ideal], 0.0)


def _ratio_of_sums(gained: np.ndarray, best: np.ndarray, weight: np.ndarray | None) -> float:
    weight = np.ones(len(gained)) if weight is None else weight
    possible = weight @ best
    return float(weight @ gained / possible) if possible > 0 else float("nan")


def _top_labels(Y_true: LabelMatrix, scores: np.ndarray | sp.csr_array, k: int) -> _Top:
    """Return the k best known labels per row; among equal scores the first label wins."""
    k = min(k, Y_true.n_labels)
    positive = Y_true.positive()
    if sp.issparse(scores):
        labels = _top_of_sparse(_only_known(Y_true, scores), k)
    else:
        labels = np.empty((Y_true.n_rows, k), dtype=np.int64)
        for rows in chunks(*Y_true.shape):
            chunk, unknown = scores[rows], None
            if Y_true.has_unknown:
                unknown = np.isnan(Y_true[rows].to_numpy())
                chunk = np.where(unknown, -np.inf, chunk)
            best = _top_of_dense(chunk, k)
            if unknown is not None:
                best[np.take_along_axis(unknown, best, axis=1)] = -1
            labels[rows] = best
    rows_of = np.repeat(np.arange(Y_true.n_rows), k)
    hits = _look_up(positive, rows_of, labels.ravel()).reshape(labels.shape) & (labels >= 0)
    n_positive = np.asarray(positive.sum(axis=1)).ravel()
    return _Top(labels, hits, n_positive, count_known(Y_true, axis=1))


def _top_of_dense(scores: np.ndarray, k: int) -> np.ndarray:
    n_labels = scores.shape[1]
    best = np.argpartition(scores, n_labels - k, axis=1)[:, n_labels - k :]
    lowest = np.take_along_axis(scores, best, axis=1).min(axis=1)
    # argpartition takes any of several labels that tie for the last place.
    tied = np.flatnonzero((scores >= lowest[:, None]).sum(axis=1) > k)
    if len(tied):
        tied_scores, bar = scores[tied], lowest[tied, None]
        above, equal = tied_scores > bar, tied_scores == bar
        free = k - above.sum(axis=1, keepdims=True)
        chosen = above | (equal & (np.cumsum(equal, axis=1) <= free))
        best[tied] = np.nonzero(chosen)[1].reshape(-1, k)
    best.sort(axis=1)
    order = np.argsort(-np.take_along_axis(scores, best, axis=1), axis=1, kind="stable")
    return np.take_along_axis(best, order, axis=1)


def _top_of_sparse(scores: sp.csr_array, k: int) -> np.ndarray:
    """Return the k best stored labels per row, best first; -1 if a row has fewer."""
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
    if Y_true.unstored_is_unknown:
        kept = _look_up(Y_true.known(), rows, scores.indices)
    else:
        kept = ~_look_up(Y_true.unknown(), rows, scores.indices)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows[kept], minlength=Y_true.n_rows))])
    return sp.csr_array((scores.data[kept], scores.indices[kept], indptr), shape=scores.shape)


def _look_up(matrix: Any, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Single entries of a Boolean matrix, dense or sparse."""
    if len(rows) == 0:  # SciPy would answer with a sparse matrix
        return np.zeros(0, dtype=bool)
    return np.asarray(matrix[rows, columns], dtype=bool).ravel()
