"""Fast scanning of numbers between separators, for a whole chunk of lines at once.

The sparse text formats (ARFF, svmlight, Extreme Classification) are numbers with a few
single-character separators. :func:`scan_numbers` turns a chunk of such lines into arrays without a
Python loop: the numbers, the separator after each, and the row of each. It returns None for a chunk
with anything else (quotes, comments, words, mistakes). The slower code of each format then parses
the chunk line by line and names the line of a mistake.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

_DIGIT, _SEPARATOR, _REAL, _OTHER = 0, 1, 2, 3
_LINE_FEED = np.uint8(10)


def _masks(size: int, dtype: type[np.unsignedinteger]) -> np.ndarray:
    """Bit masks that keep the last k bytes of a little-endian word, for k = 0 to `size`."""
    full = 2 ** (8 * size) - 1
    return np.array([full ^ (full >> (8 * k)) for k in range(size + 1)], dtype=dtype)


_LAST_BYTES_4 = _masks(4, np.uint32)
_LAST_BYTES_8 = _masks(8, np.uint64)


@dataclass
class Numbers:
    """The numbers of a chunk of lines."""

    values: np.ndarray  # Every number of the chunk
    after: np.ndarray  # The separator that follows each number
    row_ends: np.ndarray  # The number of values up to the end of each row (line)
    # Separators without a number before them: the separator before, and the separator itself
    lone: np.ndarray

    @property
    def per_row(self) -> np.ndarray:
        """The number of values in each row."""
        return np.diff(self.row_ends, prepend=0)


def scan_numbers(chunk: bytes, separators: bytes, *, missing: bool = False) -> Numbers | None:
    r"""Scan a chunk of lines; None if it holds anything but numbers and separators.

    Each line is ended by a line feed, which is one of the single-byte separators. With `missing` a
    question mark stands for NaN.

    >>> numbers = scan_numbers(b"3:1 7:0.5\n2:4\n", b": \n")
    >>> numbers.values.tolist(), numbers.after.tobytes(), numbers.per_row.tolist()
    ([3.0, 1.0, 7.0, 0.5, 2.0, 4.0], b': :\n:\n', [4, 2])
    >>> scan_numbers(b"3:one\n", b": \n") is None
    True
    """
    kinds = np.frombuffer(chunk.translate(_kind_table(separators, missing)), dtype=np.uint8)
    worst = int(kinds.max(initial=_DIGIT))
    if worst == _OTHER:
        return None
    positions = np.flatnonzero(kinds == _SEPARATOR)
    characters = np.frombuffer(chunk, dtype=np.uint8)[positions]
    lengths = np.diff(positions, prepend=-1) - 1
    has_number = lengths > 0
    values = _values(chunk, positions[has_number], lengths[has_number], separators, worst == _REAL)
    if values is None:
        return None
    lone = np.flatnonzero(~has_number)
    line_ends = np.flatnonzero(characters == _LINE_FEED)
    return Numbers(
        values=values,
        after=characters[has_number],
        row_ends=line_ends + 1 - np.searchsorted(lone, line_ends, side="right"),
        lone=np.column_stack(
            [np.where(lone > 0, characters[lone - 1], _LINE_FEED), characters[lone]]
        ),
    )


@lru_cache
def _kind_table(separators: bytes, missing: bool) -> bytes:
    table = bytearray([_OTHER]) * 256
    for byte in b"0123456789":
        table[byte] = _DIGIT
    for byte in b".+-eE?" if missing else b".+-eE":
        table[byte] = _REAL
    for byte in separators:
        table[byte] = _SEPARATOR
    return bytes(table)


def _values(
    chunk: bytes, ends: np.ndarray, lengths: np.ndarray, separators: bytes, real: bool
) -> np.ndarray | None:
    if not real and lengths.max(initial=0) <= 8:
        return _short_integers(chunk, ends, lengths)
    text = chunk.translate(bytes.maketrans(separators, b" " * len(separators)))
    if b"?" in text:
        text = text.replace(b"?", b"nan")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", DeprecationWarning)
            values = np.fromstring(text, sep=" ", dtype=np.float64)
    except (DeprecationWarning, ValueError):
        return None
    # Two numbers without a separator ("1-2") would be counted twice.
    return values if len(values) == len(ends) else None


def _short_integers(chunk: bytes, ends: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Integers of up to eight digits, by arithmetic on the eight bytes before each end.

    Neighbouring digits are combined to pairs, pairs to fours, and fours to the whole number.
    """
    if lengths.max(initial=0) <= 4:
        small = _bytes_before(chunk, ends, "<u4") & _LAST_BYTES_4[lengths]
        small &= np.uint32(0x0F0F0F0F)
        small = (small * np.uint32(10) + (small >> np.uint32(8))) & np.uint32(0x00FF00FF)
        small = (small * np.uint32(100) + (small >> np.uint32(16))) & np.uint32(0xFFFF)
        return small.astype(np.int32)
    words = _bytes_before(chunk, ends, "<u8") & _LAST_BYTES_8[lengths]
    words &= np.uint64(0x0F0F0F0F0F0F0F0F)
    words = (words * np.uint64(10) + (words >> np.uint64(8))) & np.uint64(0x00FF00FF00FF00FF)
    words = (words * np.uint64(100) + (words >> np.uint64(16))) & np.uint64(0x0000FFFF0000FFFF)
    words = (words * np.uint64(10000) + (words >> np.uint64(32))) & np.uint64(0xFFFFFFFF)
    return words.astype(np.int32)


def _bytes_before(chunk: bytes, ends: np.ndarray, dtype: str) -> np.ndarray:
    """The bytes just before each end, as one integer each."""
    size = np.dtype(dtype).itemsize
    padded = b"\0" * size + chunk
    return np.ndarray((len(chunk) + 1,), dtype=dtype, buffer=padded, strides=(1,))[ends]


def collapse_spaces(chunk: bytes, *, tight: bytes) -> bytes:
    r"""Reduce blanks to single ones, and remove those around the bytes of `tight`.

    >>> collapse_spaces(b"{ 1  2 , 3\t4 }\r\n", tight=b"{,}\n")
    b'{1 2,3 4}\n'
    """
    if b"\t" in chunk or b"\r" in chunk:
        chunk = chunk.replace(b"\r\n", b"\n").replace(b"\t", b" ")
    while b"  " in chunk:
        chunk = chunk.replace(b"  ", b" ")
    for byte in tight:
        character = bytes([byte])
        if b" " + character in chunk:
            chunk = chunk.replace(b" " + character, character)
        if character + b" " in chunk:
            chunk = chunk.replace(character + b" ", character)
    return chunk
