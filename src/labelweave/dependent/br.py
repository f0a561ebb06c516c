"""Binary relevance: one independent classifier per label."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils._param_validation import HasMethods

from labelweave.base import MultiLabelClassifier, Pair
from labelweave.class_weights import CLASS_WEIGHT
from labelweave.exceptions import InputError
from labelweave.importance import FeatureImportanceMixin, column_scales
from labelweave.labels import LabelMatrix
from labelweave.shallow.per_label import InnerClassifierMixin, PerLabelClassifier, is_linear

__all__ = ["BinaryRelevance"]


class BinaryRelevance(FeatureImportanceMixin, InnerClassifierMixin, PerLabelClassifier):
    """One independent scikit-learn classifier per label [1]_.

    Binary relevance ignores how labels depend on each other. It is the baseline that every
    method for dependent labels has to beat, and often a strong one.

    Parameters
    ----------
    estimator : scikit-learn classifier, optional
        Cloned for each label; ``LogisticRegression(max_iter=10_000)`` by default (features of
        very different scales need many iterations; scaled ones converge faster). For a
        classifier without `predict_proba`, ``1 / (1 + exp(-d))`` of its decision value d is used:
        the threshold 0.5 reproduces its decision, but the values are not calibrated
        probabilities (:class:`labelweave.calibration.CalibratedMultiLabel` calibrates them).
    class_weight : "balanced" or mapping of label to number, optional
        Weights of positives, as in :mod:`labelweave.class_weights`.
    n_jobs : int, optional
        Number of labels fitted in parallel by joblib; None means one.
    verbose : int, default=0
        Above 0, joblib prints its progress.
    threshold, validation_fraction, random_state
        As for every estimator: see :class:`~labelweave.base.MultiLabelClassifier`. From
        `random_state` a separate seed is drawn for each label's classifier; without one, the
        seed of `estimator` is kept.

    Attributes
    ----------
    coef_, intercept_ : ndarray of shape (n_labels, n_features) and (n_labels,), or None
        The weights, if all classifiers are linear. Then only the weights are kept, and all
        labels are predicted by one matrix product.
    estimators_ : list of classifiers
        The classifiers, if they are not linear (None for a constant label); otherwise empty.
    feature_scale_ : ndarray of shape (n_features,), or None
        Standard deviation of each feature in training, for linear classifiers: the importance
        of a feature is this scale times the absolute weight. For trees and forests
        :meth:`feature_importance` returns their `feature_importances_`.
    constant_probabilities_ : ndarray of shape (n_labels,)
        The probability of a label that was constant in training, NaN for all others.

    Notes
    -----
    A row whose entry for a label is unknown is left out when that label is fitted.

    A label whose known entries are all equal (all negative or all positive) cannot be learnt: its
    probability is Laplace's estimate (positives + 1) / (known + 2) for every row.

    References
    ----------
    .. [1] M. R. Boutell, J. Luo, X. Shen and C. M. Brown. Learning multi-label scene
       classification. Pattern Recognition 37(9), 2004, pages 1757-1771.

    Examples
    --------
    >>> import numpy as np
    >>> from labelweave.dependent.br import BinaryRelevance
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [0.0, 0.0]] * 5)
    >>> model = BinaryRelevance().fit(X, X.astype(int))
    >>> model.predict([[1, 1], [0, 1]])
    array([[1, 1],
           [0, 1]])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **MultiLabelClassifier._parameter_constraints,
        "estimator": [HasMethods(["fit", "predict"]), None],
        "class_weight": CLASS_WEIGHT,
        "n_jobs": [int, None],
        "verbose": ["verbose"],
    }

    tuning_space: ClassVar = {"estimator__C": ("log", 1e-3, 1e3)}

    def __init__(
        self,
        estimator: Any = None,
        class_weight: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        threshold: Any = 0.5,
        validation_fraction: float = 0.2,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.threshold = threshold
        self.validation_fraction = validation_fraction
        self.random_state = random_state

    @classmethod
    def published(cls, dataset: str | None = None) -> Self:
        """Return the method as the tables of C-GMVAE name it; they give no settings."""
        return cls()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.capabilities.randomized = False  # the default classifier has one solution
        tags.capabilities.feature_importance = (
            self.estimator is None
            or is_linear(self.estimator)
            or hasattr(type(self.estimator), "feature_importances_")
        )
        return tags

    def _fit(
        self,
        X: Any,
        y: LabelMatrix,
        validation: Pair | None,
        sample_weight: np.ndarray | None = None,
    ) -> None:
        super()._fit(X, y, validation, sample_weight)
        self.feature_scale_ = None if self.coef_ is None else column_scales(X)

    def _feature_importance(self) -> np.ndarray:
        if self.coef_ is not None:
            return np.abs(self.coef_) * self.feature_scale_
        importance = np.zeros((self.n_labels_, self._n_columns))
        for j, estimator in enumerate(self.estimators_):
            if estimator is None:  # a constant label
                continue
            if not hasattr(estimator, "feature_importances_"):
                name = type(estimator).__name__
                raise InputError(f"{name} has neither linear weights nor feature_importances_")
            importance[j] = estimator.feature_importances_
        return importance

    def _feature_directions(self) -> np.ndarray | None:
        return None if self.coef_ is None else np.sign(self.coef_).astype(np.int64)
