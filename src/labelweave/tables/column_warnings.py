"""Warnings about columns of a table."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from labelweave.exceptions import LabelweaveWarning
from labelweave.tables.columns import CategoryColumn
from labelweave.tables.kinds import Words

__all__ = ["report_new_values", "warn_about_columns"]


def report_new_values(part: CategoryColumn, words: Words) -> None:
    """Warn about values of a column that no training row had."""
    if new := part.new_values(words):
        shown = ", ".join(repr(value[:40]) for value in new[:3])
        number = "a value" if len(new) == 1 else f"{len(new)} values"
        warn_about_columns(f"has {number} that no training row had ({shown})", [part.name])


def warn_about_columns(what: str, columns: Sequence[str]) -> None:
    """Warn that each of these columns is or has something."""
    for name in columns:
        warnings.warn(f"the column {name!r} {what}", LabelweaveWarning, stacklevel=2)
