"""A report as Markdown, its plots as SVG files beside it."""

from __future__ import annotations

import re
from typing import Any

from labelweave import __version__
from labelweave.reporting.document import Block, Document, Figure, Note, Paragraph, Table, shown
from labelweave.reporting.html import described

__all__ = ["svg_file", "to_markdown"]

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~$&!])")


def to_markdown(document: Document, plots: str) -> str:
    """The text; `plots` is the folder of the plots as seen from it."""
    parts = [f"# {plain(document.title)}", plain(document.subtitle)]
    for section in document.sections:
        parts.append(f"## {plain(section.title)}")
        parts += [_block(block, plots) for block in section.blocks]
    parts.append(f"Made by labelweave {__version__}, {document.made}.")
    return "\n\n".join(parts) + "\n"


def plain(text: Any, digits: int = 4) -> str:
    """A text in one line in which nothing is Markdown or HTML.

    >>> plain("a *b* <script> | c")
    'a \\\\*b\\\\* \\\\<script\\\\> \\\\| c'
    """
    return _SPECIAL.sub(r"\\\1", " ".join(shown(text, digits).split()))


def svg_file(figure: Figure) -> str:
    """A plot as an SVG file of its own."""
    start = figure.svg.index(">") + 1
    body = f"{figure.svg[:start]}{described(figure)}{figure.svg[start:]}"
    return f'<?xml version="1.0" encoding="utf-8"?>\n{body}\n'


def _block(block: Block, plots: str) -> str:
    if isinstance(block, Paragraph):
        return plain(block.text)
    if isinstance(block, Note):
        return f"> **Note:** {plain(block.text)}"
    if isinstance(block, Figure):
        caption = f"**{plain(block.title)}.** {plain(block.caption)}"
        return f"![{plain(block.alt)}]({plots}/{block.name}.svg)\n\n{caption}"
    return _table(block)


def _table(table: Table) -> str:
    rules = ["---:" if table.is_number(j) else "---" for j in range(len(table.columns))]
    lines = [list(map(plain, table.columns)), rules]
    lines += [[plain(value, table.digits) for value in row] for row in table.rows]
    return f"{plain(table.caption)}:\n\n" + "\n".join(f"| {' | '.join(row)} |" for row in lines)
