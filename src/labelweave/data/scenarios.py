"""Scenarios: the four label conditions, made from fully labelled data.

Positives that nobody annotated (:func:`hide_positives`), a single positive per row
(:func:`keep_single_positive`), labels shared among several teachers
(:func:`share_among_teachers`), and labels without a training example (:func:`hold_labels_out`).
Every function returns new objects and leaves its input unchanged, depends on nothing but its
input and `random_state`, keeps sparse labels sparse, and returns the true labels as well, for
evaluation only.
"""

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
from labelweave.labels import LabelMatrix, as_labels

__all__ = [
    "HiddenLabels",
    "TeacherShare",
    "TeacherShares",
    "UnseenLabels",
    "hide_positives",
    "hold_labels_out",
    "keep_single_positive",
    "share_among_teachers",
]


# -- partial: positives that nobody annotated ------------------------------------------


@dataclass(frozen=True, eq=False)
class HiddenLabels:
    """Labels of which some positives are hidden.

    Attributes
    ----------
    Y : LabelMatrix
        The labels to learn from.
    truth : LabelMatrix
        The labels as they were.
    hidden : boolean csr_array
        The positives that were hidden.
    """

    Y: LabelMatrix
    truth: LabelMatrix
    hidden: sp.csr_array


def hide_positives(
    Y: Any,
    share: float,
    *,
    as_: str = "negative",
    negatives: str = "known",
    keep_one: bool = False,
    random_state: Any = None,
) -> HiddenLabels:
    """Hide a random share of the positives.

    Parameters
    ----------
    Y : labels
    share : float from 0 to 1
        Share of all positives to hide, rounded to whole entries.
    as_ : {"negative", "unknown"}, default="negative"
        Value of a hidden positive: 0 or NaN. If Y has NaN entries, methods for partial labels take
        a zero as a checked negative: then use "unknown".
    negatives : {"known", "unknown"}, default="known"
        "unknown" turns the negatives into NaN as well, so that only positives are known. With
        "known" and `as_="unknown"` every entry that becomes NaN is a positive, which a method
        could exploit.
    keep_one : bool, default=False
        Whether each row that has a positive keeps at least one.
    random_state : None, int, RandomState or Generator

    Examples
    --------
    >>> import numpy as np
    >>> result = hide_positives(np.ones((2, 2)), 0.5, as_="unknown", random_state=0)
    >>> result.Y.n_unknown, result.hidden.sum()
    (2, np.int64(2))
    """
    if not 0 <= share <= 1:
        raise InputError(f"the share of positives to hide must be from 0 to 1, not {share!r}")
    labels = as_labels(Y)
    rows = _rows_of_positives(labels)
    n_hidden = round(share * len(rows))
    order = as_generator(random_state).permutation(len(rows))
    if keep_one:
        order = order[_is_repeated(rows[order])]
        if n_hidden > len(order):
            raise InputError(
                f"{n_hidden} positives cannot be hidden with one kept in each row: at most "
                f"{len(order)} of the {len(rows)} can (share={len(order) / len(rows):.3f})"
            )
    return _with_hidden(labels, order[:n_hidden], as_, negatives)


def keep_single_positive(
    Y: Any, *, as_: str = "negative", negatives: str = "known", random_state: Any = None
) -> HiddenLabels:
    """Keep one random positive in each row and hide the others.

    Parameters
    ----------
    Y : labels
    as_, negatives, random_state
        As in :func:`hide_positives`.

    Examples
    --------
    >>> import numpy as np
    >>> keep_single_positive(np.ones((3, 4)), random_state=0).Y.to_numpy().sum(axis=1)
    array([1., 1., 1.], dtype=float32)
    """
    labels = as_labels(Y)
    rows = _rows_of_positives(labels)
    order = as_generator(random_state).permutation(len(rows))
    return _with_hidden(labels, order[_is_repeated(rows[order])], as_, negatives)


def _rows_of_positives(labels: LabelMatrix) -> np.ndarray:
    """Row of each positive, in row order."""
    counts = np.asarray(labels.positive().sum(axis=1)).ravel()
    return np.repeat(np.arange(labels.n_rows), counts)


def _is_repeated(values: np.ndarray) -> np.ndarray:
    """Whether the same value occurs earlier in the array."""
    repeated = np.ones(len(values), dtype=bool)
    repeated[np.unique(values, return_index=True)[1]] = False
    return repeated


def _with_hidden(labels: LabelMatrix, chosen: np.ndarray, as_: str, negatives: str) -> HiddenLabels:
    """Hide the chosen positives, which are numbered in row order."""
    if as_ not in ("negative", "unknown"):
        raise InputError(f"as_ must be 'negative' or 'unknown', not {as_!r}")
    if negatives not in ("known", "unknown"):
        raise InputError(f"negatives must be 'known' or 'unknown', not {negatives!r}")
    if as_ == "negative" and negatives == "unknown":
        raise InputError("with negatives='unknown' nothing is negative: use as_='unknown'")
    positive = sp.csr_array(labels.positive())
    positive.sort_indices()
    hidden = sp.csr_array(
        (np.zeros(positive.nnz, dtype=bool), positive.indices, positive.indptr), positive.shape
    )
    hidden.data[chosen] = True
    hidden.eliminate_zeros()

    values, absent = labels.values.copy(), labels.absent
    if labels.is_sparse:
        values.sort_indices()  # so that sparse and dense labels hide the same positives
    stored = values.data if labels.is_sparse else values.reshape(-1)
    stored[np.flatnonzero(stored == 1)[chosen]] = 0.0 if as_ == "negative" else np.nan
    if negatives == "unknown" and not labels.is_sparse:
        stored[stored == 0] = np.nan
    elif negatives == "unknown":
        stored[stored != 1] = 0  # only positives stay stored; absent entries are unknown
        absent = np.nan
    if labels.is_sparse and (absent == 0 or negatives == "unknown"):
        values.eliminate_zeros()
    Y = LabelMatrix(values, labels.names, labels.descriptions, absent=absent)
    return HiddenLabels(Y, labels, hidden)


# -- scattered: labels shared among teachers -------------------------------------------


@dataclass(frozen=True, eq=False)
class TeacherShare:
    """The training data of one teacher: its rows with the labels that it knows.

    `rows` are the numbers of its rows in the whole data set.
    """

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
        The rows of no teacher with all labels: features for the student, and the true labels.
    rest_rows : ndarray
        Their row numbers in the whole data set.
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
    """Share the labels among teachers that are trained on disjoint rows.

    Every label is known to one teacher or, if it is shared, to two. The teachers have about the
    same number of labels and the same number of rows, which are split with stratification.

    Parameters
    ----------
    data : Dataset
    n_teachers : int, default=2
    overlap : float from 0 to 1, default=0.5
        Share of a teacher's labels that another teacher knows as well.
    teacher_rows : float in (0, 1), default=0.7
        Share of the rows that the teachers have together; the rest is for the student.
    random_state : None, int, RandomState or Generator

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
        raise InputError(f"teacher_rows must be between 0 and 1, not {teacher_rows!r}")
    n_teacher_rows = round(teacher_rows * len(data))
    if not n_teachers <= n_teacher_rows < len(data):
        raise InputError(f"{len(data)} rows are too few for {n_teachers} teachers and a student")
    rng = as_generator(random_state)
    known, shared = _labels_of_teachers(data.Y.n_labels, n_teachers, overlap, rng)
    bounds = np.linspace(0, n_teacher_rows, n_teachers + 1).round().astype(int)
    sizes = [*(end - start for start, end in pairwise(bounds)), len(data) - n_teacher_rows]
    part = stratified_parts(data.Y, sizes, groups=data.groups, random_state=rng)
    teachers = []
    for teacher, labels in enumerate(known):
        rows = np.flatnonzero(part == teacher)
        names = [data.label_names[j] for j in labels]
        teachers.append(TeacherShare(data[rows].select_labels(names), rows))
    rest = np.flatnonzero(part == n_teachers)
    shared_names = tuple(data.label_names[j] for j in shared)
    return TeacherShares(tuple(teachers), shared_names, data[rest], rest)


def _labels_of_teachers(
    n_labels: int, n_teachers: int, overlap: float, rng: np.random.Generator
) -> tuple[list[np.ndarray], np.ndarray]:
    """Labels of each teacher, and the labels that two of them know.

    If each of m teachers knows a labels, m a (1 - overlap) labels have one owner and
    m a overlap / 2 have two; together these are all labels.
    """
    n_shared = round(n_labels * overlap / (2 - overlap))
    order = rng.permutation(n_labels)
    shared, unshared = order[:n_shared], order[n_shared:]
    # Shared labels go to the teachers in turn: 0 and 1, 1 and 2, ..., the last and 0.
    first = np.arange(n_shared) % n_teachers
    second = (first + 1) % n_teachers
    # Each of the others goes to the teacher with the fewest labels so far.
    n_known = np.bincount(np.concatenate([first, second]), minlength=n_teachers)
    n_if_added = n_known[:, None] + np.arange(len(unshared))
    owner = np.argsort(n_if_added.T, axis=None, kind="stable")[: len(unshared)] % n_teachers
    known = []
    for teacher in range(n_teachers):
        common = shared[(first == teacher) | (second == teacher)]
        known.append(np.sort(np.concatenate([unshared[owner == teacher], common])))
        if len(known[-1]) == 0:
            raise InputError(f"{n_labels} labels are too few for {n_teachers} teachers")
    return known, np.sort(shared)


# -- unseen: labels without a training example -----------------------------------------


@dataclass(frozen=True, eq=False)
class UnseenLabels:
    """A data set of which some labels are held out as unseen.

    Attributes
    ----------
    train : Dataset
        Training rows, with the seen labels only.
    test : Dataset
        Test rows, with the seen labels first and then the unseen ones (the generalised setting).
    seen, unseen : tuple of str
    left_out : tuple of str
        Labels with too few training examples to be seen that were not held out either.
    """

    train: Dataset
    test: Dataset
    seen: tuple[str, ...]
    unseen: tuple[str, ...]
    left_out: tuple[str, ...]

    @property
    def test_unseen(self) -> Dataset:
        """The test rows that have an unseen label, with the unseen labels only."""
        test = self.test.select_labels(self.unseen)
        return test[np.asarray(test.Y.positive().sum(axis=1)).ravel() > 0]


def hold_labels_out(
    train: Dataset,
    test: Dataset,
    unseen: float | Sequence[str],
    *,
    rows: str = "keep",
    min_examples: int = 1,
    random_state: Any = None,
) -> UnseenLabels:
    """Hold labels out of training, so that they have to be predicted without an example.

    Parameters
    ----------
    train, test : Dataset
        With the same labels.
    unseen : int, float in (0, 1), or sequence of str
        Number or share of labels to hold out, drawn from the labels that are positive in some test
        row; or their names.
    rows : {"keep", "drop"}, default="keep"
        Whether training rows that have an unseen label stay, with their other labels, or are
        dropped.
    min_examples : int, default=1
        Number of positives that every seen label has at least in the training rows (0 sets no
        limit). A label is not drawn as unseen if dropping its rows would leave another label with
        fewer.
    random_state : None, int, RandomState or Generator

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
    n_required = min_examples if rows == "drop" else 0
    if isinstance(unseen, Integral | float):
        count = _number_of_unseen(unseen, train.Y.n_labels)
        candidates = np.flatnonzero(test.Y.counts()[0] > 0)
        candidates = as_generator(random_state).permutation(candidates)
        held_out = _choose_unseen(positive, candidates, count, n_required)
    else:
        position = {name: j for j, name in enumerate(train.label_names)}
        missing = [name for name in unseen if name not in position]
        if missing:
            raise InputError(f"there is no label {missing[0]!r} to hold out")
        candidates = np.array([position[name] for name in unseen], dtype=np.int64)
        held_out = _choose_unseen(positive, candidates, len(candidates), n_required)
    is_unseen = np.zeros(train.Y.n_labels, dtype=bool)
    is_unseen[held_out] = True
    if rows == "drop":
        keep = positive[:, held_out].sum(axis=1) == 0
        train, positive = train[keep], positive[np.flatnonzero(keep)]
    n_examples = np.asarray(positive.sum(axis=0)).ravel()
    is_seen = ~is_unseen & (n_examples >= min_examples)
    seen, unseen_names, left_out = (
        tuple(name for name, chosen in zip(train.label_names, mask, strict=True) if chosen)
        for mask in (is_seen, is_unseen, ~is_seen & ~is_unseen)
    )
    if not seen:
        raise InputError("no label is left to be seen: hold fewer labels out")
    return UnseenLabels(
        train.select_labels(seen),
        test.select_labels(seen + unseen_names),
        seen,
        unseen_names,
        left_out,
    )


def _number_of_unseen(unseen: float, n_labels: int) -> int:
    count = int(unseen) if isinstance(unseen, Integral) else round(unseen * n_labels)
    is_valid = isinstance(unseen, Integral) or 0 < unseen < 1
    if not is_valid or not 1 <= count < n_labels:
        raise InputError(
            f"unseen must be a number from 1 to {n_labels - 1}, a share between 0 and 1 that "
            f"makes at least one label, or a list of names, not {unseen!r}"
        )
    return count


def _choose_unseen(
    positive: sp.csr_array, candidates: np.ndarray, count: int, n_required: int
) -> np.ndarray:
    """Choose the first `count` candidates whose rows can be dropped.

    A label's rows can be dropped if every other label keeps `n_required` examples. Labels that are
    too rare from the start do not count.
    """
    if n_required == 0:
        chosen = candidates[:count]
    else:
        by_label = positive.tocsc()
        n_examples = np.asarray(positive.sum(axis=0)).ravel()
        is_frequent = n_examples >= n_required
        is_dropped = np.zeros(positive.shape[0], dtype=bool)
        accepted: list[int] = []
        for label in candidates:
            if len(accepted) == count:
                break
            rows = by_label.indices[by_label.indptr[label] : by_label.indptr[label + 1]]
            rows = rows[~is_dropped[rows]]
            n_left = n_examples - np.asarray(positive[rows].sum(axis=0)).ravel()
            others = is_frequent.copy()
            others[[*accepted, label]] = False
            if (n_left[others] >= n_required).all():
                accepted.append(int(label))
                n_examples, is_dropped[rows] = n_left, True
        chosen = np.array(accepted, dtype=np.int64)
    if len(chosen) < count:
        raise InputError(
            f"only {len(chosen)} of the {count} labels can be held out: the others have no "
            "test row, or dropping their rows would leave a seen label without examples"
        )
    return chosen
