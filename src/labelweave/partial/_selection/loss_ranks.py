"""Select the entries, or the rows, of a mini-batch whose losses rank highest or lowest.

All functions are pure functions of NumPy arrays. Selection takes linear time: nothing is sorted.
"""

from __future__ import annotations

import numpy as np

_SAMPLE_STEP = 37  # every 37th entry is sampled; a prime number, so that all labels are sampled
_MARGIN = 1.2


def drop_share(epoch: int, tau: float, ramp: float) -> float:
    """The share to remove in an epoch (counted from 0): ``min(epoch / ramp * tau, tau)``.

    It is one minus the reserving rate R(e) of CLS (Algorithm 1, line 12), which is updated at the
    end of an epoch: in the first epoch nothing is removed.

    >>> [drop_share(epoch, 0.2, 4) for epoch in (0, 2, 4, 9)]
    [0.0, 0.1, 0.2, 0.2]
    """
    return tau * min(epoch / ramp, 1.0) if ramp > 0 else tau


def extreme(
    values: np.ndarray, among: np.ndarray, count: int, *, largest: bool = True
) -> np.ndarray:
    """Flat positions of the `count` entries with the largest (or smallest) values, in order.

    Exactly `count` entries are selected; of equal values at the boundary the first ones.

    Parameters
    ----------
    values : array of any shape, finite
    among : boolean array of the same shape
        The entries to select from, at least `count` of them.
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
    positions = _shortlist(flat, among.ravel(), count, largest)
    shortlisted = flat[positions]
    rank = len(shortlisted) - count if largest else count - 1
    boundary: np.floating = np.partition(shortlisted, rank)[rank]
    selected = shortlisted > boundary if largest else shortlisted < boundary
    equal = np.flatnonzero(shortlisted == boundary)
    selected[equal[: count - np.count_nonzero(selected)]] = True
    return positions[selected]


def _shortlist(values: np.ndarray, among: np.ndarray, count: int, largest: bool) -> np.ndarray:
    """Positions of entries that include the extreme ones, if possible few more than `count`.

    A sample of the entries suggests a boundary. If fewer than `count` entries lie beyond it, all
    entries are returned, so the selection is exact for every sample.
    """
    sample = values[::_SAMPLE_STEP][among[::_SAMPLE_STEP]]
    expected = count * len(sample) / max(int(np.count_nonzero(among)), 1)
    rank = int(_MARGIN * expected + 4 * np.sqrt(expected) + 4)
    if rank < len(sample):
        if largest:
            beyond = values >= np.partition(sample, -rank)[-rank]
        else:
            beyond = values <= np.partition(sample, rank)[rank]
        positions = np.flatnonzero(beyond & among)
        if len(positions) >= count:
            return positions
    return np.flatnonzero(among)


def rows_to_drop(losses: np.ndarray, share: float, among: np.ndarray | None = None) -> np.ndarray:
    """Mask of the share of rows with the largest losses, of all rows or of those `among`.

    >>> rows_to_drop(np.array([0.3, 0.1, 0.2]), 0.34)
    array([ True, False, False])
    """
    among = np.ones(len(losses), dtype=bool) if among is None else among
    dropped = np.zeros(len(losses), dtype=bool)
    dropped[extreme(losses, among, round(share * np.count_nonzero(among)))] = True
    return dropped
