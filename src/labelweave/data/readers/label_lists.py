"""Labels given as lists of names: vocabulary, label files, and the matrix they make."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelweave.data.compression import decode, inner_name, read_whole
from labelweave.data.readers.base import MAX_DENSE_LABELS, FilePath
from labelweave.exceptions import DataFileError, InputError

__all__ = ["LabelFile", "find_label_file", "label_matrix", "read_label_file", "vocabulary"]

LABEL_FILE_NAMES = ("labels.jsonl", "labels.json", "labels.txt")
MAX_STORED_UNKNOWN = 2**26


@dataclass(frozen=True)
class LabelFile:
    """Label names in the order of a file, and the longer texts it has for them."""

    names: list[str]
    descriptions: dict[str, str] = field(default_factory=dict)


def find_label_file(path: FilePath) -> Path | None:
    """A file `labels.jsonl`, `labels.json` or `labels.txt` in the folder of a data file."""
    folder = Path(path).parent
    found = (folder / name for name in LABEL_FILE_NAMES)
    return next((file for file in found if file.is_file() and file != Path(path)), None)


def read_label_file(path: FilePath, *, field_name: str | None = None) -> LabelFile:
    """Read names and descriptions of labels.

    Parameters
    ----------
    path : path-like
        JSON (a list of names, a list of objects, or an object from names to descriptions),
        JSON Lines (an object a label) or plain text (a name a line). An object has its name
        in `label`, `id` or `name`, and more text in `name` and `description`.
    field_name : str, optional
        Where the JSON file holds several vocabularies, one a field of the data, which one.
    """
    text = decode(read_whole(path).removeprefix(b"\xef\xbb\xbf"), path, None)
    ending = Path(inner_name(path)).suffix.lower()
    if ending == ".txt":
        return LabelFile(_distinct([line.strip() for line in text.splitlines()], path))
    try:
        if ending == ".jsonl":
            content: Any = [json.loads(line) for line in text.splitlines() if line.strip()]
        else:
            content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataFileError(f"this is not valid JSON ({error})", path=path) from None
    if isinstance(content, dict) and isinstance(content.get(field_name), dict | list):
        content = content[field_name]
    if isinstance(content, dict):
        content = [{"label": name, "description": text} for name, text in content.items()]
    if not isinstance(content, list):
        raise DataFileError("expected a list of labels or an object from names to texts", path=path)
    names: list[str] = []
    descriptions: dict[str, str] = {}
    for entry in content:
        parts = {"label": entry} if isinstance(entry, str) else entry
        key = isinstance(parts, dict) and next(
            (k for k in ("label", "id", "name") if isinstance(parts.get(k), str)), None
        )
        if not key:
            raise DataFileError(f"a label has no name: {str(entry)[:60]}", path=path)
        names.append(parts[key])
        texts = [parts[k] for k in ("name", "description") if k != key and parts.get(k)]
        if texts:
            descriptions[parts[key]] = ": ".join(str(text) for text in texts)
    return LabelFile(_distinct(names, path), descriptions)


def _distinct(names: list[str], path: FilePath) -> list[str]:
    names = [name for name in names if name]
    if not names or len(set(names)) < len(names):
        raise DataFileError("expected label names, each of them once", path=path)
    return names


def vocabulary(labels: Any, rows: Sequence[Sequence[str] | None]) -> list[str]:
    """The label names: those given, else the sorted ones that occur."""
    if labels is not None:
        if isinstance(labels, str | int) or not all(isinstance(name, str) for name in labels):
            raise InputError(
                "labels= must be the list of label names where the file holds names of labels"
            )
        return list(labels)
    return sorted({name for row in rows if row is not None for name in row})


def named_ids(
    rows: Iterable[Sequence[str] | None], names: Sequence[str]
) -> list[list[str] | None] | None:
    """Rows of label ids ("0", "27") with their names, or None if they are no ids."""
    named: list[list[str] | None] = []
    for row in rows:
        if row is None:
            named.append(None)
            continue
        if not all(label.isdecimal() and len(label) < 10 for label in row):
            return None
        places = [int(label) for label in row]
        if any(place >= len(names) for place in places):
            return None
        named.append([names[place] for place in places])
    return named


def label_matrix(
    rows: Sequence[Sequence[str] | None],
    names: Sequence[str],
    path: FilePath,
    lines: Sequence[int] | None = None,
) -> np.ndarray | sp.csr_array:
    """Labels as a matrix; None for a row means that all its labels are unknown.

    >>> label_matrix([["b"], [], None], ["a", "b"], "f").tolist()
    [[0.0, 1.0], [0.0, 0.0], [nan, nan]]
    """
    position: Mapping[str, int] = {name: j for j, name in enumerate(names)}
    columns: list[int] = []
    ends = np.zeros(len(rows) + 1, dtype=np.int64)
    for i, row in enumerate(rows):
        try:
            columns.extend({position[name]: None for name in row or ()})
        except KeyError as error:
            raise DataFileError(
                f"the label {error.args[0]!r} is not among the {len(names)} label names given",
                path=path,
                line=None if lines is None else lines[i],
            ) from None
        ends[i + 1] = len(columns)
    matrix = sp.csr_array(
        (np.ones(len(columns), dtype=np.float32), np.array(columns, dtype=np.int32), ends),
        shape=(len(rows), len(names)),
    )
    unknown = np.array([row is None for row in rows], dtype=bool)
    if len(names) <= MAX_DENSE_LABELS:
        dense = matrix.toarray()
        dense[unknown] = np.nan
        return dense
    matrix.sort_indices()
    if unknown.any():
        if int(unknown.sum()) * len(names) > MAX_STORED_UNKNOWN:
            raise DataFileError(
                f"{int(unknown.sum())} rows have no labels field, too many to store all their "
                f"{len(names)} labels as unknown: leave these rows out, or give them an empty list",
                path=path,
            )
        blank = sp.csr_array(unknown[:, None] * np.ones((1, len(names)), dtype=np.float32))
        blank.data[:] = np.nan
        matrix = sp.csr_array(matrix + blank)
    return matrix
