"""The result of an audit: the list of entries to review, and its files."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from labelweave.data import Dataset
from labelweave.exceptions import InputError
from labelweave.files import atomic_write_text

if TYPE_CHECKING:
    from labelweave.auditing.entry_ranking import ChosenEntries

__all__ = [
    "COLUMNS",
    "Audit",
    "Finding",
    "check_target",
    "describe_findings",
    "describe_row",
    "pictures_of",
    "to_csv",
    "to_jsonl",
]

COLUMNS = ("rank", "score", "annotated", "label", "row", "id", "text", "known_labels", "verdict")
"""The columns of the CSV file."""

_ENDINGS = (".csv", ".jsonl", ".html")
_MOST_CHARACTERS = 2000
_MOST_WORDS = 40


@dataclass(frozen=True)
class Finding:
    """One entry to review.

    Attributes
    ----------
    rank : int
        1 is the likeliest.
    score : float
        Estimated probability that the annotation is wrong: that the label is missing or, in an
        audit of positives, that the row does not have it. Several entries may reach 1.
    annotated : float or None
        Estimated probability that such an entry is annotated as positive. The list is ordered by
        it: missing labels from the highest down, wrong ones from the lowest up. None if a file of
        findings does not have it.
    label : str
    row : int
        Position of the row in the data, starting at 0.
    id : str
        Name of the row, empty if the data have no names.
    text : str
        The text of the row, or for sparse rows the names of their largest features.
    known_labels : tuple of str
        The labels that the row is known to have.
    """

    rank: int
    score: float
    annotated: float | None
    label: str
    row: int
    id: str
    text: str
    known_labels: tuple[str, ...]

    @property
    def key(self) -> tuple[int, str, str]:
        """What a verdict is stored under: row, id of the row, label."""
        return self.row, self.id, self.label

    def to_dict(self) -> dict[str, Any]:
        """Return the values for JSON."""
        annotated = None if self.annotated is None else round(self.annotated, 6)
        rounded = {"score": round(self.score, 6), "annotated": annotated}
        return asdict(self) | rounded | {"known_labels": list(self.known_labels)}


@dataclass(frozen=True, eq=False)
class Audit:
    """The result of :func:`labelweave.audit`.

    Attributes
    ----------
    findings : sequence of Finding
        The list, the likeliest first.
    data : str
        Name of the data set.
    method : str
        Name of the method that computed the scores.
    suspects : {"missing", "wrong"}
    n_unannotated : int
        The number of unannotated entries.
    annotated_share : float
        Estimated share of the positives that are annotated.
    pictures : mapping of int to str
        Small pictures of the rows of images, as data URLs, for the page.
    """

    findings: Sequence[Finding]
    data: str
    method: str
    suspects: str = "missing"
    n_unannotated: int = 0
    annotated_share: float = 1.0
    pictures: Mapping[int, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.findings)

    def __getitem__(self, position: int) -> Finding:
        return self.findings[position]

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with one row per finding."""
        import pandas as pd

        return pd.DataFrame([finding.to_dict() for finding in self.findings])

    def write(self, *paths: str | PathLike[str]) -> list[Path]:
        """Write the list to files: .csv, .jsonl, or .html for the page to review it on."""
        targets = [check_target(path) for path in paths]
        for target in targets:
            text = self._in_format(target.suffix.lower())
            # Data may hold halves of surrogate pairs, which cannot be encoded.
            atomic_write_text(target, text.encode("utf-8", "replace").decode("utf-8"))
        return targets

    def _in_format(self, ending: str) -> str:
        if ending == ".html":
            from labelweave.auditing.review_page import to_html

            return to_html(self)
        without_verdicts = [(finding, None) for finding in self.findings]
        return to_csv(without_verdicts) if ending == ".csv" else to_jsonl(without_verdicts)

    def __repr__(self) -> str:
        return f"<Audit of {self.data} by {self.method}: {len(self)} entries to review>"


def to_csv(findings: Iterable[tuple[Finding, str | None]]) -> str:
    """Return one line per entry with its verdict; None leaves the column to the reviewer."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for finding, verdict in findings:
        known_labels = "; ".join(finding.known_labels)
        writer.writerow(finding.to_dict() | {"known_labels": known_labels, "verdict": verdict})
    return text.getvalue()


def to_jsonl(findings: Iterable[tuple[Finding, str | None]]) -> str:
    """Return one JSON object per line, an entry with its verdict."""
    records = (finding.to_dict() | {"verdict": verdict} for finding, verdict in findings)
    return "".join(f"{json.dumps(record, ensure_ascii=False)}\n" for record in records)


def check_target(path: str | PathLike[str]) -> Path:
    """Return the file to write, or raise before any time is spent."""
    target = Path(path)
    if target.suffix.lower() not in _ENDINGS:
        raise InputError(f"{path}: the file must end in {', '.join(_ENDINGS)}")
    if target.is_dir():
        raise InputError(f"{path} is a folder: name a file to write the audit to")
    return target


def describe_findings(data: Dataset, chosen: ChosenEntries) -> list[Finding]:
    """Return the chosen entries with what a reviewer needs to see of their rows."""
    shown, position = np.unique(chosen.rows, return_inverse=True)
    known_labels = data.Y[shown].to_lists()
    texts = [describe_row(data, row) for row in shown.tolist()]
    ids = [""] * len(shown)
    if data.row_ids is not None:
        ids = [str(data.row_ids[row]) for row in shown.tolist()]
    return [
        Finding(
            rank=k + 1,
            score=float(chosen.score[k]),
            annotated=float(chosen.annotated[k]),
            label=data.label_names[chosen.columns[k]],
            row=int(chosen.rows[k]),
            id=ids[i],
            text=texts[i],
            known_labels=tuple(known_labels[i]),
        )
        for k, i in enumerate(position.tolist())
    ]


def pictures_of(data: Dataset, findings: Sequence[Finding]) -> dict[int, str]:
    """Return a small picture of each row of the findings, where the rows are images."""
    if not data.is_image:
        return {}
    from labelweave.data.images.thumbnails import thumbnail_urls

    rows = sorted({finding.row for finding in findings})
    return dict(zip(rows, thumbnail_urls(data.X, rows), strict=True))


def _shortened(text: str) -> str:
    return text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]} ..."


def describe_row(data: Dataset, row: int) -> str:
    """Return what a reviewer can read of a row: text, cells, or the names of its largest features.

    >>> describe_row(Dataset(["the sea"], [["sea"]]), 0)
    'the sea'
    """
    if data.is_text:
        return _shortened(str(data.X[row]))
    if data.is_table:
        cells = data.X.frame.iloc[row]
        known = cells[~cells.isna()]
        return _shortened(", ".join(f"{name}: {cell}" for name, cell in known.items()))
    if data.feature_names is None or not sp.issparse(data.X):
        return ""
    features = data.X[[row]].tocoo()
    order = np.argsort(-np.abs(features.data), kind="stable")[:_MOST_WORDS]
    return ", ".join(str(data.feature_names[j]) for j in features.col[order])
