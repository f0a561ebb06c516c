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

    Parameters
    ----------
    Y_true : labels of shape (n_rows, n_labels)
        1, 0 or NaN (unknown: the entry is ignored), in any form that
        :func:`labelweave.labels.as_labels` reads.
    Y_pred : label sets of the same shape
        1 or 0, dense or sparse, or lists of label names.
    sample_weight : array-like of shape (n_rows,), optional
    zero_division : {0.0, 1.0, nan}, default=0.0
        What 0/0 is, here the F1 of a row without true or predicted label; nan leaves it out.

    Returns
    -------
    float
        nan if no row (label) is left to average over.

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
    """F1 of each label, averaged over the labels.

    F1 of a label is 2 x hits / (positives + predictions), counted over its known entries.
    Parameters as in :func:`f1_example`.

    Examples
    --------
    >>> round(f1_macro([[1, 0], [1, 1], [0, 1]], [[1, 1], [0, 1], [0, 1]]), 3)
    0.733
    """
    return _overlap("f1", "macro", Y_true, Y_pred, sample_weight, zero_division)


def f1_micro(
    Y_true: Any, Y_pred: Any, *, sample_weight: Any = None, zero_division: float = 0.0
) -> float:
    """F1 of all known entries together.

    2 x hits / (positives + predictions), counted over all known entries.
    Parameters as in :func:`f1_example`.

    Examples
    --------
    >>> round(f1_micro([[1, 0], [1, 1], [0, 1]], [[1, 1], [0, 1], [0, 1]]), 3)
    0.75
    """
    return _overlap("f1", "micro", Y_true, Y_pred, sample_weight, zero_division)


def precision_example(
    Y_true: Any, Y_pred: Any, *, sample_weight: Any = None, zero_division: float = 0.0
) -> float:
    """Precision of each row's label set, averaged over the rows.

    Precision of a row is the share of its predicted labels that are positive.
    Parameters as in :func:`f1_example`.

    Examples
    --------
    >>> round(precision_example([[1, 0], [1, 1], [0, 1]], [[1, 1], [0, 1], [0, 1]]), 3)
    0.833
    """
    return _overlap("precision", "example", Y_true, Y_pred, sample_weight, zero_division)


def precision_macro(
    Y_true: Any, Y_pred: Any, *, sample_weight: Any = None, zero_division: float = 0.0
) -> float:
    """Precision of each label, averaged over the labels.

    Precision of a label is the share of its predictions that are right.
    Parameters as in :func:`f1_example`.

    Examples
    --------
    >>> round(precision_macro([[1, 0], [1, 1], [0, 1]], [[1, 1], [0, 1], [0, 1]]), 3)
    0.833
    """
    return _overlap("precision", "macro", Y_true, Y_pred, sample_weight, zero_division)


def precision_micro(
    Y_true: Any, Y_pred: Any, *, sample_weight: Any = None, zero_division: float = 0.0
) -> float:
    """Precision of all known entries together.

    The share of all predicted labels that are positive.
    Parameters as in :func:`f1_example`.

    Examples
    --------
    >>> round(precision_micro([[1, 0], [1, 1], [0, 1]], [[1, 1], [0, 1], [0, 1]]), 3)
    0.75
    """
    return _overlap("precision", "micro", Y_true, Y_pred, sample_weight, zero_division)


def recall_example(
    Y_true: Any, Y_pred: Any, *, sample_weight: Any = None, zero_division: float = 0.0
) -> float:
    """Recall of each row's label set, averaged over the rows.

    Recall of a row is the share of its positive labels that are predicted.
    Parameters as in :func:`f1_example`.

    Examples
    --------
    >>> round(recall_example([[1, 0], [1, 1], [0, 1]], [[1, 1], [0, 1], [0, 1]]), 3)
    0.833
    """
    return _overlap("recall", "example", Y_true, Y_pred, sample_weight, zero_division)


def recall_macro(
    Y_true: Any, Y_pred: Any, *, sample_weight: Any = None, zero_division: float = 0.0
) -> float:
    """Recall of each label, averaged over the labels.

    Recall of a label is the share of its positives that are predicted.
    Parameters as in :func:`f1_example`.

    Examples
    --------
    >>> round(recall_macro([[1, 0], [1, 1], [0, 1]], [[1, 1], [0, 1], [0, 1]]), 3)
    0.75
    """
    return _overlap("recall", "macro", Y_true, Y_pred, sample_weight, zero_division)


def recall_micro(
    Y_true: Any, Y_pred: Any, *, sample_weight: Any = None, zero_division: float = 0.0
) -> float:
    """Recall of all known entries together.

    The share of all positive labels that are predicted.
    Parameters as in :func:`f1_example`.

    Examples
    --------
    >>> round(recall_micro([[1, 0], [1, 1], [0, 1]], [[1, 1], [0, 1], [0, 1]]), 3)
    0.75
    """
    return _overlap("recall", "micro", Y_true, Y_pred, sample_weight, zero_division)


def jaccard_example(
    Y_true: Any, Y_pred: Any, *, sample_weight: Any = None, zero_division: float = 0.0
) -> float:
    """Jaccard index of each row's label set, averaged over the rows.

    For a row it is |T and P| / |T or P|, true set T, predicted set P.
    Parameters as in :func:`f1_example`.

    Examples
    --------
    >>> round(jaccard_example([[1, 0], [1, 1], [0, 1]], [[1, 1], [0, 1], [0, 1]]), 3)
    0.667
    """
    return _overlap("jaccard", "example", Y_true, Y_pred, sample_weight, zero_division)


def jaccard_macro(
    Y_true: Any, Y_pred: Any, *, sample_weight: Any = None, zero_division: float = 0.0
) -> float:
    """Jaccard index of each label, averaged over the labels.

    For a label it is hits / (positives + predictions - hits).
    Parameters as in :func:`f1_example`.

    Examples
    --------
    >>> round(jaccard_macro([[1, 0], [1, 1], [0, 1]], [[1, 1], [0, 1], [0, 1]]), 3)
    0.583
    """
    return _overlap("jaccard", "macro", Y_true, Y_pred, sample_weight, zero_division)


def jaccard_micro(
    Y_true: Any, Y_pred: Any, *, sample_weight: Any = None, zero_division: float = 0.0
) -> float:
    """Jaccard index of all known entries together.

    hits / (positives + predictions - hits), counted over all known entries.
    Parameters as in :func:`f1_example`.

    Examples
    --------
    >>> round(jaccard_micro([[1, 0], [1, 1], [0, 1]], [[1, 1], [0, 1], [0, 1]]), 3)
    0.6
    """
    return _overlap("jaccard", "micro", Y_true, Y_pred, sample_weight, zero_division)


def cf1(
    Y_true: Any, Y_pred: Any, *, sample_weight: Any = None, zero_division: float = 0.0
) -> float:
    """Per-class F1 (CF1): the harmonic mean of macro precision and macro recall.

    This is the definition of the image-tagging literature. It differs from
    :func:`f1_macro`, which is the mean of the labels' own F1. Parameters as in
    :func:`f1_example`.

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
    """Overall F1 (OF1): the harmonic mean of overall precision and recall.

    The name that the image-tagging literature gives to :func:`f1_micro`; see :func:`cf1`.

    Examples
    --------
    >>> round(of1([[1, 0], [1, 1]], [[1, 0], [0, 1]]), 3)
    0.8
    """
    return f1_micro(Y_true, Y_pred, sample_weight=sample_weight, zero_division=zero_division)
