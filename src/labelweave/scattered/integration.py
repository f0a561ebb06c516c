"""Rules that make one probability of the opinions of several teachers."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
from scipy.special import expit

from labelweave.exceptions import InputError

__all__ = ["RULES", "integrate"]


def integrate(logits: np.ndarray, rule: str, weights: np.ndarray | None = None) -> np.ndarray:
    """One probability a row and label.

    Parameters
    ----------
    logits : array of shape (teachers, rows, labels)
        Log odds; NaN where a teacher has no opinion.
    rule : {"positive", "mean-logit", "vote", "reliability"}
        ``"positive"``: the highest probability if any is above one half, else the lowest
        (Eq. 5). ``"mean-logit"``: the sigmoid of the mean. ``"vote"``: 1 where at least half of
        the votes are positive, else 0. ``"reliability"``: the sigmoid of the mean weighted by
        `weights`.
    weights : array of shape (teachers,), (teachers, labels) or (teachers, rows, labels), optional
        Weights of the teachers, above 0.

    Returns
    -------
    float32 array of shape (rows, labels), NaN where no teacher has an opinion

    Examples
    --------
    >>> logits = np.array([[[2.0, -1.0]], [[-3.0, -2.0]]])
    >>> integrate(logits, "positive").round(2)
    array([[0.88, 0.12]], dtype=float32)
    >>> integrate(logits, "mean-logit").round(2)
    array([[0.38, 0.18]], dtype=float32)
    """
    if rule not in RULES:
        raise InputError(f"there is no rule {rule!r}: choose one of {', '.join(RULES)}")
    if rule == "reliability":
        if weights is None:
            raise InputError("the rule 'reliability' needs weights")
        return _weighted(logits, weights)
    return RULES[rule](logits).astype(np.float32)


def _positive(logits: np.ndarray) -> np.ndarray:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # no opinion at all: NaN it is
        highest, lowest = np.nanmax(logits, axis=0), np.nanmin(logits, axis=0)
    return expit(np.where(highest > 0, highest, lowest))


def _mean_logit(logits: np.ndarray) -> np.ndarray:
    return _weighted(logits, np.ones(len(logits), dtype=np.float32))


def _vote(logits: np.ndarray) -> np.ndarray:
    known = ~np.isnan(logits)
    votes, n = (known & (logits > 0)).sum(axis=0), known.sum(axis=0)
    return np.where(n > 0, (2 * votes >= n).astype(np.float32), np.nan)


def _weighted(logits: np.ndarray, weights: np.ndarray) -> np.ndarray:
    if weights.ndim < 3:
        weights = weights[:, None, None] if weights.ndim == 1 else weights[:, None, :]
    known = ~np.isnan(logits)
    total = (known * weights).sum(axis=0)
    mean = np.where(known, logits * weights, 0).sum(axis=0)
    return expit(np.where(total > 0, mean / np.where(total > 0, total, 1), np.nan)).astype(
        np.float32
    )


RULES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "positive": _positive,
    "mean-logit": _mean_logit,
    "vote": _vote,
    "reliability": _mean_logit,  # with weights
}
