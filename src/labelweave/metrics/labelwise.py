"""Metrics of how well each label ranks the rows: average precision and AUC.

Each label ranks the rows in which it is known, as if the others did not exist. Rows of equal score
are never ordered by position. The micro forms rank all known entries together.

All metrics of this module have the same parameters: `Y_true`, labels of shape (n_rows, n_labels),
1, 0 or NaN (unknown: the entry is ignored); `Y_score`, probabilities or any scores of the same
shape, higher is more likely positive; `sample_weight`, one weight per row, optional.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from labelweave.metrics._curves import Ranked, by_label, ranked_together
from labelweave.metrics._inputs import check_score, check_weight, mean_of_defined

__all__ = [
    "ap_micro",
    "auc_macro",
    "auc_micro",
    "auc_of_labels",
    "ap_of_labels",
    "mean_average_precision",
]


def ap_of_labels(Y_true: Any, Y_score: Any, *, sample_weight: Any = None) -> np.ndarray:
    """Average precision of each label, one number per label.

    The mean, over the known positives of a label, of the precision among the rows that score at
    least as high: scikit-learn's `average_precision_score`, for all labels at once. nan for a
    label without a known positive.

    Examples
    --------
    >>> ap_of_labels([[1, 0], [0, 0], [1, 0]], [[0.9, 0.1], [0.5, 0.2], [0.4, 0.3]]).round(3)
    array([0.833,   nan])
    """
    return _of_labels(Y_true, Y_score, sample_weight, Ranked.average_precision)


def mean_average_precision(Y_true: Any, Y_score: Any, *, sample_weight: Any = None) -> float:
    """Mean average precision (mAP): the mean of :func:`ap_of_labels` over the labels.

    Labels without a known positive are left out; nan if no label has one.
    """
    return mean_of_defined(ap_of_labels(Y_true, Y_score, sample_weight=sample_weight))


def ap_micro(Y_true: Any, Y_score: Any, *, sample_weight: Any = None) -> float:
    """Average precision of all known entries in one ranking.

    nan if no entry is positive.
    """
    return _pooled(Y_true, Y_score, sample_weight, Ranked.average_precision)


def auc_of_labels(Y_true: Any, Y_score: Any, *, sample_weight: Any = None) -> np.ndarray:
    """Area under the ROC curve of each label, one number per label.

    The share of the pairs (positive row, negative row) in the right order, ties counting
    half: scikit-learn's `roc_auc_score`, for all labels at once. nan for a label that lacks
    a known positive or a known negative.

    Examples
    --------
    >>> auc_of_labels([[1, 0], [0, 0], [1, 0]], [[0.9, 0.1], [0.5, 0.2], [0.4, 0.3]])
    array([0.5, nan])
    """
    return _of_labels(Y_true, Y_score, sample_weight, Ranked.auc)


def auc_macro(Y_true: Any, Y_score: Any, *, sample_weight: Any = None) -> float:
    """Mean of :func:`auc_of_labels` over the labels with both a positive and a negative.

    nan if no label has both.
    """
    return mean_of_defined(auc_of_labels(Y_true, Y_score, sample_weight=sample_weight))


def auc_micro(Y_true: Any, Y_score: Any, *, sample_weight: Any = None) -> float:
    """Area under the ROC curve of all known entries in one ranking.

    nan if the known entries are all positive or all negative.
    """
    return _pooled(Y_true, Y_score, sample_weight, Ranked.auc)


def _of_labels(Y_true: Any, Y_score: Any, sample_weight: Any, measure: Any) -> np.ndarray:
    truth, scores = check_score(Y_true, Y_score)
    return by_label(truth, scores, check_weight(sample_weight, truth.n_rows), measure)


def _pooled(Y_true: Any, Y_score: Any, sample_weight: Any, measure: Any) -> float:
    truth, scores = check_score(Y_true, Y_score)
    ranked = ranked_together(truth, scores, check_weight(sample_weight, truth.n_rows))
    return float(measure(ranked)[0])
