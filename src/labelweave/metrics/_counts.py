"""Counts of correct and wrong predictions among the known entries."""

from __future__ import annotations

from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from labelweave.exceptions import InputError
from labelweave.labels import LabelMatrix

__all__ = ["Counts", "count", "count_known", "overlap_score"]


class Counts(NamedTuple):
    """Numbers of known entries that are true positives, predicted, positive, and known at all.

    One number per row, per label or in total; sums of weights if rows have weights.
    """

    hits: np.ndarray
    predicted: np.ndarray
    positive: np.ndarray
    known: np.ndarray

    def pooled(self) -> Counts:
        """Return the totals, as arrays of one number."""
        return Counts(*(part.sum(keepdims=True) for part in self))

    @property
    def wrong(self) -> np.ndarray:
        return self.predicted + self.positive - 2 * self.hits


def count(
    Y_true: LabelMatrix, Y_pred: LabelMatrix, axis: int, weight: np.ndarray | None = None
) -> Counts:
    """Counts per label (`axis=0`, rows weighted by `weight`) or per row (`axis=1`)."""
    positive, predicted = Y_true.positive(), Y_pred.positive()
    if Y_true.is_sparse:
        predicted = sp.csr_array(predicted)
    elif sp.issparse(predicted):
        predicted = predicted.toarray()
    hits = _sum(_both(positive, predicted), axis, weight)
    predictions = _sum(predicted, axis, weight)
    if Y_true.has_unknown:
        if Y_true.unstored_is_unknown:
            predictions = _sum(_both(Y_true.known(), predicted), axis, weight)
        else:
            predictions = predictions - _sum(_both(Y_true.unknown(), predicted), axis, weight)
    known = count_known(Y_true, axis, weight)
    return Counts(hits, predictions, _sum(positive, axis, weight), known)


def count_known(Y_true: LabelMatrix, axis: int, weight: np.ndarray | None = None) -> np.ndarray:
    """Known entries per label (`axis=0`, rows weighted) or per row (`axis=1`)."""
    total = weight.sum() if weight is not None and axis == 0 else Y_true.shape[axis]
    known = np.full(Y_true.shape[1 - axis], float(total))
    if not Y_true.has_unknown:
        return known
    if Y_true.unstored_is_unknown:
        return _sum(Y_true.known(), axis, weight)
    return known - _sum(Y_true.unknown(), axis, weight)


def overlap_score(kind: str, counts: Counts, zero_division: float) -> np.ndarray:
    """Precision, recall, F1 or Jaccard index of each set of counts."""
    if not isinstance(zero_division, Real) or not (
        zero_division in (0, 1) or np.isnan(zero_division)
    ):
        raise InputError(f"zero_division must be 0, 1 or nan, not {zero_division!r}")
    above, below = {
        "precision": (counts.hits, counts.predicted),
        "recall": (counts.hits, counts.positive),
        "f1": (2 * counts.hits, counts.predicted + counts.positive),
        "jaccard": (counts.hits, counts.predicted + counts.positive - counts.hits),
    }[kind]
    undefined = np.full(np.shape(below), float(zero_division))
    return np.divide(above, below, out=undefined, where=below > 0)


def _both(a: Any, b: Any) -> Any:
    return a.multiply(b) if sp.issparse(a) else a & b


def _sum(matrix: Any, axis: int, weight: np.ndarray | None) -> np.ndarray:
    if axis == 0 and weight is not None:
        return np.asarray(matrix.T @ weight, dtype=np.float64)
    return np.asarray(matrix.sum(axis=axis), dtype=np.float64).ravel()
