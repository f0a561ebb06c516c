"""What all teachers say of all rows, asked once."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from labelweave.exceptions import LabelweaveWarning
from labelweave.progress import ProgressBar
from labelweave.rows import count_rows
from labelweave.scattered.teacher import Teacher, take_rows, unique_names
from labelweave.scattered.vocabulary import Vocabulary, join_vocabularies

__all__ = ["Opinions", "ask_teachers", "join_teachers"]


class Opinions(NamedTuple):
    """The log odds of all teachers.

    Attributes
    ----------
    teachers : list of Teacher
        In an order of their own, which does not depend on that in which they were given.
    vocabulary : Vocabulary
    logits : float32 array of shape (teachers, rows, labels)
        NaN where a teacher does not know a label.
    """

    teachers: list[Teacher]
    vocabulary: Vocabulary
    logits: np.ndarray

    @property
    def names(self) -> list[str]:
        return unique_names(self.teachers)

    def heard(self) -> np.ndarray:
        """The log odds with NaN where a teacher abstains, too."""
        margins = np.array([teacher.margin for teacher in self.teachers], dtype=np.float32)
        if not margins.any():
            return self.logits
        sure = np.abs(self.logits) >= margins[:, None, None]
        return np.where(sure, self.logits, np.nan)


def join_teachers(teachers: Sequence[Teacher], **how: Any) -> Vocabulary:
    """The common vocabulary of teachers; says so where they share no label."""
    vocabulary = join_vocabularies(
        [teacher.labels for teacher in teachers], names=unique_names(teachers), **how
    )
    if not vocabulary.shared:
        warnings.warn(
            "the teachers have no label in common, so that none can tell another anything: the "
            "student learns each label from one teacher (aliases= joins labels by hand)",
            LabelweaveWarning,
            stacklevel=2,
        )
    return vocabulary


def ask_teachers(
    teachers: Sequence[Teacher],
    vocabulary: Vocabulary,
    X: Any,
    *,
    batch_rows: int = 4096,
    verbose: int = 0,
) -> Opinions:
    """The log odds of all teachers for all rows, a batch of rows at a time.

    Parameters
    ----------
    teachers : sequence of Teacher
    vocabulary : Vocabulary
        Of these teachers in this order.
    X : rows
        Handed to each teacher as they are: array, sparse matrix, DataFrame or texts.
    batch_rows : int, default=4096
    verbose : int, default=0
        1 shows a progress bar.

    Returns
    -------
    Opinions
    """
    n_rows = count_rows(X)
    logits = np.full((len(teachers), n_rows, len(vocabulary.names)), np.nan, dtype=np.float32)
    with ProgressBar("teachers", len(teachers) * n_rows, verbose=verbose) as bar:
        for t, (teacher, columns) in enumerate(zip(teachers, vocabulary.columns, strict=True)):
            for first in range(0, n_rows, batch_rows):
                rows = np.arange(first, min(first + batch_rows, n_rows))
                logits[t, first : first + len(rows), columns] = teacher.logits(take_rows(X, rows)).T
                bar.advance(len(rows), note=teacher.name)
    return _in_canonical_order(teachers, vocabulary, logits)


def _in_canonical_order(
    teachers: Sequence[Teacher], vocabulary: Vocabulary, logits: np.ndarray
) -> Opinions:
    """Teachers by their labels, then by what they say: any order given ends in the same one.

    All that follows, down to the last digit, then depends on the set of teachers alone.
    """

    def key(t: int) -> tuple[list[int], float, bytes]:
        own = logits[t][:, np.sort(vocabulary.columns[t])]
        return sorted(vocabulary.columns[t].tolist()), round(float(own.sum()), 1), own.tobytes()

    order = sorted(range(len(teachers)), key=key)
    ordered = Vocabulary(
        vocabulary.names, tuple(vocabulary.columns[t] for t in order), vocabulary.spellings
    )
    opinions = Opinions([teachers[t] for t in order], ordered, logits[order])
    _warn_of_twins(opinions)
    return opinions


def _warn_of_twins(opinions: Opinions) -> None:
    for a, b in combinations(range(len(opinions.teachers)), 2):
        if np.array_equal(opinions.logits[a], opinions.logits[b], equal_nan=True):
            warnings.warn(
                f"teachers {opinions.names[a]!r} and {opinions.names[b]!r} say the same of every "
                "row: one of them adds nothing",
                LabelweaveWarning,
                stacklevel=3,
            )
