"""The list of an audit as a file: CSV, JSON Lines, or a page to review it on."""

from __future__ import annotations

import csv
import io
import json
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from labelweave.exceptions import InputError
from labelweave.files import atomic_write_text

if TYPE_CHECKING:
    from labelweave.auditing.findings import Audit

__all__ = ["ENDINGS", "checked_target", "to_csv", "to_jsonl", "write"]

COLUMNS = (
    "rank",
    "score",
    "annotated",
    "label",
    "row",
    "id",
    "text",
    "known_labels",
    "verdict",
)


def to_csv(audit: Audit) -> str:
    """One line an entry; the last column is empty, for the verdicts of a reviewer."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for finding in audit.findings:
        values = finding.to_dict() | {"known_labels": "; ".join(finding.known), "verdict": ""}
        writer.writerow([values[name] for name in COLUMNS])
    return text.getvalue()


def to_jsonl(audit: Audit) -> str:
    """One object a line."""
    lines = (
        json.dumps(finding.to_dict() | {"verdict": None}, ensure_ascii=False)
        for finding in audit.findings
    )
    return "".join(f"{line}\n" for line in lines)


def _to_page(audit: Audit) -> str:
    from labelweave.auditing.page import to_page

    return to_page(audit)


ENDINGS = {".csv": to_csv, ".jsonl": to_jsonl, ".html": _to_page}


def checked_target(path: str | PathLike[str]) -> Path:
    """The file to write, refused before any time is spent."""
    target = Path(path)
    if target.suffix.lower() not in ENDINGS:
        raise InputError(f"{path}: the ending must be {', '.join(ENDINGS)}")
    if target.is_dir():
        raise InputError(f"{path} is a folder: name a file to write the audit to")
    return target


def write(audit: Audit, path: str | PathLike[str]) -> Path:
    """Write the list in the format that the ending names."""
    target = checked_target(path)
    # Halves of surrogate pairs have no UTF-8 form; data may hold them all the same.
    text = ENDINGS[target.suffix.lower()](audit)
    atomic_write_text(target, text.encode("utf-8", "replace").decode("utf-8"))
    return target
