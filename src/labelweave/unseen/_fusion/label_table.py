"""The labels of a model whose label set can change: names, texts and vectors."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from labelweave.exceptions import InputError
from labelweave.unseen._fusion.growing_rows import GrowingArray, GrowingRows

_SEPARATORS = re.compile(r"[\s_:/|-]+")


def label_text(name: str, description: str | None = None) -> str:
    """Return the text of a label that is embedded.

    >>> label_text("food-safety"), label_text("role::program", "Executable program")
    ('food safety', 'role program: Executable program')
    """
    words = _SEPARATORS.sub(" ", name).strip()
    described = (description or "").strip()
    return f"{words}: {described}" if words and described else words or described


def checked_new_labels(
    names: Iterable[str] | str,
    descriptions: Mapping[str, str] | Sequence[str] | None,
    known: Mapping[str, str],
) -> dict[str, str]:
    """Check labels to add and return their descriptions ("" if there is none) by name.

    `known` maps the labels that exist already to "seen" or "unseen".
    """
    names = [names] if isinstance(names, str) else list(names)
    if isinstance(descriptions, Mapping):
        unused = [name for name in descriptions if name not in set(names)]
        if unused:
            raise InputError(f"there is a description of {unused[0]!r}, which is not a new label")
        texts = [str(descriptions.get(name) or "") for name in names]
    elif descriptions is None:
        texts = [""] * len(names)
    else:
        texts = [str(text or "") for text in descriptions]
        if len(texts) != len(names):
            raise InputError(f"there are {len(texts)} descriptions for {len(names)} labels")
    added: dict[str, str] = {}
    for name, text in zip(names, texts, strict=True):
        if not isinstance(name, str):
            raise InputError(f"a label name is a text, not {name!r}")
        if name in known:
            raise InputError(
                f"the label {name!r} is already {known[name]}: remove it first, or rename it"
            )
        if name in added:
            raise InputError(f"the label name {name!r} is given twice: names must differ")
        if not any(letter.isalnum() for letter in label_text(name, text)):
            raise InputError(
                f"the label {name!r} has no text: give it a name with letters, or a description"
            )
        added[name] = text
    return added


class LabelTable:
    """A table of labels in which each label keeps its row until it is removed.

    It holds the vector of each label, and its column in the output of the classifier, -1 for
    unseen labels. `seen_rows` are the rows of the labels that have a column.
    """

    def __init__(self, vectors: Any, columns: np.ndarray) -> None:
        self._vectors = GrowingRows(vectors)
        self._columns = GrowingArray(np.asarray(columns, dtype=np.int64))
        self._alive = GrowingArray(np.ones(len(self._columns), dtype=bool))
        self.seen_rows = np.flatnonzero(self.columns >= 0)
        self.n_unseen = len(self._columns) - len(self.seen_rows)

    @property
    def columns(self) -> np.ndarray:
        """Column of the label in each row, including removed labels."""
        return self._columns.values

    @property
    def alive(self) -> np.ndarray:
        """Whether each row holds a label that was not removed."""
        return self._alive.values

    @property
    def rows(self) -> np.ndarray:
        """Rows of the labels, in the order of the model's labels."""
        return np.flatnonzero(self.alive)

    @property
    def unseen_rows(self) -> np.ndarray:
        return np.flatnonzero(self.alive & (self.columns < 0))

    def vectors(self, rows: np.ndarray) -> Any:
        """Vectors of these rows; all rows are returned without a copy."""
        return self._vectors.take(rows)

    def append(self, vectors: Any) -> np.ndarray:
        """Add unseen labels and return their rows."""
        added = np.arange(len(self._alive), len(self._alive) + vectors.shape[0])
        self._vectors.append(vectors)
        self._columns.append(np.full(len(added), -1))
        self._alive.append(np.ones(len(added), dtype=bool))
        self.n_unseen += len(added)
        return added

    def remove(self, rows: np.ndarray) -> None:
        self.alive[rows] = False
        self.n_unseen -= int((self.columns[rows] < 0).sum())
        self.seen_rows = self.seen_rows[self.alive[self.seen_rows]]

    def replace(self, row: int, vector: Any) -> None:
        """Replace the vector of a label whose text has changed."""
        self._vectors.replace(row, vector)

    def compact(self) -> tuple[Any, np.ndarray]:
        """Vectors and columns without removed labels, for saving."""
        rows = self.rows
        return self.vectors(rows), self.columns[rows]


class LabelNames:
    """Distinct names of the labels in the rows of a :class:`LabelTable`.

    The cost of adding, removing and renaming does not depend on the number of labels.

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
        self._array: np.ndarray | None = None  # all names; None after a change

    def __len__(self) -> int:
        return len(self._rows)

    def row(self, name: str) -> int | None:
        """The row of a label; None if there is no such label."""
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
