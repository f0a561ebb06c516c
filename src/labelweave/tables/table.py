"""Rows of a mixed table, and whether features are a table that has to be encoded."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from labelweave.exceptions import InputError

if TYPE_CHECKING:
    import pandas as pd

    from labelweave.tables.encoder import TableEncoder

__all__ = [
    "Table",
    "concatenate_tables",
    "hashable",
    "hashable_cells",
    "numbers_or_table",
    "rows_for",
]


class Table:
    """Rows of a mixed table that are indexed like those of an array.

    ``fit(Table(frame), Y)`` and ``fit(frame, Y)`` are the same. A table can also carry an encoder
    with settings, which every method then uses for it.

    Parameters
    ----------
    frame : DataFrame
        Of pandas, or of another library that has `to_pandas`.
    encoder : TableEncoder, optional
        An encoder that is not fitted, with the kinds and settings to use.

    Examples
    --------
    >>> import pandas as pd
    >>> table = Table(pd.DataFrame({"price": [2.5, None, 4.0], "brand": ["a", "b", "a"]}))
    >>> table, len(table[[True, False, True]])
    (<Table: 3 rows x 2 columns>, 2)
    """

    ndim = 2

    def __init__(self, frame: Any, encoder: TableEncoder | None = None) -> None:
        self.frame: pd.DataFrame = as_frame(frame)
        self.encoder = encoder
        self.reported = False  # whether the user has been told what is special about these rows

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of columns."""
        return self.frame.shape

    def __len__(self) -> int:
        return len(self.frame)

    def __getitem__(self, rows: Any) -> Table:
        """Return the table of these rows (a slice, a mask or an index array)."""
        index = np.arange(len(self))[rows].reshape(-1)
        rows_of = Table(self.frame.iloc[index], self.encoder)
        rows_of.reported = self.reported
        return rows_of

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """Return the cells as an array: of numbers, or of objects if some are not."""
        return self.frame.to_numpy(dtype=dtype)

    def __repr__(self) -> str:
        return f"<Table: {len(self)} rows x {self.shape[1]} columns>"

    def as_reported(self) -> Table:
        """Return the same rows, about which encoders warn no more."""
        table = self[:]
        table.reported = True
        return table

    def first_mixed_column(self) -> str:
        """Return the name of the first column that has blanks or is not of numbers."""
        from pandas.api.types import is_numeric_dtype

        frame = self.frame
        is_text = np.array([not is_numeric_dtype(dtype) for dtype in frame.dtypes])
        is_mixed = is_text | frame.isna().to_numpy().any(axis=0)
        return str(frame.columns[int(np.argmax(is_mixed))])

    def unfitted_encoder(self) -> TableEncoder:
        """Return a new encoder with the settings of this table."""
        from sklearn.base import clone

        from labelweave.tables.encoder import TableEncoder

        return TableEncoder() if self.encoder is None else clone(self.encoder)


def rows_for(model: Any, X: Any) -> Any:
    """Return rows as a model takes them: one of another library gets the DataFrame of a Table.

    >>> import pandas as pd
    >>> from sklearn.dummy import DummyClassifier
    >>> type(rows_for(DummyClassifier(), Table(pd.DataFrame({"a": [1]})))).__name__
    'DataFrame'
    """
    from sklearn.base import BaseEstimator
    from sklearn.utils import get_tags

    from labelweave.capabilities import MultiLabelTags

    is_ours = isinstance(model, BaseEstimator) and isinstance(get_tags(model), MultiLabelTags)
    return X.frame if isinstance(X, Table) and not is_ours else X


def is_reported(rows: Any) -> bool:
    """Whether the user has been told what is special about these rows."""
    return isinstance(rows, Table) and rows.reported


def as_frame(rows: Any, columns: Sequence[str] | None = None) -> pd.DataFrame:
    """Return rows as a DataFrame of pandas; an array gets these names of columns."""
    import pandas as pd

    if isinstance(rows, Table):
        return rows.frame
    if isinstance(rows, pd.DataFrame):
        return rows
    if hasattr(rows, "to_pandas"):
        return rows.to_pandas()
    if sp.issparse(rows):
        raise InputError("sparse input is not supported: a table must be a DataFrame")
    values = rows if hasattr(rows, "shape") else np.array(rows, dtype=object)
    if not isinstance(values, np.ndarray):
        raise InputError(f"a table must be a DataFrame, not {type(rows).__name__}")
    if values.ndim != 2:
        raise InputError(
            f"a table has rows and columns, but X has shape {values.shape}. Reshape your data, or "
            "pass a DataFrame"
        )
    if values.dtype.kind == "c":
        raise InputError("Complex data not supported: make two columns of a complex number")
    if columns is None:
        columns = [f"x{j}" for j in range(values.shape[1])]
    if values.shape[1] != len(columns):
        raise InputError(
            f"X has {values.shape[1]} features, but TableEncoder is expecting {len(columns)} "
            "features as input: pass a DataFrame with the names of the columns"
        )
    return pd.DataFrame(values, columns=list(columns)).infer_objects()


def column_names(frame: pd.DataFrame) -> list[str]:
    """Return the names of the columns as strings; raise an error if two are equal."""
    names = [str(name) for name in frame.columns]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"the table has two columns named {twice!r}: rename one of them")
    return names


def numbers_or_table(X: Any, *, missing_values: bool) -> Any:
    """Return a Table if X is a table that must be encoded, and else X in its plain form.

    A table of numbers without blanks is plain, and with blanks too if the method takes
    `missing_values`.
    """
    if hasattr(X, "to_pandas") and not hasattr(X, "iloc"):
        X = X.to_pandas()
    table = X if isinstance(X, Table) else None
    if table is not None and table.encoder is not None:
        return table
    frame = X if table is None else table.frame
    if not hasattr(frame, "dtypes") or not hasattr(frame, "iloc") or frame.ndim != 2:
        return X
    from pandas.api.types import is_numeric_dtype

    names = column_names(frame)
    is_string = [isinstance(name, str) for name in frame.columns]
    if any(is_string) and not all(is_string):  # scikit-learn takes names of one type only
        frame = frame.set_axis(names, axis=1)
    is_numeric = frame.shape[1] > 0 and all(is_numeric_dtype(dtype) for dtype in frame.dtypes)
    is_plain = is_numeric and (missing_values or not frame.isna().to_numpy().any())
    return frame if is_plain else Table(frame) if table is None else table


def concatenate_tables(tables: Sequence[Table]) -> Table:
    """Return the rows of all tables in one, with the encoder of the first."""
    import pandas as pd

    frames = [table.frame for table in tables]
    table = Table(pd.concat(frames, ignore_index=True), tables[0].encoder)
    table.reported = all(part.reported for part in tables)
    return table


def hashable_cells(column: pd.Series) -> pd.Series:
    """Return a column in which each array of pixels is replaced by a hash of it.

    >>> import pandas as pd
    >>> pixels = np.zeros((2, 2), dtype=np.uint8)
    >>> hashable_cells(pd.Series([pixels, pixels.copy(), "a.png"])).nunique()
    2
    """
    is_array = [isinstance(cell, np.ndarray) for cell in column] if column.dtype == object else []
    return column.map(hashable) if any(is_array) else column


def hashable(cell: Any) -> Any:
    """Return the hash of the shape and the pixels of an image; other values as they are."""
    if not isinstance(cell, np.ndarray):
        return cell
    pixels = np.ascontiguousarray(cell)
    return hashlib.sha256(f"{pixels.shape}".encode() + pixels.tobytes()).hexdigest()
