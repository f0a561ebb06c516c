"""All 2^n combinations of n predicted labels, with their lengths computed once."""

from __future__ import annotations

import numpy as np

from labelweave.exceptions import InputError
from labelweave.rows import row_chunks

MOST_LABELS = 22  # 4 million combinations
CANCELLED = 1e-8  # squared length of a combination over the square of its members' total length
_CHUNK = 1 << 16  # entries of a working array, which fits into the cache
_FEW = 1 << 12  # up to this number, all combinations are computed by one matrix product
_EPSILON = float(np.finfo(np.float32).eps)


class CombinationTable:
    """The combinations of n weighted vectors, each the union of two halves.

    The numerator of a combination is the sum of the numerators of its halves, so only the inverse
    lengths need a table of all 2^n combinations. G (n, n) are the inner products of the vectors.
    """

    def __init__(self, G: np.ndarray) -> None:
        n = len(G)
        if n > MOST_LABELS:
            raise InputError(
                f"{n} predicted labels have 2^{n} combinations: fuse at most {MOST_LABELS}"
            )
        G = np.asarray(G, dtype=np.float64)
        self.n_low = n // 2
        self.low, self.high = _bits(self.n_low), _bits(n - self.n_low)
        a, b = slice(self.n_low), slice(self.n_low, n)
        squares = 2 * (self.high @ G[b, a] @ self.low.T)
        squares += ((self.high @ G[b, b]) * self.high).sum(axis=1)[:, None]
        squares += ((self.low @ G[a, a]) * self.low).sum(axis=1)
        lengths = np.sqrt(np.diagonal(G).clip(0))
        totals = (self.high @ lengths[b])[:, None] + self.low @ lengths[a]
        void = squares <= CANCELLED * totals**2
        self.some_cancel = int(void.sum()) > 1  # the empty combination is always void
        squares[void] = np.inf
        self.inverse = 1 / np.sqrt(squares)
        self._inverse32 = self.inverse.astype(np.float32)
        # Rounding of a numerator is relative to the total length, and so is its effect.
        self._slack = (n + 4) * _EPSILON * float((totals * self.inverse).max())

    def best(self, B: np.ndarray, *, threshold: float = -np.inf) -> tuple[np.ndarray, np.ndarray]:
        """Return the best score and its combination for each row of B (double precision).

        Candidates are found in single precision and computed again in double precision. Of equal
        scores the lowest combination number is returned. The score of a row that is below
        `threshold` may be returned as -inf.
        """
        if self._inverse32.size <= _FEW:
            row, index = self._candidates_of_many(B)
        else:
            low, high = self._halves(B)
            candidates = [self._candidates(h, v, threshold) for h, v in zip(high, low, strict=True)]
            row = np.repeat(np.arange(len(B)), [len(index) for index in candidates])
            index = np.concatenate(candidates)
        exact = self._exact(B[row], index)
        order = np.lexsort((index, -exact, row))
        with_any, first = np.unique(row, return_index=True)  # rows stand in their order
        scores, masks = np.full(len(B), -np.inf), np.zeros(len(B), dtype=np.int64)
        scores[with_any], masks[with_any] = exact[order[first]], index[order[first]]
        return scores, masks

    def _halves(self, B: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        B = B.astype(np.float32)
        low = B[:, : self.n_low] @ self.low.T.astype(np.float32)
        return low, B[:, self.n_low :] @ self.high.T.astype(np.float32)

    def _candidates(self, high: np.ndarray, low: np.ndarray, threshold: float) -> np.ndarray:
        """Combinations that may be the best for one label; none if all are below `threshold`."""
        step = min(len(high), _CHUNK // len(low))  # both are powers of two
        starts = range(0, len(high), step)
        values = np.empty((step, len(low)), dtype=np.float32)
        peaks = np.array([self._fill(high, low, at, step, values).max() for at in starts])
        limit = peaks.max() - self._slack
        candidates = [np.empty(0, dtype=np.int64)]
        if peaks.max() + self._slack >= threshold:
            for at in (at for at, peak in zip(starts, peaks, strict=True) if peak >= limit):
                if len(starts) > 1:  # a single chunk is still in `values`
                    self._fill(high, low, at, step, values)
                candidates.append(np.flatnonzero(values >= limit) + at * len(low))
        return np.concatenate(candidates)

    def _fill(
        self, high: np.ndarray, low: np.ndarray, at: int, step: int, out: np.ndarray
    ) -> np.ndarray:
        np.add(high[at : at + step, None], low, out=out)
        out *= self._inverse32[at : at + step]
        if at == 0:
            out[0, 0] = -np.inf  # the empty combination is excluded
        return out

    def _candidates_of_many(self, B: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Candidates for all labels by one matrix product, for few combinations."""
        n_low = len(self.low)
        chosen = np.hstack([np.tile(self.low, (len(self.high), 1)), np.repeat(self.high, n_low, 0)])
        # With scaled combinations the product is the score.
        scaled = (chosen * self.inverse.reshape(-1, 1)).T.astype(np.float32)
        rows, candidates = [], []
        for part in row_chunks(len(B), len(chosen), 4 * _CHUNK):
            values = B[part].astype(np.float32) @ scaled
            values[:, 0] = -np.inf
            limit = values.max(axis=1, keepdims=True) - np.float32(self._slack)
            row, index = np.nonzero(values >= limit)
            rows.append(row + part.start)
            candidates.append(index)
        return np.concatenate(rows), np.concatenate(candidates)

    def _exact(self, B: np.ndarray, index: np.ndarray) -> np.ndarray:
        n_low = len(self.low)
        chosen = np.hstack([self.low[index % n_low], self.high[index // n_low]])
        return (B * chosen).sum(axis=1) * self.inverse.ravel()[index]


def _bits(n: int) -> np.ndarray:
    """The 2^n x n matrix of combinations; bit i of the row number is column i.

    >>> _bits(2)
    array([[0., 0.],
           [1., 0.],
           [0., 1.],
           [1., 1.]])
    """
    return (np.arange(1 << n)[:, None] >> np.arange(n) & 1).astype(np.float64)
