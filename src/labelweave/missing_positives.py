"""Estimate the share of missing positives among unannotated entries, without clean labels.

If every positive is equally likely to be missed, missing positives score like annotated ones.
Above any threshold t on the score, the unannotated entries therefore contain at least their share
of missing positives::

    share of unannotated entries above t  >=  missing share * share of positives above t

The smallest ratio of the two shares, over all thresholds, is an upper bound of the missing share,
and it is reached where the model is certain. This is the best-bin estimate of Garg et al.,
"Mixture Proportion Estimation and PU Learning: A Modern Approach", NeurIPS 2021, applied to the
entries of all labels together.
"""

from __future__ import annotations

import numpy as np

__all__ = ["missing_share"]

# Thresholds need at least this share of the positives above them: the smallest of many ratios is
# biased where few positives are left.
_MIN_SHARE_ABOVE = 0.1


def missing_share(
    positive_scores: np.ndarray, unannotated_scores: np.ndarray, *, spread: float = 2.0
) -> float:
    """Estimated share of missing positives among the unannotated entries.

    Parameters
    ----------
    positive_scores, unannotated_scores : one-dimensional arrays
        Scores of the annotated positives and of the unannotated entries, by a model that was not
        trained on them.
    spread : float, default=2.0
        Number of standard errors by which the shares are assumed to be off when the threshold is
        chosen. Thresholds with few entries above them become less attractive.

    Returns
    -------
    float
        From 0 to 1; 0 if there are no entries of either kind.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> positives, negatives = rng.normal(4, 1, 4000), rng.normal(0, 1, 9000)
    >>> scores = np.concatenate([negatives, positives[:1000]])  # 10 % of them missing positives
    >>> bool(0.08 < missing_share(positives[1000:], scores) < 0.12)
    True
    """
    n_positive, n_unannotated = len(positive_scores), len(unannotated_scores)
    if n_positive == 0 or n_unannotated == 0:
        return 0.0
    # Only the scores of positives need to be tried: between two of them, the share of positives
    # above the threshold stays the same.
    thresholds = np.sort(positive_scores)
    positives_above = np.arange(n_positive, 0, -1)
    unannotated_above = n_unannotated - np.searchsorted(
        np.sort(unannotated_scores), thresholds, side="left"
    )
    low = positives_above - spread * np.sqrt(positives_above)
    high = unannotated_above + spread * np.sqrt(unannotated_above) + spread**2
    enough = (low > 0) & (positives_above >= _MIN_SHARE_ABOVE * n_positive)
    bound = np.where(enough, high / np.maximum(low, 1e-12), np.inf)
    best = int(np.argmin(bound))  # 0, below all positives, if no threshold has enough of them
    ratio = (unannotated_above[best] / n_unannotated) / (positives_above[best] / n_positive)
    return float(min(ratio, 1.0))
