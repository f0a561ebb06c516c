"""Choosing among the labels, or the rows, of a mini-batch by the rank of their losses.

Pure functions of arrays. A selection is a partial one, in linear time: nothing is sorted. It is
done by NumPy, whose selection and comparisons are ten times as fast as torch's on a CPU; from an
accelerator the logits of a mini-batch are a small thing to fetch.
"""

from __future__ import annotations

import numpy as np

__all__ = ["drop_share", "extreme", "rows_to_drop", "without"]


def drop_share(epoch: int, tau: float, ramp: float) -> float:
    """The share to drop in an epoch (from 0): ``min(epoch / ramp * tau, tau)``.

    It is one minus the reserving rate R(e) of CLS, Algorithm 1, line 12, as set at the end of
    the epoch before: nothing is dropped in the first.

    >>> [drop_share(epoch, 0.2, 4) for epoch in (0, 2, 4, 9)]
    [0.0, 0.1, 0.2, 0.2]
    """
    return tau * min(epoch / ramp, 1.0) if ramp > 0 else tau


def extreme(
    values: np.ndarray, outside: np.ndarray, count: int, *, largest: bool = True
) -> np.ndarray:
    """Mask of the `count` entries whose values are largest (or smallest).

    Exactly that many are chosen: of equal ones at the end those that come first.

    Parameters
    ----------
    values : array of any shape, finite
    outside : array of integers
        Numbers of the entries that do not take part, counted row after row; few of many.
    count : int
    largest : bool, default=True

    Examples
    --------
    >>> values = np.array([[0.1, 0.9], [0.5, 0.7]])
    >>> extreme(values, np.array([1]), 1)
    array([[False, False],
           [False,  True]])
    """
    if count == 0:
        return np.zeros(values.shape, dtype=bool)
    ranked = values.flatten()
    ranked[outside] = -np.inf if largest else np.inf
    place = ranked.size - count if largest else count - 1
    ranked.partition(place)
    cut = ranked[place]
    chosen = np.ravel(values >= cut if largest else values <= cut)
    chosen[outside] = False
    excess = np.count_nonzero(chosen) - count
    if excess > 0:
        equal = np.flatnonzero(chosen & (values.ravel() == cut))
        chosen[equal[len(equal) - excess :]] = False
    return chosen.reshape(values.shape)


def without(targets: np.ndarray, dropped: np.ndarray) -> np.ndarray:
    """Targets with NaN for the entries that are dropped, all of which are 0.

    >>> without(np.zeros(2), np.array([False, True]))
    array([ 0., nan])
    """
    with np.errstate(invalid="ignore"):
        return targets / ~dropped  # 0 / 0 is NaN: ten times as fast as filling by a mask


def rows_to_drop(losses: np.ndarray, share: float, among: np.ndarray | None = None) -> np.ndarray:
    """Mask of the share of rows (of those `among`) whose losses are largest.

    >>> rows_to_drop(np.array([0.3, 0.1, 0.2]), 0.34)
    array([ True, False, False])
    """
    if among is None:
        return extreme(losses, np.empty(0, dtype=int), round(share * len(losses)))
    return extreme(losses, np.flatnonzero(~among), round(share * np.count_nonzero(among)))
