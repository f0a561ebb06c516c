"""Choosing among the labels, or the rows, of a mini-batch by the rank of their losses.

Pure functions of arrays. A selection is a partial one, in linear time: nothing is sorted. It is
done by NumPy, whose selection and comparisons are ten times as fast as torch's on a CPU; from an
accelerator the logits of a mini-batch are a small thing to fetch.
"""

from __future__ import annotations

import numpy as np

__all__ = ["drop_share", "extreme", "rows_to_drop"]

_STEP = 37  # one entry of so many is in the sample; a prime, so that all labels come up
_MARGIN = 1.2


def drop_share(epoch: int, tau: float, ramp: float) -> float:
    """The share to drop in an epoch (from 0): ``min(epoch / ramp * tau, tau)``.

    It is one minus the reserving rate R(e) of CLS, Algorithm 1, line 12, as set at the end of
    the epoch before: nothing is dropped in the first.

    >>> [drop_share(epoch, 0.2, 4) for epoch in (0, 2, 4, 9)]
    [0.0, 0.1, 0.2, 0.2]
    """
    return tau * min(epoch / ramp, 1.0) if ramp > 0 else tau


def extreme(
    values: np.ndarray, among: np.ndarray, count: int, *, largest: bool = True
) -> np.ndarray:
    """Numbers of the `count` entries whose values are largest (or smallest), in rising order.

    Exactly that many are chosen: of equal ones at the end those that come first. Entries are
    counted row after row.

    Parameters
    ----------
    values : array of any shape, finite
    among : boolean array of the same shape
        The entries that take part, `count` at the least.
    count : int
    largest : bool, default=True

    Examples
    --------
    >>> values = np.array([[0.1, 0.9], [0.5, 0.7]])
    >>> extreme(values, np.array([[True, False], [True, True]]), 1)
    array([3])
    """
    if count == 0:
        return np.empty(0, dtype=np.intp)
    flat = values.ravel()
    places = _candidates(flat, among.ravel(), count, largest)
    found = flat[places]
    place = len(found) - count if largest else count - 1
    cut: np.floating = np.partition(found, place)[place]
    chosen = found > cut if largest else found < cut
    equal = np.flatnonzero(found == cut)
    chosen[equal[: count - np.count_nonzero(chosen)]] = True
    return places[chosen]


def _candidates(values: np.ndarray, among: np.ndarray, count: int, largest: bool) -> np.ndarray:
    """Numbers of entries among which the extreme ones are: few more than `count`, where it can be.

    A sample says where to cut. Should fewer than `count` lie beyond, all entries are candidates, so
    the choice is exact whatever the sample.
    """
    sample = values[::_STEP][among[::_STEP]]
    expected = count * len(sample) / max(int(np.count_nonzero(among)), 1)
    rank = int(_MARGIN * expected + 4 * np.sqrt(expected) + 4)
    if rank < len(sample):
        if largest:
            beyond = values >= np.partition(sample, -rank)[-rank]
        else:
            beyond = values <= np.partition(sample, rank)[rank]
        places = np.flatnonzero(beyond & among)
        if len(places) >= count:
            return places
    return np.flatnonzero(among)


def rows_to_drop(losses: np.ndarray, share: float, among: np.ndarray | None = None) -> np.ndarray:
    """Mask of the share of rows (of those `among`) whose losses are largest.

    >>> rows_to_drop(np.array([0.3, 0.1, 0.2]), 0.34)
    array([ True, False, False])
    """
    among = np.ones(len(losses), dtype=bool) if among is None else among
    dropped = np.zeros(len(losses), dtype=bool)
    dropped[extreme(losses, among, round(share * np.count_nonzero(among)))] = True
    return dropped
