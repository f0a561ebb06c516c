"""A few typical values of each column, which take the place of a row's values.

A model folder keeps them, so that a service can explain predictions without the training rows.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from labelweave.exceptions import InputError
from labelweave.labels import is_frame
from labelweave.tables.columns import NumberColumn
from labelweave.tables.kinds import find_kind
from labelweave.tables.table import Table

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["reference_from_plain", "reference_rows", "reference_to_plain"]

_MOST_COLUMNS = 5000  # of a table whose reference is stored
_LEAST_OFTEN = 5  # rows that must share a category


def reference_rows(X: Any, n_rows: int = 5) -> Any:
    """Return a small table with typical values of each column, for :func:`explain_row`.

    Each column is arranged by itself, so that the values of a row do not belong together: numbers
    and dates are evenly spaced quantiles, categories come in proportion to their frequency. Texts,
    images, ids and categories that fewer than five rows have are left blank. Blanks come in
    proportion too. The only reference of a sparse matrix is 0.

    Parameters
    ----------
    X : array, SciPy sparse, DataFrame or Table
    n_rows : int, default=5

    Returns
    -------
    table of the same kind, with `n_rows` rows (one row of a sparse matrix)

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"price": [1.0, 2.0, 3.0, 4.0] * 5, "brand": ["a"] * 13 + ["b"] * 7})
    >>> reference_rows(table, 3)
       price brand
    0    1.0     a
    1    2.5     a
    2    4.0     b
    """
    if n_rows < 1:
        raise InputError(f"n_rows must be at least 1, not {n_rows}")
    if isinstance(X, Table):
        kinds = (X.encoder.kinds if X.encoder is not None else None) or {}
        images = [name for name, kind in kinds.items() if kind == "image"]
        return Table(_of_frame(X.frame, n_rows, images), X.encoder)
    if is_frame(X):
        return _of_frame(X, n_rows)
    if sp.issparse(X):
        return sp.csr_array((1, X.shape[1]), dtype=X.dtype)
    if getattr(X, "ndim", None) != 2:
        raise InputError("reference values are those of a table: an array or a DataFrame")
    X = np.asarray(X)
    return np.column_stack([_quantiles(X[:, j], n_rows) for j in range(X.shape[1])])


def _of_frame(frame: Any, n_rows: int, images: Collection[str] = ()) -> pd.DataFrame:
    import pandas as pd

    columns = [
        _of_column(frame.iloc[:, j], n_rows) if str(name) not in images else _blank(n_rows)
        for j, name in enumerate(frame.columns)
    ]
    return pd.DataFrame(dict(enumerate(columns))).set_axis(frame.columns, axis=1)


def _of_column(column: Any, n_rows: int) -> Any:
    import pandas as pd

    kind, words = find_kind(column)
    if kind in ("number", "date"):
        cells = NumberColumn(str(column.name), kind, True).learn(column, words)
        if kind == "number":
            return pd.Series(_quantiles(cells, n_rows))
        ordered = column.iloc[np.argsort(cells, kind="stable")]  # blanks are last
        return ordered.iloc[_places(len(ordered), n_rows)].reset_index(drop=True)
    if kind in ("text", "id"):
        return _blank(n_rows)
    counts = column.astype(object).value_counts()
    counts = counts[counts >= _LEAST_OFTEN]
    frequent = np.repeat(counts.index.to_numpy(dtype=object), counts.to_numpy())
    ordered = np.append(frequent, np.full(len(column) - len(frequent), None, dtype=object))
    return pd.Series(ordered[_places(len(ordered), n_rows)], dtype=object)


def _blank(n_rows: int) -> pd.Series:
    import pandas as pd

    return pd.Series([None] * n_rows, dtype=object)


def _quantiles(values: np.ndarray, n_rows: int) -> np.ndarray:
    """Evenly spaced quantiles; as many of them are NaN as in proportion to the values."""
    values = np.asarray(values, dtype=np.float64)
    known = values[~np.isnan(values)]
    levels = (np.arange(n_rows) + 0.5) / n_rows * len(values)
    quantiles = np.full(n_rows, np.nan)
    inside = levels <= len(known)
    if len(known):
        quantiles[inside] = np.quantile(known, levels[inside] / len(known))
    return quantiles


def _places(length: int, n_rows: int) -> np.ndarray:
    return ((np.arange(n_rows) + 0.5) / n_rows * length).astype(int)


# -- as plain values ---------------------------------------------------------------------


def reference_to_plain(X: Any) -> dict[str, Any] | None:
    """Return reference rows as values that JSON can hold; None if the table is too wide."""
    if X.shape[1] > _MOST_COLUMNS and not sp.issparse(X):
        return None
    if sp.issparse(X):
        return {"kind": "sparse", "columns": X.shape[1]}
    if isinstance(X, np.ndarray):
        return {"kind": "array", "rows": [[_plain(v) for v in row] for row in X.tolist()]}
    frame = X.frame if isinstance(X, Table) else X
    return {
        "kind": "table",
        "columns": {
            str(name): [_plain(v) for v in frame.iloc[:, j].tolist()]
            for j, name in enumerate(frame.columns)
        },
    }


def reference_from_plain(stored: Any) -> Any:
    """Return the reference rows; the opposite of :func:`reference_to_plain`."""
    kind = stored["kind"]
    if kind == "sparse":
        return sp.csr_array((1, int(stored["columns"])), dtype=np.float64)
    if kind == "array":
        rows = np.array(stored["rows"], dtype=np.float64)
        if rows.ndim != 2:
            raise ValueError("the rows of an array are lists of the same length")
        return rows
    columns = stored["columns"].values()
    if kind != "table" or not all(
        isinstance(cells, list)
        and cells
        and all(cell is None or isinstance(cell, str | bool | int | float) for cell in cells)
        for cells in columns
    ):
        raise ValueError("not what reference_to_plain returns")
    import pandas as pd

    return pd.DataFrame(stored["columns"])


def _plain(value: Any) -> Any:
    if value is None or value != value:
        return None
    if isinstance(value, np.generic):
        value = value.item()
    return value if isinstance(value, str | bool | int | float) else str(value)
