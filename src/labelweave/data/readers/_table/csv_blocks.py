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

from labelweave.data.readers._table.cells import MISSING, parse_numbers

SEPARATORS = ",;\t|"
"""The separators of files that are parsed fast."""

_MISSING_SPELLINGS = sorted({s for w in MISSING for s in (w, w.upper(), w.capitalize())} | {"NaN"})
_ONE, _SEVEN_BYTES, _ONES = np.uint64(1), np.uint64(56), np.uint64(0x0101010101010101)
_QUOTE, _LINE_FEED, _CARRIAGE_RETURN = (ord(sign) for sign in '"\n\r')


@dataclass
class Dialect:
    """How the cells of a file are written, and which columns pandas reads as another type.

    `words` collects the columns of numbers in which a cell was found that only our own parser
    reads, such as "yes" or "1_000"; they are no longer tried as numbers. `strings` are the columns
    of strings that pandas takes for another type, such as ids that are numbers. `has_blanks` is set
    when a blank was found in a table of nothing but numbers.
    """

    separator: str
    quotes: bool
    decimal: str
    n_columns: int
    words: set[int] = field(default_factory=set)
    strings: set[int] = field(default_factory=set)
    has_blanks: bool = False


class Block:
    r"""The complete rows at the start of some data; at most `most` of them, where it is given.

    A line feed inside a quoted cell does not end a row.

    >>> block = Block(b'a,"b\nc"\nd,e\nf,"g\n', Dialect(",", True, ".", 2))
    >>> block.data, block.has_usual_quotes(), [list(column) for column in block.parse()]
    (b'a,"b\nc"\nd,e\n', True, [['a', 'd'], ['b\nc', 'e']])
    >>> list(block.lines(1)), block.n_lines
    ([2, 3], 3)
    """

    def __init__(self, data: bytes, dialect: Dialect, most: int | None = None) -> None:
        self.dialect = dialect
        characters = np.frombuffer(data, dtype=np.uint8)
        line_feeds = np.flatnonzero(characters == _LINE_FEED)
        has_quotes = dialect.quotes and b'"' in data
        quotes = np.flatnonzero(characters == _QUOTE) if has_quotes else line_feeds[:0]
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
            The columns of strings: lists, or arrays of pandas' type for strings. By default all
            that are not in `numbers`. The columns that are in neither are empty.
        """
        dialect = self.dialect
        if not self._is_regular():
            return None
        if texts is None:
            texts = set(range(dialect.n_columns)) - set(numbers)
        tried = set(numbers) - set(texts) - dialect.words
        columns = _read_columns(self.data, dialect, tried, {*texts, *numbers} - tried)
        if columns is None or any(len(c) != len(self._row_ends) for c in columns.values()):
            return None
        for j in set(numbers) - set(texts):
            if not isinstance(columns[j], np.ndarray):
                values, wrong = parse_numbers(columns[j], dialect.decimal)
                columns[j] = values if wrong is None else columns[j]
        return [columns.get(j, ()) for j in range(dialect.n_columns)]

    def _is_regular(self) -> bool:
        """Whether every row has its number of cells, and lines end in the usual ways."""
        characters = self._characters
        separator = ord(self.dialect.separator)
        positions = np.concatenate([self._row_ends, self._quotes])
        before = _counts_before(characters, separator, positions)
        n_rows = len(self._row_ends)
        per_row = np.diff(before[:n_rows], prepend=0)
        if len(self._quotes):
            inside = before[n_rows + 1 :: 2] - before[n_rows::2]  # from a quote to the next one
            rows = np.searchsorted(self._row_ends, self._quotes[::2])
            np.subtract.at(per_row, rows, inside)
        if (per_row != self.dialect.n_columns - 1).any():
            return False
        if b"\0" in self.data:
            return False
        if b"\r" not in self.data:
            return True
        returns = np.flatnonzero(characters == _CARRIAGE_RETURN)
        return bool((characters[returns + 1] == _LINE_FEED).all())


def _counts_before(characters: np.ndarray, sign: int, positions: np.ndarray) -> np.ndarray:
    """How often a sign occurs before each position; eight characters are looked at together.

    >>> characters = np.frombuffer(b"a,a" * 5, dtype=np.uint8)
    >>> _counts_before(characters, ord("a"), np.array([0, 3, 14])).tolist()
    [0, 2, 9]
    """
    n = len(characters)
    flags = np.empty(-(-n // 8) * 8 + 8, dtype=bool)
    np.equal(characters, sign, out=flags[:n])
    flags[n:] = False
    words = flags.view("<u8")  # one flag per byte
    word = positions >> 3
    part = words[word] & ((_ONE << ((positions & 7) << 3).astype(np.uint64)) - _ONE)
    words *= _ONES
    words >>= _SEVEN_BYTES
    sums = np.cumsum(words, out=words)
    earlier = np.where(word > 0, sums[word - 1].astype(np.int64), 0)
    return earlier + ((part * _ONES) >> _SEVEN_BYTES).astype(np.int64)


def _are_outside(positions: np.ndarray, quotes: np.ndarray) -> Any:
    """Which of these positions have an even number of quotes before them."""
    return np.searchsorted(quotes, positions) % 2 == 0 if len(quotes) else slice(None)


def _read_columns(
    data: bytes, dialect: Dialect, numbers: set[int], texts: set[int]
) -> dict[int, Any] | None:
    """The columns by position, or None if pandas cannot read them.

    Types are found by pandas, which is faster than to ask for strings. A column that should be of
    strings and is not, or the other way round, is read again as strings.
    """
    if len(numbers) == dialect.n_columns:
        matrix = None
        if not dialect.has_blanks:  # to look for them takes a tenth of the time
            matrix = _matrix_of(_read_frame(data, dialect, na_filter=False))
        if matrix is None:
            matrix = _matrix_of(_read_frame(data, dialect, na_values=_MISSING_SPELLINGS))
            dialect.has_blanks = matrix is not None
        if matrix is not None:
            return dict(enumerate(matrix.T))
    to_parse = (numbers | texts) - dialect.strings
    columns: dict[int, Any] = {}
    if to_parse:
        missing = dict.fromkeys(numbers, _MISSING_SPELLINGS)
        frame = _read_frame(data, dialect, usecols=sorted(to_parse), na_values=missing)
        if frame is None:
            return None
        for j in to_parse:
            column = frame[j]
            if j in numbers and column.dtype.kind in "iuf":
                columns[j] = column.to_numpy(dtype=np.float64)
            elif j in texts and _is_string(column.dtype):
                columns[j] = column.array
    again = (numbers | texts) - set(columns)
    if again:
        frame = _read_frame(data, dialect, usecols=sorted(again), dtype=object)
        if frame is None:
            return None
        columns |= {j: frame[j].to_numpy(dtype=object).tolist() for j in again}
        dialect.strings.update(again & texts)
        dialect.words.update(again & numbers)
    return columns


def _matrix_of(frame: Any) -> np.ndarray | None:
    """The numbers of a table, or None if a column has other types.

    To find the types takes pandas half the time of reading 64-bit numbers where they are asked for.
    """
    if frame is None or any(dtype.kind not in "iuf" for dtype in frame.dtypes):
        return None
    return frame.to_numpy(dtype=np.float64)


def _read_frame(data: bytes, dialect: Dialect, **options: Any) -> Any:
    import pandas as pd

    if _release(pd.__version__) < (3, 1):  # later ones always round correctly
        options["float_precision"] = "round_trip"
    try:
        return pd.read_csv(
            io.BytesIO(data),
            sep=dialect.separator,
            header=None,
            names=range(dialect.n_columns),
            index_col=False,
            keep_default_na=False,
            quoting=csv.QUOTE_MINIMAL if dialect.quotes else csv.QUOTE_NONE,
            decimal=dialect.decimal,
            engine="c",
            low_memory=False,  # else parts of a column may get other types
            **options,
        )
    except (ValueError, OverflowError):  # also all errors of pandas' parser
        return None


def _is_string(dtype: Any) -> bool:
    """Whether a column is of pandas' own type for strings, which is missing before pandas 3."""
    import pandas as pd

    return isinstance(dtype, pd.StringDtype)


def _release(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:2])
