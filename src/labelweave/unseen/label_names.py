"""Names of labels that come and go: the row of a name and the name of a row, at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from labelweave.unseen.growing_rows import GrowingArray

__all__ = ["LabelNames"]


class LabelNames:
    """Names under the rows of :class:`~labelweave.unseen.label_table.LabelTable`.

    Adding, removing and renaming touch the labels in question alone, however many there are.

    Parameters
    ----------
    names : sequence of str
        They differ.

    Examples
    --------
    >>> names = LabelNames(["sea", "sun", "moon"])
    >>> names.remove(["sun"])
    >>> names.add(["star"])
    >>> names.rename("sea", "ocean")
    >>> names.array(), names.row("star"), names.row("sun")
    (array(['ocean', 'moon', 'star'], dtype=object), 3, None)
    """

    def __init__(self, names: Sequence[str] | np.ndarray) -> None:
        listed = list(names)
        self._names = GrowingArray(np.array(listed, dtype=object))
        self._is_there = GrowingArray(np.ones(len(listed), dtype=bool))
        self._rows = {name: row for row, name in enumerate(listed)}
        self._array: np.ndarray | None = None  # all names, until one changes

    def __len__(self) -> int:
        return len(self._rows)

    def row(self, name: str) -> int | None:
        """The row of a label; None where there is no such label."""
        return self._rows.get(name)

    def at(self, rows: np.ndarray) -> np.ndarray:
        """The names in these rows."""
        return self._names.values[rows]

    def array(self) -> np.ndarray:
        """All names, in the order of their rows."""
        if self._array is None:
            self._array = self._names.values[self._is_there.values]
        return self._array

    def add(self, names: Sequence[str]) -> None:
        start = len(self._names)
        self._names.append(np.array(names, dtype=object))
        self._is_there.append(np.ones(len(names), dtype=bool))
        self._rows.update(zip(names, range(start, start + len(names)), strict=True))
        self._array = None

    def remove(self, names: Sequence[str]) -> None:
        rows = [self._rows.pop(name) for name in names]
        self._names.values[rows] = None
        self._is_there.values[rows] = False
        self._array = None

    def rename(self, old: str, new: str) -> None:
        row = self._rows.pop(old)
        self._rows[new] = row
        self._names.values[row] = new
        self._array = None
