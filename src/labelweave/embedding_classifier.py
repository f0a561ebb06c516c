"""Base of classifiers of texts or images: features first, then any classifier of features."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
from sklearn.base import clone

from labelweave.base import WeightedClassifier
from labelweave.capabilities import capabilities
from labelweave.labels import LabelMatrix

__all__ = ["EmbeddingClassifier"]


class EmbeddingClassifier(WeightedClassifier):
    """A classifier of texts or images that turns them into features for another classifier.

    A subclass computes the features in `_checked_features` and has a parameter `classifier`, an
    estimator or None for binary relevance. With ``threshold="auto"`` label sets are made by the
    threshold of that classifier.

    Attributes
    ----------
    classifier_ : estimator
        The fitted classifier.
    """

    classifier: Any

    def _fit(
        self,
        X: Any,
        Y: LabelMatrix,
        validation: Any,
        sample_weight: np.ndarray | None = None,
    ) -> None:
        classifier = self._unfitted_classifier()
        takes_seed = "random_state" in classifier.get_params(deep=False)
        if takes_seed and classifier.get_params(deep=False)["random_state"] is None:
            classifier.set_params(random_state=self.random_state)
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        if validation is not None and self._validation_weight is not None:
            X_held, Y_held = validation
            validation = SimpleNamespace(X=X_held, Y=Y_held, weights=self._validation_weight)
        self.classifier_ = classifier.fit(X, Y, validation=validation, **weights)

    def _predict_proba(self, X: Any) -> np.ndarray:
        return self.classifier_.predict_proba(X)

    def _predict_top_k(self, X: Any, k: int) -> Any:
        return self.classifier_.predict_top_k(X, k)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = capabilities(self._unfitted_classifier())
        tags.capabilities.label_prevalence = inner.label_prevalence
        tags.capabilities.out_of_fold = inner.out_of_fold
        tags.capabilities.top_labels = inner.top_labels
        tags.capabilities.sample_weight = inner.sample_weight
        tags.capabilities.soft_targets = inner.soft_targets
        tags.capabilities.randomized = inner.randomized
        tags.capabilities.vectors = False
        return tags

    def _out_of_fold_predictions(self) -> tuple[LabelMatrix, np.ndarray] | None:
        return self.classifier_._out_of_fold_predictions()

    def _threshold_rule(self) -> Any:
        if self.threshold != "auto":
            return self.threshold
        return getattr(self._unfitted_classifier(), "threshold", 0.5)

    def _needs_validation(self) -> bool:
        return self._unfitted_classifier()._needs_validation()

    def _unfitted_classifier(self) -> Any:
        if self.classifier is not None:
            return clone(self.classifier)
        from labelweave.methods import make

        return make("br")
