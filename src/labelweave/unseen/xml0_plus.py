"""XML0+: the two scores of XML0 and further ones, combined by logistic regression."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit

from labelweave.text.embedders import cosines
from labelweave.text.tfidf import TfidfEmbedder
from labelweave.unseen._fusion.growing_rows import GrowingRows
from labelweave.unseen._fusion.label_extension import LabelExtension
from labelweave.unseen._fusion.label_scores import LabelScores, shared_ranks
from labelweave.unseen._fusion.label_search import Documents, Predicted
from labelweave.unseen._fusion.score_combination import (
    Draws,
    ScoreCombination,
    training_pairs,
    weighted_sum,
)

__all__ = [
    "FEATURES",
    "StackedScores",
    "XML0Plus",
    "fit_stacker",
    "mean_and_spread",
    "relative_combination",
]

FEATURES = (
    "similarity",
    "conse",
    "fusion",
    "fusion_strength",
    "similarity_rank",
    "conse_rank",
    "fusion_rank",
    "words",
    "words_rank",
    "similarity_excess",
)
_RANK_OFFSET = 5  # a rank becomes the feature 1 / (5 + rank)
_MAX_REFERENCE = 2000  # training documents for the mean similarity of a label

# Without documents to fit a combination on: the weight of fusion in the plain sum, how steeply the
# probability rises with the relative score (chosen on draws of debtags, cooking-se and
# reuters21578), and the numbers of seen labels that it is relative to
_FUSION_WEIGHT = 0.3
_SLOPE = 1.0
_MIN_REFERENCE, _MAX_REFERENCE_LABELS = 10, 200
_MIN_SPREAD = 0.02
_N_FIFTHS = 300  # draws of seen labels for their typical prevalence
PLAIN_SUM = weighted_sum(_FUSION_WEIGHT)


@dataclass(frozen=True)
class StackedScores(LabelScores):
    """The scores of XML0 and those that XML0+ adds."""

    strength: np.ndarray | None = None  # (n,), mean probability of a document's predicted labels
    words: np.ndarray | None = None  # (n, U), cosines of TF-IDF weights of document and label text
    mean_similarity: np.ndarray | None = None  # (U,), of each label with training documents
    # (n, 2), mean and spread of the plain sum over labels that the document does not have
    reference: np.ndarray | None = None

    def feature(self, name: str) -> np.ndarray:
        """Return one of :data:`FEATURES`, or "relative", of shape (n, U)."""
        if name.endswith("_rank"):
            return 1 / (_RANK_OFFSET + shared_ranks(self.feature(name.removesuffix("_rank"))))
        if name == "fusion_strength":
            assert self.strength is not None
            return self.feature("fusion") * self.strength[:, None] ** 0.25
        if name == "similarity_excess":
            assert self.mean_similarity is not None
            return self.feature("similarity") - self.mean_similarity
        if name == "relative":
            assert self.reference is not None
            mean, spread = self.reference[:, :1], self.reference[:, 1:]
            return (PLAIN_SUM.combined(self) - mean) / spread
        if name == "words":
            assert self.words is not None
            return self.words
        return super().feature(name)


class XML0Plus(LabelExtension):
    """XML0 with more scores, combined by logistic regression.

    An unseen label has the two scores of :class:`~labelweave.unseen.xml0.XML0`, label fusion and
    semantic similarity, and further ones: the score of ConSE, the cosine of TF-IDF weights, fusion
    times the fourth root of the mean probability of the predicted labels, the similarity beyond the
    mean similarity of the label with training documents, and the ranks of four of these as
    ``1 / (5 + rank)``. A logistic regression combines these ten features. It is fitted on
    validation documents, to three random draws of seen labels that are treated as unseen.

    Parameters
    ----------
    classifier : estimator or str, default=None
        Any classifier of texts with `predict_proba`, or the id of a method ("attentionxml"); by
        default one linear classifier per label on TF-IDF weights. :meth:`from_fitted` extends a
        classifier that is already fitted.
    encoder, min_probability, max_predicted, finetune, finetune_steps, fusion, index_above, n_jobs
        As for :class:`~labelweave.unseen.xml0.XML0`.
    threshold, validation_fraction, random_state
        As in :class:`~labelweave.base.MultiLabelClassifier`.

    Attributes
    ----------
    classifier_ : estimator
        The fitted classifier of the seen labels.
    combination_ : ScoreCombination
        The fitted combination of the scores.

    Examples
    --------
    >>> texts = ["deep sea fish", "sea water fish", "dry desert sand", "hot desert sand"] * 10
    >>> labels = [["fish", "sea"], ["fish", "sea"], ["desert"], ["desert"]] * 10
    >>> model = XML0Plus(encoder="tfidf", random_state=0).fit(texts, labels)
    >>> model = model.add_labels(["fish water", "sand"])
    >>> [row[0][0] for row in model.rank(["fish in the sea", "sand of the desert"], 1,
    ...                                  among="unseen")]
    ['fish water', 'sand']
    """

    def _default_combination(self) -> ScoreCombination:
        prevalence = self.expected_prevalence_
        if prevalence is None:
            return weighted_sum(_FUSION_WEIGHT, 10.0, -5.0)
        return relative_combination(prevalence)

    @property
    def expected_prevalence_(self) -> float | None:
        """How often an unseen label is expected where there are no documents to fit scores on.

        It is the typical prevalence of seen labels: the median, over random fifths of them, of
        their mean, which a few very frequent labels do not decide. None if the prevalence is
        unknown, or if the labels are very few.
        """
        prevalence = getattr(self.classifier_, "label_prevalence_", None)
        if prevalence is None or np.isnan(prevalence).all() or self.n_columns_ < _MIN_REFERENCE:
            return None
        known = prevalence[~np.isnan(prevalence)]
        draws = np.random.RandomState(0).choice(known, (_N_FIFTHS, max(1, len(known) // 5)))
        return float(np.median(draws.mean(axis=1)))

    def _fit_combination(self, draws: Draws) -> ScoreCombination:
        return fit_stacker(FEATURES, draws, self._generator())

    def _start(self, X: Any) -> None:
        super()._start(X)
        self.words_: Any = None
        self.reference_: Any = None
        if X is None:
            return
        documents, texts = X.tolist(), self._texts_of(self.label_names_)
        self.words_ = TfidfEmbedder(max_words=2, max_features=100_000).fit([*documents, *texts])
        self.label_words_ = GrowingRows(self.words_.transform(texts))
        order = self._generator().permutation(len(documents))[:_MAX_REFERENCE]
        vectors = self._embed([documents[i] for i in order])
        self.reference_ = np.asarray(vectors.mean(axis=0), dtype=np.float32).reshape(1, -1)

    def _documents(self, X: Any) -> Documents | None:
        documents = super()._documents(X)
        if documents is None or self.words_ is None:
            return documents
        return documents._replace(words=self.words_.transform(X.tolist()))

    def _label_scores(
        self,
        rows: np.ndarray,
        P: np.ndarray,
        documents: Documents | None,
        *,
        masked: np.ndarray | None = None,
    ) -> tuple[LabelScores, Predicted]:
        scores, predicted = super()._label_scores(rows, P, documents, masked=masked)
        pairs = zip(predicted.probabilities, predicted.columns, strict=True)
        strength = np.array([p[c].mean() if len(c) else 0 for p, c in pairs])
        words = mean_similarity = None
        if documents is not None and documents.words is not None:
            words = cosines(documents.words, self.label_words_.take(rows))
            mean_similarity = cosines(self.table_.vectors(rows), self.reference_).ravel()
        reference = None
        if "relative" in self.combination_.names:
            reference = self._reference_scores(P, documents)
        parts = (scores.similarity, scores.conse, scores.fusion)
        return StackedScores(*parts, strength, words, mean_similarity, reference), predicted

    def _reference_scores(self, P: np.ndarray, documents: Documents | None) -> np.ndarray:
        """Mean and spread of each document's plain sum over seen labels that it does not have."""
        seen = self.table_.seen_rows
        rows = seen[np.unique(np.linspace(0, len(seen) - 1, _MAX_REFERENCE_LABELS).astype(int))]
        scores, _ = super()._label_scores(rows, P, documents)
        likely = P[:, self.table_.columns[rows]] >= self.min_probability
        return mean_and_spread(PLAIN_SUM.combined(scores), likely)

    def _labels_added(self, rows: np.ndarray, texts: list[str]) -> None:
        super()._labels_added(rows, texts)
        if self.words_ is not None:
            self.label_words_.append(self.words_.transform(texts))

    def _label_renamed(self, row: int, text: str) -> None:
        super()._label_renamed(row, text)
        if self.words_ is not None:
            self.label_words_.replace(row, self.words_.transform([text]))

    def _state(self) -> dict[str, Any]:
        rows = self.table_.rows
        return {
            **super()._state(),
            "words": self.words_,
            "label_words": None if self.words_ is None else self.label_words_.take(rows),
            "reference": self.reference_,
        }

    def _set_state(self, state: Mapping[str, Any]) -> None:
        super()._set_state(state)
        self.words_, self.reference_ = state["words"], state["reference"]
        if self.words_ is not None:
            self.label_words_ = GrowingRows(state["label_words"])


def mean_and_spread(scores: np.ndarray, likely: np.ndarray) -> np.ndarray:
    """Mean and standard deviation of each row without the `likely` entries, of shape (n, 2).

    They are not left out where fewer than ten entries would remain. The spread is at least 0.02.

    >>> scores = np.array([[1.0, 3.0] * 5 + [9.0]])
    >>> mean_and_spread(scores, scores > 8).tolist()
    [[2.0, 1.0]]
    """
    used = ~likely
    used[used.sum(axis=1) < _MIN_REFERENCE] = True
    mean = np.average(scores, axis=1, weights=used)
    variance = np.average((scores - mean[:, None]) ** 2, axis=1, weights=used)
    return np.column_stack([mean, np.maximum(np.sqrt(variance), _MIN_SPREAD)])


def relative_combination(prevalence: float) -> ScoreCombination:
    """Probabilities from the "relative" score alone, with this mean for an unrelated label.

    The relative score of a label that has nothing to do with a document is about normally
    distributed, with mean 0 and standard deviation 1.
    """
    scores = np.linspace(-6, 6, 1201)
    weights = np.exp(-(scores**2) / 2)
    low, high = -40.0, 40.0
    for _ in range(60):
        middle = (low + high) / 2
        mean = np.average(expit(_SLOPE * scores + middle), weights=weights)
        low, high = (middle, high) if mean < prevalence else (low, middle)
    return ScoreCombination(["relative"], np.ones(1), _SLOPE, (low + high) / 2)


def fit_stacker(
    names: Sequence[str], draws: Draws, random: np.random.RandomState
) -> ScoreCombination:
    """Fit a logistic regression on some of :data:`FEATURES` of labels treated as unseen."""
    from sklearn.linear_model import LogisticRegression

    def features(scores: LabelScores) -> np.ndarray:
        return np.stack([scores.feature(name) for name in names], axis=-1).astype(np.float32)

    X, y, weights = training_pairs(features, draws, random)
    X = X.astype(np.float64)
    scale = X.std(axis=0)
    scale[scale == 0] = 1
    if y.min(initial=1) == y.max(initial=0):  # positives or negatives are missing
        return ScoreCombination(names, np.ones(len(names)) / len(names))
    model = LogisticRegression(max_iter=1000)
    model.fit(X / scale, y, sample_weight=weights)
    return ScoreCombination(names, model.coef_[0] / scale, 1.0, float(model.intercept_[0]))
