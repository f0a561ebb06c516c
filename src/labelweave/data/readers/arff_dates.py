"""Dates of ARFF files, whose formats are written in Java's letters."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from os import PathLike

from labelweave.exceptions import DataFileError

__all__ = ["ISO_DATE", "seconds", "strptime_format"]

ISO_DATE = "yyyy-MM-dd'T'HH:mm:ss"

_PYTHON = {
    "yyyy": "%Y", "yy": "%y", "MMM": "%b", "MM": "%m", "M": "%m", "dd": "%d", "d": "%d",
    "EEE": "%a", "HH": "%H", "H": "%H", "hh": "%I", "a": "%p", "mm": "%M", "ss": "%S",
    "SSS": "%f", "Z": "%z",
}  # fmt: skip

_PART = re.compile(r"'([^']*)'|(([A-Za-z])\3*)|(.)", re.DOTALL)


def strptime_format(java: str, attribute: str, path: str | PathLike[str]) -> str:
    """Python's form of a date format; an empty one means ISO 8601.

    >>> strptime_format("yyyy-MM-dd'T'HH:mm", "when", "file.arff")
    '%Y-%m-%dT%H:%M'
    """
    pieces = []
    for quoted, letters, _, other in _PART.findall(java or ISO_DATE):
        if letters and letters not in _PYTHON:
            raise DataFileError(
                f"attribute {attribute!r} has a date format with {letters!r}, which labelweave "
                "does not read",
                path=path,
            )
        pieces.append(_PYTHON[letters] if letters else (quoted or other).replace("%", "%%"))
    return "".join(pieces)


def seconds(text: str, python_format: str) -> float:
    """Seconds since 1970; a date without a time zone is taken as UTC.

    >>> seconds("1970-01-02", "%Y-%m-%d")
    86400.0
    """
    moment = datetime.strptime(text, python_format)
    return moment.replace(tzinfo=moment.tzinfo or UTC).timestamp()
