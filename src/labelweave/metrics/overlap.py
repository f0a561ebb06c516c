"""Metrics of the overlap of true and predicted label sets.

Precision, recall, F1 and Jaccard index, each with three kinds of average:

* ``_example``: computed for each row and averaged over the rows;
* ``_macro``: computed for each label and averaged over the labels;
* ``_micro``: computed once from the counts of all entries together.

Only known entries are counted. A row (``_example``) or a label (``_macro``) without a known
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
>>> [round(f1(Y_true, Y_pred), 3) for f1 in (f1_example, f1_macro, f1_micro)]
[0.778, 0.733, 0.75]
>>> [round(recall(Y_true, Y_pred), 3) for recall in (recall_example, recall_macro, recall_micro)]
[0.833, 0.75, 0.75]
"""

from __future__ import annotations

from typing import Any

from labelweave.metrics._counts import count, overlap_score
from labelweave.metrics._inputs import check_pred, check_weight, mean_of_defined

__all__ = [
    "cf1",
    "f1_example",
    "f1_macro",
    "f1_micro",
    "jaccard_example",
    "jaccard_macro",
    "jaccard_micro",
    "of1",
    "precision_example",
    "precision_macro",
    "precision_micro",
    "recall_example",
    "recall_macro",
    "recall_micro",
]


def _overlap(
    kind: str, average: str, Y_true: Any, Y_pred: Any, sample_weight: Any, zero_division: float
) -> float:
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


def f1_example(
    Y_true: Any, Y_pred: Any, *, sample_weight: Any = None, zero_division: float = 0.0
) -> float:
    """F1 of each row's label set, averaged over the rows.

    For a row with true set T and predicted set P, both among its known entries, F1 is
    2 |T and P| / (|T| + |P|).

    Examples
    --------
    >>> import numpy as np
    >>> Y_true, Y_pred = [[1, 1, 0], [0, 0, 0]], [[1, 0, 0], [0, 0, 0]]
    >>> round(f1_example(Y_true, Y_pred), 3)
    0.333
    >>> round(f1_example(Y_true, Y_pred, zero_division=np.nan), 3)
    0.667
    """
    return _overlap("f1", "example", Y_true, Y_pred, sample_weight, zero_division)


def f1_macro(
    Y_true: Any, Y_pred: Any, *, sample_weight: Any = None, zero_division: float = 0.0
) -> float:
    """F1 of each label, 2 x hits / (positives + predictions), averaged over the labels."""
    return _overlap("f1", "macro", Y_true, Y_pred, sample_weight, zero_division)


def f1_micro(
    Y_true: Any, Y_pred: Any, *, sample_weight: Any = None, zero_division: float = 0.0
) -> float:
    """F1 of all known entries together, 2 x hits / (positives + predictions)."""
    return _overlap("f1", "micro", Y_true, Y_pred, sample_weight, zero_division)


def precision_example(
    Y_true: Any, Y_pred: Any, *, sample_weight: Any = None, zero_division: float = 0.0
) -> float:
    """Share of each row's predicted labels that are positive, averaged over the rows."""
    return _overlap("precision", "example", Y_true, Y_pred, sample_weight, zero_division)


def precision_macro(
    Y_true: Any, Y_pred: Any, *, sample_weight: Any = None, zero_division: float = 0.0
) -> float:
    """Share of each label's predictions that are right, averaged over the labels."""
    return _overlap("precision", "macro", Y_true, Y_pred, sample_weight, zero_division)


def precision_micro(
    Y_true: Any, Y_pred: Any, *, sample_weight: Any = None, zero_division: float = 0.0
) -> float:
    """Share of all predicted labels that are positive."""
    return _overlap("precision", "micro", Y_true, Y_pred, sample_weight, zero_division)


def recall_example(
    Y_true: Any, Y_pred: Any, *, sample_weight: Any = None, zero_division: float = 0.0
) -> float:
    """Share of each row's positive labels that are predicted, averaged over the rows."""
    return _overlap("recall", "example", Y_true, Y_pred, sample_weight, zero_division)


def recall_macro(
    Y_true: Any, Y_pred: Any, *, sample_weight: Any = None, zero_division: float = 0.0
) -> float:
    """Share of each label's positives that are predicted, averaged over the labels."""
    return _overlap("recall", "macro", Y_true, Y_pred, sample_weight, zero_division)


def recall_micro(
    Y_true: Any, Y_pred: Any, *, sample_weight: Any = None, zero_division: float = 0.0
) -> float:
    """Share of all positive labels that are predicted."""
    return _overlap("recall", "micro", Y_true, Y_pred, sample_weight, zero_division)


def jaccard_example(
    Y_true: Any, Y_pred: Any, *, sample_weight: Any = None, zero_division: float = 0.0
) -> float:
    """Jaccard index of true set T and predicted set P of each row, averaged over the rows.

    For a row it is |T and P| / |T or P|.
    """
    return _overlap("jaccard", "example", Y_true, Y_pred, sample_weight, zero_division)


def jaccard_macro(
    Y_true: Any, Y_pred: Any, *, sample_weight: Any = None, zero_division: float = 0.0
) -> float:
    """Jaccard index of each label, averaged over the labels.

    For a label it is hits / (positives + predictions - hits).
    """
    return _overlap("jaccard", "macro", Y_true, Y_pred, sample_weight, zero_division)


def jaccard_micro(
    Y_true: Any, Y_pred: Any, *, sample_weight: Any = None, zero_division: float = 0.0
) -> float:
    """Jaccard index of all known entries, hits / (positives + predictions - hits)."""
    return _overlap("jaccard", "micro", Y_true, Y_pred, sample_weight, zero_division)


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
    precision = precision_macro(
        Y_true, Y_pred, sample_weight=sample_weight, zero_division=zero_division
    )
    recall = recall_macro(Y_true, Y_pred, sample_weight=sample_weight, zero_division=zero_division)
    total = precision + recall
    return 2 * precision * recall / total if total != 0 else float(zero_division)


def of1(
    Y_true: Any, Y_pred: Any, *, sample_weight: Any = None, zero_division: float = 0.0
) -> float:
    """Overall F1 (OF1): the name of the image-tagging literature for :func:`f1_micro`."""
    return f1_micro(Y_true, Y_pred, sample_weight=sample_weight, zero_division=zero_division)
