"""How frequent labels are where the teachers learnt, and log odds moved towards that."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from labelweave.scattered.opinions import Opinions
from labelweave.thresholds.threshold_search import threshold_between

__all__ = ["judged", "n_trusted", "rate_shift", "shift_to_count", "teachers_rates"]

_RAREST = 1e-3  # a label that a teacher never saw may still occur
_STEPS = 40  # halvings of an interval of 24 log odds
_APART = 1e-3  # log odds that are told apart


def teachers_rates(opinions: Opinions) -> np.ndarray:
    """For each label the mean rate among the teachers that tell one; NaN where none does."""
    n_labels = len(opinions.vocabulary.names)
    total, told = np.zeros(n_labels), np.zeros(n_labels)
    for teacher, columns in zip(opinions.teachers, opinions.vocabulary.columns, strict=True):
        if teacher.rates is not None:
            total[columns] += np.nan_to_num(teacher.rates)
            told[columns] += ~np.isnan(teacher.rates)
    return np.where(told > 0, total / np.maximum(told, 1), np.nan)


def rate_shift(odds: np.ndarray, rates: np.ndarray) -> np.ndarray:
    """What log odds of a label need for their mean probability to be its rate.

    Parameters
    ----------
    odds : array of shape (rows, labels)
        NaN where nobody has an opinion.
    rates : array of shape (labels,)
        NaN where they are not known: the shift is 0 there.

    Examples
    --------
    >>> rate_shift(np.array([[0.0, 1.0], [0.0, 2.0]]), np.array([0.25, np.nan])).round(2)
    array([-1.1,  0. ])
    """
    heard = ~np.isnan(odds)
    n = np.maximum(heard.sum(axis=0), 1)
    wanted = np.clip(rates, _RAREST, 1 - _RAREST)
    low, high = np.full(len(rates), -12.0), np.full(len(rates), 12.0)
    for _ in range(_STEPS):
        middle = (low + high) / 2
        mean = np.where(heard, expit(odds + middle), 0.0).sum(axis=0) / n
        low, high = np.where(mean < wanted, middle, low), np.where(mean < wanted, high, middle)
    return np.where(np.isnan(rates) | ~heard.any(axis=0), 0.0, (low + high) / 2)


def judged(logits: np.ndarray, rates: np.ndarray, weight: float) -> np.ndarray:
    """The mean of the teachers' probabilities, each teacher's log odds moved towards the rates.

    Parameters
    ----------
    logits : array of shape (teachers, rows, labels)
        NaN where a teacher does not know a label.
    rates : array of shape (labels,)
    weight : float
        How far they are moved.
    """
    known = ~np.isnan(logits)
    moved = [expit(odds + weight * rate_shift(odds, rates)) for odds in logits.astype(np.float64)]
    return np.where(known, moved, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)


def n_trusted(odds: np.ndarray, judgement: np.ndarray, precision: float) -> int:
    """How many entries, those of the highest log odds first, shall be positive.

    As many as their probabilities sum up to; fewer, if the mean judgement of so many is below
    `precision`.

    >>> odds = np.array([[2.0, 1.0], [0.5, -1.0]])
    >>> n_trusted(odds, np.array([[0.9, 0.5], [0.2, 0.1]]), 0.5)
    3
    >>> n_trusted(odds, np.array([[0.9, 0.5], [0.2, 0.1]]), 0.6)
    2
    """
    order = np.argsort(-odds, axis=None, kind="stable")
    means = np.cumsum(judgement.ravel()[order]) / np.arange(1, odds.size + 1)
    right = np.flatnonzero(means >= precision)
    return min(round(float(expit(odds).sum())), int(right[-1]) + 1 if len(right) else 0)


def shift_to_count(odds: np.ndarray, n_positive: int) -> float:
    """What is to be taken from log odds for so many of them to be above 0.

    >>> shift_to_count(np.array([[2.0, 1.0, -1.0]]), 1)
    1.5
    """
    flat = np.sort(odds, axis=None)[::-1]
    last = flat[n_positive - 1] if n_positive else flat[0] + 2 * _APART
    following = flat[n_positive] if n_positive < flat.size else flat[-1] - 2 * _APART
    return 0.0 if following <= 0 < last else float(threshold_between(following, last))
