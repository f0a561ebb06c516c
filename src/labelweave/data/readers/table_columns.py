"""What the cells of a column tell about its meaning, where nobody has said it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from labelweave.data.readers.table_source import TableRows, numbers

__all__ = ["id_list_column", "separator_of"]


def separator_of(cells: Sequence[Any]) -> str | None:
    """The sign between label names that some cell holds, the rarest in names first."""
    texts = [cell for cell in cells if isinstance(cell, str)]
    return next((sign for sign in ";|," if any(sign in text for text in texts)), None)


def id_list_column(names: Sequence[str], sample: TableRows) -> int | None:
    """In a table of texts without header, the one column of comma-separated whole numbers."""
    if not all(name.startswith("column_") for name in names):
        return None
    whole = [
        all(part.strip().isdecimal() for cell in cells for part in str(cell).split(","))
        for cells in sample.columns
    ]
    has_text = any(
        not is_whole and numbers(cells)[1] is not None
        for is_whole, cells in zip(whole, sample.columns, strict=True)
    )
    return whole.index(True) if has_text and sum(whole) == 1 else None
