"""From the attributes of an ARFF file to feature columns, labels, ids and texts."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelweave.data.readers.arff_header import Attribute
from labelweave.data.readers.arff_rows import (
    ZERO_ONE_WORDS,
    DenseRows,
    SparseRows,
    nominal_codes,
)
from labelweave.data.readers.base import MAX_DENSE_LABELS, Piece, feature_dtype
from labelweave.exceptions import DataFileError

__all__ = ["ArffColumns", "Roles"]

MAX_FILLED = 2**28
"""Entries that one-hot columns and unstored non-zero values may add: about a gigabyte."""


@dataclass(frozen=True)
class Roles:
    """Positions of the attributes that are no features."""

    labels: Sequence[int] = ()
    row_id: int | None = None
    text: int | None = None
    dropped: Collection[int] = ()


class ArffColumns:
    """Encodes parsed rows.

    Numeric attributes and dates (seconds since 1970) are one column each. A nominal attribute
    of two values is one 0/1 column: 0/1, no/yes and false/true mean what they say, else the
    second value is 1 and the column is named ``attribute=value``. A nominal attribute of more
    values is one-hot, a column ``attribute=value`` for each, or without `one_hot` one column
    of positions (0, 1, 2, ...). In sparse rows a nominal attribute that is not stored has its
    first value, as ARFF has it.
    """

    def __init__(
        self,
        attributes: Sequence[Attribute],
        roles: Roles,
        path: str | PathLike[str],
        *,
        one_hot: bool = True,
    ) -> None:
        self.attributes = attributes
        self.roles = roles
        self.path = path
        self.one_hot = one_hot
        self.feature_names: list[str] = []
        # The feature column (or the first of the one-hot columns) of each attribute, or -1.
        self._target = np.full(len(attributes), -1, dtype=np.int32)
        self._one_hot = np.zeros(len(attributes), dtype=bool)
        self._label_target = np.full(len(attributes), -1, dtype=np.int32)
        self._label_target[list(roles.labels)] = np.arange(len(roles.labels))
        labels = set(roles.labels)
        others = {*roles.dropped, roles.row_id, roles.text}
        for j, attribute in enumerate(attributes):
            if j in labels:
                self._check_label(attribute)
            elif j not in others and roles.text is None:
                self._add_feature(j, attribute)
        codes = [nominal_codes(attribute.values) for attribute in attributes]
        first = np.array([next(iter(code.values()), 0.0) for code in codes])
        used = (self._target >= 0) | (self._label_target >= 0)
        self._filled = np.flatnonzero(used & ((first != 0) | self._one_hot))
        self._first = first
        self._n_filled = 0

    def _check_label(self, attribute: Attribute) -> None:
        codes = nominal_codes(attribute.values)
        by_position = any(value.lower() not in ZERO_ONE_WORDS for value in codes)
        if attribute.kind not in ("numeric", "nominal") or len(codes) > 2 or by_position:
            values = ", ".join(attribute.values[:5])
            raise DataFileError(
                f"the label attribute {attribute.name!r} is {attribute.kind} "
                f"({values or 'any value'}), but a label has the values 0 and 1",
                path=self.path,
            )

    def _add_feature(self, j: int, attribute: Attribute) -> None:
        if attribute.kind == "string":
            raise DataFileError(
                f"the attribute {attribute.name!r} holds strings, which are no features: give its "
                "name as text_column=, id_column= or drop=",
                path=self.path,
            )
        self._target[j] = len(self.feature_names)
        codes = nominal_codes(attribute.values)
        if len(codes) > 2 and not self.one_hot:
            self.feature_names.append(attribute.name)
        elif len(codes) > 2:
            self._one_hot[j] = True
            self.feature_names.extend(f"{attribute.name}={value}" for value in codes)
        elif any(value.lower() not in ZERO_ONE_WORDS for value in codes):
            self.feature_names.append(f"{attribute.name}={list(codes)[-1]}")
        else:
            self.feature_names.append(attribute.name)

    @property
    def label_names(self) -> list[str]:
        return [self.attributes[j].name for j in self.roles.labels]

    def encode(self, rows: DenseRows | SparseRows) -> Piece:
        """Features, labels and ids of some rows."""
        encoded = self._sparse(rows) if isinstance(rows, SparseRows) else self._dense(rows)
        if self.roles.text is not None:
            encoded.X = rows.texts[self.roles.text]
        if self.roles.row_id is not None:
            encoded.row_ids = self._row_ids(rows, self.roles.row_id)
        return encoded

    def _count_filled(self, n_entries: int) -> None:
        self._n_filled += n_entries
        if self._n_filled > MAX_FILLED:
            widest = max(self.attributes, key=lambda attribute: len(attribute.values))
            raise DataFileError(
                f"the nominal attributes need more than {MAX_FILLED:,} entries; the widest is "
                f"{widest.name!r} with {len(widest.values)} values: leave it out with drop= or "
                "make it the id_column=",
                path=self.path,
            )

    def _dense(self, rows: DenseRows) -> Piece:
        values = rows.values
        scalar = np.flatnonzero((self._target >= 0) & ~self._one_hot)
        labels = values[:, list(self.roles.labels)].astype(np.float32)
        if not self._one_hot.any():
            features = values[:, scalar]
            return Piece(features.astype(feature_dtype(features), copy=False), labels)
        one_hot = np.flatnonzero(self._one_hot)
        width = len(self.feature_names)
        self._count_filled(len(values) * (width - len(scalar)))
        dtype = feature_dtype(values[:, scalar])
        features = np.zeros((len(values), width), dtype=dtype)
        features[:, self._target[scalar]] = values[:, scalar]
        for j in one_hot.tolist():
            codes = values[:, j]
            known = np.flatnonzero(~np.isnan(codes))
            features[known, self._target[j] + codes[known].astype(np.intp)] = 1
            columns = slice(self._target[j], self._target[j] + len(self.attributes[j].values))
            features[np.isnan(codes), columns] = np.nan
        return Piece(features, labels)

    def _sparse(self, rows: SparseRows) -> Piece:
        if len(self._filled):
            rows = self._with_first_values(rows)
        n_rows, n_labels = len(rows.counts), len(self.roles.labels)
        target = self._target[rows.columns]
        others = np.flatnonzero(target < 0)
        row_of_other = np.searchsorted(np.cumsum(rows.counts), others, side="right")
        label = self._label_target[rows.columns[others]]
        is_label = label >= 0
        labels = _csr(
            np.bincount(row_of_other[is_label], minlength=n_rows),
            label[is_label],
            rows.values[others[is_label]].astype(np.float32),
            n_labels,
        )
        counts = rows.counts - np.bincount(row_of_other, minlength=n_rows)
        is_feature = target >= 0
        columns, values = target[is_feature], rows.values[is_feature]
        hot = self._one_hot[rows.columns[is_feature]] if self._one_hot.any() else None
        if hot is not None and hot.any():
            attribute = rows.columns[is_feature]
            counts, columns, values = self._one_hot_entries(counts, columns, values, attribute, hot)
        features = _csr(
            counts, columns, values.astype(feature_dtype(values)), len(self.feature_names)
        )
        return Piece(features, labels if n_labels > MAX_DENSE_LABELS else labels.toarray())

    def _with_first_values(self, rows: SparseRows) -> SparseRows:
        """The rows with the entries added that are not stored and yet not zero."""
        n_rows = len(rows.counts)
        self._count_filled(n_rows * len(self._filled))
        row = np.repeat(np.arange(n_rows), rows.counts)
        place = np.full(len(self.attributes), -1)
        place[self._filled] = np.arange(len(self._filled))
        stored = np.zeros((n_rows, len(self._filled)), dtype=bool)
        relevant = place[rows.columns] >= 0
        stored[row[relevant], place[rows.columns[relevant]]] = True
        more_rows, more = np.nonzero(~stored)
        order = np.argsort(np.concatenate([row, more_rows]), kind="stable")
        return SparseRows(
            rows.counts + np.bincount(more_rows, minlength=n_rows),
            np.concatenate([rows.columns, self._filled[more]])[order],
            np.concatenate([rows.values, self._first[self._filled[more]]])[order],
            rows.texts,
        )

    def _one_hot_entries(
        self,
        counts: np.ndarray,
        columns: np.ndarray,
        values: np.ndarray,
        attribute: np.ndarray,
        hot: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Entries whose one-hot codes became columns; a missing code is NaN in all of them."""
        missing = hot & np.isnan(values)
        known = hot & ~missing
        columns, values = columns.copy(), values.astype(np.float64)
        columns[known] += values[known].astype(np.int32)
        values[known] = 1
        widths = np.ones(len(columns), dtype=np.int64)
        widths[missing] = [len(self.attributes[j].values) for j in attribute[missing]]
        self._count_filled(int(widths[missing].sum()))
        ends = np.cumsum(widths)
        within = np.arange(ends[-1]) - np.repeat(ends - widths, widths)
        row = np.repeat(np.arange(len(counts)), counts)
        return (
            np.bincount(np.repeat(row, widths), minlength=len(counts)),
            np.repeat(columns, widths) + within,
            np.repeat(values, widths),
        )

    def _row_ids(self, rows: DenseRows | SparseRows, j: int) -> list[Any]:
        if j in rows.texts:
            return rows.texts[j]
        if isinstance(rows, DenseRows):
            values = rows.values[:, j]
        else:
            values = np.full(len(rows.counts), self._first[j])
            mine = rows.columns == j
            values[np.repeat(np.arange(len(rows.counts)), rows.counts)[mine]] = rows.values[mine]
        attribute = self.attributes[j]
        if attribute.kind == "nominal":
            names = {code: value for value, code in nominal_codes(attribute.values).items()}
            return [names.get(value, "") for value in values.tolist()]
        return [int(v) if v.is_integer() else v for v in values.tolist()]


def _csr(counts: np.ndarray, columns: np.ndarray, values: np.ndarray, width: int) -> sp.csr_array:
    """A sparse array of `counts` entries a row, never two in the same place."""
    indptr = np.zeros(len(counts) + 1, dtype=np.int32)
    np.cumsum(counts, out=indptr[1:])
    matrix = sp.csr_array((values, columns, indptr), shape=(len(counts), width))
    matrix.sort_indices()
    if (values == 0).any():
        matrix.eliminate_zeros()
    return matrix
