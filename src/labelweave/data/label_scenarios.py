"""Scenarios that share labels out: among several teachers, and into seen and unseen ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelweave.data.dataset import Dataset
from labelweave.data.splits import as_generator, stratified_parts
from labelweave.exceptions import InputError

__all__ = [
    "TeacherShare",
    "TeacherShares",
    "UnseenLabels",
    "hold_labels_out",
    "share_among_teachers",
]


@dataclass(frozen=True, eq=False)
class TeacherShare:
    """What one teacher is trained on: its rows, with the labels it knows and no others."""

    data: Dataset
    rows: np.ndarray

    @property
    def label_names(self) -> tuple[str, ...]:
        """Names of the labels that the teacher knows."""
        return self.data.label_names


@dataclass(frozen=True, eq=False)
class TeacherShares:
    """Labels and rows shared among teachers.

    Attributes
    ----------
    teachers : tuple of TeacherShare
        Their rows are disjoint.
    shared : tuple of str
        Labels that two teachers know.
    rest : Dataset
        The rows of no teacher, with all labels: features for the student, and the truth.
    rest_rows : ndarray
        Their row numbers in the data set.
    """

    teachers: tuple[TeacherShare, ...]
    shared: tuple[str, ...]
    rest: Dataset
    rest_rows: np.ndarray


def share_among_teachers(
    data: Dataset,
    n_teachers: int = 2,
    *,
    overlap: float = 0.5,
    teacher_rows: float = 0.7,
    random_state: Any = None,
) -> TeacherShares:
    """Share the labels among teachers that each see other rows.

    Every label is known to one teacher or, if shared, to two. Teachers know about equally many
    labels and have equally many rows, dealt out with stratification.

    Parameters
    ----------
    data : Dataset
    n_teachers : int, default=2
    overlap : float from 0 to 1, default=0.5
        Share of a teacher's labels that another teacher knows as well.
    teacher_rows : float in (0, 1), default=0.7
        Share of the rows that the teachers have together; the rest is the student's.
    random_state : None, int, RandomState or Generator

    Returns
    -------
    TeacherShares

    Examples
    --------
    >>> import numpy as np
    >>> data = Dataset(np.zeros((100, 2)), np.eye(6)[np.arange(100) % 6])
    >>> scenario = share_among_teachers(data, 2, overlap=0.5, random_state=0)
    >>> [len(teacher.label_names) for teacher in scenario.teachers], len(scenario.shared)
    ([4, 4], 2)
    >>> [len(teacher.data) for teacher in scenario.teachers], len(scenario.rest)
    ([35, 35], 30)
    """
    if n_teachers < 2:
        raise InputError(f"labels are shared among at least 2 teachers, not {n_teachers}")
    if not 0 <= overlap <= 1:
        raise InputError(f"overlap must be from 0 to 1, not {overlap!r}")
    if not 0 < teacher_rows < 1:
        raise InputError(f"teacher_rows must lie between 0 and 1, not {teacher_rows!r}")
    n_taught = round(teacher_rows * len(data))
    if not n_teachers <= n_taught < len(data):
        raise InputError(f"{len(data)} rows are too few for {n_teachers} teachers and a student")
    rng = as_generator(random_state)
    known, shared = _labels_of_teachers(data.Y.n_labels, n_teachers, overlap, rng)
    bounds = np.linspace(0, n_taught, n_teachers + 1).round().astype(int)
    sizes = [*(end - start for start, end in pairwise(bounds)), len(data) - n_taught]
    part = stratified_parts(data.Y, sizes, groups=data.groups, random_state=rng)
    teachers = []
    for number, labels in enumerate(known):
        rows = np.flatnonzero(part == number)
        names = [data.label_names[j] for j in labels]
        teachers.append(TeacherShare(data[rows].select_labels(names), rows))
    rest = np.flatnonzero(part == n_teachers)
    shared_names = tuple(data.label_names[j] for j in shared)
    return TeacherShares(tuple(teachers), shared_names, data[rest], rest)


def _labels_of_teachers(
    n_labels: int, n_teachers: int, overlap: float, rng: np.random.Generator
) -> tuple[list[np.ndarray], np.ndarray]:
    """Labels of each teacher, and those that two of them know.

    With a labels a teacher, m a (1 - overlap) labels have one owner and m a overlap / 2 have
    two, which together make all of them.
    """
    n_shared = round(n_labels * overlap / (2 - overlap))
    order = rng.permutation(n_labels)
    shared, own = order[:n_shared], order[n_shared:]
    # Shared labels go round: to teachers 0 and 1, 1 and 2, ..., the last and 0.
    first = np.arange(n_shared) % n_teachers
    second = (first + 1) % n_teachers
    # The others go, one after the other, to the teacher with the fewest labels.
    n_known = np.bincount(np.concatenate([first, second]), minlength=n_teachers)
    filled_to = n_known[:, None] + np.arange(len(own))
    owner = np.argsort(filled_to.T, axis=None, kind="stable")[: len(own)] % n_teachers
    known = []
    for teacher in range(n_teachers):
        common = shared[(first == teacher) | (second == teacher)]
        known.append(np.sort(np.concatenate([own[owner == teacher], common])))
        if len(known[-1]) == 0:
            raise InputError(f"{n_labels} labels are too few for {n_teachers} teachers")
    return known, np.sort(shared)


@dataclass(frozen=True, eq=False)
class UnseenLabels:
    """Labels of which some are held out as unseen.

    Attributes
    ----------
    train : Dataset
        Training rows, with the seen labels only.
    test : Dataset
        Test rows, with seen labels first, then unseen ones (the generalised setting).
    seen, unseen : tuple of str
    left_out : tuple of str
        Labels that have too few training examples to be seen, and were not held out.
    """

    train: Dataset
    test: Dataset
    seen: tuple[str, ...]
    unseen: tuple[str, ...]
    left_out: tuple[str, ...]

    @property
    def test_unseen(self) -> Dataset:
        """The test rows that have an unseen label, with the unseen labels only."""
        only = self.test.select_labels(self.unseen)
        return only[np.asarray(only.Y.positive().sum(axis=1)).ravel() > 0]


def hold_labels_out(
    train: Dataset,
    test: Dataset,
    unseen: float | Sequence[str],
    *,
    rows: str = "keep",
    min_examples: int = 1,
    random_state: Any = None,
) -> UnseenLabels:
    """Hold labels out of training, to be predicted without a single example.

    Parameters
    ----------
    train, test : Dataset
        With the same labels.
    unseen : int, float in (0, 1), or sequence of str
        Number or share of labels to hold out, chosen by chance among those that are positive
        in some test row; or their names.
    rows : {"keep", "drop"}, default="keep"
        What happens to training rows that have an unseen label: they stay, with their other
        labels, or they go too.
    min_examples : int, default=1
        Every seen label keeps at least so many positives in the training rows (0 asks for
        nothing). A label is not chosen as unseen if dropping its rows took too many from
        another.
    random_state : None, int, RandomState or Generator

    Returns
    -------
    UnseenLabels

    Examples
    --------
    >>> import numpy as np
    >>> data = Dataset(np.zeros((60, 2)), np.eye(6)[np.arange(60) % 6])
    >>> scenario = hold_labels_out(data[:40], data[40:], 2, random_state=0)
    >>> len(scenario.seen), len(scenario.unseen), scenario.test_unseen.Y.shape
    (4, 2, (6, 2))
    """
    if rows not in ("keep", "drop"):
        raise InputError(f"rows must be 'keep' or 'drop', not {rows!r}")
    if train.label_names != test.label_names:
        raise InputError("train and test must have the same labels in the same order")
    positive = sp.csr_array(train.Y.positive())
    n_needed = min_examples if rows == "drop" else 0
    if isinstance(unseen, Integral | float):
        count = _number_of_unseen(unseen, train.Y.n_labels)
        candidates = np.flatnonzero(test.Y.counts()[0] > 0)
        candidates = as_generator(random_state).permutation(candidates)
        held = _choose_unseen(positive, candidates, count, n_needed)
    else:
        position = {name: j for j, name in enumerate(train.label_names)}
        missing = [name for name in unseen if name not in position]
        if missing:
            raise InputError(f"there is no label {missing[0]!r} to hold out")
        names = np.array([position[name] for name in unseen], dtype=np.int64)
        held = _choose_unseen(positive, names, len(names), n_needed)
    is_held = np.zeros(train.Y.n_labels, dtype=bool)
    is_held[held] = True
    if rows == "drop":
        keep = positive[:, held].sum(axis=1) == 0
        train, positive = train[keep], positive[np.flatnonzero(keep)]
    examples = np.asarray(positive.sum(axis=0)).ravel()
    is_seen = ~is_held & (examples >= min_examples)
    seen, held_out, left = (
        tuple(name for name, chosen in zip(train.label_names, mask, strict=True) if chosen)
        for mask in (is_seen, is_held, ~is_seen & ~is_held)
    )
    if not seen:
        raise InputError("no label is left to be seen: hold fewer labels out")
    return UnseenLabels(
        train.select_labels(seen), test.select_labels(seen + held_out), seen, held_out, left
    )


def _number_of_unseen(unseen: float, n_labels: int) -> int:
    count = int(unseen) if isinstance(unseen, Integral) else round(unseen * n_labels)
    is_share = isinstance(unseen, Integral) or 0 < unseen < 1
    if not is_share or not 1 <= count < n_labels:
        raise InputError(
            f"unseen must be a number from 1 to {n_labels - 1}, a share between 0 and 1 that "
            f"makes at least one label, or names, not {unseen!r}"
        )
    return count


def _choose_unseen(
    positive: sp.csr_array, candidates: np.ndarray, count: int, n_needed: int
) -> np.ndarray:
    """The first `count` candidates whose rows the other labels can spare."""
    if n_needed == 0:
        chosen = candidates[:count]
    else:
        by_label = positive.tocsc()
        examples = np.asarray(positive.sum(axis=0)).ravel()
        # Labels that are too rare from the start are no reason to spare others.
        matters = examples >= n_needed
        gone = np.zeros(positive.shape[0], dtype=bool)
        accepted: list[int] = []
        for label in candidates:
            if len(accepted) == count:
                break
            its_rows = by_label.indices[by_label.indptr[label] : by_label.indptr[label + 1]]
            its_rows = its_rows[~gone[its_rows]]
            left = examples - np.asarray(positive[its_rows].sum(axis=0)).ravel()
            others = matters.copy()
            others[[*accepted, label]] = False
            if (left[others] >= n_needed).all():
                accepted.append(int(label))
                examples, gone[its_rows] = left, True
        chosen = np.array(accepted, dtype=np.int64)
    if len(chosen) < count:
        raise InputError(
            f"only {len(chosen)} of the {count} labels can be held out: the others have no "
            "test row, or dropping their rows would leave a seen label without examples"
        )
    return chosen
