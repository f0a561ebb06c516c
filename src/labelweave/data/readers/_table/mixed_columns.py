"""Cells of the columns of a mixed table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from labelweave.data.readers._table.cells import MISSING
from labelweave.tables.table import Table

__all__ = ["is_missing", "mixed_table"]


def mixed_table(columns: Mapping[str, Sequence[Any]]) -> Table:
    """Return a table of arrays of numbers and of other cells, of which some may be blank.

    >>> mixed_table({"brand": ["acme", "n/a"], "price": np.array([2.5, np.nan])}).frame
      brand  price
    0  acme    2.5
    1   NaN    NaN
    """
    import pandas as pd

    return Table(pd.DataFrame({name: _cells(cells) for name, cells in columns.items()}))


def is_missing(cell: Any) -> bool:
    """Whether a cell is blank.

    >>> is_missing("n/a"), is_missing("0")
    (True, False)
    """
    if cell is None or cell != cell:
        return True
    return isinstance(cell, str) and cell.strip().lower() in MISSING


def _cells(cells: Sequence[Any]) -> Any:
    if isinstance(cells, np.ndarray):
        return cells
    import pandas as pd

    is_array = isinstance(cells, pd.api.extensions.ExtensionArray)
    if is_array or all(isinstance(cell, str) for cell in cells):
        column = pd.Series(cells)
        blank = column.str.strip().str.lower().isin(MISSING)
        return column.mask(blank) if blank.any() else column
    return pd.Series([None if is_missing(cell) else cell for cell in cells], dtype=object)
