"""Base of estimators that make features of texts or images and hand them to a classifier."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone

from labelweave.base import MultiLabelClassifier, Pair
from labelweave.labels import LabelMatrix

__all__ = ["ClassifierBehind"]


class ClassifierBehind(MultiLabelClassifier):
    """A classifier behind something that makes its features, in `_checked_features`.

    A subclass has a parameter `classifier`, an estimator or None for binary relevance. Its
    `threshold` may be "auto": the rule that the classifier brings.

    Attributes
    ----------
    classifier_ : estimator
        The fitted classifier.
    """

    classifier: Any

    def _fit(self, X: Any, Y: LabelMatrix, validation: Pair | None) -> None:
        classifier = self._unfitted_classifier()
        takes_seed = "random_state" in classifier.get_params(deep=False)
        if takes_seed and classifier.get_params(deep=False)["random_state"] is None:
            classifier.set_params(random_state=self.random_state)
        self.classifier_ = classifier.fit(X, Y, validation=validation)

    def _predict_proba(self, X: Any) -> np.ndarray:
        return self.classifier_.predict_proba(X)

    @property
    def _tells_rates(self) -> bool:  # type: ignore[override]
        return bool(getattr(self.classifier, "_tells_rates", True))

    @property
    def _tunes_out_of_fold(self) -> bool:  # type: ignore[override]
        return bool(getattr(self.classifier, "_tunes_out_of_fold", False))

    def _judged_out_of_fold(self) -> tuple[LabelMatrix, np.ndarray] | None:
        return self.classifier_._judged_out_of_fold()

    def _threshold_rule(self) -> Any:
        if self.threshold != "auto":
            return self.threshold
        return getattr(self._unfitted_classifier(), "threshold", 0.5)

    def _wants_validation(self) -> bool:
        return self._unfitted_classifier()._wants_validation()

    def _unfitted_classifier(self) -> Any:
        if self.classifier is not None:
            return clone(self.classifier)
        from labelweave.methods import make

        return make("br")
