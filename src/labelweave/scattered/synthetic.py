"""Rows that nobody has seen, to ask teachers about."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from labelweave.exceptions import InputError
from labelweave.rows import count_rows

__all__ = ["is_numbers", "synthetic_rows", "usual_share"]

_USUAL, _MOST = 5.0, 5000  # made-up rows: for each row given, and altogether


def usual_share(X: Any) -> float:
    """How many rows to make up for each row given; 0 where that cannot be done.

    >>> usual_share(np.zeros((100, 2))), usual_share(np.zeros((4000, 2))), usual_share(["a text"])
    (5.0, 1.25, 0.0)
    """
    return min(_USUAL, _MOST / max(count_rows(X), 1)) if is_numbers(X) else 0.0


def synthetic_rows(X: Any, n: int, generator: np.random.RandomState) -> Any:
    """Rows that take each feature from one of two rows drawn by chance.

    Features keep the values that they have somewhere, so that counts stay counts and sparse
    rows stay sparse; the share that the first of the two gives is drawn for each row.

    Parameters
    ----------
    X : ndarray, SciPy sparse or DataFrame of numbers, of shape (rows, features)
    n : int
    generator : RandomState

    Examples
    --------
    >>> X = np.array([[1.0, 2.0], [3.0, 4.0]])
    >>> made = synthetic_rows(X, 50, np.random.RandomState(0))
    >>> made.shape, sorted(set(made[:, 0].tolist()))
    ((50, 2), [1.0, 3.0])
    """
    if not is_numbers(X):
        raise InputError("rows can be made up of numbers only: set augment=0")
    if hasattr(X, "iloc"):
        return type(X)(synthetic_rows(X.to_numpy(), n, generator), columns=X.columns)
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


def is_numbers(X: Any) -> bool:
    """Whether rows are a matrix of numbers: an array, sparse, or a table without other columns."""
    if hasattr(X, "iloc"):
        return all(kind.kind in "fiub" for kind in X.dtypes)
    return hasattr(X, "shape") and len(X.shape) == 2
