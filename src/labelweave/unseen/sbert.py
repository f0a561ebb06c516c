"""SBERT: labels whose text is similar to the document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from scipy.special import expit

from labelweave.base import Pair
from labelweave.labels import LabelMatrix
from labelweave.unseen._fusion.label_scores import LabelScores
from labelweave.unseen._fusion.score_combination import ScoreCombination, calibrated
from labelweave.unseen._fusion.zero_shot import PUBLISHED_STEPS, ZeroShotClassifier
from labelweave.unseen.xml0_algorithm import semantic_similarity

__all__ = ["SBERT"]

_MAX_DOCUMENTS = 1000  # documents to calibrate on


class SBERT(ZeroShotClassifier):
    """Cosine of document and label in the embedding space of a sentence encoder [1]_.

    This is the semantic similarity of XML0 alone, for seen and unseen labels. Without `finetune`,
    only the two numbers are fitted that turn a cosine into a probability. They do not change the
    order of the labels.

    Parameters
    ----------
    encoder : {"minilm", "fast", "tfidf"} or transformer of texts, default="minilm"
        See :mod:`labelweave.text`; MiniLM needs the ``text`` extra.
    finetune : {"map", "full"} or None, default=None
        Fine-tune on the seen labels, so that documents are closer to the texts of their labels.
        "map" learns a matrix that is applied after the encoder, in seconds; "full" trains the
        encoder itself.
    finetune_steps : int, optional
        Number of training steps; by default 200 for a map and 100 for the encoder.
    threshold, validation_fraction, random_state
        As in :class:`~labelweave.base.MultiLabelClassifier`.

    References
    ----------
    .. [1] N. Reimers and I. Gurevych. Sentence-BERT: sentence embeddings using siamese
       BERT-networks. EMNLP 2019.

    Examples
    --------
    >>> model = SBERT(encoder="tfidf").fit(["the sea", "the sun"], [["sea"], ["sun"]])
    >>> model.add_labels("moon").rank(["a sea"], 1)[0][0][0]
    'sea'
    """

    def __init__(
        self,
        *,
        encoder: Any = "minilm",
        finetune: str | None = None,
        finetune_steps: int | None = None,
        threshold: Any = 0.5,
        validation_fraction: float = 0.2,
        random_state: Any = None,
    ) -> None:
        self.encoder = encoder
        self.finetune = finetune
        self.finetune_steps = finetune_steps
        self.threshold = threshold
        self.validation_fraction = validation_fraction
        self.random_state = random_state

    @classmethod
    def published(cls, dataset: str | None = None) -> Self:
        """Return an estimator with the settings of Table II of the XML0 paper.

        The encoder is fine-tuned on two million pairs of documents and labels, in batches of 32.
        The settings are the same for all data sets.
        """
        return cls(finetune="full", finetune_steps=PUBLISHED_STEPS)

    def _fit(self, X: Any, Y: LabelMatrix, validation: Pair | None) -> None:
        self._start_table(X.tolist(), Y.n_labels)
        self._fine_tune(X, Y, np.arange(Y.n_labels))
        random = self._generator()
        rows = random.permutation(len(Y))[:_MAX_DOCUMENTS]
        similarity = self._similarity(X[rows], self.table_.rows)
        start = ScoreCombination(["similarity"], np.ones(1), 10.0, -5.0)
        self.combination_ = calibrated(
            start, [(LabelScores(similarity), Y[rows].to_numpy())], random
        )

    def _similarity(self, X: Any, rows: np.ndarray) -> np.ndarray:
        documents = self._embed_documents(X.tolist())
        return semantic_similarity(documents, self.table_.vectors(rows))

    def _label_probabilities(self, X: Any, rows: np.ndarray) -> np.ndarray:
        calibration = self.combination_
        return expit(calibration.slope * self._similarity(X, rows) + calibration.offset)

    def _state(self) -> dict[str, Any]:
        return {**super()._state(), "combination": self.combination_.to_dict()}

    def _set_state(self, state: Mapping[str, Any]) -> None:
        super()._set_state(state)
        self.combination_ = ScoreCombination.from_dict(state["combination"])

    @classmethod
    def _test_params(cls) -> dict[str, Any]:
        return {"encoder": "tfidf"}
