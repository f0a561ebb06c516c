"""The probability that an unannotated entry is positive, by scores of a model not trained on it.

If annotators mark each positive with the same probability c, an entry is annotated with probability
``P(annotated | x) = c P(positive | x)``, and an unannotated entry is positive with probability::

    P(positive | not annotated, x) = (1 - c) P(positive | x) / (1 - c P(positive | x))

(Elkan and Noto, "Learning Classifiers from Only Positive and Unlabeled Data", KDD 2008, Eq. 6).
Scores need not be calibrated: how often an entry with a certain score is annotated is estimated
from the annotations. Labels are coded as in :mod:`labelweave.unannotated`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit

from labelweave.data.splits import stratified_folds
from labelweave.missing_positives import missing_share
from labelweave.probabilities import log_odds
from labelweave.shallow.label_regression import label_regression, rows_share_labels

_TINY = 1e-6
_EDGE = 1e-4
_FOLDS = 5
_MAX_FITTED_ENTRIES = 200_000
_MAX_SHIFT = 30.0


def annotation_rate(scores: np.ndarray, codes: np.ndarray) -> float:
    """Estimated share of the positives that are annotated (c above), from out-of-fold scores.

    It is 1 if the estimated number of missing positives is 0.

    >>> rng = np.random.default_rng(0)
    >>> truth = rng.random(20_000) < 0.2
    >>> scores = expit(rng.normal(4.0 * truth - 2.0))
    >>> codes = (truth & (rng.random(20_000) < 0.5)).astype(float)
    >>> round(annotation_rate(scores, codes), 1)
    0.5
    """
    positive, unannotated = codes == 1, codes == 0
    n_positive = int(positive.sum())
    n_missing = missing_share(scores[positive], scores[unannotated]) * int(unannotated.sum())
    return n_positive / (n_positive + n_missing) if n_positive else 1.0


def annotation_posterior(scores: np.ndarray, codes: np.ndarray, *, steps: int = 30) -> np.ndarray:
    """P(annotated | score) of each entry, by a logistic curve (Platt scaling).

    The curve ``expit(a logit(score) + b)`` maximises the likelihood of the annotations over all
    positives and unannotated entries; a is never negative.

    >>> scores = np.array([0.1, 0.1, 0.9, 0.9, 0.9, 0.9])
    >>> annotation_posterior(scores, np.array([0, 0, 1, 0, 1, 0])).round(2)
    array([0.17, 0.17, 0.46, 0.46, 0.46, 0.46])
    """
    logits = log_odds(scores.astype(np.float64), _TINY)
    used = (codes == 0) | (codes == 1)
    slopes, intercept = annotation_curve(logits[used][None], codes[used] == 1, steps=steps)
    return expit(slopes[0] * logits + intercept)


def annotation_curve(
    features: np.ndarray, annotated: np.ndarray, *, steps: int = 30
) -> tuple[np.ndarray, float]:
    """Slopes and intercept of the logistic curve that maximises the likelihood of annotations.

    Newton's method; slopes are kept at 0 or above. `features` has shape (d, n).
    """
    design = np.vstack([features, np.ones(features.shape[1])])
    n_positive = annotated.sum()
    # Platt's targets keep the curve finite where the features separate the two kinds of entries.
    high, low = (n_positive + 1) / (n_positive + 2), 1 / (len(annotated) - n_positive + 2)
    target = np.where(annotated, high, low)
    weights = np.zeros(len(design))
    weights[0] = 1.0
    for _ in range(steps):
        p = expit(weights @ design)
        gradient = design @ (p - target)
        hessian = (design * (p * (1 - p) + 1e-12)) @ design.T
        ridge = 1e-9 * np.trace(hessian) * np.eye(len(hessian))
        step = np.linalg.solve(hessian + ridge, gradient)
        step *= min(1.0, 2.0 / max(np.abs(step).max(), 1e-300))
        weights -= step
        weights[:-1] = np.maximum(weights[:-1], 0.0)
        if np.abs(step).max() < 1e-6:
            break
    return weights[:-1], float(weights[-1])


def annotation_posterior_given_labels(
    posterior: np.ndarray, codes: np.ndarray, *, X: Any = None, random_state: int = 0
) -> np.ndarray:
    """P(annotated | score, other annotated labels of the row) of each entry, out of fold.

    Each label is regressed on the other annotated labels of its row and on the logits of all
    posteriors. A logistic regression over the entries of all labels combines this prediction with
    the posterior of the entry and the number of other labels of the row.

    If few rows have two annotated labels (one label per row is a common scenario), the other labels
    of a row carry no information and the posteriors are returned as they are.

    Parameters
    ----------
    posterior : ndarray of shape (n_rows, n_labels)
        From :func:`annotation_posterior`.
    codes : ndarray of the same shape
    X : features of the rows, optional
        Rows that are equal are in one fold.
    random_state : int, default=0
        Seed of the folds and of the sample of entries.
    """
    positive, known = codes == 1, ~np.isnan(codes)
    n_labels = positive.sum(axis=1)
    if not rows_share_labels(n_labels):
        return posterior
    from sklearn.linear_model import LogisticRegression

    logits = log_odds(posterior, _TINY, np.float32)
    fold = stratified_folds(positive.astype(np.float32), _FOLDS, X=X, random_state=random_state)
    regression = label_regression(positive, logits, fold)
    n_others = np.log1p(n_labels[:, None] - positive).astype(np.float32)
    features = np.stack([logits, log_odds(regression, _EDGE), regression, n_others], axis=-1)
    rng = np.random.default_rng(random_state)
    combined = np.array(posterior)
    for k in range(_FOLDS):
        held_out = fold == k
        rows, columns = np.nonzero(known & ~held_out[:, None])
        if len(rows) > _MAX_FITTED_ENTRIES:
            sample = rng.choice(len(rows), _MAX_FITTED_ENTRIES, replace=False)
            rows, columns = rows[sample], columns[sample]
        if len(np.unique(positive[rows, columns])) == 2:
            curve = LogisticRegression(max_iter=200)
            curve.fit(features[rows, columns], positive[rows, columns])
            entries = features[held_out].reshape(-1, features.shape[-1])
            predicted = curve.predict_proba(entries)[:, 1]
            combined[held_out] = predicted.reshape(-1, codes.shape[1])
    return combined


def positive_posterior(posterior: np.ndarray, rate: float) -> np.ndarray:
    """P(positive | not annotated) of entries with these probabilities of being annotated.

    >>> positive_posterior(np.array([0.0, 0.1, 0.25, 0.5]), 0.25).round(3)
    array([0.   , 0.333, 1.   , 1.   ])
    """
    positive = np.minimum(posterior / rate, 1.0)
    return (positive - rate * positive) / np.maximum(1 - rate * positive, _TINY)


def likely_share(scores: np.ndarray, codes: np.ndarray) -> float:
    """The share of the unannotated entries that are more likely positive than negative.

    Computed by :func:`positive_posterior` from scores of a model not trained on the entries.

    >>> rng = np.random.default_rng(0)
    >>> truth = rng.random(20_000) < 0.2
    >>> codes = (truth & (rng.random(20_000) < 0.5)).astype(float)
    >>> bool(0.08 < likely_share(expit(rng.normal(8.0 * truth - 4.0)), codes) < 0.12)
    True
    """
    unannotated = codes == 0
    if not unannotated.any():
        return 0.0
    rate = annotation_rate(scores, codes)
    posterior = positive_posterior(annotation_posterior(scores, codes), rate)
    return float(np.mean(posterior[unannotated] >= 0.5))


def logit_shift(scores: np.ndarray, codes: np.ndarray) -> float:
    """The constant to add to the logits so that they expect at most the estimated positives.

    The estimated number of positives is that of the annotated ones divided by
    :func:`annotation_rate`. Low weights of unannotated entries raise the probabilities; this
    corrects them. The estimate is an upper bound, so probabilities are only lowered, never raised.
    Without annotated positives the shift is 0.

    >>> rng = np.random.default_rng(0)
    >>> truth = rng.random(20_000) < 0.2
    >>> logits = rng.normal(8.0 * truth - 4.0)
    >>> codes = (truth & (rng.random(20_000) < 0.5)).astype(float)
    >>> shift = logit_shift(expit(logits + 2), codes)
    >>> bool(abs(expit(logits + 2 + shift).mean() - 0.2) < 0.02)
    True
    >>> logit_shift(expit(logits - 2), codes)
    0.0
    """
    used = (codes == 0) | (codes == 1)
    n_positive = int((codes == 1).sum())
    if not n_positive:
        return 0.0
    logits = log_odds(scores[used].astype(np.float64), _TINY)
    expected = n_positive / annotation_rate(scores, codes) / len(logits)
    if expit(logits).mean() <= expected:
        return 0.0
    return brentq(lambda by: expit(logits + by).mean() - expected, -_MAX_SHIFT, 0.0, xtol=1e-6)


def shifted(scores: np.ndarray, by: float) -> np.ndarray:
    """Probabilities after adding a constant to their logits.

    >>> shifted(np.array([0.5, 0.9]), -np.log(9)).round(2)
    array([0.1, 0.5])
    """
    return expit(log_odds(scores.astype(np.float64), _TINY) + by).astype(scores.dtype)
