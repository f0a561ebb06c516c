"""Corrections of labels by the verdicts of reviewers: yes, no or unsure."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelweave.data.compressed_files import (
    FilePath,
    decode,
    iter_json_objects,
    read_small_file,
)
from labelweave.data.dataset import Dataset
from labelweave.exceptions import DataFileError, InputError
from labelweave.labels import LabelMatrix
from labelweave.unannotated import as_observed, unannotated_rule

__all__ = [
    "VERDICTS",
    "Verdict",
    "Verdicts",
    "apply_corrections",
    "observed_labels",
    "read_verdicts",
]

VERDICTS = ("yes", "no", "unsure")


@dataclass(frozen=True)
class Verdict:
    """The verdict of a reviewer on one label of one row; `line` is its line in the file."""

    row: int | None
    id: str
    label: str
    verdict: str
    line: int | None = None


@dataclass(frozen=True)
class Verdicts:
    """Verdicts, and the file that they were read from, if any."""

    verdicts: Sequence[Verdict]
    path: str | None = None

    def counts(self) -> dict[str, int]:
        """Count how often each verdict occurs."""
        counts = Counter(verdict.verdict for verdict in self.verdicts)
        return {name: counts[name] for name in VERDICTS}

    def entries(self, data: Dataset) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return row, column and verdict of each entry; raise an error if there is no such entry.

        A row is found by its id where the verdicts and the data have ids, otherwise by its number.
        """
        columns = {name: j for j, name in enumerate(data.label_names)}
        by_id = _rows_by_id(data)
        seen: dict[tuple[int, int], str] = {}
        for verdict in self.verdicts:
            row = self._row_of(verdict, data, by_id)
            if verdict.label not in columns:
                raise self._error(
                    verdict,
                    f"{data.name} has no label {verdict.label!r}: do the verdicts belong to other "
                    "data?",
                )
            key = row, columns[verdict.label]
            if seen.setdefault(key, verdict.verdict) != verdict.verdict:
                raise self._error(
                    verdict,
                    f"row {row} has two verdicts on {verdict.label!r}, {seen[key]} and "
                    f"{verdict.verdict}: keep one",
                )
        entries = np.array(list(seen), dtype=np.int64).reshape(-1, 2)
        return entries[:, 0], entries[:, 1], np.array(list(seen.values()), dtype=object)

    def _row_of(self, verdict: Verdict, data: Dataset, by_id: Mapping[str, int] | None) -> int:
        if verdict.id and by_id is not None:
            if verdict.id not in by_id:
                raise self._error(
                    verdict,
                    f"{data.name} has no row {verdict.id!r}: do the verdicts belong to other data?",
                )
            return by_id[verdict.id]
        if verdict.row is None:
            raise self._error(verdict, "the verdict has no row number, which the audit writes")
        if not 0 <= verdict.row < len(data):
            raise self._error(
                verdict,
                f"there is no row {verdict.row} in {data.name}, which has {len(data):,} rows (the "
                "first is 0): do the verdicts belong to other data?",
            )
        return verdict.row

    def _error(self, verdict: Verdict, message: str) -> InputError:
        if self.path is None:
            return InputError(message)
        return DataFileError(message, path=self.path, line=verdict.line)


def _rows_by_id(data: Dataset) -> dict[str, int] | None:
    """Row number of each id; None if the data have no ids or ids that occur twice."""
    if data.row_ids is None:
        return None
    rows = {str(row_id): i for i, row_id in enumerate(data.row_ids)}
    return rows if len(rows) == len(data) else None


def read_verdicts(path: FilePath) -> Verdicts:
    """Read verdicts from an export of the review page or the completed CSV file of an audit.

    Parameters
    ----------
    path : path-like
        A .csv file with a header, or a .jsonl file, with the fields `label`, `verdict` (yes, no or
        unsure; empty if nobody has reviewed the entry), and `row`, `id` or both.
    """
    ending = Path(path).suffix.lower()
    if ending not in (".csv", ".jsonl"):
        raise DataFileError("verdicts must be in a .csv or a .jsonl file", path=path)
    records = _csv_records(path) if ending == ".csv" else iter_json_objects(path)
    verdicts = [
        verdict
        for line, record in records
        if (verdict := _parse_verdict(line, record, path)) is not None
    ]
    if not verdicts:
        raise DataFileError("the file holds no verdict: write yes, no or unsure", path=path)
    return Verdicts(verdicts, str(path))


def _csv_records(path: FilePath) -> Iterator[tuple[int, Mapping[str, Any]]]:
    text = decode(read_small_file(path), path, None)
    reader = csv.DictReader(text.splitlines(keepends=True), restval="")
    for name in ("label", "verdict"):
        if name not in (reader.fieldnames or ()):
            raise DataFileError(f"the header has no column {name!r}", path=path, line=1)
    try:
        for record in reader:
            yield reader.line_num, record
    except csv.Error as error:
        raise DataFileError(f"{error}", path=path, line=reader.line_num) from None


def _parse_verdict(line: int | None, record: Mapping[str, Any], path: Any) -> Verdict | None:
    verdict = str(record.get("verdict") or "").strip().lower()
    if not verdict:
        return None
    if verdict not in VERDICTS:
        raise DataFileError(
            f"the verdict {verdict!r} is not one of {', '.join(VERDICTS)}", path=path, line=line
        )
    if record.get("label") in (None, ""):
        raise DataFileError("the verdict has no label", path=path, line=line)
    number, row_id = record.get("row"), record.get("id")
    try:
        row = None if number in (None, "") else int(number)
    except (TypeError, ValueError):
        raise DataFileError(
            f"the row {number!r} is not a whole number", path=path, line=line
        ) from None
    return Verdict(row, "" if row_id is None else str(row_id), str(record["label"]), verdict, line)


def apply_corrections(data: Dataset, corrections: Any) -> Dataset:
    """Apply verdicts to the labels: yes makes a positive, no a negative, unsure changes nothing.

    Parameters
    ----------
    data : Dataset
    corrections : path or Verdicts
        A file that :func:`read_verdicts` reads, or its result.

    Returns
    -------
    Dataset
        The same rows with corrected labels.

    Examples
    --------
    >>> from labelweave.data.corrections import Verdict, Verdicts
    >>> data = Dataset(np.eye(2), [["sea"], ["sun"]])
    >>> verdicts = Verdicts([Verdict(0, "", "sun", "yes"), Verdict(1, "", "sea", "unsure")])
    >>> apply_corrections(data, verdicts).Y.to_lists()
    [['sea', 'sun'], ['sun']]
    """
    verdicts = corrections if isinstance(corrections, Verdicts) else read_verdicts(corrections)
    rows, columns, values = verdicts.entries(data)
    sure = values != "unsure"
    Y = _with_entries(data.Y, rows[sure], columns[sure], values[sure] == "yes")
    return replace(data, Y=Y)


def observed_labels(data: Dataset, corrections: Any, unannotated: str = "auto") -> LabelMatrix:
    """Labels with verdicts applied, coded by :func:`labelweave.unannotated.as_observed`.

    A verdict "no" is a known negative under either rule, and "auto" is decided by the labels
    before the verdicts: those may fill in the last blank.

    >>> data = Dataset(np.eye(2), [["sea"], ["sun"]])
    >>> observed_labels(data, Verdicts([Verdict(0, "", "sun", "no")])).to_numpy()
    array([[ 1., -1.],
           [ 0.,  1.]], dtype=float32)
    """
    verdicts = corrections if isinstance(corrections, Verdicts) else read_verdicts(corrections)
    observed = as_observed(data.Y, unannotated_rule(data.Y, unannotated))
    rows, columns, values = verdicts.entries(data)
    sure = values != "unsure"
    codes = np.where(values[sure] == "yes", 1.0, -1.0)
    return _with_entries(observed, rows[sure], columns[sure], codes)


def _with_entries(
    Y: LabelMatrix, rows: np.ndarray, columns: np.ndarray, entries: np.ndarray
) -> LabelMatrix:
    """Return the labels with these entries set; sparse labels stay sparse."""
    if not Y.is_sparse:
        values = Y.values.copy()
        values[rows, columns] = entries
        return LabelMatrix(values, Y.names, Y.descriptions)
    stored = sp.coo_array(Y.values)
    width = Y.n_labels
    kept = ~np.isin(stored.row.astype(np.int64) * width + stored.col, rows * width + columns)
    positions = (np.r_[stored.row[kept], rows], np.r_[stored.col[kept], columns])
    merged = np.r_[stored.data[kept], entries.astype(np.float32)]
    values = sp.csr_array((merged, positions), shape=Y.shape).astype(np.float32)
    if not np.isnan(Y.absent):
        values.eliminate_zeros()
    values.sort_indices()
    return LabelMatrix(values, Y.names, Y.descriptions, absent=Y.absent)
