"""XML0: unseen labels by label fusion and semantic similarity.

The paper's algorithm is in :mod:`labelweave.unseen.xml0_algorithm`; this module wraps it in an
estimator. What the paper leaves open is listed in the docstring of the class under *Choices*.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils._param_validation import StrOptions

from labelweave.unseen._fusion.label_extension import LabelExtension
from labelweave.unseen._fusion.score_combination import (
    Draws,
    ScoreCombination,
    calibrated,
    weighted_sum,
)
from labelweave.unseen._fusion.zero_shot import PUBLISHED_STEPS

__all__ = ["XML0", "learn_weight"]

_WEIGHTS = np.linspace(0, 1, 11)  # weights of label fusion that are tried


class XML0(LabelExtension):
    """Predict unseen labels on top of a classifier of the seen labels [1]_.

    An unseen label has two scores. Label fusion (Algorithm 1) considers all combinations of the
    labels that the classifier predicts for a document, each combination being the sum of label
    embeddings weighted by their probabilities; the score is the largest cosine of a combination
    with the unseen label. Semantic similarity is the cosine of the document and the label. The
    final score is a weighted sum of the two.

    Parameters
    ----------
    classifier : estimator or str, default=None
        Any classifier of texts with `predict_proba`, or the id of a method ("attentionxml"); by
        default one linear classifier per label on TF-IDF weights. :meth:`from_fitted` extends a
        classifier that is already fitted.
    combine : {"weighted", "rrf"}, default="weighted"
        How the two scores are combined. "weighted": a weighted sum, with the weight that has the
        best nDCG@5 on up to 1,000 validation documents for seen labels treated as unseen, in three
        random draws of a fifth of these labels (one draw with `finetune`); "rrf": reciprocal rank
        fusion.
    encoder : {"minilm", "fast", "tfidf"} or transformer of texts, default="minilm"
        See :mod:`labelweave.text`; MiniLM needs the ``text`` extra.
    min_probability : float, default=0.05
        Labels with a larger probability count as predicted (the paper's t).
    max_predicted : int, default=10
        The largest number of predicted labels per document, the likeliest first.
    finetune : {"map", "full"} or None, default=None
        Fine-tune on the seen labels, so that documents are closer to the texts of their labels.
        "map" learns a matrix that is applied after the encoder, in seconds; "full" trains the
        encoder itself.
    finetune_steps : int, optional
        Number of training steps; by default 200 for a map and 100 for the encoder.
    fusion : {"exact", "greedy"}, default="exact"
        Whether the search over combinations is exact or approximate.
    index_above : int, default=100000
        With more unseen labels than this, an index (FAISS, the ``neighbors`` extra) finds
        candidates and only these are scored. Otherwise every label is scored.
    n_jobs : int, optional
        Number of threads for label fusion; -1 uses all cores.
    threshold, validation_fraction, random_state
        As in :class:`~labelweave.base.MultiLabelClassifier`.

    Attributes
    ----------
    classifier_ : estimator
        The fitted classifier of the seen labels.
    combination_ : ScoreCombination
        The fitted combination of the scores.

    See Also
    --------
    labelweave.unseen.xml0_plus.XML0Plus : Combines more scores than these two.

    Notes
    -----
    *Choices.* The paper does not say how the two scores are combined; the weighted sum is a
    stand-in. It does not give the threshold t, and it has no `max_predicted`. It ranks unseen
    labels only; here they have probabilities, so that they can be ranked together with seen labels.
    Its classifier is AttentionXML and its encoder is SBERT, fine-tuned on two million pairs; the
    defaults are a linear classifier and MiniLM without fine-tuning, which train in minutes on a
    processor. :meth:`published` has the paper's.

    The weight needs documents and labels that nothing was trained on, which the paper does not
    mention: the validation documents are not used to train the classifier or the encoder, and the
    labels treated as unseen are not used to fine-tune.

    Fine-tuning follows the aim of the paper, cosines that are large for relevant labels and small
    for others (its text has them the other way round). The paper does not give the loss; here it is
    :func:`~labelweave.text.finetuning.pair_loss`, whose negatives are the labels of the other
    pairs in a batch. With ``finetune="full"`` both scores use the fine-tuned encoder. The paper
    describes fine-tuning for the semantic similarity and does not say whether label fusion has it
    too.

    A document without predicted labels has the fusion score 0 for all labels, so they are ranked by
    the text of the document alone. An empty document has similarity 0 to all labels. A combination
    whose vectors cancel out has the cosine 0.

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
        "combine": [StrOptions({"weighted", "rrf"})],
    }

    def __init__(
        self,
        classifier: Any = None,
        *,
        combine: str = "weighted",
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

    @classmethod
    def published(cls, dataset: str | None = None) -> Self:
        """Return an estimator with the settings of the paper's Table II.

        The classifier is AttentionXML with its published settings, and the encoder is fine-tuned
        on two million pairs of documents and labels, in batches of 32. The settings are the same
        for all data sets.
        """
        from labelweave.unseen.attentionxml import AttentionXML

        classifier = AttentionXML.published(dataset)
        return cls(classifier, finetune="full", finetune_steps=PUBLISHED_STEPS)

    def _default_combination(self) -> ScoreCombination:
        if self.combine == "rrf":
            return ScoreCombination(["rrf"], np.ones(1), 60.0, -3.0)
        return weighted_sum(0.3, 10.0, -5.0)

    def _fit_combination(self, draws: Draws) -> ScoreCombination:
        combination = self._default_combination()
        if self.combine == "weighted":
            combination = weighted_sum(learn_weight(draws), 10.0, -5.0)
        return calibrated(combination, draws, self._generator())


def learn_weight(draws: Draws) -> float:
    """Return the weight of label fusion that ranks labels treated as unseen best.

    Of the weights 0, 0.1, ..., 1 it is the one with the largest sum of nDCG@5 over the draws, the
    smallest of equal ones. Documents without one of the labels are ignored.

    Parameters
    ----------
    draws : sequence of (LabelScores, truth)
    """
    from labelweave.labels import as_labels
    from labelweave.metrics import ndcg_at_k

    quality = np.zeros(len(_WEIGHTS))
    for scores, truth in draws:
        rows = np.flatnonzero((truth == 1).any(axis=1))
        if not len(rows):
            continue
        labels = as_labels(truth[rows])
        k = min(5, truth.shape[1])
        for i, weight in enumerate(_WEIGHTS):
            quality[i] += ndcg_at_k(labels, weighted_sum(weight).combined(scores)[rows], k=k)
    return float(_WEIGHTS[int(quality.argmax())])
