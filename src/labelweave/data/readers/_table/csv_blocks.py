"""Fast parsing of the rows of a CSV file by pandas, a block of whole rows at a time.

pandas is lenient: it fills short rows, skips lines of blanks, and accepts quotes in unusual places.
:class:`Block` therefore looks at every quote, separator and line end first. What is unusual is left
to the careful reader in :mod:`labelweave.data.readers._table.csv_parquet`, which gives the same
rows, or the error message with the line.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from labelweave.data.readers._table.cells import MISSING, all_floats, is_number, parse_numbers

SEPARATORS = ",;\t|"
"""The separators of files that are parsed fast."""

_MISSING_SPELLINGS = sorted({s for w in MISSING for s in (w, w.upper(), w.capitalize())} | {"NaN"})
_QUOTE, _LINE_FEED, _CARRIAGE_RETURN = (ord(sign) for sign in '"\n\r')


@dataclass
class Dialect:
    """How the cells of a file are written, and which columns have cells that pandas cannot read.

    `words` collects the columns of numbers in which a cell was found that only our own parser
    reads, such as "yes" or "1_000"; they are no longer tried as numbers.
    """

    separator: str
    quotes: bool
    decimal: str
    n_columns: int
    words: set[int] = field(default_factory=set)


class Block:
    r"""The complete rows at the start of some data; at most `most` of them, where it is given.

    A line feed inside a quoted cell does not end a row.

    >>> block = Block(b'a,"b\nc"\nd,e\nf,"g\n', Dialect(",", True, ".", 2))
    >>> block.data, block.has_usual_quotes(), block.parse()
    (b'a,"b\nc"\nd,e\n', True, [['a', 'd'], ['b\nc', 'e']])
    >>> list(block.lines(1)), block.n_lines
    ([2, 3], 3)
    """

    def __init__(self, data: bytes, dialect: Dialect, most: int | None = None) -> None:
        self.dialect = dialect
        characters = np.frombuffer(data, dtype=np.uint8)
        line_feeds = np.flatnonzero(characters == _LINE_FEED)
        quotes = np.flatnonzero(characters == _QUOTE) if dialect.quotes else line_feeds[:0]
        row_ends = line_feeds[_are_outside(line_feeds, quotes)][:most]
        end = int(row_ends[-1]) + 1 if len(row_ends) else 0
        self.data = data[:end]
        self.n_lines = int(np.searchsorted(line_feeds, end))
        self._characters = characters[:end]
        self._row_ends, self._line_feeds = row_ends, line_feeds[: self.n_lines]
        self._quotes = quotes[: np.searchsorted(quotes, end)]

    def has_usual_quotes(self) -> bool:
        """Whether quotes are around whole cells, and doubled inside them."""
        if not len(self._quotes):
            return True
        before = self._characters[self._quotes[::2] - 1]  # before the first is the last line feed
        after = self._characters[self._quotes[1::2] + 1]
        separator = ord(self.dialect.separator)
        opens = np.isin(before, [separator, _LINE_FEED, _QUOTE])
        closes = np.isin(after, [separator, _LINE_FEED, _CARRIAGE_RETURN, _QUOTE])
        return bool(opens.all() and closes.all())

    def lines(self, first_line: int) -> Sequence[int]:
        """The number of the last line of each row; `first_line` is the first of the block."""
        if len(self._row_ends) == self.n_lines:
            return range(first_line, first_line + self.n_lines)
        return (np.searchsorted(self._line_feeds, self._row_ends) + first_line).tolist()

    def parse(
        self, numbers: Collection[int] = (), texts: Collection[int] | None = None
    ) -> list[Sequence[Any]] | None:
        """Return the columns, or None if the block has to be read carefully.

        Parameters
        ----------
        numbers : collection of int
            The columns that are arrays of numbers if each of their cells is a number or missing,
            and lists of strings otherwise.
        texts : collection of int, optional
            The columns that are lists of strings. By default all that are not in `numbers`. The
            columns that are in neither are empty.
        """
        dialect = self.dialect
        if not self._is_regular():
            return None
        if texts is None:
            texts = set(range(dialect.n_columns)) - set(numbers)
        tried = set(numbers) - set(texts) - dialect.words
        columns = _read_columns(self.data, dialect, tried, {*texts, *numbers} - tried)
        if columns == "not numbers":
            columns = _read_columns(self.data, dialect, set(), {*texts, *numbers})
            if isinstance(columns, dict):
                dialect.words.update(j for j in tried if not _are_numbers(columns[j], dialect))
        if not isinstance(columns, dict):
            return None
        if any(len(column) != len(self._row_ends) for column in columns.values()):
            return None
        for j in set(numbers) - set(texts):
            if not isinstance(columns[j], np.ndarray):
                values, wrong = parse_numbers(columns[j], dialect.decimal)
                columns[j] = values if wrong is None else columns[j]
        return [columns.get(j, ()) for j in range(dialect.n_columns)]

    def _is_regular(self) -> bool:
        """Whether every row has its number of cells, and lines end in the usual ways."""
        characters = self._characters
        separators = np.flatnonzero(characters == ord(self.dialect.separator))
        if len(self._quotes):
            separators = separators[_are_outside(separators, self._quotes)]
        up_to = np.searchsorted(separators, self._row_ends)
        if (np.diff(up_to, prepend=0) != self.dialect.n_columns - 1).any():
            return False
        returns = np.flatnonzero(characters == _CARRIAGE_RETURN)
        return bool((characters[returns + 1] == _LINE_FEED).all()) and b"\0" not in self.data


def _are_outside(positions: np.ndarray, quotes: np.ndarray) -> Any:
    """Which of these positions have an even number of quotes before them."""
    return np.searchsorted(quotes, positions) % 2 == 0 if len(quotes) else slice(None)


def _read_columns(
    data: bytes, dialect: Dialect, numbers: set[int], texts: set[int]
) -> dict[int, Any] | str:
    """The columns by position, or what is wrong if pandas cannot read them."""
    import pandas as pd

    only_numbers = len(numbers) == dialect.n_columns
    options: dict[str, Any] = {
        "sep": dialect.separator,
        "header": None,
        "names": range(dialect.n_columns),
        "usecols": None if only_numbers else sorted(numbers | texts),
        "index_col": False,
        "dtype": np.float64
        if only_numbers
        else {**dict.fromkeys(numbers, np.float64), **dict.fromkeys(texts, object)},
        "keep_default_na": False,
        "na_values": _MISSING_SPELLINGS
        if only_numbers
        else dict.fromkeys(numbers, _MISSING_SPELLINGS),
        "quoting": csv.QUOTE_MINIMAL if dialect.quotes else csv.QUOTE_NONE,
        "decimal": dialect.decimal,
        "engine": "c",
    }
    if _release(pd.__version__) < (3, 1):  # later ones always round correctly
        options["float_precision"] = "round_trip"
    try:
        frame = pd.read_csv(io.BytesIO(data), **options)
    except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError):
        return "not a table"
    except (ValueError, OverflowError):
        return "not numbers"
    if only_numbers:
        return dict(enumerate(frame.to_numpy().T))
    columns: dict[int, Any] = {j: frame[j].to_numpy() for j in numbers}
    return columns | {j: frame[j].to_numpy(dtype=object).tolist() for j in texts}


def _release(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:2])


def _are_numbers(cells: Sequence[str], dialect: Dialect) -> bool:
    """Whether pandas reads every cell as a number or as missing."""
    if dialect.decimal == "." and all_floats(cells) is not None:
        return True
    known = set(_MISSING_SPELLINGS)
    return all(cell in known or is_number(cell, dialect.decimal) for cell in set(cells))
