"""Binary relevance: one classifier a label, each on its own."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import HasMethods

from labelweave.base import MultiLabelClassifier, Pair
from labelweave.exceptions import InputError
from labelweave.importance import FeatureImportanceMixin, column_scales
from labelweave.labels import LabelMatrix
from labelweave.shallow.per_label import InnerClassifierMixin, PerLabelClassifier

__all__ = ["BinaryRelevance"]


class BinaryRelevance(FeatureImportanceMixin, InnerClassifierMixin, PerLabelClassifier):
    """One classifier of scikit-learn for each label [1]_.

    Parameters
    ----------
    estimator : scikit-learn classifier, optional
        Cloned for each label; ``LogisticRegression(max_iter=10_000)`` by default (features of
        very different sizes need so many steps; scaled ones are quicker). One without
        `predict_proba` gives ``1 / (1 + exp(-d))`` of its decision value d: the cut 0.5 is its
        own decision, but the numbers in between are no calibrated probabilities
        (:class:`labelweave.calibration.CalibratedMultiLabel` makes them so).
    n_jobs : int, optional
        Labels fitted at a time, by joblib; None means one.
    verbose : int, default=0
        Above 0 joblib prints its progress.
    threshold, validation_fraction, random_state
        As for every estimator: see :class:`~labelweave.base.MultiLabelClassifier`. From
        `random_state` each label's classifier gets a seed of its own; without one, a seed that
        `estimator` has itself is kept.

    Attributes
    ----------
    coef_, intercept_ : ndarray of shape (n_labels, n_features) and (n_labels,), or None
        The weights, where all classifiers are linear: then they are all that is kept, and all
        labels are predicted by one matrix product.
    estimators_ : list of classifiers
        The classifiers otherwise (None in the place of a constant label), else empty.
    feature_scale_ : ndarray of shape (n_features,), or None
        Standard deviation of each feature in training, kept beside linear weights: the
        importance of a feature is its scale times the size of its weight. Trees and forests
        bring their own `feature_importances_`; :meth:`feature_importance` gives either.
    constant_probabilities_ : ndarray of shape (n_labels,)
        The probability of a label that was constant in training, NaN for all others.

    Notes
    -----
    A row whose label is unknown takes no part in fitting that label, and only that one.

    A label whose known entries are all alike (never positive, or always) has nothing to learn
    from: its probability is Laplace's (positives + 1) / (known + 2) for every row.

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
        "n_jobs": [int, None],
        "verbose": ["verbose"],
    }

    tuning_space: ClassVar = {"estimator__C": ("log", 1e-3, 1e3)}

    def __init__(
        self,
        estimator: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        threshold: Any = 0.5,
        validation_fraction: float = 0.2,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.threshold = threshold
        self.validation_fraction = validation_fraction
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.capabilities.randomized = False  # the default classifier has one solution
        return tags

    def _fit(self, X: Any, y: LabelMatrix, validation: Pair | None) -> None:
        super()._fit(X, y, validation)
        self.feature_scale_ = None if self.coef_ is None else column_scales(X)

    def _feature_importance(self) -> np.ndarray:
        if self.coef_ is None or self.feature_scale_ is None:
            found = [getattr(one, "feature_importances_", None) for one in self.estimators_]
            blank = np.zeros(self.n_features_in_)
            if any(f is None for f, one in zip(found, self.estimators_, strict=True) if one):
                raise InputError(
                    f"{type(self._template()).__name__} has neither linear weights nor "
                    "feature_importances_"
                )
            return np.array([blank if f is None else f for f in found], dtype=float)
        return np.abs(self.coef_) * self.feature_scale_
