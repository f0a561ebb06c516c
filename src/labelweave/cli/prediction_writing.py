"""Predictions as CSV, JSON Lines or Parquet, batch by batch."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from typing import IO, Any, Protocol

import numpy as np

from labelweave.exceptions import InputError, require

__all__ = ["KINDS", "PredictionWriter", "make_writer", "names_by_probability"]

DIGITS = 6
KINDS = {"csv": ".csv", "csv-columns": ".csv", "jsonl": ".jsonl", "parquet": ".parquet"}
"""The kinds of files, and how their names end; the first of an ending is its default."""


class PredictionWriter(Protocol):
    """Writes the rows of one batch after the other, and then what belongs at the end."""

    def write(self, ids: Sequence[Any], probabilities: Any, chosen: Any) -> None: ...

    def finish(self) -> None: ...


def make_writer(
    kind: str, file: IO[Any], names: Sequence[str], *, every_label: bool, separator: str
) -> PredictionWriter:
    """A writer of one of `KINDS` for labels of these names; Parquet needs a binary file."""
    if kind == "jsonl":
        return _JsonLines(file, names, every_label)
    if kind == "csv-columns":
        return _CsvColumns(file, names, every_label)
    if kind == "parquet":
        return _Parquet(file, names, every_label)
    return _Csv(file, names, every_label, separator)


def names_by_probability(
    names: np.ndarray, probabilities: Any, chosen: Any
) -> tuple[list[list[str]], list[list[float]]]:
    """For each row the chosen labels, the most probable first, and their probabilities.

    Both matrices are arrays, or sparse.

    >>> p = np.array([[0.5, 0.9, 0.1], [0.2, 0.1, 0.3]])
    >>> names_by_probability(np.array(["a", "b", "c"]), p, p >= 0.5)
    ([['b', 'a'], []], [[0.9, 0.5], []])
    """
    n_rows = chosen.shape[0]
    rows, columns = chosen.nonzero()
    values = np.asarray(probabilities[rows, columns]).ravel() if len(rows) else np.empty(0)
    order = np.lexsort((columns, -values, rows))
    ends = np.cumsum(np.bincount(rows, minlength=n_rows))

    def by_row(flat: np.ndarray) -> list[list[Any]]:
        return [part.tolist() for part in np.split(flat, ends)[:n_rows]]

    sorted_names = np.asarray(names, dtype=object)[columns[order]]
    return by_row(sorted_names), by_row(_rounded(values[order]))


def _rounded(values: np.ndarray) -> np.ndarray:
    """Rounded as float64, so that 0.3 is printed as 0.3."""
    return np.round(values.astype(np.float64), DIGITS)


def _check_column_names(names: Sequence[str], others: Sequence[str]) -> None:
    for name in names:
        if name in others:
            raise InputError(
                f"the label {name!r} would be a second column of this name: write .jsonl instead"
            )


class _JsonLines:
    def __init__(self, file: IO[str], names: Sequence[str], every_label: bool) -> None:
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

    def finish(self) -> None: ...


class _Csv:
    def __init__(
        self, file: IO[str], names: Sequence[str], every_label: bool, separator: str
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

    def finish(self) -> None: ...


class _CsvColumns:
    """One column per label: 1 if it is predicted, else 0."""

    def __init__(self, file: IO[str], names: Sequence[str], every_label: bool) -> None:
        if every_label:
            raise InputError(
                "columns of 0 and 1 have no place for probabilities: leave out --proba all, or "
                "write --as csv"
            )
        _check_column_names(names, ["id"])
        self.writer = csv.writer(file, lineterminator="\n")
        self.writer.writerow(["id", *names])

    def write(self, ids: Sequence[Any], probabilities: np.ndarray, chosen: np.ndarray) -> None:
        values = np.asarray(chosen).astype(np.int8).tolist()
        self.writer.writerows([id, *row] for id, row in zip(ids, values, strict=True))

    def finish(self) -> None: ...


class _Parquet:
    """Lists of labels and their probabilities, or one column of probabilities per label."""

    def __init__(self, file: IO[bytes], names: Sequence[str], every_label: bool) -> None:
        self.arrow = require("pyarrow", "formats")
        self.parquet = require("pyarrow.parquet", "formats")
        if every_label:
            _check_column_names(names, ["id", "labels"])
        self.file, self.every_label = file, every_label
        self.names = np.asarray(names, dtype=object)
        self.writer: Any = None

    def write(self, ids: Sequence[Any], probabilities: np.ndarray, chosen: np.ndarray) -> None:
        arrow = self.arrow
        labels, values = names_by_probability(self.names, probabilities, chosen)
        is_whole = all(isinstance(id, int) for id in ids)
        columns = {
            "id": arrow.array(list(ids) if is_whole else [str(id) for id in ids]),
            "labels": arrow.array(labels, arrow.list_(arrow.string())),
        }
        if self.every_label:
            rounded = _rounded(probabilities)
            columns |= {str(name): arrow.array(rounded[:, j]) for j, name in enumerate(self.names)}
        else:
            columns["probabilities"] = arrow.array(values, arrow.list_(arrow.float64()))
        table = arrow.table(columns)
        if self.writer is None:
            self.writer = self.parquet.ParquetWriter(self.file, table.schema)
        elif table.schema != self.writer.schema:
            raise InputError(
                "some row ids are whole numbers and some are not: write .jsonl instead"
            )
        self.writer.write_table(table)

    def finish(self) -> None:
        if self.writer is not None:
            self.writer.close()
