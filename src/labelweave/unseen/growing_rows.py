"""Rows of vectors to which more are added: cheap to append to, whatever their number."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

__all__ = ["GrowingRows"]


class GrowingRows:
    """A dense or sparse matrix that grows at its end.

    New rows wait in a list until somebody wants most of the matrix: then they are joined with
    it. A few rows are taken without joining, so that adding one label to a million and scoring
    some hundred candidates copies neither.

    Examples
    --------
    >>> rows = GrowingRows(np.eye(2))
    >>> rows.append(np.array([[5.0, 5.0]]))
    >>> rows.take(np.array([2, 0]))
    array([[5., 5.],
           [1., 0.]])
    """

    def __init__(self, matrix: Any) -> None:
        self._base = sp.csr_array(matrix) if sp.issparse(matrix) else matrix
        self._waiting: list[Any] = []
        self._starts = [self._base.shape[0]]  # where the next waiting part begins

    def __len__(self) -> int:
        return self._starts[-1]

    def append(self, part: Any) -> None:
        self._waiting.append(part)
        self._starts.append(self._starts[-1] + part.shape[0])

    def joined(self) -> Any:
        """The whole matrix."""
        if self._waiting:
            parts = [self._base, *self._waiting]
            is_sparse = sp.issparse(self._base)
            self._base = sp.csr_array(sp.vstack(parts)) if is_sparse else np.concatenate(parts)
            self._waiting, self._starts = [], [self._base.shape[0]]
        return self._base

    def take(self, rows: np.ndarray) -> Any:
        """These rows, in this order."""
        if len(rows) == len(self) and (rows == np.arange(len(rows))).all():
            return self.joined()
        if not self._waiting or 4 * len(rows) > len(self):
            return self.joined()[rows]
        part = np.searchsorted(self._starts, rows, side="right")  # 0 is the base
        found, places = [], []
        for number in np.unique(part):
            mine = np.flatnonzero(part == number)
            source = self._base if number == 0 else self._waiting[number - 1]
            start = 0 if number == 0 else self._starts[number - 1]
            found.append(source[rows[mine] - start])
            places.append(mine)
        order = np.argsort(np.concatenate(places), kind="stable")
        stacked = sp.vstack(found).tocsr() if sp.issparse(found[0]) else np.concatenate(found)
        return stacked[order]

    def replace(self, row: int, vector: Any) -> None:
        """Another vector (of shape (1, d)) in the place of this row."""
        number = int(np.searchsorted(self._starts, row, side="right"))  # 0 is the base
        if number == 0:
            self._base = _with_row(self._base, row, vector)
        else:
            place = row - self._starts[number - 1]
            self._waiting[number - 1] = _with_row(self._waiting[number - 1], place, vector)


def _with_row(matrix: Any, row: int, vector: Any) -> Any:
    """The matrix with another row in this place; a dense one is changed itself if it may be."""
    if sp.issparse(matrix):
        return sp.csr_array(sp.vstack([matrix[:row], vector, matrix[row + 1 :]]))
    if not matrix.flags.writeable:
        matrix = matrix.copy()
    matrix[row] = vector[0]
    return matrix
