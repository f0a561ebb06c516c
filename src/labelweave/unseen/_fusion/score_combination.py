"""Combinations of several scores of a label into one probability.

XML0's paper does not say how label fusion and semantic similarity are combined: everything in this
module is our choice, including the calibration of a single score.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy.special import expit

from labelweave.unseen._fusion.label_scores import LabelScores, shared_ranks

__all__ = ["COMBINATIONS", "ScoreCombination", "calibrated", "fit_combination"]

COMBINATIONS = ("stacked", "weighted", "rrf")
Draws = Sequence[tuple[LabelScores, np.ndarray]]  # scores and truth of labels treated as unseen
_WEIGHTS = np.linspace(0, 1, 11)  # weights of label fusion that "weighted" tries
_RRF = 60  # the customary constant of reciprocal rank fusion
_NEGATIVES = 40  # expected number of negatives per document that a fit uses


class ScoreCombination:
    """A linear function of scores, and the sigmoid that turns it into a probability.

    Parameters
    ----------
    names : sequence of str
        Features of :data:`labelweave.unseen._fusion.label_scores.FEATURES`, or "rrf".
    weights : ndarray
        One weight per feature.
    slope, offset : float
        P(label | document) = sigmoid(slope * score + offset).
    """

    def __init__(
        self, names: Sequence[str], weights: np.ndarray, slope: float = 1.0, offset: float = 0.0
    ) -> None:
        self.names = tuple(names)
        self.weights = np.asarray(weights, dtype=np.float64)
        self.slope = slope
        self.offset = offset

    def combined(self, scores: LabelScores) -> np.ndarray:
        """One combined score per document and label; a larger score is better."""
        total = np.zeros(())
        for name, weight in zip(self.names, self.weights, strict=True):
            part = _reciprocal_ranks(scores) if name == "rrf" else scores.feature(name)
            total = total + weight * part
        return total

    def probabilities(self, scores: LabelScores) -> np.ndarray:
        """P(label | document)."""
        return expit(self.slope * self.combined(scores) + self.offset)

    def to_dict(self) -> dict[str, Any]:
        """Return values that can be written as JSON."""
        return {
            "names": list(self.names),
            "weights": self.weights.tolist(),
            "slope": self.slope,
            "offset": self.offset,
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> ScoreCombination:
        return cls(stored["names"], stored["weights"], stored["slope"], stored["offset"])


def _reciprocal_ranks(scores: LabelScores) -> np.ndarray:
    total = np.zeros(())
    for part in (scores.similarity, scores.fusion):
        if part is not None:
            total = total + 1 / (_RRF + shared_ranks(part))
    return total


def fit_combination(
    combine: str, names: Sequence[str], draws: Draws, random: np.random.RandomState
) -> ScoreCombination:
    """Fit a combination on seen labels that are treated as unseen.

    Parameters
    ----------
    combine : {"stacked", "weighted", "rrf"}
        Logistic regression on all features; a weighted sum of similarity and fusion, with the
        weight that has the best nDCG@5; or reciprocal rank fusion of the two.
    names : sequence of str
        The available features.
    draws : sequence of (LabelScores, truth)
        The truth is 1, 0 or NaN for unknown.
    random : RandomState
    """
    if combine == "stacked":
        return _stacked(names, draws, random)
    if combine == "weighted":
        return calibrated(_weighted(draws), draws, random)
    return calibrated(ScoreCombination(["rrf"], np.ones(1)), draws, random)


def _stacked(names: Sequence[str], draws: Draws, random: np.random.RandomState) -> ScoreCombination:
    from sklearn.linear_model import LogisticRegression

    X, y, weights = _training_pairs(lambda scores: scores.features(names), draws, random)
    X = X.astype(np.float64)
    scale = X.std(axis=0)
    scale[scale == 0] = 1
    if y.min(initial=1) == y.max(initial=0):  # positives or negatives are missing
        return ScoreCombination(names, np.ones(len(names)) / len(names))
    model = LogisticRegression(max_iter=1000)
    model.fit(X / scale, y, sample_weight=weights)
    return ScoreCombination(names, model.coef_[0] / scale, 1.0, float(model.intercept_[0]))


def calibrated(
    combination: ScoreCombination, draws: Draws, random: np.random.RandomState
) -> ScoreCombination:
    """Fit slope and offset, so that scores become probabilities and keep their order."""
    from sklearn.linear_model import LogisticRegression

    s, y, weights = _training_pairs(combination.combined, draws, random)
    if y.min(initial=1) == y.max(initial=0) or s.std() == 0:
        return combination
    scale = float(s.std())
    model = LogisticRegression(C=1e3)
    model.fit((s / scale)[:, None], y, sample_weight=weights)
    combination.slope = max(float(model.coef_[0, 0]), 1e-6) / scale
    combination.offset = float(model.intercept_[0])
    return combination


def _training_pairs(
    inputs: Callable[[LabelScores], np.ndarray], draws: Draws, random: np.random.RandomState
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Inputs, targets and weights of pairs of documents and labels.

    All positive pairs are used, and a random sample of the negative pairs, whose weights make up
    for those that are not in the sample.
    """
    X, y, weights = [], [], []
    for scores, truth in draws:
        share = min(1.0, _NEGATIVES / max(truth.shape[1], 1))
        is_positive = truth == 1
        is_sampled = (truth == 0) & (random.random_sample(truth.shape) < share)
        used = is_positive | is_sampled
        X.append(inputs(scores)[used])
        y.append(truth[used])
        weights.append(np.where(is_positive, 1.0, 1 / share)[used])
    return np.concatenate(X), np.concatenate(y), np.concatenate(weights)


def _weighted(draws: Draws) -> ScoreCombination:
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
            quality[i] += ndcg_at_k(labels, _weighted_sum(weight).combined(scores)[rows], k=k)
    return _weighted_sum(_WEIGHTS[int(quality.argmax())])


def _weighted_sum(weight: float) -> ScoreCombination:
    return ScoreCombination(["similarity", "fusion"], np.array([1 - weight, weight]))
