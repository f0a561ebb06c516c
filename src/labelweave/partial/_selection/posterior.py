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
from scipy.optimize import brentq
from scipy.special import expit

from labelweave.data.splits import stratified_folds
from labelweave.missing_positives import missing_share
from labelweave.probabilities import log_odds
from labelweave.shallow.label_regression import label_regression, rows_share_labels

__all__ = [
    "annotated_chance",
    "annotation_curve",
    "annotation_rate",
    "chance_given_labels",
    "count_shift",
    "likely_share",
    "positive_chance",
    "shifted",
]

_TINY = 1e-6
_EDGE = 1e-4
_FOLDS = 5
_MOST_ENTRIES = 200_000  # that the curve over both kinds of evidence is fitted to
_FARTHEST = 30.0  # log odds that a shift is looked for within


def annotation_rate(scores: np.ndarray, codes: np.ndarray) -> float:
    """The share of the positives that are annotated, c, estimated by out-of-fold scores.

    `codes` as in :mod:`labelweave.unannotated`. It is 1 where nothing seems to be missing.

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
    z = log_odds(scores.astype(np.float64), _TINY)
    taking_part = (codes == 0) | (codes == 1)
    slopes, b = annotation_curve(z[taking_part][None], codes[taking_part] == 1, steps=steps)
    return expit(slopes[0] * z + b)


def annotation_curve(
    features: np.ndarray, annotated: np.ndarray, *, steps: int = 30
) -> tuple[np.ndarray, float]:
    """Slopes, none below 0, and intercept of the logistic curve that makes annotations likeliest.

    By Newton's method; `features` has shape (d, n).
    """
    design = np.vstack([features, np.ones(features.shape[1])])
    n_positive = annotated.sum()
    # Two entries of prior knowledge keep the curve finite where the features divide them all.
    high, low = (n_positive + 1) / (n_positive + 2), 1 / (len(annotated) - n_positive + 2)
    target = np.where(annotated, high, low)
    found = np.zeros(len(design))
    found[0] = 1.0
    for _ in range(steps):
        p = expit(found @ design)
        gradient = design @ (p - target)
        hessian = (design * (p * (1 - p) + 1e-12)) @ design.T
        ridge = 1e-9 * np.trace(hessian) * np.eye(len(hessian))
        step = np.linalg.solve(hessian + ridge, gradient)
        step *= min(1.0, 2.0 / max(np.abs(step).max(), 1e-300))
        found -= step
        found[:-1] = np.maximum(found[:-1], 0.0)
        if np.abs(step).max() < 1e-6:
            break
    return found[:-1], float(found[-1])


def chance_given_labels(
    chance: np.ndarray, codes: np.ndarray, *, random_state: int = 0
) -> np.ndarray:
    """P(annotated | score, other annotated labels of the row) of each entry, out of fold.

    Each label is regressed on the other annotated labels of its row and on the log-odds of all
    chances; a logistic regression over the entries of all labels joins what this says with the
    entry's own chance and the number of other labels that the row has.

    Where few rows have two annotated labels (one a row is a common scenario), that a row has
    another label says no more than that this one was not chosen: the chances stay as they are.

    Parameters
    ----------
    chance : ndarray of shape (n_rows, L)
        From :func:`annotated_chance`.
    codes : ndarray of the same shape
    random_state : int, default=0
        Of the folds and of the entries that are fitted to.
    """
    positive, known = codes == 1, ~np.isnan(codes)
    count = positive.sum(axis=1)
    if not rows_share_labels(count):
        return chance
    from sklearn.linear_model import LogisticRegression

    odds = log_odds(chance, _TINY, np.float32)
    fold = stratified_folds(positive.astype(np.float32), _FOLDS, random_state=random_state)
    regression = label_regression(positive, odds, fold)
    others = np.log1p(count[:, None] - positive).astype(np.float32)
    evidence = np.stack([odds, log_odds(regression, _EDGE), regression, others], axis=-1)
    rng = np.random.default_rng(random_state)
    joined = np.array(chance)
    for number in range(_FOLDS):
        held = fold == number
        rows, columns = np.nonzero(known & ~held[:, None])
        if len(rows) > _MOST_ENTRIES:
            some = rng.choice(len(rows), _MOST_ENTRIES, replace=False)
            rows, columns = rows[some], columns[some]
        if len(np.unique(positive[rows, columns])) == 2:
            curve = LogisticRegression(max_iter=200)
            curve.fit(evidence[rows, columns], positive[rows, columns])
            entries = evidence[held].reshape(-1, evidence.shape[-1])
            joined[held] = curve.predict_proba(entries)[:, 1].reshape(-1, codes.shape[1])
    return joined


def positive_chance(chance: np.ndarray, rate: float) -> np.ndarray:
    """P(positive | not annotated) of entries with these chances of being annotated.

    >>> positive_chance(np.array([0.0, 0.1, 0.25, 0.5]), 0.25).round(3)
    array([0.   , 0.333, 1.   , 1.   ])
    """
    positive = np.minimum(chance / rate, 1.0)
    return (positive - rate * positive) / np.maximum(1 - rate * positive, _TINY)


def count_shift(scores: np.ndarray, codes: np.ndarray) -> float:
    """What to add to the log odds so that they expect no more positives than there seem to be.

    That is the annotated ones over their estimated share of all (:func:`annotation_rate`). Weights
    of entries raise probabilities. The estimate bounds the number from above, so they are
    lowered by it and never raised; where nothing is annotated they stay as they are.

    >>> rng = np.random.default_rng(0)
    >>> truth = rng.random(20_000) < 0.2
    >>> odds = rng.normal(8.0 * truth - 4.0)
    >>> codes = (truth & (rng.random(20_000) < 0.5)).astype(float)
    >>> shift = count_shift(expit(odds + 2), codes)
    >>> bool(abs(expit(odds + 2 + shift).mean() - 0.2) < 0.02)
    True
    >>> count_shift(expit(odds - 2), codes)
    0.0
    """
    taking_part = (codes == 0) | (codes == 1)
    n_positive = int((codes == 1).sum())
    if not n_positive:
        return 0.0
    odds = log_odds(scores[taking_part].astype(np.float64), _TINY)
    wanted = n_positive / annotation_rate(scores, codes) / len(odds)
    if expit(odds).mean() <= wanted:
        return 0.0
    return brentq(lambda by: expit(odds + by).mean() - wanted, -_FARTHEST, 0.0, xtol=1e-6)


def shifted(scores: np.ndarray, by: float) -> np.ndarray:
    """Probabilities with something added to their log odds.

    >>> shifted(np.array([0.5, 0.9]), -np.log(9)).round(2)
    array([0.1, 0.5])
    """
    return expit(log_odds(scores.astype(np.float64), _TINY) + by).astype(scores.dtype)


def likely_share(scores: np.ndarray, codes: np.ndarray) -> float:
    """The share of the unannotated entries that are more likely positive than not.

    By :func:`positive_chance`, of scores by a model that did not learn the entries.

    >>> rng = np.random.default_rng(0)
    >>> truth = rng.random(20_000) < 0.2
    >>> codes = (truth & (rng.random(20_000) < 0.5)).astype(float)
    >>> bool(0.08 < likely_share(expit(rng.normal(8.0 * truth - 4.0)), codes) < 0.12)
    True
    """
    is_open = codes == 0
    if not is_open.any():
        return 0.0
    rate = annotation_rate(scores, codes)
    chance = positive_chance(annotated_chance(scores, codes), rate)
    return float(np.mean(chance[is_open] >= 0.5))
