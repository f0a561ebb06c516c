"""Files of the Extreme Classification repository: `n d L`, then `l,l f:v f:v` lines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import BinaryIO

import numpy as np

from labelweave.data.compression import iter_blocks, iter_lines, open_binary, read_line
from labelweave.data.dataset import Dataset
from labelweave.data.readers.base import (
    MAX_DENSE_LABELS,
    FeatureSpec,
    FilePath,
    Piece,
    Reader,
    join_pieces,
    make_dataset,
)
from labelweave.data.readers.pairs import MAX_INDEX, PairRows, parse_pairs
from labelweave.exceptions import DataFileError

__all__ = ["READER", "read_xc"]

MAX_LABELS = 10_000_000
"""Three times the largest set of the repository; more is taken for a damaged header."""


def read_xc(
    path: FilePath, *, labels: Sequence[str] | str | None = None, require_labels: bool = True
) -> Dataset:
    r"""Read a file of the Extreme Classification repository.

    The first line is ``rows features labels``, every other one ``label,label index:value ...``
    with indices that start at 0. A row may have no label, no feature, or neither.

    Parameters
    ----------
    path : path-like
    labels : sequence of str, or path of a text file, optional
        Names of the labels, one a line in a file. By default they are named by their numbers.
    require_labels : bool, default=True
        False allows a header that announces no labels.

    Returns
    -------
    Dataset
        X and, with more than 64 labels, Y are sparse.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "train.txt"
    ...     _ = path.write_text("2 4 3\n0,2 1:0.5 3:2\n 2:1\n")
    ...     data = read_xc(path)
    >>> data, data.Y.to_lists()
    (<Dataset train: 2 rows x 4 features, 3 labels, 1.000 labels a row>, [['0', '2'], []])
    """
    with open_binary(path) as file:
        n_rows, n_features, n_labels = _header(file, path)
        if n_labels == 0 and require_labels:
            raise DataFileError("the header announces no labels", path=path, line=1)
        pieces = [
            _piece(rows, n_features, n_labels)
            for rows in _blocks(file, path, n_rows, n_features, n_labels)
        ]
    whole = join_pieces(pieces)
    # Only now: a header that lies must not cost millions of names.
    return make_dataset(path, whole.X, whole.Y, _label_names(labels, n_labels, path))


def _piece(rows: PairRows, n_features: int, n_labels: int) -> Piece:
    labels = rows.label_matrix(rows.labels, n_labels)
    return Piece(
        rows.features(n_features), labels if n_labels > MAX_DENSE_LABELS else labels.toarray()
    )


def _feature_pieces(
    path: FilePath, features: FeatureSpec, *, labels: object = None
) -> Iterator[Piece]:
    with open_binary(path) as file:
        n_rows, n_features, _ = _header(file, path)
        width = features.width
        if width is not None and width != n_features:
            raise DataFileError(
                f"the header announces {n_features} features, but {width} are wanted",
                path=path,
                line=1,
            )
        for rows in _blocks(file, path, n_rows, n_features):
            yield Piece(rows.features(n_features))


_HEADER = re.compile(rb"\s*(\d{1,20})\s+(\d{1,20})\s+(\d{1,20})\s*")


def _header(file: BinaryIO, path: FilePath) -> tuple[int, int, int]:
    line = read_line(file, path, 1).removeprefix(b"\xef\xbb\xbf")
    found = _HEADER.fullmatch(line)
    if found is None:
        raise DataFileError(
            "the first line must hold three numbers: rows, features, labels", path=path, line=1
        )
    n_rows, n_features, n_labels = (int(number) for number in found.groups())
    if n_features > MAX_INDEX or n_labels > MAX_LABELS or n_rows > MAX_INDEX:
        raise DataFileError(
            f"the header announces {n_rows} rows, {n_features} features and {n_labels} labels, "
            "more than any data set has: it is damaged",
            path=path,
            line=1,
        )
    return n_rows, n_features, n_labels


def _blocks(
    file: BinaryIO, path: FilePath, n_rows: int, n_features: int, n_labels: int | None = None
) -> Iterator[PairRows]:
    """Blocks of rows whose features, and labels where their number is given, are announced."""
    n_read = 0
    for first_line, block in iter_blocks(file, path, first_line=2):
        rows = parse_pairs(block, first_line, path, keep_blank=True)
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
            f"the header announces {n_rows} rows, but the file has {n_read}: it is cut short or "
            "the header is wrong",
            path=path,
        )


def _check_announced(
    what: str, found: np.ndarray, counts: np.ndarray, number: int, path: FilePath, first_line: int
) -> None:
    wrong = np.flatnonzero((found < 0) | (found >= number))
    if len(wrong):
        row = int(np.searchsorted(np.cumsum(counts), wrong[0], side="right"))
        raise DataFileError(
            f"the row has the {what} {found[wrong[0]]}, but the header announces {number} "
            f"{what}s, 0 to {number - 1}",
            path=path,
            line=first_line + row,
        )


def _without_blank_tail(rows: PairRows, n_kept: int, first_line: int, path: FilePath) -> PairRows:
    """The rows without empty lines at the end of the file, which are no rows."""
    more = np.flatnonzero(rows.counts[n_kept:] + rows.label_counts[n_kept:])
    if len(more):
        raise DataFileError(
            "there are more rows than the header announces",
            path=path,
            line=first_line + n_kept + int(more[0]),
        )
    return PairRows(
        rows.label_counts[:n_kept], rows.labels, rows.counts[:n_kept], rows.columns, rows.values
    )


def _label_names(labels: Sequence[str] | str | None, n_labels: int, path: FilePath) -> list[str]:
    if labels is None:
        return [str(j) for j in range(n_labels)]
    names = [line for _, line in iter_lines(labels)] if isinstance(labels, str) else list(labels)
    if len(names) != n_labels:
        raise DataFileError(
            f"{len(names)} label names were given, but the header announces {n_labels} labels",
            path=path,
        )
    return names


def _score(name: str, head: bytes) -> int:
    first, _, rest = head.removeprefix(b"\xef\xbb\xbf").partition(b"\n")
    second = rest.partition(b"\n")[0]
    return 3 if _HEADER.fullmatch(first) and (b":" in second or not second.strip()) else 0


READER = Reader(
    "xc",
    "Extreme Classification repository, 'rows features labels' then 'label,label index:value'",
    _score,
    read_xc,
    _feature_pieces,
)
