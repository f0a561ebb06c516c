"""Ridge regression of logits: a linear student, which learns from soft targets."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from scipy.special import expit
from sklearn.utils._param_validation import Interval

from labelweave.base import MultiLabelClassifier, Pair
from labelweave.importance import column_scales
from labelweave.labels import LabelMatrix
from labelweave.probabilities import log_odds
from labelweave.rows import row_chunks

__all__ = ["LogitRidge"]

_EPS = 1e-6  # the largest probability that is learnt is 1 - _EPS
_MAX_STEPS, _TOLERANCE = 100, 2e-3


class LogitRidge(MultiLabelClassifier):
    """A linear model per label, fitted to the logits of soft targets by least squares.

    Cross-entropy hardly notices whether a rare label has a probability of .001 or .01, on which the
    order of the rows for this label depends. Least squares on logits learns both. If the teachers
    are linear, so are the logits of their union, but for what each does to features it has not
    seen.

    Parameters
    ----------
    alpha : float, default=0.03
        Penalty of the squared weights. The default is for rows of length one, such as TF-IDF
        weights. Dense features are divided by their standard deviation in the penalty.
    threshold, validation_fraction, random_state
        As in :class:`labelweave.base.MultiLabelClassifier`.

    Attributes
    ----------
    coef_, intercept_ : ndarray of shape (n_labels, n_features) and (n_labels,)

    Examples
    --------
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [0.0, 0.0]])
    >>> p = expit(X @ [[2.0], [-1.0]] + 0.5)
    >>> model = LogitRidge(alpha=1e-6).fit(X, LabelMatrix(p.astype(np.float32), ("sea",)))
    >>> model.coef_.round(2).tolist(), model.intercept_.round(2).tolist()
    ([[2.0, -1.0]], [0.5])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **MultiLabelClassifier._parameter_constraints,
        "alpha": [Interval(Real, 0, None, closed="neither")],
    }

    def __init__(
        self,
        alpha: float = 0.03,
        *,
        threshold: Any = 0.5,
        validation_fraction: float = 0.2,
        random_state: Any = None,
    ) -> None:
        self.alpha = alpha
        self.threshold = threshold
        self.validation_fraction = validation_fraction
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.capabilities.randomized = False
        tags.capabilities.soft_targets = True
        return tags

    def _fit(self, X: Any, Y: LabelMatrix, validation: Pair | None) -> None:
        p = Y.to_numpy(np.float64)
        prior = log_odds(np.nanmean(p, axis=0), _EPS)
        # An unknown entry is as likely as the label is elsewhere.
        logits = np.where(np.isnan(p), prior, log_odds(p, _EPS))
        mean = logits.mean(axis=0)
        scale = None if sp.issparse(X) else column_scales(X)
        X = (
            sp.csr_array(X, dtype=np.float32)
            if scale is None
            else X / np.where(scale > 0, scale, 1)
        )
        weights = np.zeros((X.shape[1], len(mean)))
        feature_means = np.asarray(X.mean(axis=0)).ravel()
        for labels in row_chunks(len(mean), sum(X.shape)):
            weights[:, labels] = _solve(
                X, feature_means, logits[:, labels] - mean[labels], self.alpha
            )
        if scale is not None:
            weights /= np.where(scale > 0, scale, 1)[:, None]
            feature_means = feature_means * scale
        self.coef_ = weights.T.astype(np.float32)
        self.intercept_ = mean - feature_means @ weights

    def _predict_proba(self, X: Any) -> np.ndarray:
        return expit(np.asarray(X @ self.coef_.T) + self.intercept_)


def _solve(X: Any, feature_means: np.ndarray, targets: np.ndarray, alpha: float) -> np.ndarray:
    """Least squares of targets on the centred rows by conjugate gradients, all labels together.

    Sparse rows stay sparse: they are centred in the products. Gradients are divided by the sum of
    squares of each feature, without which rare words would need many more steps. A label is done
    when its residual is small.
    """
    transposed = sp.csr_array(X.T) if sp.issparse(X) else X.T
    feature_means, targets = feature_means.astype(X.dtype), targets.astype(X.dtype)

    def product(v: np.ndarray) -> np.ndarray:
        centred = X @ v - feature_means @ v
        return transposed @ centred - np.outer(feature_means, centred.sum(axis=0)) + alpha * v

    residual = transposed @ targets - np.outer(feature_means, targets.sum(axis=0))
    squares = X.multiply(X) if sp.issparse(X) else X * X
    curvature = np.asarray(squares.sum(axis=0)).ravel() - len(targets) * feature_means**2 + alpha
    curvature = np.maximum(curvature, alpha)[:, None].astype(X.dtype)
    solution = np.zeros_like(residual)
    direction = residual / curvature
    size = (residual * direction).sum(axis=0)
    small = size * _TOLERANCE**2
    left = np.flatnonzero(size)  # the labels that are not done
    residual, direction, size = residual[:, left], direction[:, left], size[left]
    for _ in range(_MAX_STEPS):
        if not len(left):
            break
        image = product(direction)
        step = size / (direction * image).sum(axis=0)
        solution[:, left] += step * direction
        residual = residual - step * image
        scaled = residual / curvature
        following = (residual * scaled).sum(axis=0)
        more = following > small[left]
        direction = (scaled + following / size * direction)[:, more]
        residual, size, left = residual[:, more], following[more], left[more]
    return solution
