"""The content of a report, before it is written as HTML or Markdown.

All texts are plain text; the module that writes the report escapes them. Only a figure contains
markup: the SVG that :mod:`labelweave.plotting` drew.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from numbers import Real
from typing import Any

import numpy as np

from labelweave.exceptions import InputError
from labelweave.plotting import printable

__all__ = [
    "Block",
    "Figure",
    "Note",
    "Paragraph",
    "Picture",
    "Report",
    "Section",
    "Table",
    "format_value",
    "slug",
    "timestamp",
]

_FIGURE = re.compile(r"-|-?\d+\.\d+( [±n*].*)?")  # "0.7900 ± 0.0100 n=3", as tables of scores have


@dataclass(frozen=True)
class Paragraph:
    """A few sentences."""

    text: str


@dataclass(frozen=True)
class Note:
    """A warning that the reader must not miss."""

    text: str


@dataclass(frozen=True)
class Picture:
    """A small image in a cell of a table; Markdown shows its description alone."""

    url: str  # a data URL
    alt: str  # what it is a picture of

    def __str__(self) -> str:
        return self.alt


@dataclass(frozen=True)
class Table:
    """Rows of values under column names."""

    caption: str  # What the table shows, and for which rows of the data
    columns: Sequence[str]
    # Columns of numbers are aligned to the right; None and NaN are shown as a dash
    rows: Sequence[Sequence[Any]]
    folded: bool = False  # Whether HTML shows only the caption until the reader opens the table
    digits: int = 4  # Decimal places of numbers that are not integers

    def is_number(self, column: int) -> bool:
        """Whether a column holds only numbers, figures with their spread, and gaps."""
        values = [row[column] for row in self.rows if row[column] is not None]
        return bool(values) and all(map(_is_number, values))


@dataclass(frozen=True)
class Figure:
    """A plot."""

    name: str  # The name of its file, without an ending
    svg: str  # An SVG document
    title: str
    alt: str  # A description of the plot for readers who cannot see it
    caption: str  # How to read the plot


Block = Paragraph | Note | Table | Figure


@dataclass(frozen=True)
class Section:
    """A heading and the blocks under it."""

    title: str
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Report:
    """A complete report; `made` is the time at which it was written."""

    title: str
    subtitle: str
    made: str
    sections: Sequence[Section] = field(default_factory=tuple)

    def figures(self) -> list[Figure]:
        """Return all plots in their order."""
        blocks = (block for section in self.sections for block in section.blocks)
        return [block for block in blocks if isinstance(block, Figure)]


def format_value(value: Any, digits: int = 4) -> str:
    """Return a value as a table shows it.

    >>> [format_value(value) for value in (0.12345, 1234, None, float("nan"), True, "sea")]
    ['0.1235', '1,234', '\u2013', '\u2013', 'yes', 'sea']
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or value != value:
        return "\u2013"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.{digits}f}" if abs(value) < 1000 else f"{value:,.0f}"
    return printable(value)


def _is_number(value: Any) -> bool:
    if isinstance(value, str):
        return _FIGURE.fullmatch(value) is not None
    return isinstance(value, Real) and not isinstance(value, bool)


def slug(text: str) -> str:
    """Return a name for a file or an anchor.

    >>> slug("Ranks: C-GMVAE, mAP")
    'ranks-c-gmvae-map'
    """
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "part"


def timestamp() -> str:
    """Return the time in UTC, or that of SOURCE_DATE_EPOCH if it is set (reproducible builds)."""
    fixed = os.environ.get("SOURCE_DATE_EPOCH")
    if fixed is not None and not fixed.isdigit():
        raise InputError(f"SOURCE_DATE_EPOCH must be a number of seconds, not {fixed!r}")
    moment = datetime.now(UTC) if fixed is None else datetime.fromtimestamp(int(fixed), UTC)
    return moment.isoformat(timespec="seconds")
