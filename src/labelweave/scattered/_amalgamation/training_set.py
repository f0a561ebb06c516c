"""The training set of an amalgamation: rows, the teachers' predictions on them, known labels."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from labelweave.exceptions import InputError
from labelweave.input_checks import is_texts
from labelweave.labels import LabelMatrix, as_labels
from labelweave.rows import concatenate_features, count_rows
from labelweave.scattered._amalgamation.teacher_predictions import (
    TeacherPredictions,
    predict_with_teachers,
)
from labelweave.scattered._amalgamation.vocabulary import Vocabulary
from labelweave.scattered.teacher import Teacher, take_rows

_MIN_ROWS = 10  # with fewer none are held out
_SYNTHETIC_PER_ROW, _MAX_SYNTHETIC = 5.0, 5000
_DRAWN_WORDS = 8  # in a mixed text
_WORD = re.compile(r"\w+")


class TrainingSet(NamedTuple):
    """Rows without labels, which are labelled by the predictions of teachers."""

    X: Any  # the training rows, then the synthetic rows, then the held-out rows
    predictions: TeacherPredictions  # on these rows
    known_labels: np.ndarray | None  # (rows, labels): 1 or 0 where the label is known, else NaN
    row_numbers: np.ndarray  # positions in the X of `fit`; -1 for synthetic and validation rows
    n_train: int  # rows to train on, synthetic ones included
    seed: int

    @property
    def n_rows(self) -> int:
        return len(self.row_numbers)

    def real_rows(self) -> np.ndarray:
        """The positions of all rows that are not synthetic."""
        held_out = np.arange(self.n_rows) >= self.n_train
        return np.flatnonzero((self.row_numbers >= 0) | held_out)

    def held_out_rows(self) -> np.ndarray:
        """The positions of the held-out rows; of all rows if none is held out."""
        return np.arange(self.n_train if self.n_train < self.n_rows else 0, self.n_rows)

    def predictions_on(self, rows: np.ndarray) -> TeacherPredictions:
        """The predictions on some of the rows."""
        return self.predictions._replace(logits=self.predictions.logits[:, rows])


def match_known_labels(y: Any, n_rows: int, vocabulary: Vocabulary) -> np.ndarray | None:
    """The known labels in the order of the vocabulary; None if none is known."""
    if y is None:
        return None
    has_names = isinstance(y, LabelMatrix) or hasattr(y, "columns")
    labels = as_labels(y) if has_names else as_labels(y, names=vocabulary.names)
    if len(labels) != n_rows:
        raise InputError(f"y has {len(labels)} rows, but X has {n_rows}")
    places = vocabulary.places(labels.names)
    unknown = [name for name, place in zip(labels.names, places, strict=True) if place is None]
    if unknown:
        raise InputError(f"y has the label {unknown[0]!r}, which no teacher predicts")
    matched = np.full((n_rows, len(vocabulary.names)), np.nan, dtype=np.float32)
    matched[:, np.array(places, dtype=np.intp)] = labels.to_numpy()
    return None if np.isnan(matched).all() else matched


def make_training_set(
    teachers: Sequence[Teacher],
    vocabulary: Vocabulary,
    X: Any,
    known_labels: np.ndarray | None,
    held_out: Any,
    generator: np.random.RandomState,
    *,
    validation_fraction: float,
    calibration: str | None,
    augment: float,
    verbose: int,
) -> TrainingSet:
    """Hold rows out, calibrate the teachers, add synthetic rows, and predict them all."""
    n_rows, n_labels = count_rows(X), len(vocabulary.names)
    if held_out is None:
        order = generator.permutation(n_rows)
        n_held = n_held_out(n_rows, validation_fraction)
        train, late = np.sort(order[n_held:]), np.sort(order[:n_held])
        held_out, X = take_rows(X, late), take_rows(X, train)
        if known_labels is not None:
            known_labels = known_labels[np.concatenate([train, late])]
    else:
        train, late = np.arange(n_rows), np.full(count_rows(held_out), -1)
        if known_labels is not None:
            known_labels = np.concatenate([known_labels, _unknown(len(late), n_labels)])
    if calibration is not None:
        assert known_labels is not None
        rows = concatenate_features([X, held_out])
        teachers = [
            _calibrated(teacher, rows, known_labels[:, columns], calibration)
            for teacher, columns in zip(teachers, vocabulary.columns, strict=True)
        ]
    n_synthetic = round(augment * len(train))
    parts = [X, held_out]
    if n_synthetic:
        parts = [X, synthetic_rows(X, n_synthetic, generator), held_out]
        if known_labels is not None:
            known, rest = known_labels[: len(train)], known_labels[len(train) :]
            known_labels = np.concatenate([known, _unknown(n_synthetic, n_labels), rest])
    rows = concatenate_features(parts)
    predictions = predict_with_teachers(teachers, vocabulary, rows, verbose=verbose)
    seed = int(generator.randint(np.iinfo(np.int32).max))
    numbers = np.concatenate([train, np.full(n_synthetic, -1), late])
    return TrainingSet(rows, predictions, known_labels, numbers, len(train) + n_synthetic, seed)


def n_held_out(n_rows: int, validation_fraction: float) -> int:
    """The number of rows that are held out where none are passed for it."""
    return round(validation_fraction * n_rows) if n_rows >= _MIN_ROWS else 0


def _unknown(n_rows: int, n_labels: int) -> np.ndarray:
    return np.full((n_rows, n_labels), np.nan, dtype=np.float32)


def _calibrated(teacher: Teacher, X: Any, labels: np.ndarray, method: str) -> Teacher:
    labelled = np.flatnonzero(~np.isnan(labels).all(axis=1))
    if not len(labelled):
        raise InputError(f"y has no label of teacher {teacher.name!r} to calibrate it on")
    return teacher.calibrated(take_rows(X, labelled), labels[labelled], method)


# -- synthetic rows --------------------------------------------------------------------


def auto_augmentation(X: Any) -> float:
    """The number of synthetic rows per row with ``augment="auto"``; 0 for rows without numbers.

    >>> [auto_augmentation(X) for X in (np.zeros((100, 2)), np.zeros((4000, 2)), ["a text"])]
    [5.0, 1.25, 0.0]
    """
    if not is_numeric(X):
        return 0.0
    return min(_SYNTHETIC_PER_ROW, _MAX_SYNTHETIC / max(count_rows(X), 1))


def check_synthetic(X: Any) -> None:
    """Refuse rows of which no synthetic rows can be made."""
    if not can_be_mixed(X):
        raise InputError(
            "synthetic rows can be made of numbers or texts only: set augment=0",
            parameter="augment",
        )


def can_be_mixed(X: Any) -> bool:
    """Whether synthetic rows can be made of rows: of numbers, or of texts."""
    return is_numeric(X) or is_texts(X)


def synthetic_rows(X: Any, n: int, generator: np.random.RandomState) -> Any:
    """Draw rows that take each feature from one of two random rows.

    Every value of a feature occurs in X, so that counts stay counts and sparse rows stay sparse.
    The share of features from the first of the two rows is drawn for each synthetic row. A mixed
    text is a run of words of a text, half of that share of it, and eight words of all texts, each
    word about as often as every other: teachers react to rare words too, which few texts have.

    >>> X = np.array([[1.0, 2.0], [3.0, 4.0]])
    >>> mixed = synthetic_rows(X, 50, np.random.RandomState(0))
    >>> mixed.shape, sorted(set(mixed[:, 0].tolist()))
    ((50, 2), [1.0, 3.0])
    """
    check_synthetic(X)
    if hasattr(X, "iloc"):
        return type(X)(synthetic_rows(X.to_numpy(), n, generator), columns=X.columns)
    first, second = generator.randint(count_rows(X), size=(2, n))
    share = generator.uniform(size=n)
    if is_texts(X):
        shares_of_texts = zip(first, share / 2, generator.uniform(size=n), strict=True)
        runs = [_run_of_words(X[i], part, start) for i, part, start in shares_of_texts]
        drawn = _drawn_words(X, n, generator)
        return [f"{run} {words}".strip() for run, words in zip(runs, drawn, strict=True)]
    if not sp.issparse(X):
        from_first = generator.uniform(size=(n, X.shape[1])) < share[:, None]
        return np.where(from_first, X[first], X[second])
    # One draw per feature that either of the two rows stores.
    a, b = sp.csr_array(X[first]), sp.csr_array(X[second])
    stored = sp.csr_array(abs(a).astype(bool) + abs(b).astype(bool), dtype=X.dtype)
    from_first = stored.copy()
    rows = np.repeat(np.arange(n), np.diff(stored.indptr))
    from_first.data = (generator.uniform(size=len(stored.data)) < share[rows]).astype(X.dtype)
    mixed = sp.csr_array(a.multiply(from_first) + b - b.multiply(from_first))
    mixed.eliminate_zeros()
    return mixed


def _drawn_words(texts: Any, n: int, generator: np.random.RandomState) -> list[str]:
    """Eight words of the texts for each of `n` mixed texts; all words are used equally often.

    >>> _drawn_words(["Sea sea", "sun"], 1, np.random.RandomState(0))
    ['sun Sea Sea sun Sea sun sun Sea']
    """
    spellings: dict[str, str] = {}
    for text in texts:
        for word in _WORD.findall(text):
            spellings.setdefault(word.lower(), word)
    words = list(spellings.values())
    if not words:
        return [""] * n
    rounds = [generator.permutation(len(words)) for _ in range(-(-n * _DRAWN_WORDS // len(words)))]
    places = np.concatenate(rounds)[: n * _DRAWN_WORDS].reshape(n, _DRAWN_WORDS)
    return [" ".join(words[j] for j in row) for row in places.tolist()]


def _run_of_words(text: str, share: float, start: float) -> str:
    """A run of words that is this share of a text; `start`, from 0 to 1, says where it begins.

    >>> _run_of_words("one two three four", 0.5, 0.9)
    'three four'
    """
    words = text.split()
    n = round(share * len(words))
    first = int(start * (len(words) - n + 1))
    return " ".join(words[first : first + n])


def is_numeric(X: Any) -> bool:
    """Whether rows are an array or sparse matrix, or a table of numeric columns only."""
    if hasattr(X, "iloc"):
        return all(dtype.kind in "fiub" for dtype in X.dtypes)
    return hasattr(X, "shape") and len(X.shape) == 2 and not hasattr(X, "pixels")
