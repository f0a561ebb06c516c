"""Transfer of knowledge among chains: who tells whom what, and what that changes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from labelweave.scattered.opinions import Opinions
from labelweave.scattered.teacher import take_rows

__all__ = ["Transfer", "transfer"]


class Transfer(NamedTuple):
    """Opinions after the teachers have told one another what they are sure of.

    Attributes
    ----------
    logits : float32 array of shape (teachers, rows, labels)
        For each teacher the most confident of its first opinion and its revisions (Eq. 5).
    n_told : int
        Times that a teacher was told a label of a row and revised its opinion.
    n_turned : int
        Entries that turned positive by a revision.
    n_rounds : int
    """

    logits: np.ndarray
    n_told: int
    n_turned: int
    n_rounds: int


def transfer(opinions: Opinions, X: Any, *, max_rounds: int = 10) -> Transfer:
    """Let teachers that are chains revise their opinions (Eq. 1 to 3).

    Where some teacher finds a label positive and another that knows it does not, the other, if
    it is a chain, runs again from its own final log odds with those of that label replaced by
    the first one's: each such label of a row is a run of its own. Labels that turn positive by
    this are told on in the next round. If several teachers could tell, the most confident
    does. All runs of a round are one batch for each teacher; in a round nobody hears what is
    found in it, so that no order matters.

    Parameters
    ----------
    opinions : Opinions
    X : rows of the opinions
    max_rounds : int, default=10
        Most rounds; a label of a row is told to a teacher only once, so that there is an end.
    """
    first = opinions.logits
    lowest, highest = first.copy(), first.copy()
    known = ~np.isnan(first)
    margins = np.array([teacher.margin for teacher in opinions.teachers], dtype=np.float32)
    news = known & (first > margins[:, None, None])
    told = np.zeros_like(known)
    n_told = n_turned = n_rounds = 0
    for _ in range(max_rounds):
        loudest = np.where(news, highest, -np.inf).max(axis=0)
        needs = known & ~told & ~(highest > 0) & (loudest > 0)
        revised = {
            t: _revise(opinions, X, t, needs[t], loudest)
            for t, teacher in enumerate(opinions.teachers)
            if teacher.kind == "chain" and needs[t].any()
        }
        if not revised:
            break
        n_rounds += 1
        told |= needs
        news = np.zeros_like(known)
        for t, (rows, low, high) in revised.items():
            n_told += int(needs[t].sum())
            before = highest[t][rows] > 0
            lowest[t][rows] = np.fmin(lowest[t][rows], low)
            highest[t][rows] = np.fmax(highest[t][rows], high)
            news[t][rows] = (highest[t][rows] > margins[t]) & ~before
        n_turned += int(news.sum())
    return Transfer(np.where(highest > 0, highest, lowest), n_told, n_turned, n_rounds)


def _revise(
    opinions: Opinions, X: Any, t: int, needs: np.ndarray, loudest: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows that a teacher was told a label of, and the lowest and highest log odds it came to."""
    columns = opinions.vocabulary.columns[t]
    rows, labels = np.nonzero(needs)
    own_place = np.full(needs.shape[1], -1)
    own_place[columns] = np.arange(len(columns))
    start = opinions.logits[t][rows[:, None], columns]
    start[np.arange(len(rows)), own_place[labels]] = loudest[rows, labels]
    found = opinions.teachers[t].revise(take_rows(X, rows), start)
    # `rows` ascends, so that the runs of one row stand together.
    distinct, begin = np.unique(rows, return_index=True)
    low = np.full((len(distinct), needs.shape[1]), np.nan, dtype=np.float32)
    high = low.copy()
    low[:, columns] = np.minimum.reduceat(found, begin, axis=0)
    high[:, columns] = np.maximum.reduceat(found, begin, axis=0)
    return distinct, low, high
