"""Bootstrap intervals of means, many at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

__all__ = ["mean_intervals"]

_DRAWS = 2000


def mean_intervals(
    samples: Sequence[Sequence[float]],
    *,
    level: float = 0.95,
    n_draws: int = _DRAWS,
    random_state: int = 0,
) -> list[tuple[float, float] | None]:
    """Percentile bootstrap intervals of the mean of each sample.

    A drawn sample is a count of how often each value was drawn: a multinomial. Samples of the
    same length share their draws, so that all their means are one product.

    Parameters
    ----------
    samples : sequence of sequences of float
        Such as the scores of one figure over its seeds.
    level : float, default=0.95
    n_draws : int, default=2000
    random_state : int, default=0

    Returns
    -------
    list of (low, high)
        None for fewer than two values. With three to five seeds an interval is narrower than
        it should be: no mean of drawn values lies outside them.

    Examples
    --------
    >>> [(low, high)] = mean_intervals([[0.5, 0.6, 0.7, 0.8]])
    >>> 0.5 <= low < 0.65 < high <= 0.8
    True
    """
    found: list[tuple[float, float] | None] = [None] * len(samples)
    lengths = np.array([len(sample) for sample in samples], dtype=int)
    tails = [(1 - level) / 2, (1 + level) / 2]
    for n in np.unique(lengths[lengths > 1]):
        rng = np.random.default_rng([random_state, int(n)])
        weights = rng.multinomial(n, np.full(n, 1 / n), size=n_draws) / n
        places = np.flatnonzero(lengths == n).tolist()
        values = np.array([samples[place] for place in places], dtype=np.float64)
        low, high = np.quantile(values @ weights.T, tails, axis=1)
        for place, pair in zip(places, zip(low.tolist(), high.tolist(), strict=True), strict=True):
            found[place] = pair
    return found
