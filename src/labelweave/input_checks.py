"""Checks of features and targets before a method is fitted: texts, one class per row, numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelweave.exceptions import InputError
from labelweave.labels import LabelMatrix, first_marked

__all__ = [
    "LARGEST",
    "as_single_target",
    "check_weight",
    "first_out_of_range",
    "is_mostly_zero",
    "is_texts",
]

# The largest absolute value of a feature: squares of larger ones are infinite in single precision.
LARGEST = 2.0**64

# With a smaller share of non-zero entries, features are counts or indicators, and scaling a rare
# one to variance 1 would turn it into huge values.
_MIN_DENSITY = 0.25


def as_single_target(Y: Any) -> np.ndarray | None:
    """Return a one-dimensional target, or None if Y is a matrix or lists of labels.

    As in scikit-learn, a single column that is not a 0/1 indicator is one-dimensional too.
    """
    from sklearn.utils.multiclass import type_of_target

    if isinstance(Y, LabelMatrix) or sp.issparse(Y):
        return None
    if isinstance(Y, Sequence) and len(Y) and not np.isscalar(Y[0]):
        return None
    if not hasattr(Y, "shape"):
        Y = np.asarray(Y)
    if len(Y.shape) == 1:
        flat = np.asarray(Y)
        is_lists = flat.dtype == object and len(flat) and not np.isscalar(flat[0])
        return None if is_lists else flat
    if len(Y.shape) == 2 and Y.shape[1] == 1 and not hasattr(Y, "columns"):
        flat = np.asarray(Y).ravel()
        if type_of_target(flat) in ("binary", "multiclass") and not np.isin(flat, [0, 1]).all():
            return flat
    return None


def check_weight(sample_weight: Any, n_rows: int) -> np.ndarray | None:
    """Return weights of rows as numbers; raise an error unless they can be weights.

    >>> check_weight([1, 2], 2)
    array([1., 2.])
    """
    if sample_weight is None:
        return None
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.shape != (n_rows,):
        raise InputError(f"sample_weight has shape {weight.shape}, but there are {n_rows} rows")
    if not np.isfinite(weight).all() or (weight < 0).any() or not weight.any():
        raise InputError("sample_weight must be finite, not negative and not all zero")
    return weight


def is_texts(X: Any) -> bool:
    """Whether X is a one-dimensional sequence of texts."""
    if getattr(X, "ndim", 1) != 1 or not hasattr(X, "__len__") or len(X) == 0:
        return False
    return isinstance(next(iter(X)), str)


def first_out_of_range(
    X: Any, *, allow_nan: bool = False, largest: float = np.finfo(np.float64).max
) -> tuple[float, int, int] | None:
    """Return value, row and column of the first entry that is no number up to `largest`, or None.

    By default these are NaN and infinity; NaN is passed over with `allow_nan`.

    >>> first_out_of_range(np.array([[0.0, 1.0], [2.0, -np.inf]]))
    (-inf, 1, 1)
    """
    values = X.data if sp.issparse(X) else X
    # The smallest and the largest entry prove the others, without a mask the size of X. One that
    # is NaN is in no range.
    extremes = (np.fmin, np.fmax) if allow_nan else (np.minimum, np.maximum)
    low, high = (extreme.reduce(values, axis=None, initial=0) for extreme in extremes)
    if low >= -largest and high <= largest:
        return None
    wrong = ~(np.abs(values) <= largest)
    if allow_nan:
        wrong &= ~np.isnan(values)
    value, row, column = first_marked(X, wrong)
    return float(value), row, column


def is_mostly_zero(X: Any) -> bool:
    """Whether fewer than a quarter of the entries are not zero, however they are stored.

    >>> is_mostly_zero(np.eye(5)), is_mostly_zero(sp.csr_array(np.ones((2, 2))))
    (True, False)
    """
    filled = X.count_nonzero() if sp.issparse(X) else np.count_nonzero(X)
    return bool(filled < _MIN_DENSITY * X.shape[0] * X.shape[1])
