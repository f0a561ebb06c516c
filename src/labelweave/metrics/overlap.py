"""Metrics of the overlap of true and predicted label sets.

Precision, recall, F1 and Jaccard index, each with three kinds of average:

* ``average="example"``: computed for each row and averaged over the rows;
* ``average="macro"``: computed for each label and averaged over the labels;
* ``average="micro"``: computed once from the counts of all entries together.

``f1_example``, ``f1_macro``, ``f1_micro`` and so on are the same functions with the average set.

Only known entries are counted. A row (``"example"``) or a label (``"macro"``) without a known
entry is ignored.

Where a score is 0/0 (F1 and Jaccard: neither a positive nor a predicted label; precision:
nothing predicted; recall: nothing positive) `zero_division` is used, as in
scikit-learn: 0 by default, which equals scikit-learn's default; 1 rewards an empty prediction for
an empty row; nan leaves the row or label out of the average. The literature on neural
multi-label methods computes the example F1 with nan (rows whose truth and prediction are both
empty are dropped) and the macro F1 with 0 (a label that is absent counts as 0).

All metrics of this module have the same parameters:

* ``Y_true``: labels of shape (n_rows, n_labels), 1, 0 or NaN (unknown: the entry is ignored), in
  any form that :func:`labelweave.labels.as_labels` reads;
* ``Y_pred``: label sets of the same shape, 1 or 0, dense or sparse, or lists of label names;
* ``sample_weight``: one weight per row, optional;
* ``zero_division``: 0.0 (the default), 1.0 or nan, see above.

The result is nan if no row or label is left to average over.

Examples
--------
>>> Y_true, Y_pred = [[1, 0], [1, 1], [0, 1]], [[1, 1], [0, 1], [0, 1]]
>>> [round(f1(Y_true, Y_pred, average=average), 3) for average in ("example", "macro", "micro")]
[0.778, 0.733, 0.75]
>>> round(recall_example(Y_true, Y_pred), 3)
0.833
"""

from __future__ import annotations

from functools import partial
from typing import Any

from labelweave.exceptions import InputError
from labelweave.metrics._counts import count, overlap_score
from labelweave.metrics._inputs import check_pred, check_weight, mean_of_defined

__all__ = [
    "cf1",
    "f1",
    "f1_example",
    "f1_macro",
    "f1_micro",
    "jaccard",
    "jaccard_example",
    "jaccard_macro",
    "jaccard_micro",
    "of1",
    "precision",
    "precision_example",
    "precision_macro",
    "precision_micro",
    "recall",
    "recall_example",
    "recall_macro",
    "recall_micro",
]


def f1(
    Y_true: Any,
    Y_pred: Any,
    *,
    average: str = "example",
    sample_weight: Any = None,
    zero_division: float = 0.0,
) -> float:
    """F1, 2 x hits / (positives + predictions): the harmonic mean of precision and recall.

    Examples
    --------
    >>> import numpy as np
    >>> Y_true, Y_pred = [[1, 1, 0], [0, 0, 0]], [[1, 0, 0], [0, 0, 0]]
    >>> round(f1(Y_true, Y_pred), 3)
    0.333
    >>> round(f1(Y_true, Y_pred, zero_division=np.nan), 3)
    0.667
    """
    return _score("f1", Y_true, Y_pred, average, sample_weight, zero_division)


def precision(
    Y_true: Any,
    Y_pred: Any,
    *,
    average: str = "example",
    sample_weight: Any = None,
    zero_division: float = 0.0,
) -> float:
    """Share of the predicted labels that are positive: hits / predictions."""
    return _score("precision", Y_true, Y_pred, average, sample_weight, zero_division)


def recall(
    Y_true: Any,
    Y_pred: Any,
    *,
    average: str = "example",
    sample_weight: Any = None,
    zero_division: float = 0.0,
) -> float:
    """Share of the positive labels that are predicted: hits / positives."""
    return _score("recall", Y_true, Y_pred, average, sample_weight, zero_division)


def jaccard(
    Y_true: Any,
    Y_pred: Any,
    *,
    average: str = "example",
    sample_weight: Any = None,
    zero_division: float = 0.0,
) -> float:
    """Jaccard index: hits / (positives + predictions - hits)."""
    return _score("jaccard", Y_true, Y_pred, average, sample_weight, zero_division)


def _score(
    kind: str, Y_true: Any, Y_pred: Any, average: str, sample_weight: Any, zero_division: float
) -> float:
    if average not in ("example", "macro", "micro"):
        raise InputError(f"average must be example, macro or micro, not {average!r}")
    truth, predicted = check_pred(Y_true, Y_pred)
    weight = check_weight(sample_weight, truth.n_rows)
    if average == "example":
        counts = count(truth, predicted, axis=1)
    else:
        counts = count(truth, predicted, axis=0, weight=weight)
        weight = None  # already in the counts
        if average == "micro":
            counts = counts.pooled()
    return mean_of_defined(overlap_score(kind, counts, zero_division), counts.known > 0, weight)


f1_example = partial(f1, average="example")
f1_macro = partial(f1, average="macro")
f1_micro = partial(f1, average="micro")
precision_example = partial(precision, average="example")
precision_macro = partial(precision, average="macro")
precision_micro = partial(precision, average="micro")
recall_example = partial(recall, average="example")
recall_macro = partial(recall, average="macro")
recall_micro = partial(recall, average="micro")
jaccard_example = partial(jaccard, average="example")
jaccard_macro = partial(jaccard, average="macro")
jaccard_micro = partial(jaccard, average="micro")
of1 = f1_micro
"""Overall F1: the name of the image-tagging literature for the micro F1."""


def cf1(
    Y_true: Any, Y_pred: Any, *, sample_weight: Any = None, zero_division: float = 0.0
) -> float:
    """Per-class F1 (CF1): the harmonic mean of macro precision and macro recall.

    This is the definition of the image-tagging literature. It differs from
    :func:`f1_macro`, which is the mean of the labels' own F1.

    References
    ----------
    .. [1] Chen, Wei, Wang, Guo (2019). Multi-label image recognition with graph
           convolutional networks. CVPR.

    Examples
    --------
    >>> Y_true, Y_pred = [[1, 0], [1, 1], [0, 1]], [[1, 0], [0, 1], [0, 1]]
    >>> round(cf1(Y_true, Y_pred), 3), round(f1_macro(Y_true, Y_pred), 3)
    (0.857, 0.833)
    """
    p, r = (
        _score(kind, Y_true, Y_pred, "macro", sample_weight, zero_division)
        for kind in ("precision", "recall")
    )
    return 2 * p * r / (p + r) if p + r != 0 else float(zero_division)
