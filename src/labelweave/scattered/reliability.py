"""How far each teacher can be trusted, found from where they agree."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import expit

__all__ = ["Reliability", "reliability"]

# Weak beliefs before anything is seen: a teacher finds three of four positives, and passes nine
# of ten negatives. They keep two teachers that agree in everything from being taken for oracles.
_SENSITIVITY, _SPECIFICITY = (3.0, 1.0), (9.0, 1.0)
_LEAST = 0.05


class Reliability(NamedTuple):
    """Rates of each teacher.

    Attributes
    ----------
    sensitivity, specificity : ndarray of shape (teachers,)
        Share of the positives that it finds, and of the negatives that it passes.
    weight : ndarray of shape (teachers,)
        Youden's index, their sum less one, at least 0.05.
    """

    sensitivity: np.ndarray
    specificity: np.ndarray

    @property
    def weight(self) -> np.ndarray:
        return np.maximum(self.sensitivity + self.specificity - 1, _LEAST)


def reliability(
    logits: np.ndarray, truth: np.ndarray | None = None, *, max_iterations: int = 200
) -> Reliability:
    """Rates of the teachers from their votes on shared labels, after Dawid and Skene [1]_.

    Each teacher has one sensitivity and one specificity over all shared labels, each label a
    rate of positives of its own: with labels of different rates two teachers are enough [2]_.
    Fitted by expectation and maximisation from the mean vote.

    Parameters
    ----------
    logits : array of shape (teachers, rows, labels)
        NaN where a teacher has no opinion.
    truth : array of shape (rows, labels), optional
        Known labels, NaN elsewhere: an entry that is known is not guessed.
    max_iterations : int, default=200

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
    known = ~np.isnan(logits)
    labelled = None if truth is None else ~np.isnan(truth)
    taken = known.sum(axis=0) > 1
    if labelled is not None:
        taken |= labelled & known.any(axis=0)
    rows, labels = np.nonzero(taken)
    votes = (logits > 0)[:, rows, labels]
    voted = known[:, rows, labels]
    n_labels = logits.shape[2]
    posterior = np.where(voted, votes, 0.0).sum(axis=0) / np.maximum(voted.sum(axis=0), 1)
    fixed = np.zeros(len(rows), dtype=bool)
    if labelled is not None:
        assert truth is not None
        fixed = labelled[rows, labels]
        posterior[fixed] = truth[rows[fixed], labels[fixed]]
    yes, no = voted & votes, voted & ~votes
    sensitivity, specificity = _rates(yes, no, voted, posterior)
    for _ in range(max_iterations):
        n = np.bincount(labels, minlength=n_labels)
        positives = np.bincount(labels, posterior, minlength=n_labels)
        prior = ((positives + 1) / (n + 2))[labels]
        score = np.log(prior) - np.log1p(-prior)
        score += yes.T @ (np.log(sensitivity) - np.log1p(-specificity))
        score += no.T @ (np.log1p(-sensitivity) - np.log(specificity))
        posterior = np.where(fixed, posterior, expit(score))
        before = sensitivity, specificity
        sensitivity, specificity = _rates(yes, no, voted, posterior)
        moved = max(np.abs(sensitivity - before[0]).max(), np.abs(specificity - before[1]).max())
        if moved < 1e-6:
            break
    return Reliability(sensitivity, specificity)


def _rates(
    yes: np.ndarray, no: np.ndarray, voted: np.ndarray, posterior: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The most likely rates given the posterior of each entry and the beliefs above."""
    found, passed = yes @ posterior, no @ (1 - posterior)
    positive, negative = voted @ posterior, voted @ (1 - posterior)
    return (
        (found + _SENSITIVITY[0]) / (positive + sum(_SENSITIVITY)),
        (passed + _SPECIFICITY[0]) / (negative + sum(_SPECIFICITY)),
    )
