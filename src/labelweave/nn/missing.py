"""How many of the unannotated entries are missing positives? An estimate without clean labels.

Where annotators miss positives by chance, the missing ones score like the annotated ones. So
above any cut the unannotated entries hold at least their share of missing positives::

    share of unannotated above the cut >= (missing share) * share of positives above the cut

and the smallest ratio of the two, over all cuts, bounds the missing share from above; it is
reached where the model is sure. This is the best-bin estimate of Garg et al., "Mixture
Proportion Estimation and PU Learning: A Modern Approach", NeurIPS 2021, with the entries of all
labels taken together.
"""

from __future__ import annotations

import numpy as np

__all__ = ["missing_share"]

_FEWEST_ABOVE = 0.1  # share of the positives above a cut; the smallest of many ratios is biased


def missing_share(
    positive_scores: np.ndarray, unannotated_scores: np.ndarray, *, spread: float = 2.0
) -> float:
    """Estimated share of missing positives among the unannotated entries.

    Parameters
    ----------
    positive_scores, unannotated_scores : one-dimensional arrays
        Scores of entries of either kind, by a model that did not learn them.
    spread : float, default=2.0
        How many standard errors the shares are taken to be off when the cut is chosen: few
        entries above a cut say little about it.

    Returns
    -------
    float
        From 0 to 1; 0 without any entry of either kind.

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
    # Cuts at the positives: between two of them only the other share would change.
    cuts = np.sort(positive_scores)
    positives = np.arange(n_positive, 0, -1)
    unannotated = n_unannotated - np.searchsorted(np.sort(unannotated_scores), cuts, side="left")
    low = positives - spread * np.sqrt(positives)
    high = unannotated + spread * np.sqrt(unannotated) + spread**2
    enough = (low > 0) & (positives >= _FEWEST_ABOVE * n_positive)
    bound = np.where(enough, high / np.maximum(low, 1e-12), np.inf)
    best = int(np.argmin(bound))  # without enough positives the first cut: all entries
    ratio = (unannotated[best] / n_unannotated) / (positives[best] / n_positive)
    return float(min(ratio, 1.0))
