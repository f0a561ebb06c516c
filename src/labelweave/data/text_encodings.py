"""Text files in other encodings than UTF-8: reading them, and naming the likely encoding."""

from __future__ import annotations

import codecs
import io
from dataclasses import dataclass
from itertools import pairwise
from os import PathLike, fspath
from typing import Any, BinaryIO

from labelweave.exceptions import DataFileError, InputError

__all__ = ["EncodedPath", "RecodedReader", "check_encoding", "likely_encoding"]

_BYTE_ORDER_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32", codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16",
}  # fmt: skip


@dataclass(frozen=True)
class EncodedPath(PathLike):
    """The path of a text file whose encoding is not UTF-8.

    :func:`labelweave.data.compressed_files.open_binary` gives its content as UTF-8, so that readers
    need not know about encodings.
    """

    path: str
    encoding: str

    def __fspath__(self) -> str:
        return self.path

    def __str__(self) -> str:
        return self.path


def check_encoding(encoding: str) -> None:
    """Raise an error if Python knows no text encoding of this name."""
    try:
        known = codecs.lookup(encoding)._is_text_encoding
    except (LookupError, TypeError, ValueError):
        known = False
    if not known:
        raise InputError(
            f"there is no encoding {encoding!r}: use a name such as utf-8, cp1252, latin-1 or "
            "utf-16",
            parameter="encoding",
        )


class RecodedReader(io.RawIOBase):
    """The bytes of a text file in UTF-8, whatever its own encoding is."""

    def __init__(self, file: BinaryIO, path: Any, encoding: str) -> None:
        self._file, self._path, self._encoding = file, fspath(path), encoding
        self._decoder = codecs.getincrementaldecoder(encoding)()
        self._ready = b""
        self._n_read = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        at_end = False
        while not self._ready and not at_end:
            data = self._file.read(2**16)
            at_end = not data
            try:
                text = self._decoder.decode(data, final=at_end)
            except UnicodeError as error:
                position = self._n_read + getattr(error, "start", 0) + 1
                raise DataFileError(
                    f"near byte {position} the file is not {self._encoding} text: give the "
                    "encoding in which it was written",
                    path=self._path,
                    parameter="encoding",
                ) from None
            self._n_read += len(data)
            self._ready = text.encode("utf-8", "surrogatepass")
        n_bytes = min(len(buffer), len(self._ready))
        buffer[:n_bytes], self._ready = self._ready[:n_bytes], self._ready[n_bytes:]
        return n_bytes

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()


def likely_encoding(data: bytes) -> str:
    """The likely encoding of text that is not UTF-8.

    >>> likely_encoding("Zoë bought a café".encode("cp1252"))
    'cp1252'
    >>> likely_encoding("погода сегодня".encode("cp1251"))
    'cp1251'
    >>> likely_encoding("天気がいい".encode("shift_jis")), likely_encoding("sea".encode("utf-16"))
    ('shift_jis', 'utf-16')
    """
    for mark, encoding in _BYTE_ORDER_MARKS.items():
        if data.startswith(mark):
            return encoding
    if b"\0" in data:
        return "utf-16-le" if data[1::2].count(0) >= data[::2].count(0) else "utf-16-be"
    if _is_mostly(data, "shift_jis", "ぁ", "ヿ"):
        return "shift_jis"
    # Letters of a Latin alphabet with accents stand alone; those of other scripts make words.
    above = [byte for byte in data if byte >= 0x80]
    in_words = sum(a >= 0x80 and b >= 0x80 for a, b in pairwise(data))
    if in_words > len(above) / 3:
        if sum(byte >= 0xE0 for byte in above) > len(above) / 2:  # small Cyrillic letters
            return "cp1251"
        if _is_mostly(data, "gb18030", "一", "鿿"):
            return "gb18030"
    return "cp1252"


def _is_mostly(data: bytes, encoding: str, first: str, last: str) -> bool:
    """Whether the data are text of this encoding, mostly in this range where it is not ASCII."""
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError:
        return False
    letters = [letter for letter in text if letter > "\x7f"]
    return sum(first <= letter <= last for letter in letters) > len(letters) / 2
