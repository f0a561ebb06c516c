"""Linear classifiers of many labels of the same rows, trained together."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

__all__ = ["squared_hinge_weights"]

_MOST_CG_STEPS = 12
_CG_PRECISION = 0.3  # of a Newton step; more of it costs more than it saves
_MOST_HALVINGS = 4


def squared_hinge_weights(
    X: sp.csr_array, signs: np.ndarray, C: float = 1.0, *, tol: float = 0.01, max_iter: int = 15
) -> np.ndarray:
    r"""Return the weights of linear support vector machines, one column per label.

    Each column w minimises |w|^2 / 2 + C sum_i max(0, 1 - s_i w x_i)^2 over the rows of sign 1
    or -1; a sign of 0 leaves the row out. All columns take Newton's steps at the same time, each
    solved by a few steps of preconditioned conjugate gradients, so that the work is products of a
    sparse matrix and a dense one.

    Parameters
    ----------
    X : csr_array of float32, shape (n, d)
        A constant column stands for the bias, which is penalised like the other weights.
    signs : float32 ndarray of shape (n, k)
    C : float, default=1.0
    tol : float, default=0.01
        A column is finished when its gradient is this much shorter than in the beginning.
    max_iter : int, default=15
        Largest number of Newton's steps.

    Examples
    --------
    >>> X = sp.csr_array(np.array([[1.0, 1], [-1, 1]], dtype=np.float32))
    >>> w = squared_hinge_weights(X, np.array([[1], [-1]], dtype=np.float32), C=100.0)
    >>> (X @ w).round(2).ravel().tolist()
    [1.0, -1.0]
    """
    by_feature = sp.csr_array(X.T)
    squared = by_feature.copy()
    squared.data = squared.data**2
    weights = np.zeros((X.shape[1], signs.shape[1]), dtype=np.float32)
    margins = np.zeros(signs.shape, dtype=np.float32)
    first_norm = None
    for _ in range(max_iter):
        short = np.maximum(0, 1 - signs * margins) * np.abs(signs)
        gradient = weights - 2 * C * (by_feature @ (signs * short))
        norm = np.linalg.norm(gradient, axis=0)
        first_norm = norm if first_norm is None else first_norm
        todo = np.flatnonzero(norm > tol * first_norm)
        if not len(todo):
            break
        curvature = 2 * np.float32(C) * (short[:, todo] > 0)
        diagonal = 1 + squared @ curvature
        step, change = _newton_step(X, by_feature, gradient[:, todo], curvature, diagonal)
        length = _step_length(weights[:, todo], margins[:, todo], signs[:, todo], step, change, C)
        weights[:, todo] += length * step
        margins[:, todo] += length * change
    return weights


def _newton_step(
    X: sp.csr_array,
    by_feature: sp.csr_array,
    gradient: np.ndarray,
    curvature: np.ndarray,
    diagonal: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Solve (I + X' D X) step = -gradient; also return X step."""
    step = np.zeros_like(gradient)
    change = np.zeros_like(curvature)
    residual = -gradient
    enough = _CG_PRECISION * np.linalg.norm(residual, axis=0)
    direction = residual / diagonal
    product = (residual * direction).sum(axis=0)
    for _ in range(_MOST_CG_STEPS):
        moved = X @ direction
        curved = direction + by_feature @ (curvature * moved)
        size = product / np.maximum((direction * curved).sum(axis=0), 1e-30)
        step += size * direction
        change += size * moved
        residual -= size * curved
        if (np.linalg.norm(residual, axis=0) <= enough).all():
            break
        scaled = residual / diagonal
        before, product = product, (residual * scaled).sum(axis=0)
        direction = scaled + product / np.maximum(before, 1e-30) * direction
    return step, change


def _step_length(
    weights: np.ndarray,
    margins: np.ndarray,
    signs: np.ndarray,
    step: np.ndarray,
    change: np.ndarray,
    C: float,
) -> np.ndarray:
    """One step length per column, halved until the objective does not rise."""

    def objective(length: np.ndarray) -> np.ndarray:
        short = np.maximum(0, 1 - signs * (margins + length * change)) * np.abs(signs)
        return ((weights + length * step) ** 2).sum(axis=0) / 2 + C * (short**2).sum(axis=0)

    length = np.ones(step.shape[1], dtype=np.float32)
    start = objective(np.zeros_like(length))
    for _ in range(_MOST_HALVINGS):
        too_long = objective(length) > start * (1 + 1e-6)
        if not too_long.any():
            break
        length[too_long] /= 2
    return length
