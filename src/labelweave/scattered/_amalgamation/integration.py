"""Rules that combine the predictions of several teachers into one probability."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import expit

from labelweave.exceptions import InputError
from labelweave.scattered._amalgamation.teacher_predictions import TeacherPredictions
from labelweave.scattered.ant_transfer import prediction_integrator

INTEGRATION_RULES = ("positive", "mean-logit", "vote", "reliability")

# Beta priors: a teacher finds three of four positives and rejects nine of ten negatives. They
# keep two teachers that always agree from being taken for perfect.
_SENSITIVITY, _SPECIFICITY = (3.0, 1.0), (9.0, 1.0)
_MIN_WEIGHT = 0.05


def integrate(logits: np.ndarray, rule: str, weights: np.ndarray | None = None) -> np.ndarray:
    """Combine the logits of several teachers into one probability per row and label.

    `logits` (teachers, rows, labels) are NaN where a teacher does not predict a label, or abstains;
    the result is NaN where none predicts. The rules: ``"positive"``, the highest probability if any
    is above one half, else the lowest
    (:func:`labelweave.scattered.ant_transfer.prediction_integrator`); ``"mean-logit"``, the sigmoid
    of the mean; ``"vote"``, 1 where at least half of the votes are positive, else 0;
    ``"reliability"``, the sigmoid of the mean weighted by `weights`, which are positive and of
    shape (teachers,), (teachers, labels) or (teachers, rows, labels).

    >>> logits = np.array([[[2.0, -1.0]], [[-3.0, -2.0]]])
    >>> integrate(logits, "positive").round(2)
    array([[0.88, 0.12]], dtype=float32)
    >>> integrate(logits, "mean-logit").round(2)
    array([[0.38, 0.18]], dtype=float32)
    """
    if rule not in INTEGRATION_RULES:
        raise InputError(f"there is no rule {rule!r}: choose one of {', '.join(INTEGRATION_RULES)}")
    if rule == "positive":
        return prediction_integrator(logits).astype(np.float32)
    if rule == "vote":
        return _majority_vote(logits)
    if rule == "mean-logit":
        weights = np.ones(len(logits), dtype=np.float32)
    if weights is None:
        raise InputError("the rule 'reliability' needs weights")
    return _weighted_mean(logits, weights)


def _majority_vote(logits: np.ndarray) -> np.ndarray:
    known = ~np.isnan(logits)
    votes, n = (known & (logits > 0)).sum(axis=0), known.sum(axis=0)
    return np.where(n > 0, (2 * votes >= n).astype(np.float32), np.nan).astype(np.float32)


def _weighted_mean(logits: np.ndarray, weights: np.ndarray) -> np.ndarray:
    if weights.ndim < 3:
        weights = weights[:, None, None] if weights.ndim == 1 else weights[:, None, :]
    known = ~np.isnan(logits)
    total = (known * weights).sum(axis=0)
    mean = np.where(known, logits * weights, 0).sum(axis=0)
    return expit(np.where(total > 0, mean / np.where(total > 0, total, 1), np.nan)).astype(
        np.float32
    )


class Reliability(NamedTuple):
    """Error rates, one of each kind per teacher."""

    sensitivity: np.ndarray  # share of the positives that are predicted positive
    specificity: np.ndarray  # share of the negatives that are predicted negative

    @property
    def weight(self) -> np.ndarray:
        """Youden's index, sensitivity + specificity - 1, at least 0.05."""
        return np.maximum(self.sensitivity + self.specificity - 1, _MIN_WEIGHT)


def teacher_reliability(
    predictions: TeacherPredictions, known_labels: np.ndarray | None
) -> dict[str, float]:
    """The weight of each teacher in the rule ``"reliability"``, in the order of the teachers."""
    estimate = reliability(predictions.without_abstentions(), known_labels)
    return dict(zip(predictions.names, estimate.weight.tolist(), strict=True))


def reliability(
    logits: np.ndarray, known_labels: np.ndarray | None = None, *, max_iterations: int = 200
) -> Reliability:
    """Estimate error rates of teachers from their votes on shared labels [1]_.

    Each teacher has one sensitivity and one specificity over all shared labels, and each label a
    prevalence of its own: with labels of different prevalence two teachers are enough [2]_.
    Estimated by expectation maximisation, which starts from the mean vote. The logits (teachers,
    rows, labels) are NaN where there is no prediction, the known labels (rows, labels) elsewhere
    than where a label is known.

    References
    ----------
    .. [1] A. P. Dawid and A. M. Skene. Maximum likelihood estimation of observer error-rates
       using the EM algorithm. Applied Statistics 28, 1979.
    .. [2] S. L. Hui and S. D. Walter. Estimating the error rates of diagnostic tests.
       Biometrics 36, 1980.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = rng.random((2000, 4)) < [0.1, 0.3, 0.5, 0.7]
    >>> flip = rng.random((3, 2000, 4)) < np.array([0.05, 0.1, 0.3])[:, None, None]
    >>> reliability(np.where(y ^ flip, 1.0, -1.0)).sensitivity.round(1)
    array([1. , 0.9, 0.7])
    """
    predicted = ~np.isnan(logits)
    used = predicted.sum(axis=0) > 1
    if known_labels is not None:
        used |= ~np.isnan(known_labels) & predicted.any(axis=0)
    rows, labels = np.nonzero(used)
    votes = (logits > 0)[:, rows, labels]
    voted = predicted[:, rows, labels]
    posterior = np.where(voted, votes, 0.0).sum(axis=0) / np.maximum(voted.sum(axis=0), 1)
    fixed = np.zeros(len(rows), dtype=bool)
    if known_labels is not None:
        fixed = ~np.isnan(known_labels)[rows, labels]
        posterior[fixed] = known_labels[rows[fixed], labels[fixed]]
    yes, no = voted & votes, voted & ~votes
    n = np.bincount(labels, minlength=logits.shape[2])
    sensitivity, specificity = _error_rates(yes, no, voted, posterior)
    for _ in range(max_iterations):
        positives = np.bincount(labels, posterior, minlength=len(n))
        prior = ((positives + 1) / (n + 2))[labels]
        score = np.log(prior) - np.log1p(-prior)
        score += yes.T @ (np.log(sensitivity) - np.log1p(-specificity))
        score += no.T @ (np.log1p(-sensitivity) - np.log(specificity))
        posterior = np.where(fixed, posterior, expit(score))
        before = sensitivity, specificity
        sensitivity, specificity = _error_rates(yes, no, voted, posterior)
        change = max(np.abs(sensitivity - before[0]).max(), np.abs(specificity - before[1]).max())
        if change < 1e-6:
            break
    return Reliability(sensitivity, specificity)


def _error_rates(
    yes: np.ndarray, no: np.ndarray, voted: np.ndarray, posterior: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Posterior means of sensitivity and specificity under the priors above."""
    true_positive, true_negative = yes @ posterior, no @ (1 - posterior)
    positive, negative = voted @ posterior, voted @ (1 - posterior)
    return (
        (true_positive + _SENSITIVITY[0]) / (positive + sum(_SENSITIVITY)),
        (true_negative + _SPECIFICITY[0]) / (negative + sum(_SPECIFICITY)),
    )
