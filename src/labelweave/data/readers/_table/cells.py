"""The cells of tables: numbers, missing values, yes and no."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

MISSING = frozenset(("", "?", "na", "n/a", "nan", "null", "none"))
"""Cells of a column of numbers that stand for a missing value, in lower case."""

_TRUTH_VALUES = {"true": 1.0, "yes": 1.0, "false": 0.0, "no": 0.0}


def parse_numbers(cells: Sequence[Any], decimal: str = ".") -> tuple[np.ndarray, int | None]:
    """Convert cells to numbers; missing cells are NaN.

    The second result is the position of the first cell that is not a number, or None. With the
    decimal sign "," a cell with a point is not a number, because the point may separate thousands.

    >>> parse_numbers(["1", "", "2.5"])
    (array([1. , nan, 2.5]), None)
    >>> parse_numbers(["1", "sea"])[1]
    1
    >>> parse_numbers(["1", "2,5", "1.000"], decimal=",")
    (array([1. , 2.5, nan]), 2)
    """
    if isinstance(cells, np.ndarray):
        return cells.astype(np.float64, copy=False), None
    floats = all_floats(cells) if decimal == "." else None
    if floats is not None:
        return floats, None
    numbers = np.full(len(cells), np.nan)
    known: dict[Any, float] = {}
    for i, cell in enumerate(cells):
        try:
            number = known.get(cell)
        except TypeError:  # a list
            return numbers, i
        if number is None:
            number = _number(cell, decimal)
            if number is None:
                return numbers, i
            if len(known) < 2**16:
                known[cell] = number
        numbers[i] = number
    return numbers, None


def all_floats(cells: Sequence[Any]) -> np.ndarray | None:
    """Convert cells to numbers if all are; blanks are not."""
    try:
        return np.fromiter(map(float, cells), dtype=np.float64, count=len(cells))
    except (TypeError, ValueError):
        return None


def _number(cell: Any, decimal: str) -> float | None:
    word = "" if cell is None else str(cell).strip().lower()
    if word in MISSING:
        return np.nan
    if word in _TRUTH_VALUES:
        return _TRUTH_VALUES[word]
    if decimal != ".":
        if "." in word:
            return None
        word = word.replace(decimal, ".")
    try:
        return float(word)
    except ValueError:
        return None


def is_number(cell: str, decimal: str = ".") -> bool:
    """Whether a cell is a number; missing values and words such as "yes" are not."""
    if decimal != "." and "." in cell:
        return False
    try:
        float(cell.replace(decimal, "."))
    except ValueError:
        return False
    return True
