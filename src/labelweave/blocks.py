"""Rows a few at a time, where all at once would need too much memory."""

from __future__ import annotations

__all__ = ["row_blocks"]


def row_blocks(n_rows: int, entries_each: int, entries: int = 4_000_000) -> list[slice]:
    """Slices of rows that together hold some million entries each, or one row.

    >>> row_blocks(5, 10, entries=20)
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    step = max(1, entries // max(entries_each, 1))
    return [slice(start, min(start + step, n_rows)) for start in range(0, n_rows, step)]
