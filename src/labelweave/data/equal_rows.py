"""Rows that belong together: equal rows, and rows of one group.

Two rows are equal if their features are. A row has one 64-bit hash, computed from its features
alone, which is the same whether it is stored dense or sparse, in 32 or in 64 bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from labelweave.data.images.collection import Images
from labelweave.exceptions import InputError
from labelweave.labels import is_frame
from labelweave.rows import row_chunks
from labelweave.tables.table import Table, as_frame, hashable_cells

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["count_equal_rows", "row_hashes", "rows_together"]

_CHUNK_ENTRIES = 4_000_000


def rows_together(X: Any = None, groups: Sequence[Any] | None = None) -> np.ndarray:
    """Number the sets of rows that must stay together, from 0.

    Rows with equal features belong together, and so do rows of one group. Both relations count: if
    row a equals row b, and b is in the group of c, all three belong together.

    Parameters
    ----------
    X : features of the rows, optional
        Dense or sparse matrix, DataFrame, Table, texts or images. Without it only groups count.
    groups : sequence, optional
        The group of each row; a row whose group is missing (None or NaN) has none.

    Returns
    -------
    ndarray of shape (n_rows,)

    Examples
    --------
    >>> rows_together(["sea", "sun", "sea", "sky"]).tolist()
    [0, 1, 0, 2]
    >>> rows_together(["sea", "sun", "sea", "sky"], [None, "b", "a", "a"]).tolist()
    [0, 1, 0, 0]
    """
    if X is None and groups is None:
        raise InputError("pass features or groups of the rows")
    equal = None if X is None else _numbered(row_hashes(X))
    if groups is None:
        assert equal is not None
        return equal
    group = _group_numbers(groups)
    if equal is None:
        return group
    if len(group) != len(equal):
        raise InputError(f"groups has {len(group)} entries for {len(equal)} rows")
    from scipy.sparse.csgraph import connected_components

    n_distinct = equal.max(initial=-1) + 1
    n_nodes = n_distinct + group.max(initial=-1) + 1
    ones = np.ones(len(equal), dtype=np.int8)
    graph = sp.coo_array((ones, (equal, n_distinct + group)), shape=(n_nodes, n_nodes))
    return _numbered(connected_components(graph, directed=False)[1][equal])


def count_equal_rows(X: Any) -> int:
    """Return the number of rows that are equal to another row.

    >>> count_equal_rows(["sea", "sun", "sea", "sky"])
    2
    """
    n_rows = np.bincount(rows_together(X))
    return int(n_rows[n_rows > 1].sum())


def row_hashes(X: Any) -> np.ndarray:
    """Compute one 64-bit hash per row; equal rows have equal hashes.

    >>> X = np.array([[0.0, 1.5], [2.0, 0.0], [0.0, 1.5]])
    >>> hashes = row_hashes(X)
    >>> bool(hashes[0] == hashes[2]), bool(hashes[0] == hashes[1])
    (True, False)
    >>> bool((row_hashes(sp.csr_array(X)) == hashes).all())
    True
    """
    if isinstance(X, Images):  # the content of their files, at any size
        return np.array([int(digest[:16], 16) for digest in X.hashes()], dtype=np.uint64)
    if isinstance(X, Table) or is_frame(X):
        return _of_frame(as_frame(X))
    if sp.issparse(X):
        return _of_sparse(sp.csr_array(X))
    if isinstance(X, Sequence) and (len(X) == 0 or isinstance(X[0], str)):
        X = np.asarray(X, dtype=object)
    X = np.asarray(X)
    if X.dtype.kind in "OUST" and X.ndim == 1:
        import pandas as pd

        return _of_cells(pd.Series(X, dtype=object))
    if X.dtype.kind in "OUST":
        import pandas as pd

        return _of_frame(pd.DataFrame(X).infer_objects())
    if X.ndim != 2:
        X = X.reshape(len(X), -1)
    pieces = [
        _of_sparse(sp.csr_array(np.asarray(X[rows], dtype=np.float32)))
        for rows in row_chunks(X.shape[0], X.shape[1], _CHUNK_ENTRIES)
    ]
    return np.concatenate(pieces) if pieces else np.empty(0, dtype=np.uint64)


def _of_frame(frame: pd.DataFrame) -> np.ndarray:
    """Hash the numbers of each row as those of an array, and add the hashes of other cells."""
    from pandas.api.types import is_numeric_dtype

    numeric = np.array([is_numeric_dtype(dtype) for dtype in frame.dtypes], dtype=bool)
    numbers = frame.iloc[:, np.flatnonzero(numeric)]
    hashes = row_hashes(numbers.to_numpy(dtype=np.float32, na_value=np.nan))
    if numeric.all():
        return hashes
    for j in np.flatnonzero(~numeric).tolist():
        column = _mix(np.array([j], dtype=np.uint64))
        hashes = hashes + _mix(_of_cells(frame.iloc[:, j]) ^ column)
    return _mix(hashes)


def _of_cells(cells: pd.Series) -> np.ndarray:
    """Hash cells of any type; a blank one has the same hash in all of them."""
    from pandas.util import hash_array, hash_pandas_object

    cells = hashable_cells(cells)
    try:
        hashes = hash_pandas_object(cells, index=False, categorize=False).to_numpy(copy=True)
    except UnicodeEncodeError:  # half of a surrogate pair, which has no UTF-8
        encoded = [str(cell).encode("utf-8", "surrogatepass") for cell in cells]
        hashes = hash_array(np.array(encoded, dtype=object), categorize=False)
    hashes[cells.isna().to_numpy()] = 0
    return hashes


def _of_sparse(X: sp.csr_array) -> np.ndarray:
    """Sum one mixed number per non-zero entry, so that the order of entries does not matter."""
    values = np.ascontiguousarray(X.data, dtype=np.float32)
    mixed = _mix(X.indices.astype(np.uint64) << np.uint64(32) | values.view(np.uint32))
    mixed[values == 0] = 0  # a stored zero is no entry
    totals = np.concatenate([np.zeros(1, np.uint64), np.cumsum(mixed, dtype=np.uint64)])
    return _mix(totals[X.indptr[1:]] - totals[X.indptr[:-1]])  # wraps around, as it should


def _mix(numbers: np.ndarray) -> np.ndarray:
    """Spread neighbouring numbers over all 64 bits (the finaliser of SplitMix64)."""
    z = numbers + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def _group_numbers(groups: Sequence[Any]) -> np.ndarray:
    """Number the groups; each row without one has a number of its own."""
    import pandas as pd

    numbers = pd.factorize(np.asarray(groups, dtype=object))[0]
    without = numbers < 0
    numbers[without] = numbers.max(initial=-1) + 1 + np.arange(without.sum())
    return numbers


def _numbered(values: np.ndarray) -> np.ndarray:
    """Number the distinct values in the order in which they occur."""
    import pandas as pd

    return pd.factorize(values)[0]
