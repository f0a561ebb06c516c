"""Verdicts of reviewers, applied to labels: yes, no, unsure."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelweave.data import Dataset
from labelweave.exceptions import DataFileError, InputError
from labelweave.labels import LabelMatrix

__all__ = ["VERDICTS", "Verdict", "Verdicts", "apply_corrections", "read_verdicts"]

VERDICTS = ("yes", "no", "unsure")
Record = tuple[int | None, Mapping[str, Any]]


@dataclass(frozen=True)
class Verdict:
    """What a reviewer said of one entry; `line` is its place in a file."""

    row: int | None
    id: str
    label: str
    verdict: str
    line: int | None = None


@dataclass(frozen=True)
class Verdicts:
    """Verdicts, and the file they come from (None: from memory)."""

    verdicts: Sequence[Verdict]
    path: str | None = None

    def counts(self) -> dict[str, int]:
        """How often each verdict was given."""
        found = Counter(one.verdict for one in self.verdicts)
        return {name: found[name] for name in VERDICTS}

    def entries(self, data: Dataset) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Row, column and verdict of each entry; refused where the data have no such entry.

        A row is found by its id where the verdicts and the data have ids, else by its number.
        """
        columns = {name: j for j, name in enumerate(data.label_names)}
        by_id = _rows_by_id(data)
        seen: dict[tuple[int, int], str] = {}
        for one in self.verdicts:
            row = self._row_of(one, data, by_id)
            if one.label not in columns:
                raise self._error(
                    one,
                    f"{data.name} has no label {one.label!r}: are these verdicts of other data?",
                )
            key = row, columns[one.label]
            if seen.setdefault(key, one.verdict) != one.verdict:
                raise self._error(
                    one,
                    f"row {row} has two verdicts on {one.label!r}, {seen[key]} and {one.verdict}: "
                    "keep one",
                )
        places = np.array(list(seen), dtype=np.int64).reshape(-1, 2)
        return places[:, 0], places[:, 1], np.array(list(seen.values()), dtype=object)

    def _row_of(self, one: Verdict, data: Dataset, by_id: Mapping[str, int] | None) -> int:
        if one.id and by_id is not None:
            if one.id not in by_id:
                raise self._error(
                    one, f"{data.name} has no row {one.id!r}: are these verdicts of other data?"
                )
            return by_id[one.id]
        if one.row is None:
            raise self._error(one, "a verdict needs a row number, as the audit wrote it")
        if not 0 <= one.row < len(data):
            raise self._error(
                one,
                f"there is no row {one.row} in {data.name}, which has {len(data):,} (the first is "
                "0): are these verdicts of other data?",
            )
        return one.row

    def _error(self, one: Verdict, message: str) -> InputError:
        if self.path is None:
            return InputError(message)
        return DataFileError(message, path=self.path, line=one.line)


def _rows_by_id(data: Dataset) -> dict[str, int] | None:
    """Row of each id; None where there are no ids, or not one a row."""
    if data.row_ids is None:
        return None
    found = {str(name): i for i, name in enumerate(data.row_ids)}
    return found if len(found) == len(data) else None


def read_verdicts(path: str | PathLike[str]) -> Verdicts:
    """Read verdicts: an export of the review page, or the CSV of an audit with a column filled in.

    Parameters
    ----------
    path : path-like
        .csv with a header, or .jsonl; fields `label`, `verdict` (yes, no, unsure; empty means that
        nobody looked), and `row`, `id` or both.

    Returns
    -------
    Verdicts
    """
    source = Path(path)
    if source.suffix.lower() not in (".csv", ".jsonl"):
        raise DataFileError("verdicts are read from a .csv or a .jsonl file", path=path)
    try:
        text = source.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise DataFileError("there is no such file", path=path) from None
    except UnicodeDecodeError:
        raise DataFileError("this is no text in UTF-8", path=path) from None
    records = (
        _csv_records(text, path) if source.suffix.lower() == ".csv" else _json_lines(text, path)
    )
    found = [one for line, record in records if (one := _verdict(line, record, path)) is not None]
    if not found:
        raise DataFileError("there is no verdict in it: say yes, no or unsure", path=path)
    return Verdicts(found, str(path))


def _csv_records(text: str, path: Any) -> Iterator[Record]:
    reader = csv.DictReader(text.splitlines(keepends=True), restval="")
    for name in ("label", "verdict"):
        if name not in (reader.fieldnames or ()):
            raise DataFileError(f"the header names no column {name!r}", path=path, line=1)
    try:
        for record in reader:
            yield reader.line_num, record
    except csv.Error as error:
        raise DataFileError(f"{error}", path=path, line=reader.line_num) from None


def _json_lines(text: str, path: Any) -> Iterator[Record]:
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except ValueError:
            raise DataFileError("this line is no JSON", path=path, line=number) from None
        if not isinstance(record, dict):
            raise DataFileError("each line must be one object", path=path, line=number)
        yield number, record


def _verdict(line: int | None, record: Mapping[str, Any], path: Any) -> Verdict | None:
    said = str(record.get("verdict") or "").strip().lower()
    if not said:
        return None
    if said not in VERDICTS:
        raise DataFileError(
            f"the verdict {said!r} is none of {', '.join(VERDICTS)}", path=path, line=line
        )
    if record.get("label") in (None, ""):
        raise DataFileError("the verdict names no label", path=path, line=line)
    number = record.get("row")
    try:
        row = None if number in (None, "") else int(number)
    except (TypeError, ValueError):
        raise DataFileError(
            f"the row {number!r} is no whole number", path=path, line=line
        ) from None
    given = record.get("id")
    return Verdict(row, "" if given is None else str(given), str(record["label"]), said, line)


def apply_corrections(data: Dataset, corrections: Any) -> Dataset:
    """The data set with verdicts applied: yes makes a positive, no a negative, unsure nothing.

    Parameters
    ----------
    data : Dataset
    corrections : path or Verdicts
        A file that :func:`read_verdicts` reads, or what it returned.

    Returns
    -------
    Dataset
        The same rows with corrected labels.

    Examples
    --------
    >>> from labelweave.data.corrections import Verdict, Verdicts
    >>> data = Dataset(np.eye(2), [["sea"], ["sun"]])
    >>> said = Verdicts([Verdict(0, "", "sun", "yes"), Verdict(1, "", "sea", "unsure")])
    >>> apply_corrections(data, said).Y.to_lists()
    [['sea', 'sun'], ['sun']]
    """
    verdicts = corrections if isinstance(corrections, Verdicts) else read_verdicts(corrections)
    rows, columns, said = verdicts.entries(data)
    sure = said != "unsure"
    return replace(data, Y=_with_entries(data.Y, rows[sure], columns[sure], (said[sure] == "yes")))


def _with_entries(
    Y: LabelMatrix, rows: np.ndarray, columns: np.ndarray, positive: np.ndarray
) -> LabelMatrix:
    """The labels with these entries set; sparse labels stay sparse."""
    if not Y.is_sparse:
        values = Y.values.copy()
        values[rows, columns] = positive
        return LabelMatrix(values, Y.names, Y.descriptions)
    stored = sp.coo_array(Y.values)
    width = Y.n_labels
    kept = ~np.isin(stored.row.astype(np.int64) * width + stored.col, rows * width + columns)
    places = (np.r_[stored.row[kept], rows], np.r_[stored.col[kept], columns])
    merged = np.r_[stored.data[kept], positive.astype(np.float32)]
    values = sp.csr_array((merged, places), shape=Y.shape).astype(np.float32)
    if not np.isnan(Y.absent):
        values.eliminate_zeros()
    values.sort_indices()
    return LabelMatrix(values, Y.names, Y.descriptions, absent=Y.absent)
