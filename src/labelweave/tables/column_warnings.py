"""Warnings about columns of a table."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

from labelweave.exceptions import LabelweaveWarning, NewValuesWarning
from labelweave.tables.columns import CategoryColumn
from labelweave.tables.kinds import Words

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["report_ignored", "report_left_out", "report_missing", "report_new_values"]

_MOST_NAMES = 10


def report_left_out(kinds: pd.DataFrame) -> None:
    """Warn about columns that the table of kinds leaves out, unless that was asked for."""
    for name, reason in zip(kinds["column"], kinds["left_out"], strict=True):
        if reason not in ("", "as asked"):
            text = f"the column {name!r} is left out: {reason}"
            warnings.warn(text, LabelweaveWarning, stacklevel=3)


def report_new_values(part: CategoryColumn, words: Words) -> None:
    """Warn about values of a column that no training row had."""
    if new := part.new_values(words):
        warnings.warn(NewValuesWarning(part.name, new), stacklevel=2)


def report_missing(columns: Sequence[str]) -> None:
    """Warn that a table lacks these columns of the training table."""
    _warn(
        columns, "is missing: its cells count as blank", "are missing: their cells count as blank"
    )


def report_ignored(columns: Sequence[str]) -> None:
    """Warn that a table has these columns that the training table did not have."""
    _warn(
        columns,
        "was not in the training table: it is ignored",
        "were not in the training table: they are ignored",
    )


def _warn(columns: Sequence[str], of_one: str, of_several: str) -> None:
    if not columns:
        return
    shown = ", ".join(repr(name) for name in columns[:_MOST_NAMES])
    if len(columns) > _MOST_NAMES:
        shown += f" and {len(columns) - _MOST_NAMES:,} more"
    text = (
        f"the column {shown} {of_one}" if len(columns) == 1 else f"the columns {shown} {of_several}"
    )
    warnings.warn(text, LabelweaveWarning, stacklevel=4)
