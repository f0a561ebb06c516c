"""Boxes in the unit cube and how well they match a point: the categories of fuzzy ART.

With complement coding a point a of d features is the vector I = (a, 1 - a), and a category
w = (u, 1 - v) is the box from u to v. Fuzzy AND is the minimum, so that

    |I AND w| = sum min(a, u) + sum (1 - max(a, v)) = d - (size of the box stretched to a),

where the size of a box is the sum of its sides; |I| = d and |w| = d - sum(v - u).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

__all__ = ["Boxes", "grow_boxes"]

_CHUNK = 40_000  # numbers processed at a time, so that they stay in the processor's cache


class Boxes:
    """Boxes with all their lower and upper corners, dense or sparse, (n_boxes, n_features)."""

    def __init__(self, lower: Any, upper: Any) -> None:
        self.lower, self.upper = lower, upper
        self.n_features = lower.shape[1]
        self.is_sparse = sp.issparse(lower)
        low, high = (np.asarray(part.sum(axis=1)).ravel() for part in (lower, upper))
        self.sums = low, high
        self.norms = self.n_features - (high - low)  # |w|
        if not self.is_sparse:
            self.stretched = np.flatnonzero((lower != upper).any(axis=1))
        else:
            self.both = sp.csr_array(lower + upper).T.tocsr()

    def __len__(self) -> int:
        return self.lower.shape[0]

    def overlaps(self, A: Any) -> np.ndarray:
        """|I AND w| for each row of A and each box."""
        if not self.is_sparse:
            return self._overlaps_dense(A.toarray() if sp.issparse(A) else A)
        A = sp.csr_array(A)
        start = self.n_features - self.sums[1][None, :] - np.asarray(A.sum(axis=1)).reshape(-1, 1)
        if (A.data == 1).all():  # the minimum with 0 or 1 is a product
            return start + (A @ self.both).toarray()
        return start + self._shared(A)

    def _overlaps_dense(self, A: np.ndarray) -> np.ndarray:
        # sum min(a, u) = sum a + sum u - sum max(a, u), so a box that is a point needs one pass.
        to_upper = _sums_of(np.maximum, A, self.upper)
        to_lower = self.sums[0][None, :] + A.sum(axis=1)[:, None] - to_upper
        if len(self.stretched):
            to_lower[:, self.stretched] = _sums_of(np.minimum, A, self.lower[self.stretched])
        return self.n_features + to_lower - to_upper

    def _shared(self, A: sp.csr_array) -> np.ndarray:
        """sum min(a, u) + sum min(a, v), feature by feature, where both are above zero."""
        total = np.zeros((A.shape[0], len(self)), dtype=A.dtype)
        columns = A.tocsc()
        for side in (self.lower.tocsc(), self.upper.tocsc()):
            for f in np.flatnonzero((np.diff(columns.indptr) > 0) & (np.diff(side.indptr) > 0)):
                of_rows = slice(columns.indptr[f], columns.indptr[f + 1])
                of_boxes = slice(side.indptr[f], side.indptr[f + 1])
                least = np.minimum.outer(columns.data[of_rows], side.data[of_boxes])
                total[np.ix_(columns.indices[of_rows], side.indices[of_boxes])] += least
        return total


def _sums_of(combine: Any, A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """The sum of the combination of each row of A with each row of B."""
    n_features = B.shape[1]
    ones = np.ones(n_features, dtype=A.dtype)
    result = np.empty((len(A), len(B)), dtype=A.dtype)
    width = max(1, _CHUNK // max(1, n_features))
    height = max(1, 4 * _CHUNK // (width * max(1, n_features)))
    for left in range(0, len(B), width):
        boxes = B[left : left + width]
        buffer = np.empty((height, *boxes.shape), dtype=A.dtype)
        for top in range(0, len(A), height):
            rows = A[top : top + height, None, :]
            both = combine(rows, boxes, out=buffer[: len(rows)]).reshape(-1, n_features)
            sums = (both @ ones).reshape(len(rows), -1)
            result[top : top + height, left : left + width] = sums
    return result


def grow_boxes(
    low: np.ndarray, high: np.ndarray, vigilance: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Fuzzy ART with fast learning: each item extends a matching box or becomes a new one.

    An item is a point or a box. Of the boxes whose match |I AND w| / |I| exceeds the vigilance,
    the one with the largest choice |I AND w| / |w| is extended to contain the item; of equal
    ones the last. `low` and `high` are the corners of the items, (n_items, n_features), and the
    same array for points. Returns the corners of the boxes, and the box of each item.

    >>> A = np.array([[0.0, 0.0], [0.1, 0.0], [1.0, 1.0]])
    >>> grow_boxes(A, A, 0.9)[2]
    array([0, 0, 1])
    """
    n_items, d = low.shape
    lower, upper = np.empty_like(low), np.empty_like(high)
    norms = np.empty(n_items)
    owner = np.empty(n_items, dtype=np.intp)
    ones, k = np.ones(d, dtype=low.dtype), 0
    for i in range(n_items):
        winner = k
        if k:
            overlap = (
                d + np.minimum(low[i], lower[:k]) @ ones - np.maximum(high[i], upper[:k]) @ ones
            )
            fits = overlap > vigilance * (d - (high[i] - low[i]).sum())
            if fits.any():
                choice = np.where(fits, overlap / norms[:k], -1)
                winner = k - 1 - int(choice[::-1].argmax())
        if winner == k:
            lower[k], upper[k] = low[i], high[i]
            k += 1
        else:
            np.minimum(lower[winner], low[i], out=lower[winner])
            np.maximum(upper[winner], high[i], out=upper[winner])
        norms[winner] = max(d - (upper[winner] - lower[winner]).sum(), np.finfo(float).tiny)
        owner[i] = winner
    return lower[:k].copy(), upper[:k].copy(), owner
