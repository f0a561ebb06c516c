"""svmlight (libsvm) files with any number of labels a row: `1,3 5:0.2 9:1`."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Sequence

import numpy as np

from labelweave.data.compression import iter_blocks, open_binary
from labelweave.data.dataset import Dataset
from labelweave.data.readers.base import (
    LISTED,
    MAX_DENSE_LABELS,
    FeatureSpec,
    FilePath,
    Piece,
    Reader,
    join_pieces,
    make_dataset,
)
from labelweave.data.readers.pairs import MAX_INDEX, PairRows, parse_pairs
from labelweave.exceptions import DataFileError, InputError, LabelweaveWarning

__all__ = ["READER", "read_svmlight"]


def read_svmlight(
    path: FilePath,
    *,
    labels: Sequence[str] | None = None,
    require_labels: bool = True,
    zero_based: bool | str = "auto",
    n_features: int | None = None,
) -> Dataset:
    r"""Read a multi-label svmlight file.

    A row is ``label,label index:value index:value``; its labels may be missing; what follows
    ``#`` is a comment; empty lines are skipped.

    Parameters
    ----------
    path : path-like
    labels : sequence of str, optional
        Names of the label ids: the first is that of id 0 (or of id 1, if no row has id 0 and
        some row has as large an id as there are names). By default the labels are named by
        the ids that occur.
    require_labels : bool, default=True
        False allows a file in which no row has a label.
    zero_based : bool or "auto", default="auto"
        Whether feature indices start at 0; "auto" takes 1 unless the index 0 occurs.
    n_features : int, optional
        Number of features; by default the largest index decides.

    Returns
    -------
    Dataset
        X is a sparse float32 array.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "small.svm"
    ...     _ = path.write_text("0,2 1:0.5 3:2\n 2:1\n")
    ...     data = read_svmlight(path, labels=["sea", "sun", "sky"])
    >>> data.Y.to_lists(), data.X.toarray().tolist()
    ([['sea', 'sky'], []], [[0.5, 0.0, 2.0], [0.0, 1.0, 0.0]])
    """
    blocks = list(_blocks(path))
    if not blocks:
        raise DataFileError("the file has no rows", path=path)
    smallest = min(int(rows.columns.min(initial=MAX_INDEX)) for rows in blocks)
    largest = max(int(rows.columns.max(initial=0)) for rows in blocks)
    first = _first_index(zero_based, smallest)
    width = largest + 1 - first if n_features is None else n_features
    _check_range(smallest, largest, first, width, path)
    ids = np.unique(np.concatenate([rows.labels for rows in blocks]))
    if len(ids) == 0 and require_labels:
        raise DataFileError("no row has a label before its index:value pairs", path=path)
    names, offset = _names_of(ids, labels, path)
    pieces = []
    for rows in blocks:
        place = (
            np.searchsorted(ids, rows.labels) if labels is None else rows.labels - np.int64(offset)
        )
        matrix = rows.label_matrix(place, len(names))
        pieces.append(
            Piece(
                rows.features(width, first=first),
                matrix if len(names) > MAX_DENSE_LABELS else matrix.toarray(),
            )
        )
    whole = join_pieces(pieces)
    return make_dataset(path, whole.X, whole.Y, names, facts=LISTED)


def _names_of(
    ids: np.ndarray, labels: Sequence[str] | None, path: FilePath
) -> tuple[list[str], int]:
    """Label names, and the id of the first one."""
    if labels is None:
        return [str(label) for label in ids.tolist()], 0
    if isinstance(labels, str | int):
        raise InputError("labels= must be the list of label names, in the order of their ids")
    names = list(labels)
    smallest, largest = (int(ids[0]), int(ids[-1])) if len(ids) else (0, 0)
    offset = 1 if smallest > 0 and largest == len(names) else 0
    if smallest < 0 or largest - offset >= len(names):
        raise DataFileError(
            f"label ids go from {smallest} to {largest}, but {len(names)} names were given",
            path=path,
        )
    return names, offset


def _feature_pieces(
    path: FilePath, features: FeatureSpec, *, labels: object = None, zero_based: bool | str = "auto"
) -> Iterator[Piece]:
    width = features.width
    smallest, largest = MAX_INDEX, 0
    if zero_based == "auto" or width is None:
        for rows in _blocks(path):
            smallest = min(smallest, int(rows.columns.min(initial=MAX_INDEX)))
            largest = max(largest, int(rows.columns.max(initial=0)))
    first = _first_index(zero_based, smallest)
    if zero_based == "auto" and first == 1 and width is not None and largest < width:
        warnings.warn(
            f"{path}: no row has the feature index 0, so indices are taken to start at 1; say "
            "zero_based=True if they start at 0",
            LabelweaveWarning,
            stacklevel=2,
        )
    if width is None:
        width = largest + 1 - first
    for rows in _blocks(path):
        lowest = int(rows.columns.min(initial=MAX_INDEX))
        _check_range(lowest, int(rows.columns.max(initial=0)), first, width, path)
        yield Piece(rows.features(width, first=first))


def _blocks(path: FilePath) -> Iterator[PairRows]:
    with open_binary(path) as file:
        for first_line, block in iter_blocks(file, path):
            rows = parse_pairs(block, first_line, path, keep_blank=False)
            if rows is not None:
                yield rows


def _first_index(zero_based: bool | str, smallest: int) -> int:
    if zero_based == "auto":
        return 0 if smallest == 0 or smallest == MAX_INDEX else 1
    if not isinstance(zero_based, bool):
        raise InputError(f"zero_based= is True, False or 'auto', not {zero_based!r}")
    return 0 if zero_based else 1


def _check_range(smallest: int, largest: int, first: int, width: int, path: FilePath) -> None:
    if smallest < first:
        raise DataFileError("a row has the feature index 0, but indices start at 1", path=path)
    if largest - first >= width and smallest != MAX_INDEX:
        raise DataFileError(
            f"the feature index {largest} is beyond the last of {width} features (the first is "
            f"{first})",
            path=path,
        )


def _score(name: str, head: bytes) -> int:
    lines = [line for line in head.split(b"\n")[:20] if line.strip()]
    lines = lines[: max(1, len(lines) - 1)]  # the last may be cut
    if lines and all(_LINE.match(line) for line in lines if not line.startswith(b"#")):
        return 2
    return 1 if name.lower().endswith((".svm", ".svmlight", ".libsvm")) else 0


_LINE = re.compile(rb"\s*(-?\d+(,-?\d+)*)?(\s+|^)\d+:[-+.\deE]+(\s|$)")

READER = Reader(
    "svmlight",
    "svmlight or libsvm lines, 'label,label index:value ...'",
    _score,
    read_svmlight,
    _feature_pieces,
)
