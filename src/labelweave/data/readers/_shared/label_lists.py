"""Label matrices from lists of label names, one list per row."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelweave.data.compressed_files import FilePath
from labelweave.data.readers.reader import MAX_DENSE_LABELS
from labelweave.exceptions import DataFileError, InputError

MAX_STORED_UNKNOWN = 2**26


def vocabulary(labels: Any, rows: Sequence[Sequence[str] | None]) -> list[str]:
    """The label names: those of `labels` or, without them, the sorted names that occur."""
    if labels is not None:
        if isinstance(labels, str | int) or not all(isinstance(name, str) for name in labels):
            raise InputError(
                "labels= must be the list of label names, since the file lists names",
                parameter="labels",
            )
        return list(labels)
    return sorted({name for row in rows if row is not None for name in row})


def names_of_ids(rows: Iterable[Sequence[str]], names: Sequence[str]) -> list[list[str]] | None:
    """Replace label ids ("0", "27") by their names; None if some label is not an id."""
    named: list[list[str]] = []
    for row in rows:
        if not all(label.isdecimal() and len(label) < 10 for label in row):
            return None
        ids = [int(label) for label in row]
        if any(label_id >= len(names) for label_id in ids):
            return None
        named.append([names[label_id] for label_id in ids])
    return named


def label_matrix(
    rows: Sequence[Sequence[str] | None],
    names: Sequence[str],
    path: FilePath,
    lines: Sequence[int] | None = None,
) -> np.ndarray | sp.csr_array:
    """Labels as a matrix with one column per name.

    A row that is None has only unknown labels. `lines` are the line numbers of the rows, for the
    error message.

    >>> label_matrix([["b"], [], None], ["a", "b"], "f").tolist()
    [[0.0, 1.0], [0.0, 0.0], [nan, nan]]
    """
    position = {name: j for j, name in enumerate(names)}
    columns: list[int] = []
    indptr = np.zeros(len(rows) + 1, dtype=np.int64)
    for i, row in enumerate(rows):
        try:
            columns.extend({position[name]: None for name in row or ()})
        except KeyError as error:
            raise DataFileError(
                f"the label {error.args[0]!r} is not among the {len(names)} label names",
                path=path,
                line=None if lines is None else lines[i],
            ) from None
        indptr[i + 1] = len(columns)
    matrix = sp.csr_array(
        (np.ones(len(columns), dtype=np.float32), np.array(columns, dtype=np.int32), indptr),
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
                f"{len(names)} labels as unknown: leave these rows out, or write an empty list "
                "for rows without labels",
                path=path,
            )
        unknown_rows = sp.csr_array(unknown[:, None] * np.ones((1, len(names)), dtype=np.float32))
        unknown_rows.data[:] = np.nan
        matrix = sp.csr_array(matrix + unknown_rows)
    return matrix
