"""Metrics of whole label sets and of single entries: subset accuracy and Hamming loss.

The parameters are those of :mod:`labelweave.metrics.overlap`: entries of `Y_true` that are NaN
(unknown) are ignored.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from labelweave.metrics._counts import count
from labelweave.metrics._inputs import check_pred, check_weight, mean_of_defined

__all__ = ["hamming_accuracy", "hamming_loss", "subset_accuracy", "zero_one_loss"]


def subset_accuracy(Y_true: Any, Y_pred: Any, *, sample_weight: Any = None) -> float:
    """Share of the rows whose label set is predicted without any error.

    A row is right if none of its known entries is wrong; rows without a known entry are ignored.

    Examples
    --------
    >>> import numpy as np
    >>> subset_accuracy([[1, 0], [0, 1]], [[1, 0], [1, 1]])
    0.5
    >>> subset_accuracy([[1, 0], [np.nan, 1]], [[1, 0], [1, 1]])
    1.0
    """
    truth, predicted = check_pred(Y_true, Y_pred)
    weight = check_weight(sample_weight, truth.n_rows)
    rows = count(truth, predicted, axis=1)
    return mean_of_defined((rows.wrong == 0).astype(float), rows.known > 0, weight)


def zero_one_loss(Y_true: Any, Y_pred: Any, *, sample_weight: Any = None) -> float:
    """Share of the rows whose label set has an error: 1 - :func:`subset_accuracy`."""
    return 1.0 - subset_accuracy(Y_true, Y_pred, sample_weight=sample_weight)


def hamming_loss(Y_true: Any, Y_pred: Any, *, sample_weight: Any = None) -> float:
    """Share of the known entries that are predicted wrong.

    All known entries have the same weight, so a row with many unknown entries counts less.

    Examples
    --------
    >>> import numpy as np
    >>> hamming_loss([[1, 0], [0, 1]], [[1, 0], [1, 1]])
    0.25
    >>> hamming_loss([[1, 0], [np.nan, 1]], [[1, 0], [1, 1]])
    0.0
    """
    truth, predicted = check_pred(Y_true, Y_pred)
    weight = check_weight(sample_weight, truth.n_rows)
    total = count(truth, predicted, axis=0, weight=weight).pooled()
    if not total.known[0] > 0:  # every row with a known entry has weight zero
        return float("nan")
    return float(np.divide(total.wrong, total.known)[0])


def hamming_accuracy(Y_true: Any, Y_pred: Any, *, sample_weight: Any = None) -> float:
    """Share of the known entries that are predicted right: 1 - :func:`hamming_loss`."""
    return 1.0 - hamming_loss(Y_true, Y_pred, sample_weight=sample_weight)
