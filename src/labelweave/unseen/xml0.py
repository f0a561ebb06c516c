"""XML0: labels without examples, from the labels that a classifier predicts and the text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import StrOptions

from labelweave.unseen._fusion.label_extension import LabelExtension
from labelweave.unseen._fusion.label_scores import FEATURES, LabelScores
from labelweave.unseen._fusion.score_combination import (
    COMBINATIONS,
    ScoreCombination,
    fit_combination,
)

__all__ = ["XML0"]


class XML0(LabelExtension):
    """Predict labels without examples on top of a classifier of the others [1]_.

    Two scores speak for an unseen label. Label fusion (Algorithm 1): of all combinations of the
    labels that the classifier predicts for a document, each label's embedding weighted by its
    probability, the one nearest to the unseen label, by cosine. Semantic similarity: the cosine
    of the document's and the label's embeddings.

    Parameters
    ----------
    classifier : estimator, default=None
        Any classifier of texts with `predict_proba`; one linear classifier a label on TF-IDF
        weights by default. :meth:`from_fitted` takes a fitted one as it is.
    combine : {"stacked", "weighted", "rrf"}, default="stacked"
        How the scores become one. "stacked": logistic regression on both, on ConSE's score, the
        match of words and the ranks; "weighted": a weighted sum, the weight chosen by nDCG@5;
        "rrf": reciprocal rank fusion. All are learnt from three draws of seen labels that are
        treated as unseen, on validation documents.
    encoder : {"minilm", "fast", "tfidf"} or transformer of texts, default="minilm"
        See :mod:`labelweave.text`; MiniLM needs the ``text`` extra.
    min_probability : float, default=0.05
        Labels above it count as predicted (the paper's t).
    max_predicted : int, default=10
        At most so many of the likeliest labels count as predicted.
    finetune : {"map", "full"} or None, default=None
        Bring documents nearer to their labels' texts, on the seen labels: "map" learns a matrix
        after the encoder, in seconds; "full" trains the encoder itself.
    finetune_steps : int, optional
        200 of a map, 100 of the encoder by default.
    fusion : {"exact", "greedy"}, default="exact"
        Whether the search over combinations is exact or approximate.
    index_above : int, default=100000
        With more unseen labels than this an index (FAISS, the ``neighbors`` extra) finds the
        candidates, which are scored exactly; with fewer every label is.
    n_jobs : int, optional
        Documents that are fused at a time, by threads; -1 takes all cores.
    threshold, validation_fraction, random_state
        As in every estimator.

    Attributes
    ----------
    classifier_ : estimator
        The fitted classifier of the seen labels.
    combination_ : ScoreCombination

    Notes
    -----
    Departures from the paper: it does not say how the two scores are combined (here a stacker,
    see `combine`); the number of predicted labels has a cap; unseen labels get probabilities, so
    that they can be ranked together with seen ones.

    A document without a predicted label has fusion score 0 for all labels: the document's text
    alone decides. An empty document has similarity 0 to all labels.

    References
    ----------
    .. [1] N. Ostapuk, L. Dolamic, A. Mermoud and P. Cudre-Mauroux. Leveraging pre-trained
       extreme multi-label classifiers for zero-shot learning. 2024.

    Examples
    --------
    >>> texts = ["deep sea fish", "sea water fish", "dry desert sand", "hot desert sand"] * 10
    >>> labels = [["fish", "sea"], ["fish", "sea"], ["desert"], ["desert"]] * 10
    >>> model = XML0(encoder="tfidf", random_state=0).fit(texts, labels)
    >>> model = model.add_labels(["fish water", "sand"])
    >>> [row[0][0] for row in model.rank(["fish in the sea", "sand of the desert"], 1,
    ...                                  among="unseen")]
    ['fish water', 'sand']
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **LabelExtension._parameter_constraints,
        "combine": [StrOptions(set(COMBINATIONS))],
    }

    def __init__(
        self,
        classifier: Any = None,
        *,
        combine: str = "stacked",
        encoder: Any = "minilm",
        min_probability: float = 0.05,
        max_predicted: int = 10,
        finetune: str | None = None,
        finetune_steps: int | None = None,
        fusion: str = "exact",
        index_above: int = 100_000,
        n_jobs: int | None = None,
        threshold: Any = 0.5,
        validation_fraction: float = 0.2,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            classifier,
            encoder=encoder,
            min_probability=min_probability,
            max_predicted=max_predicted,
            finetune=finetune,
            finetune_steps=finetune_steps,
            fusion=fusion,
            index_above=index_above,
            n_jobs=n_jobs,
            threshold=threshold,
            validation_fraction=validation_fraction,
            random_state=random_state,
        )
        self.combine = combine

    def _default_combination(self) -> ScoreCombination:
        if self.combine == "rrf":
            return ScoreCombination(["rrf"], np.ones(1), 60.0, -3.0)
        return ScoreCombination(["similarity", "fusion"], np.array([0.7, 0.3]), 10.0, -5.0)

    def _fit_combination(self, draws: Sequence[tuple[LabelScores, np.ndarray]]) -> ScoreCombination:
        names = FEATURES if self.words_ is not None else FEATURES[:7]
        return fit_combination(self.combine, names, draws, self._generator())

    @classmethod
    def _test_params(cls) -> dict[str, Any]:
        return {"encoder": "tfidf"}
