"""The chance that an unannotated entry is positive, by scores of a model that did not learn it.

Where annotators mark each positive with the same chance c, an entry is annotated with probability
``P(annotated | x) = c P(positive | x)``, and one that is not annotated is positive with::

    P(positive | not annotated, x) = (1 - c) P(positive | x) / (1 - c P(positive | x))

Elkan and Noto, "Learning Classifiers from Only Positive and Unlabeled Data", KDD 2008, Eq. 6.
Scores need no meaning beyond their order of magnitude: how often an entry of a score is annotated
is seen in the annotations themselves.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit, logit

from labelweave.nn.missing import missing_share

__all__ = ["annotated_chance", "annotation_rate", "positive_chance"]

_TINY = 1e-6


def annotation_rate(scores: np.ndarray, codes: np.ndarray) -> float:
    """The share of the positives that are annotated, c, estimated by out-of-fold scores.

    `codes` as in :mod:`labelweave.nn.observed`. It is 1 where nothing seems to be missing.

    >>> rng = np.random.default_rng(0)
    >>> truth = rng.random(20_000) < 0.2
    >>> scores = expit(rng.normal(4.0 * truth - 2.0))
    >>> codes = (truth & (rng.random(20_000) < 0.5)).astype(float)
    >>> round(annotation_rate(scores, codes), 1)
    0.5
    """
    positive, is_open = codes == 1, codes == 0
    n_positive = int(positive.sum())
    missing = missing_share(scores[positive], scores[is_open]) * int(is_open.sum())
    return n_positive / (n_positive + missing) if n_positive else 1.0


def annotated_chance(scores: np.ndarray, codes: np.ndarray, *, steps: int = 30) -> np.ndarray:
    """P(annotated | score) of each entry: a logistic curve through the annotations.

    The curve ``expit(a logit(score) + b)`` that makes the annotations likeliest (Platt's), by
    Newton's method over all entries that are annotated or open; a is never negative.

    >>> scores = np.array([0.1, 0.1, 0.9, 0.9, 0.9, 0.9])
    >>> annotated_chance(scores, np.array([0, 0, 1, 0, 1, 0])).round(2)
    array([0.17, 0.17, 0.46, 0.46, 0.46, 0.46])
    """
    z = logit(np.clip(scores.astype(np.float64), _TINY, 1 - _TINY))
    taking_part = (codes == 0) | (codes == 1)
    x, y = z[taking_part], codes[taking_part] == 1
    # Two entries of prior knowledge keep the curve finite where the scores divide them all.
    target = np.where(y, (y.sum() + 1) / (y.sum() + 2), 1 / (len(y) - y.sum() + 2))
    a, b = 1.0, 0.0
    for _ in range(steps):
        p = expit(a * x + b)
        error, weight = p - target, p * (1 - p) + 1e-12
        gradient = np.array([error @ x, error.sum()])
        cross = weight @ x
        hessian = np.array([[weight @ (x * x), cross], [cross, weight.sum()]])
        step = np.linalg.solve(hessian + 1e-9 * np.trace(hessian) * np.eye(2), gradient)
        step *= min(1.0, 2.0 / max(np.abs(step).max(), 1e-300))
        a, b = max(a - step[0], 0.0), b - step[1]
        if np.abs(step).max() < 1e-6:
            break
    return expit(a * z + b)


def positive_chance(chance: np.ndarray, rate: float) -> np.ndarray:
    """P(positive | not annotated) of entries with these chances of being annotated.

    >>> positive_chance(np.array([0.0, 0.1, 0.25, 0.5]), 0.25).round(3)
    array([0.   , 0.333, 1.   , 1.   ])
    """
    positive = np.minimum(chance / rate, 1.0)
    return (positive - rate * positive) / np.maximum(1 - rate * positive, _TINY)
