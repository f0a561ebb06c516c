"""JSON arrays, such as ``[{"text": "sea"}, ...]``, element by element."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, BinaryIO

from labelweave.data.compressed_files import (
    BYTE_ORDER_MARK,
    MAX_LINE_BYTES,
    FilePath,
    decode,
    open_binary,
)
from labelweave.exceptions import DataFileError

__all__ = ["is_json_array", "iter_json_array"]

_BLOCK_BYTES = 2**20
_SPACES = " \t\r\n"


def is_json_array(path: FilePath) -> bool:
    """Whether a file begins like an array of objects."""
    with open_binary(path) as file:
        head = file.read(2**12).removeprefix(BYTE_ORDER_MARK).lstrip()
    return head[:1] == b"[" and head[1:].lstrip()[:1] in (b"{", b"]", b"")


def iter_json_array(path: FilePath) -> Iterator[tuple[int, Any]]:
    """Iterate over the elements of an array: the line on which each begins, and its value.

    Only a part of the file is held in memory, and an element may be as long as a line.
    """
    decoder = json.JSONDecoder()
    with open_binary(path) as file:
        text = _Text(file, path)
        sign = text.next_sign()
        if sign != "[":
            raise text.error("expected [")
        sign = text.next_sign(peek=True)
        if sign == "]":
            text.next_sign()
        while sign != "]":
            text.next_sign(peek=True)
            while True:
                try:
                    value, end = decoder.raw_decode(text.text, text.at)
                    break
                except RecursionError as error:
                    raise text.error(str(error)) from None
                except ValueError as error:
                    if not text.read_more():
                        raise text.error(str(error)) from None
            yield text.line, value
            text.move_to(end)
            sign = text.next_sign()
            if sign not in (",", "]"):
                raise text.error("expected a comma between two elements, or ] after the last")
        if text.next_sign():
            raise text.error("there is more text after the array")


class _Text:
    """The text of a file from a position on, of which more is read when it is needed."""

    def __init__(self, file: BinaryIO, path: FilePath) -> None:
        self._file, self._path = file, path
        self._bytes = b""  # the beginning of a character whose end has not been read yet
        self.text, self.at, self.line = "", 0, 1
        self.read_more()
        self.text = self.text.removeprefix(BYTE_ORDER_MARK.decode())

    def read_more(self) -> bool:
        """Add at least as much text as there is after the position; False at the end."""
        rest = self.text[self.at :]
        if len(rest) > MAX_LINE_BYTES:
            return False
        data = self._file.read(max(_BLOCK_BYTES, len(rest)))
        if not data and not self._bytes:
            return False
        data, self._bytes = self._bytes + data, b""
        if len(data) >= _BLOCK_BYTES:
            end = len(data)
            while end > len(data) - 4 and data[end - 1] & 0xC0 == 0x80:
                end -= 1
            if data[end - 1] >= 0xC0:  # the first byte of a character that may be cut
                data, self._bytes = data[: end - 1], data[end - 1 :]
        self.text, self.at = rest + decode(data, self._path, self.line), 0
        return True

    def move_to(self, position: int) -> None:
        """Go on to a position, and count lines on the way."""
        self.line += self.text.count("\n", self.at, position)
        self.at = position

    def next_sign(self, *, peek: bool = False) -> str:
        """The next character that is not blank, "" at the end; it is skipped unless `peek`."""
        while True:
            position = self.at
            while position < len(self.text) and self.text[position] in _SPACES:
                position += 1
            self.move_to(position)
            if position < len(self.text):
                sign = self.text[position]
                self.at += not peek
                return sign
            if not self.read_more():
                return ""

    def error(self, reason: str) -> DataFileError:
        return DataFileError(f"this is not valid JSON ({reason})", path=self._path, line=self.line)
