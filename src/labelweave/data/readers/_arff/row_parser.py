"""Parsing the data rows of an ARFF file into numbers, one column per attribute.

A chunk of lines that holds nothing but plain numbers is parsed by fast, vectorised code. Any other
chunk is parsed line by line by code that understands quotes, words, dates and comments, and that
names the line of a mistake.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache

import numpy as np
import scipy.sparse as sp

from labelweave.data.compressed_files import FilePath
from labelweave.data.readers._arff.header import Attribute, decode_arff, split_values
from labelweave.data.readers._shared.number_scanner import collapse_spaces, scan_numbers
from labelweave.data.readers.reader import sparse_rows
from labelweave.exceptions import DataFileError


@dataclass
class ParsedRows:
    """The values of consecutive rows, one column per attribute.

    * `values`: Dense or sparse, as the rows are in the file. A nominal value is its code
      (:func:`nominal_codes`), less that of the attribute's first value in sparse rows: what they do
      not store is the first value. Missing values and texts are NaN.
    * `texts`: The texts of each string attribute ("" where none is stored).
    """

    values: np.ndarray | sp.csr_array
    texts: dict[int, list[str]] = field(default_factory=dict)


ZERO_ONE_WORDS = {
    "0": 0, "no": 0, "false": 0, "n": 0, "f": 0,
    "1": 1, "yes": 1, "true": 1, "y": 1, "t": 1,
}  # fmt: skip


@lru_cache(maxsize=1024)
def nominal_codes(values: tuple[str, ...]) -> Mapping[str, float]:
    """The number for each value of a nominal attribute.

    The values 0 and 1 (also no/yes and false/true) keep their meaning, in whatever order they are
    declared. Otherwise the number is the position in the declaration.

    >>> dict(nominal_codes(("yes", "no"))), dict(nominal_codes(("red", "blue")))
    ({'yes': 1.0, 'no': 0.0}, {'red': 0.0, 'blue': 1.0})
    """
    words = {value: ZERO_ONE_WORDS.get(value.lower()) for value in values}
    if len(words) <= 2 and None not in words.values() and len(set(words.values())) == len(words):
        return {value: float(code) for value, code in words.items() if code is not None}
    return {value: float(position) for position, value in enumerate(values)}


def first_codes(attributes: Sequence[Attribute]) -> np.ndarray:
    """The code of the first value of each attribute; 0 for one that is not nominal."""
    codes = [nominal_codes(attribute.values) for attribute in attributes]
    return np.array([next(iter(code.values()), 0.0) for code in codes])


class RowParser:
    """Parses chunks of data lines into :class:`ParsedRows`.

    The first row decides whether the file is sparse; rows of the other kind are refused.
    """

    def __init__(self, attributes: tuple[Attribute, ...], path: FilePath) -> None:
        self.attributes = attributes
        self.path = path
        self.sparse: bool | None = None
        self.n_attributes = len(attributes)
        self._codes = [
            nominal_codes(attribute.values) if attribute.kind == "nominal" else None
            for attribute in attributes
        ]
        self._first_codes = first_codes(attributes)
        # Which attributes are restricted to 0 and 1; None if some attribute has words as values.
        zero_one = [codes is not None and set(codes) <= {"0", "1"} for codes in self._codes]
        self._zero_one: np.ndarray | None = None
        if all(
            is_zero_one or attribute.kind == "numeric"
            for is_zero_one, attribute in zip(zero_one, attributes, strict=True)
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

    def parse(self, chunk: bytes, first_line: int) -> ParsedRows | None:
        """Parse the rows of a chunk of lines; None if it has no rows."""
        if self.sparse is None:
            start = re.search(rb"^[ \t]*([^%\s])", chunk, re.MULTILINE)
            if start is None:
                return None
            self.sparse = start[1] == b"{"
        rows: ParsedRows | None = None
        if self._zero_one is not None:
            parse_fast = self._parse_sparse_fast if self.sparse else self._parse_dense_fast
            rows = parse_fast(chunk)
            if rows is None:
                rows = parse_fast(_without_blanks(chunk))
        if rows is not None:
            return rows
        parse_lines = self._parse_sparse_lines if self.sparse else self._parse_dense_lines
        return parse_lines(chunk, first_line)

    # -- fast parsing of plain numbers -------------------------------------------------

    def _parse_sparse_fast(self, chunk: bytes) -> ParsedRows | None:
        numbers = scan_numbers(chunk, b" ,{}\n", missing=True)
        if numbers is None or len(numbers.values) % 2:
            return None
        # A row is "{", pairs "index value" between commas, "}" and a line feed. If every lone
        # separator follows the right one, and every row has its braces, the rows are well-formed.
        after_value = numbers.after[1::2]
        closing = after_value == ord("}")
        before, separator = numbers.lone.T
        n_rows = len(numbers.row_ends)
        if not (
            (numbers.after[0::2] == ord(" ")).all()
            and (closing | (after_value == ord(","))).all()
            and (before == _LONE_BEFORE[separator]).all()
            and (separator == ord("{")).sum() == n_rows
            and (separator == ord("}")).sum() + closing.sum() == n_rows
        ):
            return None
        columns, values, ends = numbers.values[0::2], numbers.values[1::2], numbers.row_ends // 2
        if not ((columns >= 0) & (columns < self.n_attributes)).all():
            return None
        if columns.dtype != np.int32:
            indices = columns.astype(np.int32)
            if (indices != columns).any():
                return None
            columns = indices
        falls = np.flatnonzero(columns[1:] <= columns[:-1]) + 1
        if not (ends[np.searchsorted(ends, falls)] == falls).all():
            return None  # not increasing within a row: unsorted, or a repeated index
        assert self._zero_one is not None
        is_binary = values.dtype == np.int32 and values.max(initial=0) <= 1
        if not is_binary and not _all_zero_one(values[self._zero_one[columns]]):
            return None
        return self._sparse(np.diff(ends, prepend=0), columns, values, {})

    def _parse_dense_fast(self, chunk: bytes) -> ParsedRows | None:
        numbers = scan_numbers(chunk, b",\n", missing=True)
        if numbers is None or len(numbers.lone) or len(numbers.values) == 0:
            return None
        if (numbers.per_row != self.n_attributes).any():
            return None
        values = numbers.values.reshape(-1, self.n_attributes)
        return ParsedRows(values) if _all_zero_one(values[:, self._zero_one]) else None

    # -- parsing line by line ----------------------------------------------------------

    def _parse_dense_lines(self, chunk: bytes, first_line: int) -> ParsedRows | None:
        rows: list[list[float]] = []
        texts: dict[int, list[str]] = {j: [] for j in self._string_columns}
        for number, line in self._lines(chunk, first_line):
            if line.startswith("{"):
                raise self._error(
                    "the row is sparse, but the first row of the file is dense", number
                )
            parts = self._split(line, number)
            if len(parts) != self.n_attributes:
                raise self._error(
                    f"the row has {len(parts)} values, but there are {self.n_attributes} "
                    "attributes",
                    number,
                )
            rows.append([self._number(j, part, number) for j, part in enumerate(parts)])
            for j, column in texts.items():
                column.append("" if parts[j] == "?" else parts[j])
        return ParsedRows(np.array(rows, dtype=np.float64), texts) if rows else None

    def _parse_sparse_lines(self, chunk: bytes, first_line: int) -> ParsedRows | None:
        counts: list[int] = []
        columns: list[int] = []
        values: list[float] = []
        texts: dict[int, list[str]] = {j: [] for j in self._string_columns}
        for number, line in self._lines(chunk, first_line):
            if not (line.startswith("{") and line.endswith("}")):
                raise self._error("expected a sparse row in braces, {index value, ...}", number)
            entries = self._sparse_entries(line[1:-1], number)
            counts.append(len(entries))
            for j in sorted(entries):
                columns.append(j)
                values.append(self._number(j, entries[j], number))
            for j, column in texts.items():
                column.append(entries.get(j, ""))
        if not counts:
            return None
        indices = np.array(columns, dtype=np.int32)
        return self._sparse(np.array(counts), indices, np.array(values, dtype=float), texts)

    def _sparse(
        self,
        counts: np.ndarray,
        columns: np.ndarray,
        values: np.ndarray,
        texts: dict[int, list[str]],
    ) -> ParsedRows:
        if self._first_codes.any():
            values = values - self._first_codes[columns]
        matrix = sparse_rows(counts, columns, values, self.n_attributes)
        if not matrix.data.all():
            matrix.eliminate_zeros()
        return ParsedRows(matrix, texts)

    def _sparse_entries(self, text: str, number: int) -> dict[int, str]:
        if not text.strip():
            return {}
        entries: dict[int, str] = {}
        for index_text, value in _split_entries(text):
            if index_text is None:
                raise self._error(f"expected 'index value', found {value[:40]!r}", number)
            index = int(index_text)
            if index >= self.n_attributes:
                raise self._error(
                    f"the index {index_text} is beyond the last of {self.n_attributes} "
                    "attributes (indices start at 0)",
                    number,
                )
            if index in entries:
                raise self._error(f"the index {index} occurs twice in the row", number)
            entries[index] = self._split(value, number)[0]
        return entries

    def _lines(self, chunk: bytes, first_line: int) -> Iterator[tuple[int, str]]:
        for number, raw in enumerate(chunk.split(b"\n"), first_line):
            line = decode_arff(raw).strip()
            if line and not line.startswith("%"):
                yield number, line

    def _split(self, text: str, number: int) -> list[str]:
        try:
            return split_values(text)
        except ValueError as error:
            raise self._error(str(error), number) from None

    def _number(self, j: int, text: str, number: int) -> float:
        attribute, codes = self.attributes[j], self._codes[j]
        if text == "?":
            return math.nan
        if codes is not None:
            if text in codes:
                return codes[text]
            raise self._error(
                f"{text[:40]!r} is not one of the {len(codes)} values of attribute "
                f"{attribute.name!r}",
                number,
            )
        if attribute.kind == "string":
            return math.nan
        if attribute.kind == "date":
            return self._seconds(j, text, number)
        try:
            if "_" in text:  # Python would accept "1_000"
                raise ValueError
            return float(text)
        except ValueError:
            raise self._error(
                f"{text[:40]!r} is not a number (attribute {attribute.name!r})", number
            ) from None

    def _seconds(self, j: int, text: str, number: int) -> float:
        try:
            return seconds_since_1970(text, self._date_formats[j])
        except (ValueError, OverflowError):
            date_format = self.attributes[j].date_format or ISO_DATE
            raise self._error(
                f"{text[:40]!r} is not a date of the form {date_format}", number
            ) from None

    def _error(self, message: str, number: int) -> DataFileError:
        return DataFileError(message, path=self.path, line=number)


def _all_zero_one(values: np.ndarray) -> bool:
    return bool(((values == 0) | (values == 1) | np.isnan(values)).all())


# The separator that must come before one that follows no number: a line feed before "{", "{" before
# "}" (an empty row), "}" before a line feed. No other separator may follow another.
_LONE_BEFORE = np.zeros(256, dtype=np.uint8)
_LONE_BEFORE[[ord("{"), ord("}"), ord("\n")]] = ord("\n"), ord("{"), ord("}")


def _without_blanks(chunk: bytes) -> bytes:
    """The chunk without blank lines and superfluous blanks."""
    chunk = collapse_spaces(chunk, tight=b"{,}\n")
    while b"\n\n" in chunk:
        chunk = chunk.replace(b"\n\n", b"\n")
    return chunk.removeprefix(b"\n")


_ENTRY = re.compile(r"\s*(\d{1,18})\s+(?=\S)")


def _split_entries(text: str) -> Iterator[tuple[str | None, str]]:
    """Index and value (still quoted) of each entry of a sparse row; None for a malformed index."""
    position = 0
    has_quotes = "'" in text or '"' in text
    while position < len(text):
        match = _ENTRY.match(text, position)
        if match is None:
            yield None, text[position : position + 40]
            return
        end = _end_of_value(text, match.end()) if has_quotes else text.find(",", match.end())
        end = len(text) if end < 0 else end
        yield match[1], text[match.end() : end]
        position = end + 1
        if position == len(text):
            yield None, ""  # nothing follows the last comma


_QUOTED = re.compile(r"'[^'\\]*(?:\\.[^'\\]*)*'|\"[^\"\\]*(?:\\.[^\"\\]*)*\"", re.DOTALL)


def _end_of_value(text: str, start: int) -> int:
    """Position of the comma after the value that begins at `start`, or -1."""
    match = _QUOTED.match(text, start)
    return text.find(",", match.end() if match else start)


# -- dates, whose formats are written in Java's letters --------------------------------

ISO_DATE = "yyyy-MM-dd'T'HH:mm:ss"

_STRPTIME_LETTERS = {
    "yyyy": "%Y", "yy": "%y", "MMM": "%b", "MM": "%m", "M": "%m", "dd": "%d", "d": "%d",
    "EEE": "%a", "HH": "%H", "H": "%H", "hh": "%I", "a": "%p", "mm": "%M", "ss": "%S",
    "SSS": "%f", "Z": "%z",
}  # fmt: skip

_DATE_PART = re.compile(r"'([^']*)'|(([A-Za-z])\3*)|(.)", re.DOTALL)


def strptime_format(java_format: str, attribute: str, path: FilePath) -> str:
    """Translate a date format of Java to Python; an empty one means ISO 8601.

    >>> strptime_format("yyyy-MM-dd'T'HH:mm", "when", "file.arff")
    '%Y-%m-%dT%H:%M'
    """
    parts: list[str] = []
    for quoted, letters, _, other in _DATE_PART.findall(java_format or ISO_DATE):
        if letters and letters not in _STRPTIME_LETTERS:
            raise DataFileError(
                f"the date format of attribute {attribute!r} contains {letters!r}, which "
                "labelweave does not support",
                path=path,
            )
        part = _STRPTIME_LETTERS[letters] if letters else (quoted or other).replace("%", "%%")
        if letters and part in parts:
            raise DataFileError(
                f"the date format of attribute {attribute!r} contains {letters!r} twice", path=path
            )
        parts.append(part)
    if not set(parts) & set(_STRPTIME_LETTERS.values()):
        raise DataFileError(
            f"the date format {java_format!r} of attribute {attribute!r} names no part of a date, "
            "such as yyyy-MM-dd",
            path=path,
        )
    return "".join(parts)


def seconds_since_1970(text: str, python_format: str) -> float:
    """Seconds since 1970; a date without a time zone is taken as UTC.

    >>> seconds_since_1970("1970-01-02", "%Y-%m-%d")
    86400.0
    """
    moment = datetime.strptime(text, python_format)
    return moment.replace(tzinfo=moment.tzinfo or UTC).timestamp()
