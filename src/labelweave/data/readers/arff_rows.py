"""The data rows of an ARFF file, as numbers in the columns of its attributes.

A block of lines goes through the quick, vectorised way if it holds nothing but plain
numbers, and otherwise through the careful way, line by line, which knows quotes, words,
dates and comments and names the line of a mistake.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from os import PathLike

import numpy as np

from labelweave.data.readers.arff_dates import ISO_DATE, seconds, strptime_format
from labelweave.data.readers.arff_header import Attribute, decode_arff, split_values
from labelweave.data.readers.tokens import collapse_spaces, scan_numbers
from labelweave.exceptions import DataFileError

__all__ = ["DenseRows", "RowParser", "SparseRows", "ZERO_ONE_WORDS", "nominal_codes"]


@dataclass
class DenseRows:
    """Rows by attributes; texts of string attributes apart, by attribute position."""

    values: np.ndarray
    texts: dict[int, list[str]] = field(default_factory=dict)


@dataclass
class SparseRows:
    """Stored entries of sparse rows, in row order: how many a row, attribute, value.

    `texts` holds for a string attribute the text of every row ("" where none is stored).
    """

    counts: np.ndarray
    columns: np.ndarray
    values: np.ndarray
    texts: dict[int, list[str]] = field(default_factory=dict)


ZERO_ONE_WORDS = {
    "0": 0, "no": 0, "false": 0, "n": 0, "f": 0,
    "1": 1, "yes": 1, "true": 1, "y": 1, "t": 1,
}  # fmt: skip


@lru_cache(maxsize=1024)
def nominal_codes(values: tuple[str, ...]) -> Mapping[str, float]:
    """The number that stands for each value of a nominal attribute.

    0 and 1 (also no/yes and false/true) mean what they say, in whatever order they are
    declared. Otherwise the code is the position in the declaration.

    >>> dict(nominal_codes(("yes", "no"))), dict(nominal_codes(("red", "blue")))
    ({'yes': 1.0, 'no': 0.0}, {'red': 0.0, 'blue': 1.0})
    """
    words = {value: ZERO_ONE_WORDS.get(value.lower()) for value in values}
    if len(words) <= 2 and None not in words.values() and len(set(words.values())) == len(words):
        return {value: float(code) for value, code in words.items() if code is not None}
    return {value: float(position) for position, value in enumerate(values)}


class RowParser:
    """Turns blocks of data lines into :class:`DenseRows` or :class:`SparseRows`.

    The first row decides whether the file is sparse; rows of the other kind are refused.
    """

    def __init__(self, attributes: tuple[Attribute, ...], path: str | PathLike[str]) -> None:
        self.attributes = attributes
        self.path = path
        self.sparse: bool | None = None
        self.n_attributes = len(attributes)
        self._codes = [
            nominal_codes(attribute.values) if attribute.kind == "nominal" else None
            for attribute in attributes
        ]
        # Attributes whose plain numbers must be 0 or 1; None if words must be understood.
        zero_one = [codes is not None and set(codes) <= {"0", "1"} for codes in self._codes]
        self._zero_one: np.ndarray | None = None
        if all(
            quick or attribute.kind == "numeric"
            for quick, attribute in zip(zero_one, attributes, strict=True)
        ):
            self._zero_one = np.array(zero_one)
        self._string_columns = [
            j for j, attribute in enumerate(attributes) if attribute.kind == "string"
        ]
        self._date_formats = {
            j: strptime_format(attribute.date_format, attribute.name, path)
            for j, attribute in enumerate(attributes)
            if attribute.kind == "date"
        }

    def parse(self, block: bytes, first_line: int) -> DenseRows | SparseRows | None:
        """The rows of a block; None if it holds none."""
        if self.sparse is None:
            start = re.search(rb"^[ \t]*([^%\s])", block, re.MULTILINE)
            if start is None:
                return None
            self.sparse = start[1] == b"{"
        quick: DenseRows | SparseRows | None = None
        if self._zero_one is not None:
            attempt = self._quick_sparse if self.sparse else self._quick_dense
            quick = attempt(block)
            if quick is None:
                quick = attempt(_without_blanks(block))
        if quick is not None:
            return quick
        return (self._careful_sparse if self.sparse else self._careful_dense)(block, first_line)

    # -- the quick way -----------------------------------------------------------------

    def _quick_sparse(self, block: bytes) -> SparseRows | None:
        found = scan_numbers(block, b" ,{}\n", missing=True)
        if found is None or len(found.values) % 2:
            return None
        # A row is "{", pairs "index value" between commas, "}" and a line feed. With every
        # lone separator in its place, and as many braces as rows, the rows are well-formed.
        second = found.after[1::2]
        closing = second == ord("}")
        before, sign = found.lone.T
        n_rows = len(found.row_ends)
        if not (
            (found.after[0::2] == ord(" ")).all()
            and (closing | (second == ord(","))).all()
            and (before == _LONE_BEFORE[sign]).all()
            and (sign == ord("{")).sum() == n_rows
            and (sign == ord("}")).sum() + closing.sum() == n_rows
        ):
            return None
        columns, values, ends = found.values[0::2], found.values[1::2], found.row_ends // 2
        if not ((columns >= 0) & (columns < self.n_attributes)).all():
            return None
        if columns.dtype != np.int32:
            whole = columns.astype(np.int32)
            if (whole != columns).any():
                return None
            columns = whole
        falls = np.flatnonzero(columns[1:] <= columns[:-1]) + 1
        if not (ends[np.searchsorted(ends, falls)] == falls).all():
            return None  # not rising within a row: unsorted, or an index that comes twice
        if not self._zero_one_fit(columns, values):
            return None
        return SparseRows(np.diff(ends, prepend=0), columns, values)

    def _zero_one_fit(self, columns: np.ndarray, values: np.ndarray) -> bool:
        """Whether all values of 0/1 attributes are 0, 1 or missing."""
        assert self._zero_one is not None
        if values.dtype == np.int32 and values.max(initial=0) <= 1:
            return True
        return _all_zero_one(values[self._zero_one[columns]])

    def _quick_dense(self, block: bytes) -> DenseRows | None:
        found = scan_numbers(block, b",\n", missing=True)
        if found is None or len(found.lone) or len(found.values) == 0:
            return None
        if (found.per_row != self.n_attributes).any():
            return None
        values = found.values.reshape(-1, self.n_attributes)
        return DenseRows(values) if _all_zero_one(values[:, self._zero_one]) else None

    # -- the careful way ---------------------------------------------------------------

    def _careful_dense(self, block: bytes, first_line: int) -> DenseRows | None:
        rows: list[list[float]] = []
        texts: dict[int, list[str]] = {j: [] for j in self._string_columns}
        for number, line in self._lines(block, first_line):
            if line.startswith("{"):
                raise self._bad("a sparse row in a file whose first row is dense", number)
            parts = self._split(line, number)
            if len(parts) != self.n_attributes:
                raise self._bad(
                    f"the row has {len(parts)} values for {self.n_attributes} attributes", number
                )
            rows.append([self._number(j, part, number) for j, part in enumerate(parts)])
            for j, column in texts.items():
                column.append("" if parts[j] == "?" else parts[j])
        return DenseRows(np.array(rows, dtype=np.float64), texts) if rows else None

    def _careful_sparse(self, block: bytes, first_line: int) -> SparseRows | None:
        counts: list[int] = []
        columns: list[int] = []
        values: list[float] = []
        texts: dict[int, list[str]] = {j: [] for j in self._string_columns}
        for number, line in self._lines(block, first_line):
            if not (line.startswith("{") and line.endswith("}")):
                raise self._bad("expected a sparse row in braces, {index value, ...}", number)
            entries = self._sparse_entries(line[1:-1], number)
            counts.append(len(entries))
            for j in sorted(entries):
                columns.append(j)
                values.append(self._number(j, entries[j], number))
            for j, column in texts.items():
                column.append(entries.get(j, ""))
        if not counts:
            return None
        return SparseRows(
            np.array(counts),
            np.array(columns, dtype=np.int32),
            np.array(values, dtype=float),
            texts,
        )

    def _sparse_entries(self, text: str, number: int) -> dict[int, str]:
        if not text.strip():
            return {}
        entries: dict[int, str] = {}
        for index_text, value in _split_entries(text):
            if index_text is None:
                raise self._bad(f"expected 'index value', found {value[:40]!r}", number)
            index = int(index_text)
            if index >= self.n_attributes:
                raise self._bad(
                    f"the index {index_text} is beyond the last of {self.n_attributes} "
                    "attributes (indices start at 0)",
                    number,
                )
            if index in entries:
                raise self._bad(f"the index {index} comes twice in the row", number)
            entries[index] = self._split(value, number)[0]
        return entries

    def _lines(self, block: bytes, first_line: int) -> Iterator[tuple[int, str]]:
        for number, raw in enumerate(block.split(b"\n"), first_line):
            line = decode_arff(raw).strip()
            if line and not line.startswith("%"):
                yield number, line

    def _split(self, text: str, number: int) -> list[str]:
        try:
            return split_values(text)
        except ValueError as error:
            raise self._bad(str(error), number) from None

    def _number(self, j: int, text: str, number: int) -> float:
        attribute, codes = self.attributes[j], self._codes[j]
        if text == "?":
            return math.nan
        if codes is not None:
            if text in codes:
                return codes[text]
            raise self._bad(
                f"{text[:40]!r} is none of the {len(codes)} values of attribute {attribute.name!r}",
                number,
            )
        if attribute.kind == "string":
            return math.nan
        if attribute.kind == "date":
            return self._seconds(j, text, number)
        try:
            # Python alone would read "1_000".
            return float(text) if "_" not in text else float("not a number")
        except ValueError:
            raise self._bad(
                f"{text[:40]!r} is no number (attribute {attribute.name!r})", number
            ) from None

    def _seconds(self, j: int, text: str, number: int) -> float:
        try:
            return seconds(text, self._date_formats[j])
        except (ValueError, OverflowError):
            wanted = self.attributes[j].date_format or ISO_DATE
            raise self._bad(f"{text[:40]!r} is no date of the form {wanted}", number) from None

    def _bad(self, what: str, number: int) -> DataFileError:
        return DataFileError(what, path=self.path, line=number)


def _all_zero_one(values: np.ndarray) -> bool:
    return bool(((values == 0) | (values == 1) | np.isnan(values)).all())


# What must stand before a separator that follows no number: "{" a line feed, "}" a "{"
# (an empty row), a line feed a "}"; no other separator may stand alone.
_LONE_BEFORE = np.zeros(256, dtype=np.uint8)
_LONE_BEFORE[[ord("{"), ord("}"), ord("\n")]] = ord("\n"), ord("{"), ord("}")


def _without_blanks(block: bytes) -> bytes:
    """The block without blank lines and needless blanks."""
    block = collapse_spaces(block, tight=b"{,}\n")
    while b"\n\n" in block:
        block = block.replace(b"\n\n", b"\n")
    return block.removeprefix(b"\n")


_ENTRY = re.compile(r"\s*(\d{1,18})\s+(?=\S)")


def _split_entries(text: str) -> Iterator[tuple[str | None, str]]:
    """Pairs of index and value text (still quoted) of the inside of a sparse row."""
    place = 0
    quoted = "'" in text or '"' in text
    while place < len(text):
        found = _ENTRY.match(text, place)
        if found is None:
            yield None, text[place : place + 40]
            return
        end = _end_of_value(text, found.end()) if quoted else text.find(",", found.end())
        end = len(text) if end < 0 else end
        yield found[1], text[found.end() : end]
        place = end + 1
        if place == len(text):
            yield None, ""  # nothing follows the last comma


_QUOTED_OR_NOT = re.compile(r"'[^'\\]*(?:\\.[^'\\]*)*'|\"[^\"\\]*(?:\\.[^\"\\]*)*\"", re.DOTALL)


def _end_of_value(text: str, place: int) -> int:
    """Where the comma after the value that starts at `place` is, or -1."""
    found = _QUOTED_OR_NOT.match(text, place)
    return text.find(",", found.end() if found else place)
