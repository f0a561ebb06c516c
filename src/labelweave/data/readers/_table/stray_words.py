"""Columns of numbers in which cells are not: a few words ("12 EUR", "n/a?"), or decimal commas."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from itertools import chain
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from labelweave.data.readers._table.cells import is_number
from labelweave.data.readers._table.open_table import OpenTable
from labelweave.exceptions import LabelweaveWarning
from labelweave.tables.table import Table

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["without_stray_words"]

_FEW = 0.1  # share of the cells up to which words among numbers are taken for mistakes
_LEAST_NUMBERS = 5
_FIRST_ROWS = 200  # by which columns of words are passed over quickly
_MOST_SHOWN = 3


def without_stray_words(
    X: Table, kinds: Mapping[str, str], table: OpenTable, lines: Sequence[Sequence[int]]
) -> Table:
    """Return a table, and warn of numbers with a few words among them or with decimal commas.

    Such a column stays as it is, and becomes one of categories. Where its kind is given as number,
    the words become blanks, as long as more cells are numbers. `lines` are those of the rows, in
    consecutive parts.
    """
    import pandas as pd

    columns: dict[str, Any] = {}
    for name in map(str, X.frame.columns):
        column, kind = X.frame[name], kinds.get(name)
        if kind not in (None, "number") or pd.api.types.is_numeric_dtype(column.dtype):
            continue
        comma = _decimal_comma(column) if kind is None and table.decimal == "." else None
        if comma is not None:
            warnings.warn(
                f"{table.path}: the cells of the column {name!r} look like numbers with a decimal "
                f"comma, such as {comma!r}, and are read as categories: if they are numbers, say "
                "decimal=',' (option --decimal)",
                LabelweaveWarning,
                stacklevel=4,
            )
            continue
        first = _numbers(column.iloc[:_FIRST_ROWS], table.decimal)
        if 2 * np.isnan(first).sum() > len(first) + column.iloc[:_FIRST_ROWS].isna().sum():
            continue  # mostly words
        numbers = _numbers(column, table.decimal)
        is_word = column.notna().to_numpy() & np.isnan(numbers)
        n_words, n_numbers = int(is_word.sum()), int((~np.isnan(numbers)).sum())
        if not n_words or n_words >= n_numbers:
            continue
        if kind == "number":
            columns[name] = numbers
            fate = "read as blank, as the kind of the column is number"
        elif n_words <= max(1, _FEW * n_numbers) and n_numbers >= _LEAST_NUMBERS:
            fate = (
                "which makes a column of categories of it: correct it in the file, or give the "
                f"column its kind (kinds={name}=number reads such cells as blanks)"
            )
        else:
            continue
        warnings.warn(
            f"{table.path}: the column {name!r} holds numbers, but {_shown(column, is_word, lines)}"
            f", {fate}",
            LabelweaveWarning,
            stacklevel=4,
        )
    return Table(X.frame.assign(**columns), X.encoder) if columns else X


def _decimal_comma(column: pd.Series) -> str | None:
    """A cell such as "12,5", if the first cells are numbers where the comma is the decimal sign."""
    cells = column.iloc[:_FIRST_ROWS].dropna()
    if not all(isinstance(cell, str) and is_number(cell, ",") for cell in cells):
        return None
    with_comma = [cell for cell in cells if "," in cell]
    return with_comma[0] if len(with_comma) >= _LEAST_NUMBERS else None


def _numbers(column: pd.Series, decimal: str) -> np.ndarray:
    """The cells that are numbers; NaN for all others."""
    import pandas as pd

    try:
        codes, values = pd.factorize(column)
    except TypeError:  # lists and the like, which the encoder refuses
        return np.full(len(column), np.nan)
    numbers = [_number(value, decimal) for value in values]
    return np.array([*numbers, np.nan])[codes]


def _number(value: Any, decimal: str) -> float:
    if isinstance(value, Real):  # of rows that were read as numbers
        return float(value)
    word = str(value)
    return float(word.replace(decimal, ".")) if is_number(word, decimal) else np.nan


def _shown(column: pd.Series, is_word: np.ndarray, parts: Sequence[Sequence[int]]) -> str:
    rows = np.flatnonzero(is_word)
    lines = [*chain.from_iterable(parts)]
    shown = ", ".join(
        f"{str(column.iloc[row])[:40]!r} in line {lines[row]}" for row in rows[:_MOST_SHOWN]
    )
    if len(rows) == 1:
        return f"one cell does not: {shown}"
    more = f" and {len(rows) - _MOST_SHOWN:,} more" if len(rows) > _MOST_SHOWN else ""
    return f"{len(rows):,} cells do not: {shown}{more}"
