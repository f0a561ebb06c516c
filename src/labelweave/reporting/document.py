"""What a report consists of, before it becomes HTML or Markdown.

Texts are plain: whoever writes them out escapes them. Only a figure carries markup, the SVG
that the plots of this package made.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

__all__ = [
    "Block",
    "Document",
    "Figure",
    "Note",
    "Paragraph",
    "Section",
    "Spread",
    "Table",
    "printable",
    "shown",
    "slug",
]

# Control characters, halves of surrogate pairs, and marks that turn the direction of a line.
_UNPRINTABLE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff\u202a-\u202e\u2066-\u2069]"
)


@dataclass(frozen=True)
class Paragraph:
    """A few sentences."""

    text: str


@dataclass(frozen=True)
class Note:
    """Something that the reader must not miss."""

    text: str


@dataclass(frozen=True)
class Table:
    """Rows of values under column names.

    Parameters
    ----------
    caption : str
        What the table shows, on which rows.
    columns : sequence of str
    rows : sequence of sequences
        Numbers stand to the right; None and NaN are shown as a dash.
    folded : bool, default=False
        Whether HTML shows the caption only until the reader opens it.
    digits : int, default=4
        Of numbers that are not whole.
    """

    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    folded: bool = False
    digits: int = 4

    def is_number(self, column: int) -> bool:
        """Whether a column holds numbers only (and gaps)."""
        values = [row[column] for row in self.rows if row[column] is not None]
        return bool(values) and all(map(_is_number, values))


@dataclass(frozen=True)
class Figure:
    """A plot.

    Parameters
    ----------
    name : str
        Of its file, without an ending.
    svg : str
        An SVG document.
    title : str
    alt : str
        What the plot says, for those who do not see it.
    caption : str
        How to read it.
    """

    name: str
    svg: str
    title: str
    alt: str
    caption: str


Block = Paragraph | Note | Table | Figure


@dataclass(frozen=True)
class Section:
    """A heading and what stands under it."""

    title: str
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Document:
    """A whole report."""

    title: str
    subtitle: str
    made: str
    sections: Sequence[Section] = field(default_factory=tuple)

    def figures(self) -> list[Figure]:
        """All plots, in their order."""
        blocks = (block for section in self.sections for block in section.blocks)
        return [block for block in blocks if isinstance(block, Figure)]


class Spread(NamedTuple):
    """A mean and its spread; the best of its kind is marked."""

    mean: float
    spread: float | None = None
    is_best: bool = False


def shown(value: Any, digits: int = 4) -> str:
    """A value as a table shows it.

    >>> [shown(value) for value in (0.12345, 1234, None, float("nan"), True, "sea")]
    ['0.1235', '1,234', '\u2013', '\u2013', 'yes', 'sea']
    """
    if isinstance(value, Spread):
        spread = "" if value.spread is None else f" \u00b1 {shown(value.spread, digits)}"
        return f"{shown(value.mean, digits)}{spread}{' *' if value.is_best else ''}"
    if hasattr(value, "item"):  # a NumPy number
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
    is_plain = hasattr(value, "__float__") and not isinstance(value, bool | str)
    return is_plain or isinstance(value, Spread)


def slug(text: str) -> str:
    """A name for files and anchors.

    >>> slug("Ranks: C-GMVAE, mAP")
    'ranks-c-gmvae-map'
    """
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "part"


def printable(text: Any) -> str:
    """A text that every page and picture can hold; what cannot be printed is replaced.

    >>> printable("a\\x00b")
    'a\ufffdb'
    """
    return _UNPRINTABLE.sub("\ufffd", str(text))
