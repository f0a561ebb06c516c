"""A report as Markdown, with its plots as SVG files in a folder beside it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from labelweave import __version__
from labelweave.files import atomic_write_text
from labelweave.reporting.html import svg_description
from labelweave.reporting.report_content import (
    Block,
    Figure,
    Note,
    Paragraph,
    Report,
    Table,
    format_value,
)

__all__ = ["escape", "svg_file", "to_markdown", "write_markdown"]

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~$&!])")


def write_markdown(report: Report, target: Path) -> list[Path]:
    """Write the report and its plots; return the files, the report first."""
    plots = target.with_name(f"{target.stem}-plots")
    files = [plots / f"{figure.name}.svg" for figure in report.figures()]
    for path, figure in zip(files, report.figures(), strict=True):
        atomic_write_text(path, svg_file(figure))
    # The text is written last, so that it never names a plot that does not exist yet.
    atomic_write_text(target, to_markdown(report, plots.name))
    return [target, *files]


def to_markdown(report: Report, plots: str) -> str:
    """Return the text; `plots` is the folder of the plots, relative to the text."""
    parts = [f"# {escape(report.title)}", escape(report.subtitle)]
    for section in report.sections:
        parts.append(f"## {escape(section.title)}")
        parts += [_block(block, plots) for block in section.blocks]
    parts.append(f"Made by labelweave {__version__}, {report.made}.")
    return "\n\n".join(parts) + "\n"


def escape(text: Any, digits: int = 4) -> str:
    """Return a value on one line with all Markdown and HTML in it escaped.

    >>> escape("a *b* <script> | c")
    'a \\\\*b\\\\* \\\\<script\\\\> \\\\| c'
    """
    return _SPECIAL.sub(r"\\\1", " ".join(format_value(text, digits).split()))


def svg_file(figure: Figure) -> str:
    """Return a plot as the text of an SVG file."""
    start = figure.svg.index(">") + 1
    body = f"{figure.svg[:start]}{svg_description(figure)}{figure.svg[start:]}"
    return f'<?xml version="1.0" encoding="utf-8"?>\n{body}\n'


def _block(block: Block, plots: str) -> str:
    if isinstance(block, Paragraph):
        return escape(block.text)
    if isinstance(block, Note):
        return f"> **Note:** {escape(block.text)}"
    if isinstance(block, Figure):
        caption = f"**{escape(block.title)}.** {escape(block.caption)}"
        return f"![{escape(block.alt)}]({plots}/{block.name}.svg)\n\n{caption}"
    return _table(block)


def _table(table: Table) -> str:
    rules = ["---:" if table.is_number(j) else "---" for j in range(len(table.columns))]
    lines = [list(map(escape, table.columns)), rules]
    lines += [[escape(value, table.digits) for value in row] for row in table.rows]
    return f"{escape(table.caption)}:\n\n" + "\n".join(f"| {' | '.join(row)} |" for row in lines)
