"""Rows in which the value of one column is replaced by that of another row.

All kinds of tables are handled in the same way: many replacements, each of them (row, column,
source row), make one table with one row per replacement, which the model predicts in one call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import scipy.sparse as sp

from labelweave.exceptions import InputError
from labelweave.explaining.words import WordRows
from labelweave.importance import column_scales
from labelweave.input_checks import is_texts
from labelweave.labels import is_frame
from labelweave.tables.table import Table, hashable_cells

__all__ = ["Change", "ColumnRows", "changed_rows", "column_rows"]

Indices = np.ndarray


class Change(NamedTuple):
    """Rows in which one column is replaced, each by the value of its source row."""

    rows: Indices
    column: int
    sources: Indices


class ColumnRows(Protocol):
    """Rows of which single columns can be replaced."""

    n_columns: int
    is_dense: bool  # whether a row has a value in memory for each column

    @property
    def names(self) -> list[str] | None:
        """The names of the columns, if they have any."""

    def variation(self) -> np.ndarray | None:
        """How much each column varies; None where the columns have different units."""

    def replaced(self, rows: Indices, columns: Indices, sources: Indices) -> Any:
        """Return a table whose k-th row is row `rows[k]`, with column `columns[k]` replaced.

        The value in its place is that of the row `sources[k]`.
        """

    def differs(self, rows: Indices, columns: Indices, sources: Indices) -> np.ndarray:
        """Whether each replacement changes its row."""

    def values(self, row: int) -> list[Any]:
        """Return the values of a row."""


def changed_rows(table: ColumnRows, rows: Indices, column: int, sources: Indices) -> Change:
    """Return the change of a column, without the rows that stay as they are."""
    is_changed = table.differs(rows, np.full(len(rows), column), sources)
    return Change(rows[is_changed], column, sources[is_changed])


def column_rows(X: Any) -> ColumnRows:
    """Return the rows of an array, a sparse matrix, a DataFrame, a Table or of texts.

    The columns of texts are their words.
    """
    if is_texts(X):
        return WordRows(X)
    if isinstance(X, Table):
        return _FrameRows(X.frame, X)
    if is_frame(X) and hasattr(X, "iloc"):
        return _FrameRows(X, None)
    if sp.issparse(X):
        return _SparseRows(sp.csr_array(X))
    if getattr(X, "ndim", None) == 2:
        return _DenseRows(np.asarray(X))
    raise InputError(
        f"explanations need a table with columns, or texts, but X is {_described(X)}: pass an "
        "array, a sparse matrix, a DataFrame or a list of texts"
    )


def _described(X: Any) -> str:
    shape = getattr(X, "shape", None)
    return type(X).__name__ if shape is None else f"{type(X).__name__} of shape {shape}"


class _DenseRows:
    names = None
    is_dense = True

    def variation(self) -> None:
        return None

    def __init__(self, X: np.ndarray) -> None:
        self.X = X
        self.n_columns = X.shape[1]

    def replaced(self, rows: Indices, columns: Indices, sources: Indices) -> np.ndarray:
        changed = self.X[rows]
        changed[np.arange(len(rows)), columns] = self.X[sources, columns]
        return changed

    def differs(self, rows: Indices, columns: Indices, sources: Indices) -> np.ndarray:
        before, after = self.X[rows, columns], self.X[sources, columns]
        return (before != after) & ~((before != before) & (after != after))

    def values(self, row: int) -> list[Any]:
        return self.X[row].tolist()


class _SparseRows:
    names = None
    is_dense = False

    def __init__(self, X: sp.csr_array) -> None:
        self.X = X
        self.n_columns = X.shape[1]

    def variation(self) -> np.ndarray:
        return column_scales(self.X)

    def _cells(self, rows: Indices, columns: Indices) -> np.ndarray:
        return np.asarray(self.X[rows, columns]).ravel() if len(rows) else np.zeros(0)

    def replaced(self, rows: Indices, columns: Indices, sources: Indices) -> sp.csr_array:
        taken = sp.csr_array(self.X[rows])
        row_of = np.repeat(np.arange(len(rows)), np.diff(taken.indptr))
        kept = taken.indices != columns[row_of]
        values = self._cells(sources, columns)
        stored = np.flatnonzero(values)
        return sp.csr_array(
            (
                np.concatenate([taken.data[kept], values[stored].astype(self.X.dtype)]),
                (
                    np.concatenate([row_of[kept], stored]),
                    np.concatenate([taken.indices[kept], columns[stored]]),
                ),
            ),
            shape=taken.shape,
        )

    def differs(self, rows: Indices, columns: Indices, sources: Indices) -> np.ndarray:
        return self._cells(rows, columns) != self._cells(sources, columns)

    def values(self, row: int) -> list[Any]:
        return self.X[[row]].toarray()[0].tolist()


class _FrameRows:
    is_dense = True

    def variation(self) -> None:
        return None

    def __init__(self, frame: Any, table: Table | None) -> None:
        self.frame = frame
        self.table = table
        self.n_columns = frame.shape[1]
        self.names: list[str] | None = [str(name) for name in frame.columns]
        self._codes: dict[int, np.ndarray] = {}

    def replaced(self, rows: Indices, columns: Indices, sources: Indices) -> Any:
        import pandas as pd

        parts = []
        for j in range(self.n_columns):
            origin = np.where(columns == j, sources, rows)
            parts.append(self.frame.iloc[:, j].take(origin).reset_index(drop=True))
        frame = pd.concat(parts, axis=1)
        if self.table is None:
            return frame
        return Table(frame, self.table.encoder).as_reported()

    def differs(self, rows: Indices, columns: Indices, sources: Indices) -> np.ndarray:
        changed = np.zeros(len(rows), dtype=bool)
        for j in np.unique(columns):
            here = columns == j
            codes = self._codes_of(int(j))
            changed[here] = codes[rows[here]] != codes[sources[here]]
        return changed

    def _codes_of(self, j: int) -> np.ndarray:
        """Numbers that are equal where the values of a column are; blanks are equal too."""
        if j not in self._codes:
            import pandas as pd

            self._codes[j] = pd.factorize(hashable_cells(self.frame.iloc[:, j]))[0]
        return self._codes[j]

    def values(self, row: int) -> list[Any]:
        values = [self.frame.iloc[row, j] for j in range(self.n_columns)]
        return [_plain(value) for value in values]


def _plain(value: Any) -> Any:
    """A cell as a value that JSON can hold; None for a blank."""
    import pandas as pd

    if isinstance(value, np.ndarray):
        return "image"
    if not isinstance(value, Sequence) and pd.api.types.is_scalar(value) and pd.isna(value):
        return None
    if isinstance(value, np.generic):
        return value.item()
    return value if isinstance(value, str | bool | int | float) else str(value)
