"""Probabilities as log odds. The way back is :func:`scipy.special.expit`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike
from scipy.special import logit

__all__ = ["log_odds"]


def log_odds(p: Any, eps: float, dtype: DTypeLike | None = None) -> np.ndarray:
    """Compute log(p / (1 - p)) with finite values for probabilities of 0 and 1.

    Probabilities are clipped, in the precision that they have, to the range from `eps` to
    ``1 - eps``. A larger value limits how much evidence one probability can be (1e-4 gives log odds
    of at most 9.2); a smaller one keeps the order of very small probabilities.

    >>> log_odds(np.array([0.5, 1.0]), 1e-4).round(2)
    array([0.  , 9.21])
    """
    odds = logit(np.clip(p, eps, 1 - eps))
    return odds if dtype is None else odds.astype(dtype)
