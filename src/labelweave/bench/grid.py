"""Many data sets by many methods: a table with a line a method and a column a data set.

A suite that compares with nothing published, under one protocol, is read across: which method is
best where. Its figures stand in a grid rather than one below the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from labelweave.bench.comparison import Comparison, Row

__all__ = ["Grid", "best_rows", "grids"]

FEWEST = 4  # methods, and data sets: fewer are as well read one below the other
MOST_COLUMNS = 5  # data sets side by side


@dataclass(frozen=True)
class Grid:
    """Figures of one metric, for some of the data sets.

    Attributes
    ----------
    conditions : tuple of str
        The columns: data sets, with their scenarios.
    methods : tuple of str
        The lines.
    rows : dict
        The figure of a condition and a method, where there is one.
    """

    conditions: tuple[str, ...]
    methods: tuple[str, ...]
    rows: dict[tuple[str, str], Row]


def grids(comparison: Comparison, metric: str) -> list[Grid]:
    """The figures of a metric in grids of a few data sets; none if they are better listed."""
    scored = [row for row in comparison.rows if row.metric == metric and row.mean is not None]
    conditions = tuple(dict.fromkeys(row.condition for row in scored))
    methods = tuple(dict.fromkeys(row.method for row in comparison.rows))
    is_plain = len({row.protocol for row in comparison.rows}) == 1 and all(
        row.published is None for row in comparison.rows
    )
    if not is_plain or min(len(conditions), len(methods)) < FEWEST:
        return []
    rows = {(row.condition, row.method): row for row in scored}
    return [
        Grid(conditions[at : at + MOST_COLUMNS], methods, rows)
        for at in range(0, len(conditions), MOST_COLUMNS)
    ]


def best_rows(rows: Sequence[Row], sign: int) -> set[Row]:
    """The best measured rows of each data set and protocol, where there are several."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        if row.mean is not None:
            groups.setdefault((row.condition, row.protocol), []).append(row)
    found: set[Row] = set()
    for group in groups.values():
        top = max(sign * (row.mean or 0.0) for row in group)
        if len(group) > 1:
            found |= {row for row in group if sign * (row.mean or 0.0) == top}
    return found
