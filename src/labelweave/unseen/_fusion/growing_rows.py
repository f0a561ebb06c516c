"""Arrays and matrices with cheap appends."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp


class GrowingArray:
    """A one-dimensional array with spare capacity, so that few appends copy it.

    >>> numbers = GrowingArray(np.array([1, 2]))
    >>> numbers.append(np.array([3]))
    >>> numbers.values
    array([1, 2, 3])
    """

    def __init__(self, values: np.ndarray) -> None:
        self._buffer = np.array(values)
        self._length = len(self._buffer)

    def __len__(self) -> int:
        return self._length

    @property
    def values(self) -> np.ndarray:
        """A view of the array. It may be written to; an append may replace the array."""
        return self._buffer[: self._length]

    def append(self, values: np.ndarray) -> None:
        end = self._length + len(values)
        if end > len(self._buffer):
            wider = np.empty(end + end // 4 + 16, dtype=self._buffer.dtype)
            wider[: self._length] = self.values
            self._buffer = wider
        self._buffer[self._length : end] = values
        self._length = end


class GrowingRows:
    """A dense or sparse matrix that grows at its end.

    New rows, and replaced rows of a sparse matrix, are stored apart until most of the matrix is
    read; then they are merged into it. Reading a few rows does not merge, so adding or renaming one
    of a million labels and scoring some hundred candidates does not copy the matrix.

    >>> rows = GrowingRows(np.eye(2))
    >>> rows.append(np.array([[5.0, 5.0]]))
    >>> rows.take(np.array([2, 0]))
    array([[5., 5.],
           [1., 0.]])
    """

    def __init__(self, matrix: Any) -> None:
        self._base = sp.csr_array(matrix) if sp.issparse(matrix) else matrix
        self._pending: list[Any] = []
        self._starts = [self._base.shape[0]]  # first row after each part
        self._replaced: dict[int, Any] = {}  # of a sparse matrix: row to its new vector

    def __len__(self) -> int:
        return self._starts[-1]

    def append(self, part: Any) -> None:
        self._pending.append(part)
        self._starts.append(self._starts[-1] + part.shape[0])

    def merged(self) -> Any:
        """The matrix with all rows merged into it."""
        if self._pending:
            parts = [self._base, *self._pending]
            is_sparse = sp.issparse(self._base)
            self._base = sp.csr_array(sp.vstack(parts)) if is_sparse else np.concatenate(parts)
            self._pending, self._starts = [], [self._base.shape[0]]
        if self._replaced:
            places = np.fromiter(self._replaced, np.int64, len(self._replaced))
            self._base = _with_rows(self._base, places, list(self._replaced.values()))
            self._replaced = {}
        return self._base

    def take(self, rows: np.ndarray) -> Any:
        """Return these rows, in this order."""
        if len(rows) == len(self) and (rows == np.arange(len(rows))).all():
            return self.merged()
        if 4 * len(rows) > len(self) or not (self._pending or self._replaced):
            return self.merged()[rows]
        part = np.searchsorted(self._starts, rows, side="right")  # 0 is the base
        parts, places = [], []
        for number in np.unique(part):
            chosen = np.flatnonzero(part == number)
            source = self._base if number == 0 else self._pending[number - 1]
            start = 0 if number == 0 else self._starts[number - 1]
            parts.append(source[rows[chosen] - start])
            places.append(chosen)
        if not parts:
            return self._base[rows]
        order = np.argsort(np.concatenate(places), kind="stable")
        stacked = sp.vstack(parts).tocsr() if sp.issparse(parts[0]) else np.concatenate(parts)
        changed = [i for i, row in enumerate(rows.tolist()) if row in self._replaced]
        if not changed:
            return stacked[order]
        return _with_rows(stacked[order], changed, [self._replaced[int(rows[i])] for i in changed])

    def replace(self, row: int, vector: Any) -> None:
        """Replace a row by a vector of shape (1, d)."""
        if sp.issparse(self._base):
            self._replaced[row] = sp.csr_array(vector)
            return
        number = int(np.searchsorted(self._starts, row, side="right"))  # 0 is the base
        if number == 0:
            self._base = _with_row(self._base, row, vector)
        else:
            place = row - self._starts[number - 1]
            self._pending[number - 1] = _with_row(self._pending[number - 1], place, vector)


def _with_row(matrix: np.ndarray, row: int, vector: np.ndarray) -> np.ndarray:
    """Replace a row, in place if the matrix is writeable."""
    if not matrix.flags.writeable:
        matrix = matrix.copy()
    matrix[row] = vector[0]
    return matrix


def _with_rows(matrix: Any, places: Any, vectors: list[Any]) -> sp.csr_array:
    """Return a sparse matrix with the rows in these places replaced."""
    order = np.arange(matrix.shape[0])
    order[places] = matrix.shape[0] + np.arange(len(vectors))
    return sp.csr_array(sp.vstack([matrix, *vectors], format="csr")[order])
