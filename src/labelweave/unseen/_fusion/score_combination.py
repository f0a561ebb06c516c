"""Linear combinations of the scores of a label, calibrated to probabilities.

The weights are those of a method; slope and offset of the calibration are fitted to labels whose
truth is known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy.special import expit

from labelweave.unseen._fusion.label_scores import LabelScores

# Scores of labels treated as unseen, and their truth: 1, 0 or NaN for unknown.
Draws = Sequence[tuple[LabelScores, np.ndarray]]
_NEGATIVES = 40  # expected number of negatives per document that a fit uses


class ScoreCombination:
    """A linear function of scores, and the sigmoid that turns it into a probability.

    `names` are features of :class:`~labelweave.unseen._fusion.label_scores.LabelScores`, with one
    weight each; P(label | document) = sigmoid(slope * score + offset).
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
            total = total + weight * scores.feature(name)
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


def weighted_sum(weight: float, slope: float = 1.0, offset: float = 0.0) -> ScoreCombination:
    """``(1 - weight) * similarity + weight * fusion``."""
    weights = np.array([1 - weight, weight])
    return ScoreCombination(["similarity", "fusion"], weights, slope, offset)


def calibrated(
    combination: ScoreCombination, draws: Draws, random: np.random.RandomState
) -> ScoreCombination:
    """Fit slope and offset, so that scores become probabilities and keep their order."""
    from sklearn.linear_model import LogisticRegression

    s, y, weights = training_pairs(combination.combined, draws, random)
    if y.min(initial=1) == y.max(initial=0) or s.std() == 0:
        return combination
    scale = float(s.std())
    model = LogisticRegression(C=1e3)
    model.fit((s / scale)[:, None], y, sample_weight=weights)
    combination.slope = max(float(model.coef_[0, 0]), 1e-6) / scale
    combination.offset = float(model.intercept_[0])
    return combination


def training_pairs(
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
