"""From several scores of a label to one probability."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.special import expit

from labelweave.unseen.evidence import Evidence, shared_ranks

__all__ = ["COMBINATIONS", "Combination", "calibrated", "fit_combination"]

COMBINATIONS = ("stacked", "weighted", "rrf")
WEIGHTS = np.linspace(0, 1, 11)
_RRF = 60  # the customary constant of reciprocal rank fusion
_NEGATIVES = 40  # of a document, beside its positives, that a fit looks at
_PENALTY = 1.0


class Combination:
    """A linear function of evidence, and the sigmoid that makes it a probability.

    Parameters
    ----------
    names : sequence of str
        Features of :data:`labelweave.unseen.evidence.FEATURES`, or "rrf".
    weights : ndarray
        One a feature.
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

    def scores(self, evidence: Evidence) -> np.ndarray:
        """One score a document and label; more is better."""
        total = np.zeros(())
        for name, weight in zip(self.names, self.weights, strict=True):
            part = _reciprocal_ranks(evidence) if name == "rrf" else evidence.feature(name)
            total = total + weight * part
        return total

    def probabilities(self, scores: np.ndarray) -> np.ndarray:
        return expit(self.slope * scores + self.offset)

    def to_dict(self) -> dict[str, Any]:
        """As values that JSON can hold."""
        return {
            "names": list(self.names),
            "weights": self.weights.tolist(),
            "slope": self.slope,
            "offset": self.offset,
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Combination:
        return cls(stored["names"], stored["weights"], stored["slope"], stored["offset"])


def _reciprocal_ranks(evidence: Evidence) -> np.ndarray:
    total = np.zeros(())
    for scores in (evidence.similarity, evidence.fusion):
        if scores is not None:
            total = total + 1 / (_RRF + shared_ranks(scores))
    return total


def fit_combination(
    how: str,
    names: Sequence[str],
    draws: Sequence[tuple[Evidence, np.ndarray]],
    random: np.random.RandomState,
) -> Combination:
    """Learn a combination from labels that are treated as unseen.

    Parameters
    ----------
    how : {"stacked", "weighted", "rrf"}
        Logistic regression on all features; a weighted sum of similarity and fusion, whose
        weight is best by nDCG@5; or reciprocal rank fusion of the two.
    names : sequence of str
        The features that there are.
    draws : sequence of (evidence, truth)
        Truth holds 1, 0 or NaN for unknown.
    random : RandomState
    """
    if how == "stacked":
        return _stacked(names, draws, random)
    combination = _weighted(draws) if how == "weighted" else Combination(["rrf"], np.ones(1))
    return calibrated(combination, draws, random)


def _stacked(
    names: Sequence[str],
    draws: Sequence[tuple[Evidence, np.ndarray]],
    random: np.random.RandomState,
) -> Combination:
    from sklearn.linear_model import LogisticRegression

    rows, targets, counts = [], [], []
    for evidence, truth in draws:
        chosen, count = _pairs(truth, random)
        rows.append(evidence.features(names)[chosen])
        targets.append(truth[chosen])
        counts.append(count[chosen])
    X, y = np.concatenate(rows).astype(np.float64), np.concatenate(targets)
    scale = X.std(axis=0)
    scale[scale == 0] = 1
    if y.min(initial=1) == y.max(initial=0):  # nothing to learn from
        return Combination(names, np.ones(len(names)) / len(names))
    model = LogisticRegression(C=_PENALTY, max_iter=1000)
    model.fit(X / scale, y, sample_weight=np.concatenate(counts))
    return Combination(names, model.coef_[0] / scale, 1.0, float(model.intercept_[0]))


def _pairs(truth: np.ndarray, random: np.random.RandomState) -> tuple[np.ndarray, np.ndarray]:
    """Pairs to learn from: the positives and some of the negatives, which count for the rest."""
    positive = truth == 1
    negative = truth == 0
    share = min(1.0, _NEGATIVES / max(truth.shape[1], 1))
    chosen = positive | (negative & (random.random_sample(truth.shape) < share))
    return chosen, np.where(positive, 1.0, 1 / share)


def _weighted(draws: Sequence[tuple[Evidence, np.ndarray]]) -> Combination:
    from labelweave.labels import as_labels
    from labelweave.metrics import ndcg_at_k

    reached = np.zeros(len(WEIGHTS))
    for evidence, truth in draws:
        kept = np.flatnonzero((truth == 1).any(axis=1))
        if not len(kept):
            continue
        labels = as_labels(truth[kept])
        k = min(5, truth.shape[1])
        for i, weight in enumerate(WEIGHTS):
            mixed = _mixture(weight).scores(evidence)[kept]
            reached[i] += ndcg_at_k(labels, mixed, k=k)
    return _mixture(WEIGHTS[int(reached.argmax())])


def _mixture(weight: float) -> Combination:
    return Combination(["similarity", "fusion"], np.array([1 - weight, weight]))


def calibrated(
    combination: Combination,
    draws: Sequence[tuple[Evidence, np.ndarray]],
    random: np.random.RandomState,
) -> Combination:
    """The same order of labels, with scores that mean probabilities."""
    from sklearn.linear_model import LogisticRegression

    scores, targets, counts = [], [], []
    for evidence, truth in draws:
        chosen, count = _pairs(truth, random)
        scores.append(combination.scores(evidence)[chosen])
        targets.append(truth[chosen])
        counts.append(count[chosen])
    s, y = np.concatenate(scores), np.concatenate(targets)
    if y.min(initial=1) == y.max(initial=0) or s.std() == 0:
        return combination
    scale = float(s.std())
    model = LogisticRegression(C=1e3)
    model.fit((s / scale)[:, None], y, sample_weight=np.concatenate(counts))
    combination.slope = max(float(model.coef_[0, 0]), 1e-6) / scale
    combination.offset = float(model.intercept_[0])
    return combination
