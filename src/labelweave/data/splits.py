"""Splitting rows into parts: official, random and stratified splits; concatenating parts.

Stratified splits use iterative stratification (Sechidis et al. 2011) in batches; see
:mod:`labelweave.data.stratification`.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from labelweave.data.equal_rows import rows_together
from labelweave.data.stratification import assign_parts
from labelweave.exceptions import InputError, LabelweaveWarning
from labelweave.labels import LabelMatrix, as_labels
from labelweave.rows import concatenate_features, concatenate_labels
from labelweave.top_labels import MANY_LABELS

if TYPE_CHECKING:
    from labelweave.data.dataset import Dataset

__all__ = [
    "as_generator",
    "concatenate_parts",
    "random_holdout",
    "rows_to_keep",
    "split_dataset",
    "split_rows",
    "stratified_folds",
    "stratified_holdout",
    "stratified_parts",
    "train_rows_first",
]

DEFAULT_TEST_SIZE = 0.3
Split = tuple[np.ndarray, np.ndarray]


def as_generator(random_state: Any = None) -> np.random.Generator:
    """Return a NumPy generator; NumPy's global generator is never used.

    Parameters
    ----------
    random_state : None, int, RandomState, Generator or SeedSequence
        A Generator is returned as it is; the seed is drawn from a RandomState.

    Examples
    --------
    >>> int(as_generator(0).integers(100)) == int(as_generator(0).integers(100))
    True
    """
    if isinstance(random_state, np.random.RandomState):
        random_state = random_state.randint(np.iinfo(np.int32).max)
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError):
        raise InputError(
            f"random_state must be None, a number >= 0 or a NumPy generator, not {random_state!r}"
        ) from None


def stratified_folds(
    Y: Any,
    n_folds: int = 5,
    *,
    X: Any = None,
    groups: Sequence[Any] | None = None,
    balance: str = "positives",
    random_state: Any = None,
) -> np.ndarray:
    """Assign rows to folds so that each fold has its share of every label.

    Parameters
    ----------
    Y : labels of the rows, in any form that :func:`labelweave.labels.as_labels` reads
        Sparse labels stay sparse. Unknown entries are ignored.
    n_folds : int, default=5
    X : features of the rows, optional
        Rows that are equal stay together; see :func:`labelweave.data.equal_rows.rows_together`.
    groups : sequence, optional
        Rows of one group stay together. With groups or equal rows the sizes of the folds are only
        approximately equal; without they differ by at most one.
    balance : {"positives", "known"}, default="positives"
        Whether to balance only the positives of each label or, where a label has unknown
        entries, its known negatives as well.
    random_state : None, int, RandomState or Generator

    Returns
    -------
    ndarray of shape (n_rows,)
        The fold of each row, from 0 to ``n_folds - 1``.

    Examples
    --------
    >>> import numpy as np
    >>> Y = np.array([[1, 0], [1, 0], [0, 1], [0, 1], [0, 0], [0, 0]])
    >>> fold = stratified_folds(Y, 2, random_state=0)
    >>> [Y[fold == f].sum(axis=0).tolist() for f in range(2)]
    [[1, 1], [1, 1]]
    """
    labels = as_labels(Y)
    n_rows = len(labels)
    if not isinstance(n_folds, Integral) or n_folds < 2:
        raise InputError(f"n_folds must be a whole number of at least 2, not {n_folds!r}")
    if n_folds > n_rows:
        raise InputError(f"{n_folds} folds cannot be made of {n_rows} rows: use fewer folds")
    sizes = np.full(n_folds, n_rows // n_folds)
    sizes[: n_rows % n_folds] += 1
    return stratified_parts(
        labels, sizes, X=X, groups=groups, balance=balance, random_state=random_state
    )


def stratified_holdout(
    Y: Any,
    fraction: float,
    *,
    X: Any = None,
    groups: Sequence[Any] | None = None,
    balance: str = "positives",
    random_state: Any = None,
) -> Split:
    """Hold out a share of the rows that has its share of every label.

    Parameters
    ----------
    Y : labels of the rows
    fraction : float in (0, 1) or int
        Share or number of rows to hold out. A share is rounded to whole rows, at least one on
        each side. The size is exact unless there are groups or equal rows.
    X, groups, balance, random_state
        As in :func:`stratified_folds`.

    Returns
    -------
    rest, held_out : two arrays of row numbers, each in ascending order

    Examples
    --------
    >>> import numpy as np
    >>> rest, held_out = stratified_holdout(np.eye(2)[[0, 1] * 10], 0.2, random_state=0)
    >>> len(rest), len(held_out)
    (16, 4)
    """
    labels = as_labels(Y)
    n_held_out = _n_held_out(fraction, len(labels))
    sizes = [len(labels) - n_held_out, n_held_out]
    part = stratified_parts(
        labels, sizes, X=X, groups=groups, balance=balance, random_state=random_state
    )
    return _sides(part)


def stratified_parts(
    Y: Any,
    sizes: Sequence[int] | np.ndarray,
    *,
    X: Any = None,
    groups: Sequence[Any] | None = None,
    balance: str = "positives",
    random_state: Any = None,
) -> np.ndarray:
    """Assign rows to parts of given sizes so that each part has its share of every label.

    Parameters
    ----------
    Y : labels of the rows
    sizes : sequence of int
        Number of rows of each part, at least 1; they add up to the number of rows. The sizes are
        exact unless there are groups or equal rows.
    X, groups, balance, random_state
        As in :func:`stratified_folds`.

    Returns
    -------
    ndarray of shape (n_rows,)
        Number of the part of each row.

    Examples
    --------
    >>> import numpy as np
    >>> part = stratified_parts(np.eye(2)[[0, 1] * 5], [6, 2, 2], random_state=0)
    >>> np.bincount(part).tolist()
    [6, 2, 2]
    """
    labels = as_labels(Y)
    sizes = np.asarray(sizes)
    if sizes.min(initial=1) < 1 or sizes.sum() != len(labels):
        raise InputError(
            f"the sizes of the parts, {sizes.tolist()}, must be at least 1 each and add up to "
            f"the {len(labels)} rows"
        )
    rng = as_generator(random_state)
    entries = _entries_to_balance(labels, balance)
    group = rows_to_keep(X, groups, len(labels), n_parts=len(sizes))
    if group is None:
        return assign_parts(entries, sizes, rng)
    group_sizes = np.bincount(group)
    member = sp.csr_array(
        (np.ones(len(group)), (group, np.arange(len(group)))),
        shape=(len(group_sizes), len(group)),
    )
    return assign_parts(sp.csr_array(member @ entries), sizes, rng, group_sizes)[group]


def rows_to_keep(
    X: Any, groups: Sequence[Any] | None, n_rows: int, *, n_parts: int
) -> np.ndarray | None:
    """Number the sets of rows that stay together in `n_parts` parts; None if rows stand alone.

    If there are fewer different rows than parts, equal rows have to be divided: a warning says so.

    >>> rows_to_keep([[1.0], [2.0], [1.0]], None, 3, n_parts=2)
    array([0, 1, 0])
    """
    if groups is not None and len(groups) != n_rows:
        raise InputError(f"groups has {len(groups)} entries for {n_rows} rows")
    if X is None and groups is None:
        return None
    together = rows_together(X, groups)
    n_sets = int(together.max(initial=-1)) + 1
    if n_sets == n_rows:
        return None
    if n_sets >= n_parts:
        return together
    if X is None:
        raise InputError(f"{n_parts} parts cannot be made of {n_sets} groups")
    apart = rows_to_keep(None, groups, n_rows, n_parts=n_parts)
    warnings.warn(
        f"{n_parts} parts cannot be made of {n_sets} different rows: equal rows are divided",
        LabelweaveWarning,
        stacklevel=3,
    )
    return apart


def random_holdout(
    n_rows: int,
    fraction: float,
    *,
    X: Any = None,
    groups: Sequence[Any] | None = None,
    random_state: Any = None,
) -> Split:
    """Hold out a random share of the rows, without stratification.

    Parameters
    ----------
    n_rows : int
    fraction, X, groups, random_state
        As in :func:`stratified_holdout`.

    Returns
    -------
    rest, held_out : two arrays of row numbers, each in ascending order

    Examples
    --------
    >>> rest, held_out = random_holdout(10, 0.3, random_state=0)
    >>> len(rest), len(held_out)
    (7, 3)
    """
    n_held_out = _n_held_out(fraction, n_rows)
    rng = as_generator(random_state)
    side = np.zeros(n_rows, dtype=np.int64)
    group = rows_to_keep(X, groups, n_rows, n_parts=2)
    if group is None:
        side[rng.permutation(n_rows)[:n_held_out]] = 1
        return _sides(side)
    # Groups are held out in random order, up to the number of rows nearest to the share.
    group_sizes = np.bincount(group)
    order = rng.permutation(len(group_sizes))
    n_reached = np.cumsum(group_sizes[order])[:-1]
    n_groups = int(np.abs(n_reached - n_held_out).argmin()) + 1
    return _sides(np.isin(group, order[:n_groups]).astype(np.int64))


def split_dataset(data: Dataset, **options: Any) -> tuple[Dataset, ...]:
    """Split a data set into train and test or, with `validation`, train, validation and test.

    Use the validation part to choose models, thresholds and when to stop, and score the test part
    once. Rows that are equal, or of one group of the data set, are kept in one part, unless the
    official split divides them.

    Parameters
    ----------
    data : Dataset
    test_size : float in (0, 1) or int, optional
        Share or number of rows of the test part, by default 0.3. With `method="auto"` a test
        size asks for a new split instead of the official one.
    validation : float in (0, 1) or int, optional
        Share or number of the *training* rows that become the validation part. Where the
        data set has an official validation part and the official split is used, that part
        is used as it is. Without `validation` it belongs to the training part.
    method : {"auto", "official", "stratified", "random"}, default="auto"
        "auto" is the official split where there is one and otherwise the stratified one. From
        5,000 labels on, where there are too few rows per label to balance, "auto" is random.
    random_state : None, int, RandomState or Generator, default=0

    Returns
    -------
    (train, test) or (train, validation, test)

    Examples
    --------
    >>> import numpy as np
    >>> from labelweave.data import Dataset
    >>> data = Dataset(np.arange(200).reshape(100, 2), np.eye(4)[np.arange(100) % 4])
    >>> [len(part) for part in split_dataset(data, test_size=0.2, validation=0.25)]
    [60, 20, 20]
    """
    # Without the official parts: a part that is split again must not use them again.
    return tuple(replace(data[rows], part=None) for rows in split_rows(data, **options))


def split_rows(
    data: Dataset,
    *,
    test_size: float | None = None,
    validation: float | None = None,
    method: str = "auto",
    random_state: Any = 0,
) -> tuple[np.ndarray, ...]:
    """Return the row numbers of the parts of :func:`split_dataset`."""
    if method not in ("auto", "official", "stratified", "random"):
        raise InputError(
            f"method must be 'auto', 'official', 'stratified' or 'random', not {method!r}"
        )
    if method == "official" and test_size is not None:
        raise InputError("the official split has its own test part: leave test_size out")
    has_official = data.part is not None and bool((np.asarray(data.part) == "test").any())
    if method == "official" and not has_official:
        raise InputError(f"data set {data.name} has no official test part: use 'stratified'")
    rng = as_generator(random_state)
    if method == "official" or (method == "auto" and has_official and test_size is None):
        return _official_parts(data, validation, rng)
    test_size = DEFAULT_TEST_SIZE if test_size is None else test_size
    rest, test = _holdout(data, test_size, method, rng)
    if validation is None:
        return rest, test
    train, held_out = _holdout(data[rest], validation, method, rng)
    return rest[train], rest[held_out], test


def _official_parts(
    data: Dataset, validation: float | None, rng: np.random.Generator
) -> tuple[np.ndarray, ...]:
    """Row numbers of the official parts."""
    part = np.asarray(data.part)
    unknown = sorted({str(name) for name in part} - {"train", "validation", "test"})
    if unknown:
        raise InputError(
            f"data set {data.name} has a part called {unknown[0]!r}: "
            "parts are 'train', 'validation' and 'test'"
        )
    test = np.flatnonzero(part == "test")
    rest = np.flatnonzero(part != "test")
    if len(rest) == 0:
        raise InputError(f"data set {data.name} has an official test part but no training rows")
    if validation is None:
        return rest, test
    official = np.flatnonzero(part == "validation")
    if len(official):
        return np.flatnonzero(part == "train"), official, test
    train, held_out = _holdout(data[rest], validation, "auto", rng)
    return rest[train], rest[held_out], test


def _holdout(data: Dataset, fraction: float, method: str, rng: np.random.Generator) -> Split:
    how = {"X": data.X, "groups": data.groups, "random_state": rng}
    if method == "random" or (method != "stratified" and data.Y.n_labels >= MANY_LABELS):
        return random_holdout(len(data), fraction, **how)
    return stratified_holdout(data.Y, fraction, **how)


def concatenate_parts(parts: Mapping[str, Dataset]) -> Dataset:
    """Concatenate data sets with the same features and labels, and name the part of each row.

    >>> from labelweave.data import Dataset
    >>> a = Dataset(np.eye(2), [["x"], ["x"]])
    >>> list(concatenate_parts({"train": a, "test": a[:1]}).part)
    ['train', 'train', 'test']
    """
    datasets = list(parts.values())
    first = datasets[0]
    for part, data in parts.items():
        for names in ("label_names", "feature_names"):
            if list(getattr(data, names) or ()) != list(getattr(first, names) or ()):
                raise InputError(
                    f"data set {first.name}: the {names.replace('_', ' ')} of the {part} part "
                    "differ from those of the first part"
                )
    return replace(
        first,
        X=concatenate_features([data.X for data in datasets]),
        Y=concatenate_labels([data.Y for data in datasets]),
        row_ids=_concatenate_lists(data.row_ids for data in datasets),
        groups=_concatenate_lists(data.groups for data in datasets),
        part=[part for part, data in parts.items() for _ in range(len(data))],
    )


def _concatenate_lists(lists: Iterable[Sequence[Any] | None]) -> list[Any] | None:
    lists = list(lists)
    if any(values is None for values in lists):
        return None
    return [value for values in lists for value in values or ()]


def train_rows_first(data: Dataset) -> Dataset:
    """Return the same rows, ordered by official part: train, validation, test."""
    if data.part is None:
        return data
    order = {"train": 0, "validation": 1, "test": 2}
    return data[np.argsort([order.get(part, 3) for part in data.part], kind="stable")]


def _entries_to_balance(labels: LabelMatrix, balance: str) -> sp.csr_array:
    if balance not in ("positives", "known"):
        raise InputError(f"balance must be 'positives' or 'known', not {balance!r}")
    positive = sp.csr_array(labels.positive())
    if balance == "positives" or not labels.has_unknown:
        return positive
    # If positives and sizes are balanced, negatives are balanced exactly if unknown entries are:
    # it suffices to balance whichever of the two is stored sparsely.
    absent_is_unknown = labels.is_sparse and np.isnan(labels.absent)
    other = sp.csr_array(labels.negative() if absent_is_unknown else labels.unknown())
    mixed = np.bincount(other.indices, minlength=labels.n_labels) > 0
    return sp.csr_array(sp.hstack([positive, other[:, np.flatnonzero(mixed)]], format="csr"))


def _n_held_out(fraction: float, n_rows: int) -> int:
    is_number = isinstance(fraction, Integral) and not isinstance(fraction, bool)
    if n_rows < 2:
        raise InputError(f"{n_rows} rows cannot be split into two parts")
    if is_number and 1 <= fraction < n_rows:
        return int(fraction)
    if is_number or not 0 < fraction < 1:
        raise InputError(
            f"the rows to hold out must be a share between 0 and 1 or a number of rows from 1 to "
            f"{n_rows - 1}, not {fraction!r}"
        )
    return min(max(round(fraction * n_rows), 1), n_rows - 1)


def _sides(side: np.ndarray) -> Split:
    return np.flatnonzero(side == 0), np.flatnonzero(side == 1)
