"""One kind of evidence alone, made a probability."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from labelweave.unseen.combination import Combination, calibrated
from labelweave.unseen.evidence import Evidence
from labelweave.unseen.extension import LabelExtension

__all__ = ["SingleEvidence"]


class SingleEvidence(LabelExtension):
    """Base of the methods over a classifier whose score is one of XML0's features."""

    _feature: ClassVar[str]
    _reads_documents = False

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.capabilities.vectors = True  # documents may be features in place of texts
        return tags

    def _uncalibrated(self) -> Combination:
        return Combination([self._feature], np.ones(1), 10.0, -5.0)

    def _fit_combination(self, draws: Sequence[tuple[Evidence, np.ndarray]]) -> Combination:
        return calibrated(self._uncalibrated(), draws, self._generator())

    @classmethod
    def _test_params(cls) -> dict[str, Any]:
        return {"encoder": "tfidf"}
