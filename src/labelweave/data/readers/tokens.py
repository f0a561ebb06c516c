"""Numbers between separators, for a whole block of lines at once.

All sparse text formats (ARFF, svmlight, Extreme Classification) are numbers with a few
single-character separators. :func:`scan_numbers` turns a block of such lines into arrays
without a Python loop: which number, which separator follows it, in which row. It answers
only for blocks it understands completely; everything else (quotes, comments, words,
mistakes) is left to the slower code of each format, which also finds the line to blame.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

__all__ = ["Numbers", "collapse_spaces", "scan_numbers"]

_DIGIT, _SEPARATOR, _REAL, _OTHER = 0, 1, 2, 3
_LINE_FEED = np.uint8(10)


def _masks(size: int, dtype: type[np.unsignedinteger]) -> np.ndarray:
    """For k = 0 to `size`, what keeps the last k bytes of a little-endian word."""
    full = 2 ** (8 * size) - 1
    return np.array([full ^ (full >> (8 * k)) for k in range(size + 1)], dtype=dtype)


_LAST_BYTES_4 = _masks(4, np.uint32)
_LAST_BYTES_8 = _masks(8, np.uint64)


@dataclass
class Numbers:
    """The numbers of a block of lines.

    Attributes
    ----------
    values : int32 or float64 ndarray
        Every number of the block.
    after : uint8 ndarray
        The separator that follows each number.
    row_ends : int64 ndarray
        How many numbers there are up to the end of each row (line).
    lone : uint8 ndarray of shape (n, 2)
        Separators with no number in front of them: the one before and the separator itself.
    """

    values: np.ndarray
    after: np.ndarray
    row_ends: np.ndarray
    lone: np.ndarray

    @property
    def per_row(self) -> np.ndarray:
        """How many numbers each row has."""
        return np.diff(self.row_ends, prepend=0)


def scan_numbers(block: bytes, separators: bytes, *, missing: bool = False) -> Numbers | None:
    r"""Numbers of a block of lines, or None if it holds anything but numbers and separators.

    Parameters
    ----------
    block : bytes
        Lines, each ended by a line feed.
    separators : bytes
        Single-byte separators, the line feed among them.
    missing : bool
        Whether a question mark stands for NaN.

    Examples
    --------
    >>> found = scan_numbers(b"3:1 7:0.5\n2:4\n", b": \n")
    >>> found.values.tolist(), found.after.tobytes(), found.per_row.tolist()
    ([3.0, 1.0, 7.0, 0.5, 2.0, 4.0], b': :\n:\n', [4, 2])
    >>> scan_numbers(b"3:one\n", b": \n") is None
    True
    """
    kinds = np.frombuffer(block.translate(_kind_table(separators, missing)), dtype=np.uint8)
    worst = int(kinds.max(initial=_DIGIT))
    if worst == _OTHER:
        return None
    places = np.flatnonzero(kinds == _SEPARATOR)
    signs = np.frombuffer(block, dtype=np.uint8)[places]
    lengths = np.diff(places, prepend=-1) - 1
    filled = lengths > 0
    values = _values(block, places[filled], lengths[filled], separators, worst == _REAL)
    if values is None:
        return None
    lone = np.flatnonzero(~filled)
    line_ends = np.flatnonzero(signs == _LINE_FEED)
    return Numbers(
        values=values,
        after=signs[filled],
        row_ends=line_ends + 1 - np.searchsorted(lone, line_ends, side="right"),
        lone=np.column_stack([np.where(lone > 0, signs[lone - 1], _LINE_FEED), signs[lone]]),
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
    block: bytes, ends: np.ndarray, lengths: np.ndarray, separators: bytes, real: bool
) -> np.ndarray | None:
    if not real and lengths.max(initial=0) <= 8:
        return _short_integers(block, ends, lengths)
    text = block.translate(bytes.maketrans(separators, b" " * len(separators)))
    if b"?" in text:
        text = text.replace(b"?", b"nan")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", DeprecationWarning)
            values = np.fromstring(text, sep=" ", dtype=np.float64)
    except (DeprecationWarning, ValueError):
        return None
    # Two numbers run together ("1-2") would be counted twice.
    return values if len(values) == len(ends) else None


def _short_integers(block: bytes, ends: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Up to eight digits each, by arithmetic on the eight bytes that end at the number.

    Neighbouring digits become pairs, pairs fours, and fours the whole number.
    """
    if lengths.max(initial=0) <= 4:
        small = _bytes_before(block, ends, "<u4") & _LAST_BYTES_4[lengths]
        small &= np.uint32(0x0F0F0F0F)
        small = (small * np.uint32(10) + (small >> np.uint32(8))) & np.uint32(0x00FF00FF)
        small = (small * np.uint32(100) + (small >> np.uint32(16))) & np.uint32(0xFFFF)
        return small.astype(np.int32)
    words = _bytes_before(block, ends, "<u8") & _LAST_BYTES_8[lengths]
    words &= np.uint64(0x0F0F0F0F0F0F0F0F)
    words = (words * np.uint64(10) + (words >> np.uint64(8))) & np.uint64(0x00FF00FF00FF00FF)
    words = (words * np.uint64(100) + (words >> np.uint64(16))) & np.uint64(0x0000FFFF0000FFFF)
    words = (words * np.uint64(10000) + (words >> np.uint64(32))) & np.uint64(0xFFFFFFFF)
    return words.astype(np.int32)


def _bytes_before(block: bytes, ends: np.ndarray, dtype: str) -> np.ndarray:
    """The bytes just before each place, as one number each."""
    size = np.dtype(dtype).itemsize
    padded = b"\0" * size + block
    return np.ndarray((len(block) + 1,), dtype=dtype, buffer=padded, strides=(1,))[ends]


def collapse_spaces(block: bytes, *, tight: bytes) -> bytes:
    r"""The block with single blanks only, and none around the bytes of `tight`.

    >>> collapse_spaces(b"{ 1  2 , 3\t4 }\r\n", tight=b"{,}\n")
    b'{1 2,3 4}\n'
    """
    if b"\t" in block or b"\r" in block:
        block = block.replace(b"\r\n", b"\n").replace(b"\t", b" ")
    while b"  " in block:
        block = block.replace(b"  ", b" ")
    for byte in tight:
        sign = bytes([byte])
        if b" " + sign in block:
            block = block.replace(b" " + sign, sign)
        if sign + b" " in block:
            block = block.replace(sign + b" ", sign)
    return block
