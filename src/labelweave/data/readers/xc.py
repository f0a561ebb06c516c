"""Files of the Extreme Classification repository: `n d L`, then `l,l f:v f:v` lines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import BinaryIO

import numpy as np

from labelweave.data.compressed_files import (
    iter_line_chunks,
    iter_lines,
    open_binary,
    read_line,
)
from labelweave.data.dataset import Dataset
from labelweave.data.readers._shared.index_value_lines import (
    MAX_INDEX,
    IndexValueRows,
    parse_index_value_lines,
)
from labelweave.data.readers.reader import (
    MAX_DENSE_LABELS,
    FeatureSpec,
    FilePath,
    Reader,
    RowChunk,
    concatenate_chunks,
    make_dataset,
)
from labelweave.exceptions import DataFileError

MAX_LABELS = 10_000_000
"""Three times the largest data set of the repository; a larger number is a damaged header."""


def read_xc(
    path: FilePath, *, labels: Sequence[str] | str | None = None, require_labels: bool = True
) -> Dataset:
    r"""Read a file of the Extreme Classification repository.

    The first line is ``rows features labels``; every other line is ``label,label index:value ...``
    with indices that start at 0. A row may have no labels, no features, or neither. X is sparse; Y
    is sparse if there are more than 64 labels.

    Parameters
    ----------
    path : path-like
    labels : sequence of str, or path of a text file, optional
        Names of the labels; a file has one per line. By default the labels are named by their
        numbers.
    require_labels : bool, default=True
        False accepts a header that announces no labels.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "train.txt"
    ...     _ = path.write_text("2 4 3\n0,2 1:0.5 3:2\n 2:1\n")
    ...     data = read_xc(path)
    >>> data, data.Y.to_lists()
    (<Dataset train: 2 rows x 4 features, 3 labels, 1.000 labels per row>, [['0', '2'], []])
    """
    with open_binary(path) as file:
        n_rows, n_features, n_labels = _header(file, path)
        if n_labels == 0 and require_labels:
            raise DataFileError("the header announces no labels", path=path, line=1)
        chunks = []
        for parsed in _parsed_chunks(file, path, n_rows, n_features, n_labels):
            Y = parsed.label_matrix(parsed.labels, n_labels)
            X = parsed.features(n_features)
            chunks.append(RowChunk(X, Y if n_labels > MAX_DENSE_LABELS else Y.toarray()))
    rows = concatenate_chunks(chunks)
    # The names are made last, so that a wrong header does not cost millions of them.
    return make_dataset(path, rows.X, rows.Y, _label_names(labels, n_labels, path))


def _iter_features(path: FilePath, features: FeatureSpec, **ignored: object) -> Iterator[RowChunk]:
    with open_binary(path) as file:
        n_rows, n_features, _ = _header(file, path)
        width = features.width
        if width is not None and width != n_features:
            raise DataFileError(
                f"the header announces {n_features} features, but {width} are needed",
                path=path,
                line=1,
            )
        for rows in _parsed_chunks(file, path, n_rows, n_features):
            yield RowChunk(rows.features(n_features))


_HEADER = re.compile(rb"\s*(\d{1,20})\s+(\d{1,20})\s+(\d{1,20})\s*")


def _header(file: BinaryIO, path: FilePath) -> tuple[int, int, int]:
    match = _HEADER.fullmatch(read_line(file, path, 1))
    if match is None:
        raise DataFileError(
            "the first line must hold three numbers: rows, features and labels", path=path, line=1
        )
    n_rows, n_features, n_labels = (int(number) for number in match.groups())
    if n_features > MAX_INDEX or n_labels > MAX_LABELS or n_rows > MAX_INDEX:
        raise DataFileError(
            f"the header announces {n_rows} rows, {n_features} features and {n_labels} labels, "
            "more than any data set has: the header is damaged",
            path=path,
            line=1,
        )
    return n_rows, n_features, n_labels


def _parsed_chunks(
    file: BinaryIO, path: FilePath, n_rows: int, n_features: int, n_labels: int | None = None
) -> Iterator[IndexValueRows]:
    """Iterate over parsed rows and check them against the header.

    The labels are checked only if their number is given.
    """
    n_read = 0
    for first_line, lines in iter_line_chunks(file, path, first_line=2):
        rows = parse_index_value_lines(lines, first_line, path, keep_blank=True)
        if rows is None:
            continue
        if n_read + len(rows.counts) > n_rows:
            rows = _without_blank_tail(rows, n_rows - n_read, first_line, path)
        n_read += len(rows.counts)
        _check_announced("feature", rows.columns, rows.counts, n_features, path, first_line)
        if n_labels is not None:
            _check_announced("label", rows.labels, rows.label_counts, n_labels, path, first_line)
        yield rows
    if n_read != n_rows or n_rows == 0:
        raise DataFileError(
            f"the header announces {n_rows} rows, but the file has {n_read}: it is truncated or "
            "the header is wrong",
            path=path,
        )


def _check_announced(
    kind: str, indices: np.ndarray, counts: np.ndarray, number: int, path: FilePath, first_line: int
) -> None:
    wrong = np.flatnonzero((indices < 0) | (indices >= number))
    if len(wrong):
        row = int(np.searchsorted(np.cumsum(counts), wrong[0], side="right"))
        raise DataFileError(
            f"the row has the {kind} {indices[wrong[0]]}, but the header announces {number} "
            f"{kind}s, 0 to {number - 1}",
            path=path,
            line=first_line + row,
        )


def _without_blank_tail(
    rows: IndexValueRows, n_kept: int, first_line: int, path: FilePath
) -> IndexValueRows:
    """Remove the empty lines at the end of the file, which are not rows."""
    surplus = np.flatnonzero(rows.counts[n_kept:] + rows.label_counts[n_kept:])
    if len(surplus):
        raise DataFileError(
            "there are more rows than the header announces",
            path=path,
            line=first_line + n_kept + int(surplus[0]),
        )
    return IndexValueRows(
        rows.label_counts[:n_kept], rows.labels, rows.counts[:n_kept], rows.columns, rows.values
    )


def _label_names(labels: Sequence[str] | str | None, n_labels: int, path: FilePath) -> list[str]:
    if labels is None:
        return [str(j) for j in range(n_labels)]
    names = [line for _, line in iter_lines(labels)] if isinstance(labels, str) else list(labels)
    if len(names) != n_labels:
        raise DataFileError(
            f"labels= has {len(names)} label names, but the header announces {n_labels} labels",
            path=path,
            parameter="labels",
        )
    return names


READER = Reader(read_xc, _iter_features)
