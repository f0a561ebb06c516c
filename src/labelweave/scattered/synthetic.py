"""Rows that nobody has seen, to ask teachers about."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from labelweave.exceptions import InputError
from labelweave.scattered.teacher import count_rows

__all__ = ["synthetic_rows"]


def synthetic_rows(X: Any, n: int, generator: np.random.RandomState) -> Any:
    """Rows that take each feature from one of two rows drawn by chance.

    Features keep the values that they have somewhere, so that counts stay counts and sparse
    rows stay sparse; the share that the first of the two gives is drawn for each row.

    Parameters
    ----------
    X : ndarray or SciPy sparse of shape (rows, features)
    n : int
    generator : RandomState

    Examples
    --------
    >>> X = np.array([[1.0, 2.0], [3.0, 4.0]])
    >>> made = synthetic_rows(X, 50, np.random.RandomState(0))
    >>> made.shape, sorted(set(made[:, 0].tolist()))
    ((50, 2), [1.0, 3.0])
    """
    if not hasattr(X, "shape") or hasattr(X, "iloc"):
        raise InputError("rows can be made up of numbers in an array only: set augment=0")
    first, second = generator.randint(count_rows(X), size=(2, n))
    share = generator.uniform(size=n)
    if not sp.issparse(X):
        taken = generator.uniform(size=(n, X.shape[1])) < share[:, None]
        return np.where(taken, X[first], X[second])
    # The same coin for a feature of both rows; only columns that one of them stores matter.
    a, b = sp.csr_array(X[first]), sp.csr_array(X[second])
    marks = sp.csr_array(abs(a).astype(bool) + abs(b).astype(bool), dtype=X.dtype)
    coins = marks.copy()
    rows = np.repeat(np.arange(n), np.diff(marks.indptr))
    coins.data = (generator.uniform(size=len(marks.data)) < share[rows]).astype(X.dtype)
    mixed = a.multiply(coins) + b - b.multiply(coins)
    result = sp.csr_array(mixed)
    result.eliminate_zeros()
    return result
