"""How frequent labels are where the teachers learnt, and log odds moved towards that."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from labelweave.scattered.opinions import Opinions
from labelweave.thresholds.cuts import between

__all__ = ["n_trusted", "rate_shift", "shift_to_count", "teachers_rates"]

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


def n_trusted(p: np.ndarray, precision: float) -> int:
    """How many entries, the likeliest first, are positive: as many as are expected to be.

    Fewer, if the mean probability of so many would be below `precision`.

    >>> p = np.array([[0.9, 0.5, 0.4], [0.8, 0.3, 0.1]])
    >>> n_trusted(p, 0.0), n_trusted(p, 0.7)
    (3, 3)
    >>> n_trusted(p / 2, 0.0), n_trusted(p / 2, 0.44)
    (2, 1)
    """
    flat = np.sort(p, axis=None)[::-1]
    means = np.cumsum(flat) / np.arange(1, flat.size + 1)
    return min(round(float(flat.sum())), int(np.count_nonzero(means >= precision)))


def shift_to_count(odds: np.ndarray, n_positive: int) -> float:
    """What is to be taken from log odds for so many of them to be above 0.

    >>> shift_to_count(np.array([[2.0, 1.0, -1.0]]), 1)
    1.5
    """
    flat = np.sort(odds, axis=None)[::-1]
    last = flat[n_positive - 1] if n_positive else flat[0] + 2 * _APART
    following = flat[n_positive] if n_positive < flat.size else flat[-1] - 2 * _APART
    return 0.0 if following <= 0 < last else float(between(following, last))
