"""Counts and F1 at many thresholds at once, to choose among them.

Every score is looked up among the sorted thresholds once and counted in a histogram; cumulative
sums of the histogram, from the top down, are the counts at each threshold. The cost hardly depends
on the number of thresholds.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from labelweave.exceptions import InputError
from labelweave.metrics._counts import Counts, overlap_score
from labelweave.metrics._inputs import check_score, chunks

__all__ = ["sweep_counts", "sweep_f1"]


def sweep_counts(Y_true: Any, Y_score: Any, thresholds: Any, *, by: str = "label") -> Counts:
    """Count true positives, predictions, positives and known entries at each threshold.

    A label is predicted if its score is at least the threshold. Unknown entries are ignored.
    `hits` and `predicted` have shape (n_labels or n_rows, n_thresholds), `positive` and `known`
    (n_labels or n_rows, 1); `by` is "label" or "row".

    Examples
    --------
    >>> counts = sweep_counts([[1, 0], [1, 1]], [[0.9, 0.2], [0.4, 0.7]], [0.3, 0.8])
    >>> counts.hits
    array([[2., 1.],
           [1., 0.]])
    """
    if by not in ("label", "row"):
        raise InputError(f"by must be 'label' or 'row', not {by!r}")
    truth, scores = check_score(Y_true, Y_score)
    # In the precision of the scores, as NumPy compares an array with a number.
    thresholds = np.asarray(thresholds, dtype=scores.dtype)
    if thresholds.ndim != 1 or len(thresholds) == 0 or np.isnan(thresholds).any():
        raise InputError("thresholds must be a list of at least one number")
    ascending = np.sort(thresholds)
    groups = truth.n_labels if by == "label" else truth.n_rows
    size = groups * (len(thresholds) + 1)
    hits, predicted = np.zeros(size), np.zeros(size)
    for rows in chunks(*truth.shape):
        values = truth[rows].to_numpy()
        of_rows = np.arange(rows.start, rows.stop)[:, None]
        group = np.arange(truth.n_labels) if by == "label" else of_rows
        reached = np.searchsorted(ascending, scores[rows], side="right")
        cell = group * (len(thresholds) + 1) + reached
        hits += np.bincount(cell[values == 1], minlength=size)
        known = cell[~np.isnan(values)] if truth.has_unknown else cell.ravel()
        predicted += np.bincount(known, minlength=size)
    hits, predicted = (
        part.reshape(groups, -1)[:, ::-1].cumsum(axis=1)[:, ::-1] for part in (hits, predicted)
    )
    reached_by = np.searchsorted(ascending, thresholds, side="left") + 1
    # The first column counts the entries that reach no threshold or more, which are all.
    return Counts(hits[:, reached_by], predicted[:, reached_by], hits[:, :1], predicted[:, :1])


def sweep_f1(
    Y_true: Any,
    Y_score: Any,
    thresholds: Any,
    *,
    average: str = "example",
    zero_division: float = 0.0,
) -> np.ndarray:
    """Compute F1 at each threshold, as :func:`labelweave.metrics.f1_example` and the like do.

    The averages are "example", "micro", "macro" and "label", which does not average: one F1 per
    label and threshold.

    Examples
    --------
    >>> sweep_f1([[1, 0], [1, 1]], [[0.9, 0.2], [0.4, 0.7]], [0.3, 0.8]).round(3)
    array([1. , 0.5])
    """
    if average not in ("example", "micro", "macro", "label"):
        raise InputError(f"average must be example, micro, macro or label, not {average!r}")
    by = "row" if average == "example" else "label"
    counts = sweep_counts(Y_true, Y_score, thresholds, by=by)
    if average == "micro":
        counts = Counts(*(part.sum(axis=0, keepdims=True) for part in counts))
    values = overlap_score("f1", counts, zero_division)
    values = np.where(counts.known > 0, values, np.nan)
    if average == "label":
        return values
    defined = ~np.isnan(values)
    totals, number = np.where(defined, values, 0.0).sum(axis=0), defined.sum(axis=0)
    return np.divide(totals, number, out=np.full(len(totals), np.nan), where=number > 0)
