"""The header of an ARFF file: its attributes, and the options of MEKA in the relation's name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import BinaryIO

from labelweave.data.compressed_files import FilePath, read_line
from labelweave.exceptions import DataFileError


@dataclass(frozen=True)
class Attribute:
    """A declared column; `kind` is "numeric", "nominal", "string" or "date"."""

    name: str
    kind: str
    values: tuple[str, ...] = ()
    date_format: str = ""


@dataclass(frozen=True)
class Header:
    """Everything before the data rows; `first_data_line` is the number of the first of them."""

    relation: str
    attributes: tuple[Attribute, ...]
    first_data_line: int

    @property
    def names(self) -> list[str]:
        return [attribute.name for attribute in self.attributes]

    @property
    def meka_labels(self) -> int | None:
        """MEKA's `-C n`: the first n attributes are labels, or the last n if n is negative."""
        match = re.search(r"-C\s+(-?\d{1,9})\b", self.relation)
        return int(match[1]) if match else None

    @property
    def meka_split(self) -> int | None:
        """MEKA's `-split-number n`: the first n rows are the train part."""
        match = re.search(r"-split-number\s+(\d{1,18})\b", self.relation)
        return int(match[1]) if match else None


def decode_arff(line: bytes) -> str:
    """Decode a line as UTF-8 or, where it is not valid UTF-8, as Latin-1 (many old files)."""
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError:
        return line.decode("latin-1")


def read_header(file: BinaryIO, path: FilePath) -> Header:
    """Read the header, up to and including the line `@data`."""
    relation = ""
    attributes: list[Attribute] = []
    number = 0
    while raw := read_line(file, path, number + 1):
        number += 1
        line = decode_arff(raw).strip()
        if not line or line.startswith("%"):
            continue
        keyword, _, rest = line.replace("\t", " ", 1).partition(" ")
        keyword = keyword.lower()
        if keyword == "@relation":
            relation = _unquoted(rest.strip())
        elif keyword == "@attribute":
            attributes.append(_attribute(rest.strip(), path, number))
        elif keyword == "@data":
            if not attributes:
                raise DataFileError("@data comes before any @attribute", path=path, line=number)
            return Header(relation, tuple(attributes), number + 1)
        else:
            raise DataFileError(
                f"expected @relation, @attribute, @data or a comment, found {line[:40]!r}",
                path=path,
                line=number,
            )
    raise DataFileError(
        "the file ends before @data: it is truncated or not an ARFF file", path=path
    )


_QUOTED = r"'([^'\\]*(?:\\.[^'\\]*)*)'|\"([^\"\\]*(?:\\.[^\"\\]*)*)\""
_NAME = re.compile(rf"(?:{_QUOTED}|([^\s{{]+))\s*", re.DOTALL)
_VALUE = re.compile(rf"\s*(?:{_QUOTED}|([^,]*))", re.DOTALL)
_BLANK = re.compile(r"\s*")
# Weka escapes only these characters; any other backslash is part of the name.
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|[ntr'\"%\\])")
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r"}


def _unescaped(text: str) -> str:
    def unescape(match: re.Match[str]) -> str:
        code = match[1]
        return chr(int(code[1:], 16)) if len(code) == 5 else _ESCAPED.get(code, code)

    return _ESCAPE.sub(unescape, text) if "\\" in text else text


def _unquoted(text: str) -> str:
    """A value without its quotes and escapes."""
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "'\"":
        return _unescaped(text[1:-1])
    return text


def split_values(text: str) -> list[str]:
    r"""Split values at commas and resolve quotes and escapes; ValueError if they are malformed.

    >>> split_values("1, 'a, b', \"it's\", x y")
    ['1', 'a, b', "it's", 'x y']
    """
    if "'" not in text and '"' not in text:
        return [value.strip() for value in text.split(",")]
    return list(_quoted_values(text))


def _quoted_values(text: str) -> Iterator[str]:
    position = 0
    while True:
        match = _VALUE.match(text, position)
        assert match is not None  # the last alternative matches anything
        position = match.end()
        if match[3] is not None:
            value = match[3].strip()
            if value[:1] in ("'", '"'):
                raise ValueError(f"a quote is not closed: {value[:40]}")
            yield value
        else:
            yield _unescaped(match[1] if match[1] is not None else match[2])
            blank = _BLANK.match(text, position)
            position = blank.end() if blank else position
        if position >= len(text):
            return
        if text[position] != ",":
            rest = text[position:][:40]
            raise ValueError(f"expected a comma after a quoted value, found {rest!r}")
        position += 1


def _attribute(text: str, path: FilePath, number: int) -> Attribute:
    try:
        match = _NAME.match(text)
        if match is None:
            raise ValueError("there is no name after @attribute")
        quoted = match[1] if match[1] is not None else match[2]
        name = match[3] if quoted is None else _unescaped(quoted)
        return Attribute(name, *_declared_type(text[match.end() :].strip()))
    except ValueError as error:
        raise DataFileError(
            f"the attribute {text[:40]!r} cannot be read: {error}", path=path, line=number
        ) from None


@lru_cache(maxsize=64)  # thousands of attributes usually share a few types
def _declared_type(text: str) -> tuple[str, tuple[str, ...], str]:
    """Kind, nominal values and date format of a type declaration."""
    if text.startswith("{"):
        if not text.endswith("}"):
            raise ValueError("its values do not end with a closing brace")
        values = tuple(split_values(text[1:-1]))
        if len(set(values)) < len(values):
            raise ValueError("it declares a value twice")
        return "nominal", values, ""
    word, _, rest = text.partition(" ")
    word = word.lower()
    if word.partition("[")[0] in ("numeric", "real", "integer"):
        return "numeric", (), ""
    if word == "string":
        return "string", (), ""
    if word == "date":
        return "date", (), _unquoted(rest.strip())
    if word == "relational":
        raise ValueError("relational attributes cannot be read")
    raise ValueError("its type must be numeric, string, date or {values}")
