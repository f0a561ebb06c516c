"""What there is to learn from: rows, the teachers' opinions of them, and labels that are known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from labelweave.exceptions import InputError
from labelweave.labels import LabelMatrix, as_labels
from labelweave.rows import concatenate_features, count_rows
from labelweave.scattered.opinions import Opinions, ask_teachers
from labelweave.scattered.synthetic import synthetic_rows
from labelweave.scattered.teacher import Teacher, take_rows
from labelweave.scattered.vocabulary import Vocabulary

__all__ = ["Lesson", "known_labels", "make_lesson"]

_FEWEST_ROWS = 10  # with fewer none are held out


class Lesson(NamedTuple):
    """What there is to learn from.

    Attributes
    ----------
    X : rows
        Those that the student trains on, then those that are held out.
    opinions : Opinions
        Of the teachers, on these rows.
    truth : float32 array of shape (rows, labels) or None
        The labels that are known, NaN elsewhere.
    numbers : int array of shape (rows,)
        The place of each row in what was given to `fit`; -1 for other rows.
    n_train : int
        How many of the rows are trained on.
    seed : int
    """

    X: Any
    opinions: Opinions
    truth: np.ndarray | None
    numbers: np.ndarray
    n_train: int
    seed: int


def known_labels(y: Any, n_rows: int, vocabulary: Vocabulary) -> np.ndarray | None:
    """Known labels in the order of the vocabulary; None if nothing is known."""
    if y is None:
        return None
    named = isinstance(y, LabelMatrix) or hasattr(y, "columns")
    labels = as_labels(y) if named else as_labels(y, names=vocabulary.names)
    if len(labels) != n_rows:
        raise InputError(f"y has {len(labels)} rows, but X has {n_rows}")
    places = vocabulary.places(labels.names)
    strange = [name for name, j in zip(labels.names, places, strict=True) if j is None]
    if strange:
        raise InputError(f"y has the label {strange[0]!r}, which no teacher knows")
    truth = np.full((n_rows, len(vocabulary.names)), np.nan, dtype=np.float32)
    truth[:, np.array(places, dtype=np.intp)] = labels.to_numpy()
    return None if np.isnan(truth).all() else truth


def make_lesson(
    teachers: Sequence[Teacher],
    vocabulary: Vocabulary,
    X: Any,
    truth: np.ndarray | None,
    held: Any,
    generator: np.random.RandomState,
    *,
    validation_fraction: float,
    calibration: str | None,
    augment: float,
    batch_rows: int,
    verbose: int,
) -> Lesson:
    """All rows with the teachers' opinions, those to train on first."""
    n_rows = count_rows(X)
    train, late = np.arange(n_rows), np.full(0 if held is None else count_rows(held), -1)
    if held is None:
        order = generator.permutation(n_rows)
        n_held = round(validation_fraction * n_rows) if n_rows >= _FEWEST_ROWS else 0
        train, late = np.sort(order[n_held:]), np.sort(order[:n_held])
        held, X = take_rows(X, late), take_rows(X, train)
        if truth is not None:
            truth = truth[np.concatenate([train, late])]
    elif truth is not None:
        blank = np.full((count_rows(held), truth.shape[1]), np.nan, dtype=np.float32)
        truth = np.concatenate([truth, blank])
    if calibration is not None:
        assert truth is not None
        teachers = [
            _calibrated(teacher, columns, concatenate_features([X, held]), truth, calibration)
            for teacher, columns in zip(teachers, vocabulary.columns, strict=True)
        ]
    n_made = round(augment * count_rows(X))
    made = synthetic_rows(X, n_made, generator) if n_made else None
    if truth is not None and n_made:
        blank = np.full((n_made, truth.shape[1]), np.nan, dtype=np.float32)
        truth = np.concatenate([truth[: count_rows(X)], blank, truth[count_rows(X) :]])
    rows = concatenate_features([part for part in (X, made, held) if part is not None])
    opinions = ask_teachers(teachers, vocabulary, rows, batch_rows=batch_rows, verbose=verbose)
    seed = int(generator.randint(np.iinfo(np.int32).max))
    numbers = np.concatenate([train, np.full(n_made, -1), late])
    return Lesson(rows, opinions, truth, numbers, count_rows(X) + n_made, seed)


def _calibrated(
    teacher: Teacher, columns: np.ndarray, X: Any, truth: np.ndarray, how: str
) -> Teacher:
    own = truth[:, columns]
    labelled = np.flatnonzero(~np.isnan(own).all(axis=1))
    if not len(labelled):
        raise InputError(f"y has no label of teacher {teacher.name!r} to calibrate it on")
    return teacher.calibrated(take_rows(X, labelled), own[labelled], how)
