"""Writing a report: the page, or the text and its plots."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

from labelweave.exceptions import InputError
from labelweave.files import atomic_write_text
from labelweave.reporting.document import Document
from labelweave.reporting.html import to_html
from labelweave.reporting.markdown import svg_file, to_markdown

__all__ = ["checked_target", "now", "write"]

_ENDINGS = {".html": "html", ".htm": "html", ".md": "md", ".markdown": "md"}


def checked_target(out: str | Path, format: str | None) -> tuple[Path, str]:
    """The file to write and its format, refused before any time is spent.

    >>> checked_target("report.md", None)[1]
    'md'
    """
    target = Path(out)
    by_ending = _ENDINGS.get(target.suffix.lower())
    if format not in (None, "html", "md"):
        raise InputError(f"a report is written as html or md, not {format!r}")
    if format is None and by_ending is None:
        raise InputError(f"{out}: the ending must be .html or .md, or the format must be given")
    if format is not None and by_ending not in (None, format):
        raise InputError(f"{out} does not end like a file of the format {format!r}")
    if target.is_dir():
        raise InputError(f"{out} is a folder: name a file to write the report to")
    return target, format or str(by_ending)


def write(document: Document, target: Path, format: str) -> list[Path]:
    """Write the report and return the files, the report itself first."""
    if format == "html":
        atomic_write_text(target, to_html(document))
        return [target]
    plots = target.with_name(f"{target.stem}-plots")
    files = [plots / f"{figure.name}.svg" for figure in document.figures()]
    for path, figure in zip(files, document.figures(), strict=True):
        atomic_write_text(path, svg_file(figure))
    # Last: the text never names a plot that is not there yet.
    atomic_write_text(target, to_markdown(document, plots.name))
    return [target, *files]


def now() -> str:
    """The time in UTC; SOURCE_DATE_EPOCH, where it is set, stands for it (reproducible builds)."""
    fixed = os.environ.get("SOURCE_DATE_EPOCH")
    if fixed is not None and not fixed.isdigit():
        raise InputError(f"SOURCE_DATE_EPOCH must be a number of seconds, not {fixed!r}")
    moment = datetime.now(UTC) if fixed is None else datetime.fromtimestamp(int(fixed), UTC)
    return moment.isoformat(timespec="seconds")
