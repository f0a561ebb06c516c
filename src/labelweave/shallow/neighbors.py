"""Exact nearest neighbours in Euclidean distance, for dense and sparse features.

Three engines find the same neighbours up to ties and rounding:

``"matrix"``
    This module: distances of a chunk of queries to all rows by one matrix product in the cheapest
    number type that is safe. Counts and other small integers (bags of words, bits)
    are multiplied as 8- or 16-bit integers, exactly. Other features are multiplied in
    float32 under an error bound, and only the pairs that the bound leaves undecided are computed
    again in float64. Among equal distances the row that comes first wins.
``"sklearn"``
    :class:`sklearn.neighbors.NearestNeighbors`, whose trees are faster in few dimensions.
``"faiss"``
    A flat FAISS index (float32, dense features only; the ``neighbors`` extra).

``"auto"`` uses scikit-learn's trees for dense features in at most 15 dimensions and the matrix
products otherwise.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from joblib import Parallel, delayed
from scipy.linalg import blas
from sklearn.utils.extmath import row_norms

from labelweave.exceptions import InputError, require

__all__ = ["ENGINES", "NeighborSearch", "sum_over_neighbors"]

ENGINES = ("auto", "matrix", "sklearn", "faiss")

_TREE_DIMENSIONS = 15
_CHUNK_BYTES = 8 << 20
_LONGEST_STRIDE = 64  # rows that share one entry of the coarse minimum


class NeighborSearch:
    """The rows among which neighbours are searched.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n, d)
    engine : {"auto", "matrix", "sklearn", "faiss"}, default="auto"
    n_jobs : int, optional
        Threads of the matrix products and of scikit-learn's trees; None means one.

    Examples
    --------
    >>> import numpy as np
    >>> search = NeighborSearch(np.array([[0.0], [1.0], [5.0], [6.0]]))
    >>> search.among_themselves(1).ravel()
    array([1, 0, 3, 2])
    >>> search.of(np.array([[4.0]]), 2)
    array([[2, 3]])
    """

    def __init__(self, X: Any, engine: str = "auto", n_jobs: int | None = None) -> None:
        if engine not in ENGINES:
            raise InputError(
                f"there is no neighbour engine {engine!r}: it is one of {', '.join(ENGINES)}"
            )
        self.n_rows, n_features = X.shape
        if engine == "auto":
            few = n_features <= _TREE_DIMENSIONS and not sp.issparse(X)
            engine = "sklearn" if few else "matrix"
        kinds: dict[str, Any] = {"matrix": _MatrixProducts, "sklearn": _Sklearn, "faiss": _Faiss}
        self._engine = kinds[engine](X, n_jobs)

    def of(self, queries: Any, k: int) -> np.ndarray:
        """Indices of the `k` nearest rows of each query, in ascending order of index."""
        if not 1 <= k <= self.n_rows:
            raise InputError(f"{k} neighbours are asked for, but there are {self.n_rows} rows")
        return np.sort(self._engine.search(queries, k), axis=1)

    def among_themselves(self, k: int) -> np.ndarray:
        """Indices of the `k` nearest *other* rows of each row, in ascending order of index.

        A row is never its own neighbour; its duplicates are.
        """
        return np.sort(self._engine.search(None, k), axis=1)


class _Sklearn:
    def __init__(self, X: Any, n_jobs: int | None) -> None:
        from sklearn.neighbors import NearestNeighbors

        self._index = NearestNeighbors(n_jobs=n_jobs).fit(X)

    def search(self, queries: Any, k: int) -> np.ndarray:
        if sp.issparse(queries) and queries.shape[1] <= _TREE_DIMENSIONS:
            queries = queries.toarray()  # trees take no sparse rows
        return self._index.kneighbors(queries, n_neighbors=k, return_distance=False)


class _Faiss:
    def __init__(self, X: Any, n_jobs: int | None) -> None:
        faiss = require("faiss", "neighbors")
        self._rows = self._dense(X)
        self._index = faiss.IndexFlatL2(X.shape[1])
        self._index.add(self._rows)

    def search(self, queries: Any, k: int) -> np.ndarray:
        if queries is not None:
            return self._nearest(self._dense(queries), k)
        nearest = self._nearest(self._rows, k + 1)
        # Among duplicates the row itself may be missing; then the last neighbour is dropped.
        drop = nearest == np.arange(len(nearest))[:, None]
        drop[~drop.any(axis=1), -1] = True
        return nearest[~drop].reshape(-1, k)

    def _nearest(self, queries: np.ndarray, k: int) -> np.ndarray:
        nearest = self._index.search(queries, k)[1]
        if (nearest < 0).any():  # distances that are infinite have no row
            raise InputError(
                "X contains numbers that are too large for FAISS, whose squares must fit into "
                "single precision: scale or clip them, or use neighbors='matrix'"
            )
        return nearest

    def _dense(self, X: Any) -> np.ndarray:
        if sp.issparse(X):
            raise InputError("FAISS accepts dense features only: use neighbors='matrix'")
        return np.ascontiguousarray(X, dtype=np.float32)


class _MatrixProducts:
    """Distances of chunks of queries q to all rows x, as ``|x|^2 - 2 q.x (+ |q|^2)``.

    In a sparse product the norms are additional features: rows ``[x, |x|^2, 1]``
    times queries ``[-2 q, 1, |q|^2]``. Unsigned integers wrap around on the way and come out
    right, since a distance is in range.
    """

    def __init__(self, X: Any, n_jobs: int | None) -> None:
        self._n_jobs = n_jobs
        self._counts = _are_counts(X)
        self._center = None
        if not self._counts and not sp.issparse(X):
            # Distances do not change, and large offsets do not cost precision in float32.
            self._center = X.mean(axis=0, dtype=np.float64).astype(X.dtype)
            X = X - self._center
        self._rows = X
        self._norms = _squared_norms(X)
        self._largest = self._norms.max()
        self._cast: dict[str, Any] = {}

    def search(self, queries: Any, k: int) -> np.ndarray:
        among_rows = queries is None
        Q = self._rows if among_rows else queries
        if not among_rows and self._center is not None:
            Q = Q - self._center
        norms = self._norms if among_rows else _squared_norms(Q)
        dtype, error = self._number_type(Q, norms)
        step = max(1, _CHUNK_BYTES // (dtype.itemsize * max(self._rows.shape)))

        def search_chunk(start: int) -> np.ndarray:
            index = np.arange(start, min(start + step, Q.shape[0]))
            return self._search_chunk(Q, norms, index, k, dtype, error, among_rows)

        starts = range(0, Q.shape[0], step)
        if len(starts) == 1:
            return search_chunk(0)  # starting joblib takes time
        chunks = Parallel(n_jobs=self._n_jobs, prefer="threads")(map(delayed(search_chunk), starts))
        return np.concatenate(chunks) if chunks else np.empty((0, k), dtype=np.intp)

    def _number_type(self, Q: Any, norms: np.ndarray) -> tuple[np.dtype, float]:
        """The type to multiply in, and the relative error bound of a distance in it."""
        single, double = np.dtype(np.float32), np.dtype(np.float64)
        if self._counts and _are_counts(Q):
            # No product or distance exceeds |x|^2 + |q|^2, so none is rounded. In integers
            # the value above it marks the row itself.
            largest = int(self._largest + norms.max(initial=0.0))
            if sp.issparse(self._rows) and largest < np.iinfo(np.uint16).max:
                return np.min_scalar_type(largest + 1), 0.0
            return (single if largest < 2**24 else double), 0.0
        # A sum of d products is off by at most d u / (1 - d u), u = 2^-24 (Higham 2002, 3.1).
        terms = (self._rows.shape[1] + 3) * 2.0**-24
        longest = max(self._largest, norms.max(initial=0.0))  # a distance is at most four times it
        in_single = terms < 0.01 and longest < np.finfo(np.float32).max / 8
        return (single, terms / (1 - terms)) if in_single else (double, 0.0)

    def _search_chunk(
        self,
        Q: Any,
        norms: np.ndarray,
        index: np.ndarray,
        k: int,
        dtype: np.dtype,
        error: float,
        among_rows: bool,
    ) -> np.ndarray:
        """Find the neighbours of one chunk of queries."""
        norms = norms[index]
        n_queries = len(index)
        part = Q if n_queries == Q.shape[0] else Q[index]
        distances = self._distances(part, norms, dtype)
        if among_rows:
            top = np.inf if dtype.kind == "f" else np.iinfo(dtype).max
            distances[index, np.arange(n_queries)] = top
        # If every distance is off by at most e, a true neighbour is at most 2 e beyond the
        # k-th smallest that was computed.
        slack = 2 * error * (self._largest + 2 * np.sqrt(self._largest * norms))
        limit = _coarse_limit(distances, k) + slack.astype(dtype)
        flat = np.flatnonzero(distances <= limit)
        row, query = np.divmod(flat, n_queries)
        query = query.astype(np.min_scalar_type(n_queries))  # short integers sort quickly
        distance = distances.ravel()[flat]
        # The rows are in order already, and stable sorts keep them so among equal distances.
        order = np.argsort(distance, kind="stable")
        order = order[np.argsort(query[order], kind="stable")]
        row, query, distance = row[order], query[order], distance[order]
        first = np.searchsorted(query, np.arange(n_queries))
        nearest = row[first[:, None] + np.arange(k)]
        if error:
            has_more = np.diff(np.append(first, len(row))) > k
            kth = distance[first + k - 1]
            following = distance[np.minimum(first + k, len(row) - 1)]
            is_undecided = has_more & (following - kth <= slack)
            entries = np.flatnonzero(is_undecided[query])
            row, query = row[entries], query[entries]
            beyond = distance[entries].astype(np.float64) - kth[query]
            nearest[is_undecided] = self._settle(part, row, query, beyond, slack[query], k)
        return nearest

    def _settle(
        self,
        Q: Any,
        row: np.ndarray,
        query: np.ndarray,
        beyond: np.ndarray,
        slack: np.ndarray,
        k: int,
    ) -> np.ndarray:
        """Find the neighbours of the queries that rounding leaves undecided, among these pairs.

        `beyond` is how far a pair's distance lies above the k-th of its query: more than
        the slack below is in, more than it above is out, and what is between is computed
        again from the differences in float64.
        """
        distance = np.where(beyond < 0, -np.inf, np.inf)
        near = np.abs(beyond) <= slack
        differences = self._rows[row[near]].astype(np.float64) - Q[query[near]]
        distance[near] = row_norms(differences, squared=True)
        order = np.lexsort((row, distance, query))
        first = np.flatnonzero(np.diff(query[order], prepend=-1))
        return row[order][first[:, None] + np.arange(k)]

    def _distances(self, Q: Any, norms: np.ndarray, dtype: np.dtype) -> np.ndarray:
        """Squared distances of all rows to the queries, up to the queries' norms if real."""
        if sp.issparse(self._rows):
            return self._augmented_rows(dtype) @ _augmented_queries(Q, norms, dtype)
        if dtype.name not in self._cast:
            self._cast[dtype.name] = np.ascontiguousarray(self._rows, dtype=dtype)
        rows = self._cast[dtype.name]
        Q = np.ascontiguousarray(Q.toarray() if sp.issparse(Q) else Q, dtype=dtype)
        result = np.empty((len(rows), len(Q)), dtype=dtype)
        result[:] = self._norms[:, None]
        # One product that scales and adds on the way; BLAS sees every array transposed.
        multiply = blas.sgemm if dtype == np.float32 else blas.dgemm
        return multiply(-2.0, Q.T, rows.T, 1.0, result.T, trans_a=1, overwrite_c=1).T

    def _augmented_rows(self, dtype: np.dtype) -> Any:
        if dtype.name not in self._cast:
            columns = [self._norms[:, None]]
            if dtype.kind == "u":
                columns.append(np.ones((len(self._norms), 1)))
            columns = [column.astype(dtype) for column in columns]
            rows = sp.hstack([self._rows.astype(dtype, copy=False), *columns])
            self._cast[dtype.name] = sp.csr_array(rows)
        return self._cast[dtype.name]


def _augmented_queries(Q: Any, norms: np.ndarray, dtype: np.dtype) -> np.ndarray:
    n_queries, n_features = Q.shape
    integer = dtype.kind == "u"
    result = np.empty((n_features + 1 + integer, n_queries), dtype=dtype)
    result[:n_features] = (Q.toarray() if sp.issparse(Q) else Q).T
    result[:n_features] *= np.iinfo(dtype).max - 1 if integer else -2
    result[n_features] = 1
    if integer:
        result[-1] = norms
    return result


def _squared_norms(X: Any) -> np.ndarray:
    return row_norms(X.astype(np.float64, copy=False), squared=True)


def _are_counts(X: Any) -> bool:
    """Whether every entry is a whole number and none is negative."""
    values = X.data if sp.issparse(X) else X
    head = values[:50]  # enough to recognise most real-valued features
    for part in (head, values):
        if part.size and (part.min() < 0 or not np.array_equal(part, np.rint(part))):
            return False
    return True


def _coarse_limit(distances: np.ndarray, k: int) -> np.ndarray:
    """Return for each query a distance that at least `k` rows do not exceed.

    The k-th smallest of the minima of groups of rows: much cheaper than the k-th smallest
    of all, and little larger.
    """
    n_rows, n_queries = distances.shape
    # Some more groups than k, so that the k nearest rows are seldom in one another's group.
    stride = min(_LONGEST_STRIDE, n_rows // (4 * k))
    if stride < 2:
        minima = distances
    else:
        n_groups = n_rows // stride
        groups = distances[: n_groups * stride].reshape(stride, n_groups, n_queries)
        minima = groups.min(axis=0)
    kind = distances.dtype if distances.dtype.kind == "f" else np.int32
    wide = np.ascontiguousarray(minima.T, dtype=kind)
    return np.partition(wide, k - 1, axis=1)[:, k - 1].astype(distances.dtype)


def sum_over_neighbors(nearest: np.ndarray, marked: np.ndarray | sp.csr_array) -> np.ndarray:
    """Sum `marked` over the neighbours of each row, by one sparse product."""
    n, k = nearest.shape
    if nearest.size and not 0 <= nearest.min() <= nearest.max() < marked.shape[0]:
        raise InputError("the neighbours are not among the training rows")
    ones = np.ones(n * k, dtype=np.int32)
    indptr = np.arange(0, n * k + 1, k)
    choice = sp.csr_array((ones, nearest.ravel(), indptr), shape=(n, marked.shape[0]))
    total = choice @ marked
    return total.toarray() if sp.issparse(total) else total
