"""Weights of positive and negative entries: the parameter `class_weight`, with one meaning.

- None: all entries have the weight 1.
- A mapping of label names to numbers: the weights of the positives of these labels. With a
  one-dimensional target it maps classes to the weights of their rows.
- ``"balanced"``: the positives and the negatives of each label have the same weight in total, and
  its known entries have the mean weight 1.

Weights of rows are multiplied with these.
"""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils._param_validation import StrOptions

from labelweave.exceptions import InputError
from labelweave.labels import LabelMatrix

__all__ = ["CLASS_WEIGHT", "class_weights", "weighted_counts"]

CLASS_WEIGHT: list[Any] = [StrOptions({"balanced"}), Mapping, None]  # the values it may have


def class_weights(
    class_weight: Any,
    Y: LabelMatrix,
    row_weight: np.ndarray | None = None,
    classes: np.ndarray | None = None,
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """The weights of rows, and the weights of negatives and positives of each label.

    Parameters
    ----------
    class_weight : None, "balanced" or mapping
        As the module describes it.
    Y : LabelMatrix
    row_weight : ndarray of shape (n,), optional
    classes : ndarray, optional
        The classes of a one-dimensional target, in the order of the columns of `Y`.

    Returns
    -------
    row_weight : ndarray of shape (n,), or None
        The weights of the rows, changed only by a mapping of `classes`.
    label_weight : ndarray of shape (n_labels, 2), or None
        Weights of the negative and of the positive entries per label; None if all are 1.

    Examples
    --------
    >>> from labelweave.labels import as_labels
    >>> Y = as_labels([[1, 0], [0, 0], [0, 1], [0, 1]], names=["sea", "sun"])
    >>> class_weights("balanced", Y)[1].round(2)
    array([[0.67, 2.  ],
           [1.  , 1.  ]])
    >>> class_weights({"sea": 3}, Y)[1]
    array([[1., 3.],
           [1., 1.]])
    """
    if class_weight is None:
        return row_weight, None
    if class_weight == "balanced":
        return row_weight, _balanced(Y, row_weight)
    names = list(Y.names) if classes is None else classes.tolist()
    for name, weight in class_weight.items():
        if name not in names:
            raise InputError(f"class_weight names {name!r}, which is no label")
        if not isinstance(weight, Real) or not 0 < float(weight) < np.inf:
            raise InputError(f"class_weight of {name!r} is {weight!r}, not a positive number")
    positive = np.array([float(class_weight.get(name, 1.0)) for name in names])
    if classes is None:
        return row_weight, np.column_stack([np.ones(len(names)), positive])
    of_rows = positive[Y.to_numpy().argmax(axis=1)]
    return of_rows if row_weight is None else of_rows * row_weight, None


def _balanced(Y: LabelMatrix, row_weight: np.ndarray | None) -> np.ndarray:
    positives, known = weighted_counts(Y, row_weight)
    totals = np.column_stack([known - positives, positives])
    halves = np.broadcast_to(known[:, None] / 2, totals.shape)
    # A label without positives (or negatives) has no weight to balance.
    return np.divide(halves, totals, out=np.ones(totals.shape), where=totals > 0)


def weighted_counts(Y: LabelMatrix, row_weight: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Total weights of the positives and of the known entries of each label, up to one factor.

    >>> from labelweave.labels import as_labels
    >>> weighted_counts(as_labels([[1, 0], [np.nan, 1]]), np.array([1.0, 2.0]))
    (array([0.5, 1. ]), array([0.5, 1.5]))
    """
    if row_weight is None:
        positives, known = Y.counts()
        return positives.astype(np.float64), known.astype(np.float64)
    share = row_weight / row_weight.max()  # so that no sum is infinite
    positives = share @ sp.csr_array(Y.positive()).astype(np.float64)
    if Y.has_unknown and Y.unstored_is_unknown:
        known = share @ sp.csr_array(Y.known()).astype(np.float64)
    else:
        known = share.sum() - share @ sp.csr_array(Y.unknown()).astype(np.float64)
    return positives, np.maximum(known, positives)
