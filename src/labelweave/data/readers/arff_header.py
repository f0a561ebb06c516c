"""The header of an ARFF file: its attributes, and what MEKA hides in the relation's name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from os import PathLike
from typing import BinaryIO

from labelweave.data.compression import read_line
from labelweave.exceptions import DataFileError

__all__ = ["Attribute", "Header", "decode_arff", "read_header", "split_values"]


@dataclass(frozen=True)
class Attribute:
    """A declared column: `kind` is numeric, nominal, string or date."""

    name: str
    kind: str
    values: tuple[str, ...] = ()
    date_format: str = ""


@dataclass(frozen=True)
class Header:
    """What stands before the data rows; `first_data_line` is the number of the next line."""

    relation: str
    attributes: tuple[Attribute, ...]
    first_data_line: int

    @property
    def names(self) -> list[str]:
        return [attribute.name for attribute in self.attributes]

    @property
    def meka_labels(self) -> int | None:
        """MEKA's `-C n`: the first n attributes are labels, or the last n if n is negative."""
        found = re.search(r"-C\s+(-?\d{1,9})\b", self.relation)
        return int(found[1]) if found else None

    @property
    def meka_split(self) -> int | None:
        """MEKA's `-split-number n`: the first n rows are the train part."""
        found = re.search(r"-split-number\s+(\d{1,18})\b", self.relation)
        return int(found[1]) if found else None


def decode_arff(line: bytes) -> str:
    """UTF-8, or Latin-1 for the old files that were written before ARFF knew better."""
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError:
        return line.decode("latin-1")


def read_header(file: BinaryIO, path: str | PathLike[str]) -> Header:
    """Read up to and including the line `@data`."""
    relation = ""
    attributes: list[Attribute] = []
    number = 0
    while raw := read_line(file, path, number + 1):
        number += 1
        if number == 1:
            raw = raw.removeprefix(b"\xef\xbb\xbf")
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
    raise DataFileError("the file ends before @data: no ARFF file, or cut short", path=path)


_QUOTED = r"'([^'\\]*(?:\\.[^'\\]*)*)'|\"([^\"\\]*(?:\\.[^\"\\]*)*)\""
_NAME = re.compile(rf"(?:{_QUOTED}|([^\s{{]+))\s*", re.DOTALL)
_VALUE = re.compile(rf"\s*(?:{_QUOTED}|([^,]*))", re.DOTALL)
_BLANK = re.compile(r"\s*")
# Weka escapes these and no other: any other backslash is part of the name.
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|[ntr'\"%\\])")
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r"}


def _unescaped(text: str) -> str:
    def plain(found: re.Match[str]) -> str:
        code = found[1]
        return chr(int(code[1:], 16)) if len(code) == 5 else _ESCAPED.get(code, code)

    return _ESCAPE.sub(plain, text) if "\\" in text else text


def _unquoted(text: str) -> str:
    """A value without its quotes and escapes."""
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "'\"":
        return _unescaped(text[1:-1])
    return text


def split_values(text: str) -> list[str]:
    r"""Values between commas, quotes and escapes resolved; raises ValueError if they are bad.

    >>> split_values("1, 'a, b', \"it's\", x y")
    ['1', 'a, b', "it's", 'x y']
    """
    if "'" not in text and '"' not in text:
        return [value.strip() for value in text.split(",")]
    return list(_quoted_values(text))


def _quoted_values(text: str) -> Iterator[str]:
    place = 0
    while True:
        found = _VALUE.match(text, place)
        assert found is not None  # the last alternative matches anything
        place = found.end()
        if found[3] is not None:
            value = found[3].strip()
            if value[:1] in ("'", '"'):
                raise ValueError(f"a quote is never closed: {value[:40]}")
            yield value
        else:
            yield _unescaped(found[1] if found[1] is not None else found[2])
            blank = _BLANK.match(text, place)
            place = blank.end() if blank else place
        if place >= len(text):
            return
        if text[place] != ",":
            raise ValueError(f"expected a comma after a quoted value, found {text[place:][:40]!r}")
        place += 1


def _attribute(text: str, path: str | PathLike[str], number: int) -> Attribute:
    try:
        found = _NAME.match(text)
        if found is None:
            raise ValueError("@attribute is followed by no name")
        quoted = found[1] if found[1] is not None else found[2]
        name = found[3] if quoted is None else _unescaped(quoted)
        return Attribute(name, *_declared_type(text[found.end() :].strip()))
    except ValueError as error:
        raise DataFileError(
            f"bad @attribute {text[:40]!r}: {error}", path=path, line=number
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
    raise ValueError("its type is none of numeric, string, date and {values}")
