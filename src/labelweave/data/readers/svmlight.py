"""svmlight (libsvm) files with any number of labels per row: `1,3 5:0.2 9:1`."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence

import numpy as np

from labelweave.data.compressed_files import iter_line_chunks, open_binary
from labelweave.data.dataset import Dataset
from labelweave.data.readers._shared.index_value_lines import (
    MAX_INDEX,
    IndexValueRows,
    parse_index_value_lines,
)
from labelweave.data.readers.reader import (
    LABELS_LISTED,
    MAX_DENSE_LABELS,
    FeatureSpec,
    FilePath,
    Reader,
    RowChunk,
    concatenate_chunks,
    make_dataset,
)
from labelweave.exceptions import DataFileError, InputError, LabelweaveWarning


def read_svmlight(
    path: FilePath,
    *,
    labels: Sequence[str] | None = None,
    require_labels: bool = True,
    zero_based: bool | str = "auto",
    n_features: int | None = None,
) -> Dataset:
    r"""Read a multi-label svmlight file.

    A row is ``label,label index:value index:value``; it may have no labels. Text after ``#`` is a
    comment, and empty lines are skipped. X is a sparse float32 array.

    Parameters
    ----------
    path : path-like
    labels : sequence of str, optional
        Names of the label ids. The first name is that of id 0 (or of id 1, if id 0 does not occur
        and the largest id equals the number of names). By default the labels are named by the ids
        that occur.
    require_labels : bool, default=True
        False accepts a file in which no row has a label.
    zero_based : bool or "auto", default="auto"
        Whether feature indices start at 0; "auto" means that they start at 1 unless the index 0
        occurs.
    n_features : int, optional
        Number of features, by default from the largest index.

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
    chunks = list(_parsed_chunks(path))
    if not chunks:
        raise DataFileError("the file has no rows", path=path)
    smallest = min(rows.smallest_index for rows in chunks)
    largest = max(rows.largest_index for rows in chunks)
    first = _first_index(zero_based, smallest)
    width = largest + 1 - first if n_features is None else n_features
    _check_range(smallest, largest, first, width, path)
    ids = np.unique(np.concatenate([rows.labels for rows in chunks]))
    if len(ids) == 0 and require_labels:
        raise DataFileError("no row has a label before its index:value pairs", path=path)
    names, first_id = _names_of(ids, labels, path)
    row_chunks = []
    for rows in chunks:
        is_named = labels is not None
        columns = (
            rows.labels - np.int64(first_id) if is_named else np.searchsorted(ids, rows.labels)
        )
        matrix = rows.label_matrix(columns, len(names))
        row_chunks.append(
            RowChunk(
                rows.features(width, first=first),
                matrix if len(names) > MAX_DENSE_LABELS else matrix.toarray(),
            )
        )
    rows_read = concatenate_chunks(row_chunks)
    return make_dataset(path, rows_read.X, rows_read.Y, names, facts=LABELS_LISTED)


def _names_of(
    ids: np.ndarray, labels: Sequence[str] | None, path: FilePath
) -> tuple[list[str], int]:
    """Names of the labels, and the id of the first."""
    if labels is None:
        return [str(label) for label in ids.tolist()], 0
    if isinstance(labels, str | int):
        raise InputError(
            "labels= must be the list of label names, in the order of their ids", parameter="labels"
        )
    names = list(labels)
    smallest, largest = (int(ids[0]), int(ids[-1])) if len(ids) else (0, 0)
    first_id = 1 if smallest > 0 and largest == len(names) else 0
    if smallest < 0 or largest - first_id >= len(names):
        raise DataFileError(
            f"the label ids are from {smallest} to {largest}, but labels= has {len(names)} names",
            path=path,
            parameter="labels",
        )
    return names, first_id


def _iter_features(
    path: FilePath, features: FeatureSpec, *, zero_based: bool | str = "auto", **ignored: object
) -> Iterator[RowChunk]:
    width = features.width
    smallest, largest = MAX_INDEX, 0
    if zero_based == "auto" or width is None:
        for rows in _parsed_chunks(path):
            smallest = min(smallest, rows.smallest_index)
            largest = max(largest, rows.largest_index)
    first = _first_index(zero_based, smallest)
    if zero_based == "auto" and first == 1 and width is not None and largest < width:
        warnings.warn(
            f"{path}: no row has the feature index 0, so indices are assumed to start at 1; use "
            "zero_based=True if they start at 0",
            LabelweaveWarning,
            stacklevel=2,
        )
    if width is None:
        width = largest + 1 - first
    for rows in _parsed_chunks(path):
        _check_range(rows.smallest_index, rows.largest_index, first, width, path)
        yield RowChunk(rows.features(width, first=first))


def _parsed_chunks(path: FilePath) -> Iterator[IndexValueRows]:
    with open_binary(path) as file:
        for first_line, lines in iter_line_chunks(file, path):
            rows = parse_index_value_lines(lines, first_line, path, keep_blank=False)
            if rows is not None:
                yield rows


def _first_index(zero_based: bool | str, smallest: int) -> int:
    if zero_based == "auto":
        return 0 if smallest == 0 or smallest == MAX_INDEX else 1
    if not isinstance(zero_based, bool):
        raise InputError(f"zero_based= must be True, False or 'auto', not {zero_based!r}")
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


READER = Reader(read_svmlight, _iter_features)
