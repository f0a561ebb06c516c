"""The list of an audit: entries to review, best first, with what a reviewer needs to see."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelweave.data import Dataset

__all__ = ["Audit", "Finding", "describe_row"]

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
        audit of positives, that it does not belong there. At most 1, which several may reach.
    annotated : float
        The chance of finding a positive annotated in such a place, which the order goes by: a
        missing label is the likelier the higher it is, a wrong one the lower.
    label : str
    row : int
        Place of the row in the data, the first is 0.
    id : str
        Name of the row, empty where the data have none.
    text : str
        The row's text; for rows of numbers the features that are there, where they have names.
    known : tuple of str
        The labels that the row is known to have.
    """

    rank: int
    score: float
    annotated: float
    label: str
    row: int
    id: str
    text: str
    known: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """As values for JSON."""
        return {
            "rank": self.rank,
            "score": round(self.score, 6),
            "annotated": round(self.annotated, 6),
            "label": self.label,
            "row": self.row,
            "id": self.id,
            "text": self.text,
            "known_labels": list(self.known),
        }


@dataclass(frozen=True, eq=False)
class Audit:
    """What :func:`labelweave.audit` found.

    Attributes
    ----------
    findings : sequence of Finding
        The list, best first.
    data : str
        Name of the data set.
    method : str
        What the scores come from.
    suspects : {"missing", "wrong"}
    n_unannotated : int
        Entries that nobody annotated.
    annotated_share : float
        Estimated share of the positives that are annotated.
    """

    findings: Sequence[Finding]
    data: str
    method: str
    suspects: str = "missing"
    n_unannotated: int = 0
    annotated_share: float = 1.0

    def __len__(self) -> int:
        return len(self.findings)

    def __getitem__(self, place: int) -> Finding:
        return self.findings[place]

    def to_frame(self) -> Any:
        """A pandas DataFrame, one line a finding."""
        import pandas as pd

        return pd.DataFrame([finding.to_dict() for finding in self.findings])

    def write(self, *paths: str | PathLike[str]) -> list[Path]:
        """Write the list to files: .csv, .jsonl, or .html for the page to review it on."""
        from labelweave.auditing.writing import write

        return [write(self, path) for path in paths]

    def __repr__(self) -> str:
        return f"<Audit of {self.data} by {self.method}: {len(self)} entries to review>"


def describe_row(data: Dataset, row: int) -> str:
    """What a reviewer can read of a row: its text, or names of the features that it has.

    >>> describe_row(Dataset(["the sea"], [["sea"]]), 0)
    'the sea'
    """
    if data.is_text:
        text = str(data.X[row])
        return text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]} ..."
    if data.feature_names is None or not sp.issparse(data.X):
        return ""
    line = data.X[[row]].tocoo()
    order = np.argsort(-np.abs(line.data), kind="stable")[:_MOST_WORDS]
    return ", ".join(str(data.feature_names[j]) for j in line.col[order])
