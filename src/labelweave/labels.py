"""The label matrix: which row has which label, with three states.

An entry is 1 (positive), 0 (negative) or NaN (unknown: not annotated). All labels in this library
are read by :func:`as_labels`, so that arrays, SciPy sparse matrices, DataFrames and lists of label
names mean the same everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelweave.exceptions import InputError

__all__ = ["LabelMatrix", "as_labels"]

Matrix = Any  # an ndarray or a csr_array (SciPy ships no types)


class LabelMatrix:
    """Rows by labels, each entry positive (1), negative (0) or unknown (NaN).

    Build one with :func:`as_labels`. It is immutable, has label names and can be indexed by rows
    like an array, so that scikit-learn's splitters and searches accept it.

    Parameters
    ----------
    values : float32 ndarray or csr_array of shape (n_rows, n_labels)
        Stored entries. A sparse matrix may store explicit zeros and NaN.
    names : sequence of str
        One name per label, all different.
    descriptions : mapping of str to str, optional
        Longer texts for some of the labels.
    absent : 0.0 or NaN, default=0.0
        Meaning of an entry that a sparse matrix does not store.

    Examples
    --------
    >>> import numpy as np
    >>> from labelweave.labels import as_labels
    >>> Y = as_labels([["sea", "sun"], ["sun"], []])
    >>> Y.names
    ('sea', 'sun')
    >>> Y.to_numpy()
    array([[1., 1.],
           [0., 1.],
           [0., 0.]], dtype=float32)
    >>> Y[:2].to_lists()
    [['sea', 'sun'], ['sun']]
    >>> as_labels(np.array([[1, np.nan], [0, 1]])).n_unknown
    1
    """

    def __init__(
        self,
        values: Matrix,
        names: Sequence[str],
        descriptions: Mapping[str, str] | None = None,
        *,
        absent: float = 0.0,
    ) -> None:
        self.values = values
        self.names = tuple(names)
        self.descriptions = dict(descriptions or {})
        self.absent = absent if sp.issparse(values) else 0.0

    # -- shape and indexing ------------------------------------------------------------

    ndim = 2

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and labels."""
        return self.values.shape

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.shape[0]

    @property
    def n_labels(self) -> int:
        """Number of labels."""
        return self.shape[1]

    @property
    def is_sparse(self) -> bool:
        """Whether only some entries are stored."""
        return sp.issparse(self.values)

    @property
    def unstored_is_unknown(self) -> bool:
        """Whether an entry that a sparse matrix does not store is unknown, not negative."""
        return bool(np.isnan(self.absent))

    @property
    def dtype(self) -> np.dtype:
        """Type of the stored values."""
        return self.values.dtype

    def __len__(self) -> int:
        return self.n_rows

    def __getitem__(self, key: Any) -> LabelMatrix:
        """Rows by slice, mask or index array; `Y[rows, columns]` selects labels too."""
        rows, columns = key if isinstance(key, tuple) else (key, slice(None))
        rows, columns = (slice(None) if part is Ellipsis else part for part in (rows, columns))
        if isinstance(rows, int | np.integer):
            rows = [rows]
        selected = self._with(self.values[rows])
        all_labels = isinstance(columns, slice) and columns == slice(None)
        return selected if all_labels else selected._take_labels(columns)

    def select(self, names: Iterable[str]) -> LabelMatrix:
        """Return the labels of these names, in this order."""
        position = {name: j for j, name in enumerate(self.names)}
        names = list(names)
        for name in names:
            if name not in position:
                raise InputError(f"there is no label {name!r} among the {self.n_labels} labels")
        return self._take_labels([position[name] for name in names])

    def _take_labels(self, columns: Any) -> LabelMatrix:
        chosen = np.arange(self.n_labels)[columns].reshape(-1)
        names = [self.names[j] for j in chosen]
        kept = {name: self.descriptions[name] for name in names if name in self.descriptions}
        return LabelMatrix(self.values[:, chosen], names, kept, absent=self.absent)

    def _with(self, values: Matrix) -> LabelMatrix:
        return LabelMatrix(values, self.names, self.descriptions, absent=self.absent)

    # -- the three states --------------------------------------------------------------

    @cached_property
    def n_unknown(self) -> int:
        """Number of unknown entries."""
        if not self.is_sparse:
            return int(np.isnan(self.values).sum())
        stored = int(np.isnan(self.values.data).sum())
        if self.unstored_is_unknown:
            return stored + self.n_rows * self.n_labels - self.values.nnz
        return stored

    @property
    def has_unknown(self) -> bool:
        """Whether any entry is unknown."""
        return self.n_unknown > 0

    def positive(self) -> Matrix:
        """Boolean matrix of the positive entries, sparse if the labels are."""
        return self._where(1.0)

    def negative(self) -> Matrix:
        """Boolean matrix of the entries known to be negative.

        Sparse only if unstored entries are unknown; otherwise most entries are negative and the
        result is dense.
        """
        if self.is_sparse and not self.unstored_is_unknown:
            return self.to_numpy() == 0
        return self._where(0.0)

    def known(self) -> Matrix | None:
        """Boolean matrix of the entries that are not unknown, or None if all are known.

        Sparse only if unstored entries are unknown.
        """
        if not self.has_unknown:
            return None
        if self.unstored_is_unknown:
            stored = self.values.copy()
            stored.data = ~np.isnan(stored.data)
            stored.eliminate_zeros()
            return stored
        return ~np.isnan(self.to_numpy())

    def unknown(self) -> Matrix:
        """Boolean matrix of the unknown entries; sparse if unstored entries are negative."""
        if not self.is_sparse:
            return np.isnan(self.values)
        if self.unstored_is_unknown:
            return np.isnan(self.to_numpy())
        return self._where(np.nan)

    def _where(self, state: float) -> Matrix:
        if not self.is_sparse:
            return self.values == state
        marked = self.values.copy()
        marked.data = np.isnan(marked.data) if np.isnan(state) else marked.data == state
        marked.eliminate_zeros()
        return marked

    def counts(self) -> tuple[np.ndarray, np.ndarray]:
        """Count the positives and the known entries of each label; two integer arrays."""
        positives = np.asarray(self.positive().sum(axis=0)).ravel().astype(np.int64)
        if not self.is_sparse:
            known = self.n_rows - np.isnan(self.values).sum(axis=0)
        elif self.unstored_is_unknown:
            known = np.bincount(
                self.values.indices[~np.isnan(self.values.data)], minlength=self.n_labels
            )
        else:
            known = self.n_rows - np.bincount(
                self.values.indices[np.isnan(self.values.data)], minlength=self.n_labels
            )
        return positives, known.astype(np.int64)

    # -- other forms -------------------------------------------------------------------

    def to_numpy(self, dtype: Any = np.float32) -> np.ndarray:
        """Return a dense array with NaN for unknown."""
        if not self.is_sparse:
            return self.values.astype(dtype, copy=False)
        if not self.unstored_is_unknown:
            return self.values.toarray().astype(dtype, copy=False)
        dense = np.full(self.shape, np.nan, dtype=dtype)
        rows = np.repeat(np.arange(self.n_rows), np.diff(self.values.indptr))
        dense[rows, self.values.indices] = self.values.data
        return dense

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        dense = self.to_numpy(np.float32 if dtype is None else dtype)
        return dense.copy() if copy else dense

    def to_sparse(self) -> LabelMatrix:
        """Return the same labels in CSR format; unstored entries keep their meaning."""
        if self.is_sparse:
            return self
        return LabelMatrix(sp.csr_array(self.values), self.names, self.descriptions)

    def to_dense(self) -> LabelMatrix:
        """Return the same labels in a dense array."""
        return self._with(self.to_numpy()) if self.is_sparse else self

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with one column per label."""
        import pandas as pd

        return pd.DataFrame(self.to_numpy(), columns=list(self.names))

    def to_lists(self) -> list[list[str]]:
        """Return the names of the positive labels of each row."""
        positive = sp.csr_array(self.positive())
        positive.sort_indices()
        parts = np.split(positive.indices, positive.indptr[1:-1])
        return [[self.names[j] for j in part] for part in parts]

    def __repr__(self) -> str:
        unknown = f", {self.n_unknown} unknown" if self.has_unknown else ""
        form = "sparse" if self.is_sparse else "dense"
        return f"<LabelMatrix: {self.n_rows} rows x {self.n_labels} labels, {form}{unknown}>"


def as_labels(
    Y: Any,
    *,
    names: Sequence[str] | None = None,
    descriptions: Mapping[str, str] | None = None,
    absent: str = "negative",
) -> LabelMatrix:
    """Convert labels of any supported form to a label matrix.

    Parameters
    ----------
    Y : LabelMatrix, ndarray, SciPy sparse, DataFrame, or sequence of sequences of str
        A matrix of 1 / 0 / NaN (masked entries and pandas NA are unknown too), or for each
        row the names of its labels.
    names : sequence of str, optional
        Label names; for lists of names, the vocabulary and its order.
    descriptions : mapping of str to str, optional
        Longer texts for some labels.
    absent : {"negative", "unknown"}, default="negative"
        Meaning of an entry that a sparse matrix does not store, or of a name that is not in a
        list.
    """
    if absent not in ("negative", "unknown"):
        raise InputError(f"absent must be 'negative' or 'unknown', not {absent!r}")
    if isinstance(Y, LabelMatrix):
        if names is None and descriptions is None:
            return Y
        chosen = _checked_names(names if names is not None else Y.names, Y.n_labels)
        return LabelMatrix(Y.values, chosen, descriptions or Y.descriptions, absent=Y.absent)
    if is_lists_of_names(Y, names):
        return _from_lists(Y, names, descriptions, absent)
    if is_frame(Y):
        names = [str(column) for column in Y.columns] if names is None else names
        try:
            Y = Y.to_numpy(dtype=np.float32, na_value=np.nan)
        except (TypeError, ValueError):
            raise InputError(
                "the label columns of the DataFrame hold other values than 1, 0 and missing: "
                "pass only the label columns as Y"
            ) from None
    values = _as_values(Y)
    chosen = _checked_names(names, values.shape[1])
    _check_states(values, chosen)
    return LabelMatrix(values, chosen, descriptions, absent=0.0 if absent == "negative" else np.nan)


def _as_values(Y: Any) -> Matrix:
    if sp.issparse(Y):
        values = sp.csr_array(Y, dtype=np.float32)
        values.sum_duplicates()
        return values
    if isinstance(Y, np.ma.MaskedArray):
        Y = np.ma.filled(Y.astype(np.float32), np.nan)
    try:
        values = np.asarray(Y, dtype=np.float32)
    except (TypeError, ValueError):
        raise InputError(
            "Y is neither a matrix of 1, 0 and NaN nor, for each row, a list of label names"
        ) from None
    if values.ndim != 2:
        raise InputError(
            f"Y must have two dimensions (rows x labels), but it has shape {values.shape}"
        )
    return values


def _check_states(values: Matrix, names: Sequence[str]) -> None:
    stored = values.data if sp.issparse(values) else values
    wrong = ~((stored == 0) | (stored == 1) | np.isnan(stored))
    if not wrong.any():
        return
    value, row, column = first_marked(values, wrong)
    raise InputError(
        f"Y holds {value:g} at row {row}, label {names[column]!r}: "
        "a label is 1 (positive), 0 (negative) or NaN (unknown)"
    )


def first_marked(matrix: Matrix, marked: np.ndarray) -> tuple[Any, int, int]:
    """Return value, row and column of the first marked entry; of the stored ones if sparse."""
    if not sp.issparse(matrix):
        row, column = (int(i) for i in np.argwhere(marked)[0])
        return matrix[row, column], row, column
    k = int(np.flatnonzero(marked)[0])
    row = int(np.searchsorted(matrix.indptr, k, side="right")) - 1
    return matrix.data[k], row, int(matrix.indices[k])


def _checked_names(names: Sequence[str] | None, n_labels: int) -> tuple[str, ...]:
    if names is None:
        return tuple(f"label_{j}" for j in range(n_labels))
    chosen = tuple(str(name) for name in names)
    if len(chosen) != n_labels:
        raise InputError(f"{len(chosen)} label names were given for {n_labels} labels")
    if len(set(chosen)) < n_labels:
        twice = next(name for name in chosen if chosen.count(name) > 1)
        raise InputError(f"the label name {twice!r} is used twice: names must differ")
    return chosen


def is_frame(values: Any) -> bool:
    """Whether these are the columns of a DataFrame, which pandas need not be imported to ask."""
    return hasattr(values, "columns")


def is_named(Y: Any) -> bool:
    """Whether the columns of Y have names: a label matrix or a DataFrame."""
    return isinstance(Y, LabelMatrix) or is_frame(Y)


def is_lists_of_names(Y: Any, names: Sequence[str] | None = None) -> bool:
    """Whether Y holds, for each row, a collection of names rather than numbers."""
    if getattr(Y, "ndim", None) == 1 and str(getattr(Y, "dtype", "")) == "object":
        Y = Y.tolist()  # an object array or a pandas Series of lists
    if not isinstance(Y, Sequence) or isinstance(Y, str) or len(Y) == 0:
        return False
    collections = list | tuple | set | frozenset | np.ndarray
    if not all(isinstance(row, collections) for row in Y):
        return False
    items = [item for row in Y for item in row]
    if not items:
        return names is not None or all(len(row) == 0 for row in Y)
    return all(isinstance(item, str) for item in items)


def _from_lists(
    rows: Iterable[Iterable[str]],
    names: Sequence[str] | None,
    descriptions: Mapping[str, str] | None,
    absent: str,
) -> LabelMatrix:
    rows = [list(row) for row in rows]
    if names is None:
        names = sorted({name for row in rows for name in row})
        if not names:
            raise InputError("no row has a label, and no label names were given: pass names=")
    chosen = _checked_names(names, len(names))
    position = {name: j for j, name in enumerate(chosen)}
    indptr = np.zeros(len(rows) + 1, dtype=np.int64)
    indices: list[int] = []
    for i, row in enumerate(rows):
        for name in dict.fromkeys(row):
            if name not in position:
                raise InputError(
                    f"row {i} has the label {name!r}, which is not among the {len(chosen)} "
                    "label names given"
                )
            indices.append(position[name])
        indptr[i + 1] = len(indices)
    data = np.ones(len(indices), dtype=np.float32)
    values = sp.csr_array((data, indices, indptr), shape=(len(rows), len(chosen)))
    values.sort_indices()
    matrix = LabelMatrix(
        values, chosen, descriptions, absent=0.0 if absent == "negative" else np.nan
    )
    # With few labels dense matrices are faster; a large vocabulary must stay sparse.
    return matrix.to_dense() if len(chosen) <= 64 else matrix
