"""Predictions as CSV or JSON Lines, batch by batch."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from typing import Any, Protocol, TextIO

import numpy as np

from labelweave.exceptions import InputError

__all__ = ["PredictionWriter", "make_writer", "names_by_probability"]

DIGITS = 6


class PredictionWriter(Protocol):
    """Writes the rows of one batch after the other."""

    def write(self, ids: Sequence[Any], probabilities: np.ndarray, chosen: np.ndarray) -> None: ...


def make_writer(
    kind: str, file: TextIO, names: Sequence[str], *, every_label: bool, separator: str
) -> PredictionWriter:
    """A writer of the kind "csv" or "jsonl" for labels of these names."""
    if kind == "jsonl":
        return _JsonLines(file, names, every_label)
    return _Csv(file, names, every_label, separator)


def names_by_probability(
    names: np.ndarray, probabilities: np.ndarray, chosen: np.ndarray
) -> tuple[list[list[str]], list[list[float]]]:
    """For each row the chosen labels, the most probable first, and their probabilities.

    >>> p = np.array([[0.5, 0.9, 0.1], [0.2, 0.1, 0.3]])
    >>> names_by_probability(np.array(["a", "b", "c"]), p, p >= 0.5)
    ([['b', 'a'], []], [[0.9, 0.5], []])
    """
    rows, columns = np.nonzero(chosen)
    values = probabilities[rows, columns]
    order = np.lexsort((columns, -values, rows))
    ends = np.cumsum(np.bincount(rows, minlength=len(chosen)))

    def by_row(flat: np.ndarray) -> list[list[Any]]:
        return [part.tolist() for part in np.split(flat, ends)[: len(chosen)]]

    sorted_names = np.asarray(names, dtype=object)[columns[order]]
    return by_row(sorted_names), by_row(_rounded(values[order]))


def _rounded(values: np.ndarray) -> np.ndarray:
    """Rounded as float64, so that 0.3 is printed as 0.3."""
    return np.round(values.astype(np.float64), DIGITS)


class _JsonLines:
    def __init__(self, file: TextIO, names: Sequence[str], every_label: bool) -> None:
        self.file, self.every_label = file, every_label
        self.names = np.asarray(names, dtype=object)

    def write(self, ids: Sequence[Any], probabilities: np.ndarray, chosen: np.ndarray) -> None:
        labels, values = names_by_probability(self.names, probabilities, chosen)
        listed: Any = zip(labels, values, strict=True)
        if self.every_label:
            listed = ((self.names, row) for row in _rounded(probabilities).tolist())
        for id, row_labels, (names, row_values) in zip(ids, labels, listed, strict=True):
            row = {
                "id": id,
                "labels": row_labels,
                "probabilities": dict(zip(names, row_values, strict=True)),
            }
            self.file.write(json.dumps(row, ensure_ascii=False) + "\n")


class _Csv:
    def __init__(
        self, file: TextIO, names: Sequence[str], every_label: bool, separator: str
    ) -> None:
        holder = next((name for name in names if separator in name), None)
        if holder is not None:
            raise InputError(
                f"the label {holder!r} contains the separator {separator!r}: give another one with "
                "--separator, or write .jsonl"
            )
        self.names = np.asarray(names, dtype=object)
        self.every_label, self.separator = every_label, separator
        self.writer = csv.writer(file, lineterminator="\n")
        self.writer.writerow(["id", "labels", *(names if every_label else ["probabilities"])])

    def write(self, ids: Sequence[Any], probabilities: np.ndarray, chosen: np.ndarray) -> None:
        labels, values = names_by_probability(self.names, probabilities, chosen)
        joined = (self.separator.join(row) for row in labels)
        rest: Any = ([self.separator.join(map(str, row))] for row in values)
        if self.every_label:
            rest = _rounded(probabilities).tolist()
        self.writer.writerows(
            [id, row_labels, *others]
            for id, row_labels, others in zip(ids, joined, rest, strict=True)
        )
