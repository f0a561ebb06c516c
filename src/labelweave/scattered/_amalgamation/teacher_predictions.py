"""The predictions of all teachers on all rows, computed once."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from labelweave.exceptions import LabelweaveWarning
from labelweave.progress import ProgressBar
from labelweave.rows import count_rows
from labelweave.scattered._amalgamation.vocabulary import Vocabulary, join_vocabularies
from labelweave.scattered.teacher import Teacher, take_rows, unique_names

_BATCH_ROWS = 4096  # rows that a teacher predicts at a time


class TeacherPredictions(NamedTuple):
    """The logits of all teachers, less those of their thresholds: positive where they predict."""

    # In a canonical order, which does not depend on the order in which they were passed
    teachers: list[Teacher]
    vocabulary: Vocabulary
    logits: np.ndarray  # (teachers, rows, labels), NaN where a label is not one of the teacher's

    @property
    def names(self) -> list[str]:
        return unique_names(self.teachers)

    @property
    def margins(self) -> np.ndarray:
        """The smallest absolute logit with which each teacher does not abstain."""
        return np.array([teacher.margin for teacher in self.teachers], dtype=np.float32)

    @property
    def offsets(self) -> np.ndarray:
        """What was subtracted from the logits, of shape (teachers, labels); NaN as there."""
        offsets = np.full(self.logits.shape[::2], np.nan, dtype=np.float32)
        for t, teacher in enumerate(self.teachers):
            offsets[t, self.vocabulary.columns[t]] = teacher.offsets
        return offsets

    def without_abstentions(self) -> np.ndarray:
        """The logits, with NaN also where a teacher abstains."""
        margins = self.margins
        if not margins.any():
            return self.logits
        confident = np.abs(self.logits) >= margins[:, None, None]
        return np.where(confident, self.logits, np.nan)


def joint_vocabulary(
    teachers: Sequence[Teacher],
    *,
    aliases: Mapping[str, str] | None = None,
    match: str = "ignore-case",
) -> Vocabulary:
    """The common vocabulary of teachers; warns where they share no label."""
    vocabulary = join_vocabularies(
        [teacher.labels for teacher in teachers],
        names=unique_names(teachers),
        aliases=aliases,
        match=match,
    )
    if not vocabulary.shared:
        warnings.warn(
            "the teachers have no label in common, so nothing can be transferred between them: "
            "each label is learnt from one teacher (aliases= joins labels by hand)",
            LabelweaveWarning,
            stacklevel=2,
        )
    return vocabulary


def predict_with_teachers(
    teachers: Sequence[Teacher],
    vocabulary: Vocabulary,
    X: Any,
    *,
    verbose: int = 0,
) -> TeacherPredictions:
    """Compute the predictions of all teachers on all rows.

    The teachers are put into a canonical order, so that all results, to the last digit, depend on
    the set of teachers and not on their order. The vocabulary is that of the teachers as passed,
    and the rows are passed to each teacher as they are.
    """
    logits = teacher_logits(teachers, vocabulary, X, verbose=verbose)
    order = _canonical_order(vocabulary, logits)
    ordered = Vocabulary(
        vocabulary.names, tuple(vocabulary.columns[t] for t in order), vocabulary.spellings
    )
    predictions = TeacherPredictions([teachers[t] for t in order], ordered, logits[order])
    _warn_of_duplicates(predictions)
    return predictions


def teacher_logits(
    teachers: Sequence[Teacher],
    vocabulary: Vocabulary,
    X: Any,
    *,
    verbose: int = 0,
) -> np.ndarray:
    """The logits of all teachers as an array of shape (teachers, rows, labels)."""
    n_rows = count_rows(X)
    logits = np.full((len(teachers), n_rows, len(vocabulary.names)), np.nan, dtype=np.float32)
    with ProgressBar("teachers", len(teachers) * n_rows, verbose=verbose) as bar:
        for t, (teacher, columns) in enumerate(zip(teachers, vocabulary.columns, strict=True)):
            for first in range(0, n_rows, _BATCH_ROWS):
                rows = np.arange(first, min(first + _BATCH_ROWS, n_rows))
                logits[t, first : first + len(rows), columns] = teacher.logits(take_rows(X, rows)).T
                bar.advance(len(rows), note=teacher.name)
    return logits


def _canonical_order(vocabulary: Vocabulary, logits: np.ndarray) -> list[int]:
    """Teachers sorted by their labels, then by their predictions."""

    def key(t: int) -> tuple[list[int], float, bytes]:
        known = logits[t][:, np.sort(vocabulary.columns[t])]
        return sorted(vocabulary.columns[t].tolist()), round(float(known.sum()), 1), known.tobytes()

    return sorted(range(len(logits)), key=key)


def _warn_of_duplicates(predictions: TeacherPredictions) -> None:
    names = predictions.names
    for a, b in combinations(range(len(names)), 2):
        if np.array_equal(predictions.logits[a], predictions.logits[b], equal_nan=True):
            warnings.warn(
                f"teachers {names[a]!r} and {names[b]!r} predict the same for every row: one of "
                "them is redundant",
                LabelweaveWarning,
                stacklevel=3,
            )
