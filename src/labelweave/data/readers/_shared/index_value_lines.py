"""Parsing lines "label,label index:value index:value" of svmlight and XC files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from labelweave.data.readers._shared.number_scanner import collapse_spaces, scan_numbers
from labelweave.data.readers.reader import FilePath, feature_dtype, sparse_rows
from labelweave.exceptions import DataFileError

MAX_INDEX = 2**31 - 2
"""Largest index of a feature or a label that can be stored in 32 bits."""


@dataclass
class IndexValueRows:
    """Labels and features of rows: their numbers per row, and all of them in row order."""

    label_counts: np.ndarray
    labels: np.ndarray
    counts: np.ndarray
    columns: np.ndarray
    values: np.ndarray

    @property
    def smallest_index(self) -> int:
        """Smallest index of a feature; MAX_INDEX if there are no features."""
        return int(self.columns.min(initial=MAX_INDEX))

    @property
    def largest_index(self) -> int:
        """Largest index of a feature; 0 if there are no features."""
        return int(self.columns.max(initial=0))

    def features(self, width: int, *, first: int = 0) -> sp.csr_array:
        """Return the features as a sparse array; `first` is the index of the first column."""
        values = self.values.astype(feature_dtype(self.values))
        return sparse_rows(self.counts, self.columns - np.int32(first), values, width)

    def label_matrix(self, columns: np.ndarray, width: int) -> sp.csr_array:
        """Return the labels as a sparse matrix; `columns` is the column of each label."""
        ones = np.ones(len(columns), dtype=np.float32)
        matrix = sparse_rows(self.label_counts, columns, ones, width)
        matrix.sum_duplicates()
        matrix.data[:] = 1
        return matrix


def parse_index_value_lines(
    lines: bytes, first_line: int, path: FilePath, *, keep_blank: bool
) -> IndexValueRows | None:
    r"""Parse a chunk of complete lines; None if it has no rows.

    The number of the first line and the path are for error messages. With `keep_blank` an empty
    line is a row without labels and features; otherwise it is skipped.

    >>> rows = parse_index_value_lines(b"3,1 0:0.5 7:2\n 2:1\n", 1, "f", keep_blank=False)
    >>> rows.labels.tolist(), rows.label_counts.tolist(), rows.columns.tolist()
    ([3, 1], [2, 0], [0, 7, 2])
    """
    collapsed = collapse_spaces(lines, tight=b"\n")
    if not keep_blank:
        while b"\n\n" in collapsed:
            collapsed = collapsed.replace(b"\n\n", b"\n")
        collapsed = collapsed.removeprefix(b"\n")
    if not collapsed:
        return None
    rows = _parse_fast(collapsed)
    return rows if rows is not None else _parse_lines(lines, first_line, path, keep_blank)


def _parse_fast(lines: bytes) -> IndexValueRows | None:
    """Parse plain numbers without a Python loop; None if there is anything else or a mistake."""
    numbers = scan_numbers(lines, b",: \n")
    if numbers is None or (numbers.lone != ord("\n")).any():
        return None
    after, values, ends = numbers.after, numbers.values, numbers.row_ends
    n = len(values)
    is_index = after == ord(":")
    is_value = np.zeros(n, dtype=bool)
    is_value[1:] = is_index[:-1]
    is_label = ~(is_index | is_value)
    next_is_index = np.ones(n, dtype=bool)
    next_is_index[:-1] = is_index[1:]
    next_is_label = np.zeros(n, dtype=bool)
    next_is_label[:-1] = is_label[1:]
    comma, blank = after == ord(","), after == ord(" ")
    if (
        (is_index & is_value).any()
        or (comma & ~(is_label & next_is_label)).any()
        or (blank & ~next_is_index).any()
    ):
        return None
    columns, labels = values[is_index], values[is_label]
    for indices in (columns, labels):
        if indices.dtype != np.int32 and (
            not (np.abs(indices) <= MAX_INDEX).all() or (indices != np.rint(indices)).any()
        ):
            return None
    if (columns < 0).any():
        return None
    columns = columns.astype(np.int32)
    label_ends = np.concatenate([[0], np.cumsum(is_label)])[ends]
    feature_ends = np.concatenate([[0], np.cumsum(is_index)])[ends]
    falls = np.flatnonzero(columns[1:] <= columns[:-1]) + 1
    if not (feature_ends[np.searchsorted(feature_ends, falls)] == falls).all():
        return None
    return IndexValueRows(
        np.diff(label_ends, prepend=0),
        labels.astype(np.int64),
        np.diff(feature_ends, prepend=0),
        columns,
        values[is_value],
    )


def _parse_lines(
    chunk: bytes, first_line: int, path: FilePath, keep_blank: bool
) -> IndexValueRows | None:
    """Parse line by line, with comments, and name the line of a mistake."""
    label_counts, counts = [], []
    labels: list[int] = []
    columns: list[int] = []
    values: list[float] = []
    for number, line in _lines(chunk, first_line):
        parts = line.split()
        if not parts and not keep_blank:
            continue
        n_before, n_labels = len(columns), len(labels)
        try:
            if parts and b":" not in parts[0]:
                labels.extend(_whole_number(text, "label") for text in parts.pop(0).split(b","))
            seen: set[int] = set()
            for part in parts:
                index, value = _pair(part)
                if index in seen:
                    raise ValueError(f"the feature {index} occurs twice in the row")
                seen.add(index)
                columns.append(index)
                values.append(value)
        except ValueError as error:
            raise DataFileError(str(error), path=path, line=number) from None
        label_counts.append(len(labels) - n_labels)
        counts.append(len(columns) - n_before)
    if not counts:
        return None
    return IndexValueRows(
        np.array(label_counts, dtype=np.int64),
        np.array(labels, dtype=np.int64),
        np.array(counts, dtype=np.int64),
        np.array(columns, dtype=np.int32),
        np.array(values, dtype=np.float64),
    )


def _lines(chunk: bytes, first_line: int) -> Iterator[tuple[int, bytes]]:
    for number, line in enumerate(chunk.removesuffix(b"\n").split(b"\n"), first_line):
        code, comment, _ = line.partition(b"#")
        if code.strip() or not comment:
            yield number, code


_NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def _pair(part: bytes) -> tuple[int, float]:
    index, colon, value = part.partition(b":")
    if not colon:
        raise ValueError(f"expected index:value, found {_shown(part)}")
    if index == b"qid":
        raise ValueError("query ids (qid:) belong to ranking data; remove them")
    if not _NUMBER.fullmatch(value):
        raise ValueError(f"the value {_shown(value)} of feature {_shown(index)} is not a number")
    position = _whole_number(index, "feature index")
    if position < 0:
        raise ValueError(f"the feature index {position} is negative")
    return position, float(value)


def _whole_number(text: bytes, kind: str) -> int:
    if not re.fullmatch(rb"[+-]?\d+(\.0*)?", text):
        raise ValueError(f"the {kind} {_shown(text)} is not a whole number")
    digits = text.partition(b".")[0]
    if len(digits) > 11 or abs(int(digits)) > MAX_INDEX:
        raise ValueError(f"the {kind} {_shown(text)} is larger than {MAX_INDEX}")
    return int(digits)


def _shown(text: bytes) -> str:
    return repr(text[:40].decode("utf-8", "replace"))
