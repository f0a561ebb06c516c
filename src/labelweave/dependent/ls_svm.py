"""Least-squares support vector machine: one kernel for all labels, chosen by leave-one-out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from scipy.linalg import LinAlgError, cholesky, eigh, solve_triangular
from scipy.special import expit, logit
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.preprocessing import normalize
from sklearn.utils._param_validation import Interval, StrOptions

from labelweave.base import MultiLabelClassifier, Pair
from labelweave.calibration import LabelCalibrator
from labelweave.exceptions import InputError
from labelweave.importance import column_scales
from labelweave.input_checks import is_mostly_zero
from labelweave.labels import LabelMatrix
from labelweave.rows import row_chunks
from labelweave.shallow.per_label import constant_label_probabilities

__all__ = ["LSSVM"]

PENALTIES = 10.0 ** np.arange(-4, 2.5, 0.5)
WIDTHS = {"exponential": (0.25, 0.5, 1.0), "rbf": (0.5, 1.0, 2.0, 4.0), "linear": (1.0,)}
KERNEL_ROWS = 800  # rows on which the kernel is chosen; the penalty is chosen on all rows
_JITTER = 1e-6


class LSSVM(MultiLabelClassifier):
    """Kernel ridge regression of the labels, calibrated to probabilities [1]_.

    All labels share one kernel matrix and one decomposition of it, which also yields the
    leave-one-out predictions of every training row, label and penalty in closed form [2]_. Kernel
    and penalty are chosen by these predictions, and the calibration is fitted to them.

    Parameters
    ----------
    kernel : {"auto", "exponential", "rbf", "linear"}, default="auto"
        ``exp(-sqrt(g d))``, ``exp(-g d)`` of the squared distance d, or the inner product.
        "auto" takes the one with the least leave-one-out squared error, by which g is always
        chosen; the inner product is tried if rows are scaled to length 1.
    n_centres : int, default=2000
        With more rows than this, the function is a combination of the kernels at this many
        randomly drawn rows (Nystroem's approximation [3]_); time and memory then grow linearly
        with the number of rows.
    scale : {"auto", "standard", "length", "none"}, default="auto"
        "standard" scales every feature to variance 1 (and, unless X is sparse, to mean 0),
        "length" scales every row to length 1; "auto" is "length" if fewer than a quarter of the
        entries are non-zero, and otherwise "standard".
    threshold, validation_fraction, random_state
        As for every estimator: see :class:`~labelweave.base.MultiLabelClassifier`.

    Attributes
    ----------
    kernel_, width_ : str and float
        The kernel and its g.
    penalty_ : float
    centres_ : ndarray or csr_array of shape (n_centres, n_features)
    weights_ : ndarray of shape (n_centres, n_labels)
    intercept_ : ndarray of shape (n_labels,)
        The log-odds of a row are ``kernel(row, centres) @ weights + intercept``.
    shift_, factor_ : ndarray of shape (n_features,), or None
        Subtracted from the features, which are then multiplied by the second.

    Notes
    -----
    In the regression an unknown entry is replaced by the label's frequency; in model selection and
    calibration it is ignored. A label whose known entries are all equal gets Laplace's estimate
    (positives + 1) / (known + 2).

    Departures from [1]_: the intercept is the label's frequency and not learnt jointly; the
    values become probabilities by Platt's sigmoid, fitted to the leave-one-out predictions.

    References
    ----------
    .. [1] J. A. K. Suykens and J. Vandewalle. Least squares support vector machine classifiers.
       Neural Processing Letters 9, 1999, pages 293-300.
    .. [2] G. C. Cawley. Leave-one-out cross-validation based model selection criteria for
       weighted LS-SVMs. IJCNN 2006.
    .. [3] C. K. I. Williams and M. Seeger. Using the Nystroem method to speed up kernel machines.
       NIPS 2000.

    Examples
    --------
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [0.0, 0.0]] * 10)
    >>> model = LSSVM().fit(X, X.astype(int))
    >>> model.predict([[1, 1], [0, 1]])
    array([[1, 1],
           [0, 1]])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **MultiLabelClassifier._parameter_constraints,
        "kernel": [StrOptions({"auto", *WIDTHS})],
        "n_centres": [Interval(Integral, 1, None, closed="left")],
        "scale": [StrOptions({"auto", "standard", "length", "none"})],
    }

    tuning_space: ClassVar = {"kernel": ("choice", list(WIDTHS))}

    def __init__(
        self,
        kernel: str = "auto",
        *,
        n_centres: int = 2000,
        scale: str = "auto",
        threshold: Any = 0.5,
        validation_fraction: float = 0.2,
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.n_centres = n_centres
        self.scale = scale
        self.threshold = threshold
        self.validation_fraction = validation_fraction
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.capabilities.randomized = False  # unless there are more rows than centres
        return tags

    def _fit(self, X: Any, Y: LabelMatrix, validation: Pair | None) -> None:
        X = self._fit_scale(X)
        values = Y.to_numpy(np.float64)
        frequency = np.nanmean(values, axis=0)
        targets = np.where(np.isnan(values), 0.0, values - frequency)
        order = self._generator().permutation(len(Y))
        subset = np.sort(order[:KERNEL_ROWS])
        unit = 1 / _typical_distance(X[subset])

        def error(candidate: tuple[str, float]) -> float:
            kernel, g = candidate
            solution = _Solution(X[subset], X[subset], targets[subset], kernel, g * unit)
            return solution.best(values[subset])[0]

        self.kernel_, width = min(self._candidates(), key=error)
        self.width_ = float(width * unit)
        self.centres_ = X[np.sort(order[: self.n_centres])]
        solution = _Solution(X, self.centres_, targets, self.kernel_, self.width_)
        _, self.penalty_ = solution.best(values)
        leave_one_out = frequency + solution.leave_one_out(self.penalty_)
        weights = solution.weights(self.penalty_)
        del solution
        calibrator = LabelCalibrator().fit(Y, expit(_as_odds(leave_one_out)))
        slope, offset = calibrator.slope_, calibrator.offset_
        constants = constant_label_probabilities(Y)
        constant = ~np.isnan(constants)
        self.weights_ = np.where(constant, 0.0, 4 * slope * weights)
        self.intercept_ = np.where(constant, logit(constants), slope * _as_odds(frequency) + offset)

    def _candidates(self) -> Iterator[tuple[str, float]]:
        kernels = tuple(WIDTHS) if self.by_length_ else ("exponential", "rbf")
        for kernel in kernels if self.kernel == "auto" else (self.kernel,):
            for g in WIDTHS[kernel]:
                yield kernel, g

    def _predict_proba(self, X: Any) -> np.ndarray:
        odds = np.empty((X.shape[0], self.n_labels_))
        for rows in row_chunks(X.shape[0], max(self.centres_.shape)):
            kernel = _kernel(self._scaled(X[rows]), self.centres_, self.kernel_, self.width_)
            odds[rows] = kernel @ self.weights_
        return expit(odds + self.intercept_)

    def _fit_scale(self, X: Any) -> Any:
        scale = self.scale
        if scale == "auto":
            scale = "length" if is_mostly_zero(X) else "standard"
        self.by_length_ = scale == "length"
        self.factor_: np.ndarray | None = None
        self.shift_: np.ndarray | None = None
        if scale == "standard":
            # Without centring, distances between points far from zero are lost to rounding.
            self.shift_ = None if sp.issparse(X) else X.mean(axis=0, dtype=np.float64)
            deviation = column_scales(X if self.shift_ is None else X - self.shift_)
            self.factor_ = 1 / np.where(deviation > 0, deviation, 1)
        return self._scaled(X)

    def _scaled(self, X: Any) -> Any:
        # In single precision the Cholesky factor may not exist.
        X = X.astype(np.float64, copy=False)
        if self.by_length_:
            return normalize(X)
        if self.factor_ is None:
            return X
        if self.shift_ is None:
            return sp.csr_array(X).multiply(self.factor_).tocsr()
        dense = X.toarray() if sp.issparse(X) else X
        return (dense - self.shift_) * self.factor_


@dataclass
class _Solution:
    """Ridge regression on a kernel for all penalties at once.

    With ``k_m k_m' = kernel(centres, centres)`` the rows have the features
    ``Phi = kernel(rows, centres) inv(k_m')``; in the eigenvectors of ``Phi' Phi`` the ridge
    solution of every penalty is a division.
    """

    X: Any
    centres: Any
    targets: np.ndarray
    kernel: str
    width: float

    def __post_init__(self) -> None:
        between = _kernel(self.centres, self.centres, self.kernel, self.width)
        between.flat[:: len(between) + 1] += _JITTER * (1 + between.diagonal().mean())
        try:
            self.root = cholesky(between, lower=True, overwrite_a=True)
        except LinAlgError:
            raise InputError(
                "the distances of the rows are lost to rounding: features are far from zero and "
                "vary little; centre them (dense X does so by scale='standard')"
            ) from None
        rows = _kernel(self.X, self.centres, self.kernel, self.width)
        features = solve_triangular(self.root, rows.T, lower=True, overwrite_b=True).T
        variances, self.vectors = eigh(features.T @ features, overwrite_a=True)
        self.variances = np.maximum(variances, 0)
        self.along = features @ self.vectors
        self.projected = self.along.T @ self.targets

    def leave_one_out(self, penalty: float) -> np.ndarray:
        """The prediction of each row by the solution fitted without it."""
        shrunken = self.projected / (self.variances + penalty)[:, None]
        # The diagonal of the hat matrix: the weight of each target in its fitted value.
        leverage = np.einsum("nm,nm,m->n", self.along, self.along, 1 / (self.variances + penalty))
        error = (self.targets - self.along @ shrunken) / np.maximum(1 - leverage, 1e-6)[:, None]
        return self.targets - error

    def best(self, values: np.ndarray) -> tuple[float, float]:
        """The least leave-one-out squared error over known entries, and its penalty."""
        known = ~np.isnan(values)
        errors = [
            ((self.targets - self.leave_one_out(penalty))[known] ** 2).mean()
            for penalty in PENALTIES
        ]
        return float(np.min(errors)), float(PENALTIES[int(np.argmin(errors))])

    def weights(self, penalty: float) -> np.ndarray:
        """Weights of the kernel's values at the centres."""
        inner = self.vectors @ (self.projected / (self.variances + penalty)[:, None])
        return solve_triangular(self.root, inner, lower=True, trans="T")


def _kernel(X: Any, centres: Any, kernel: str, width: float) -> np.ndarray:
    if kernel == "linear":
        product = X @ centres.T
        return width * np.asarray(product.toarray() if sp.issparse(product) else product)
    distance = euclidean_distances(X, centres, squared=True) * width
    if kernel == "exponential":
        np.sqrt(distance, out=distance)
    return np.exp(-distance, out=distance)


def _typical_distance(X: Any) -> float:
    """The median squared distance between different rows; 1 if all are equal."""
    distances = euclidean_distances(X, squared=True)
    apart = distances[distances > 1e-12]
    return float(np.median(apart)) if len(apart) else 1.0


def _as_odds(values: np.ndarray) -> np.ndarray:
    """Regression values around 1/2 as rough log-odds, with the sigmoid's slope at 0."""
    return 4 * (values - 0.5)
