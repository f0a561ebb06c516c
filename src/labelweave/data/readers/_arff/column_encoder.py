"""Encoding parsed ARFF rows as feature columns, labels, row ids and texts."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from labelweave.data.readers._arff.header import Attribute
from labelweave.data.readers._arff.row_parser import (
    ZERO_ONE_WORDS,
    DenseRows,
    SparseRows,
    nominal_codes,
)
from labelweave.data.readers.reader import (
    MAX_DENSE_LABELS,
    FilePath,
    RowChunk,
    feature_dtype,
    sparse_rows,
)
from labelweave.exceptions import DataFileError

__all__ = ["ColumnEncoder", "ColumnRoles"]

MAX_ADDED_ENTRIES = 2**28
"""Limit on the entries that one-hot columns and unstored first values add: about a gigabyte."""


@dataclass(frozen=True)
class ColumnRoles:
    """Positions of the attributes that are not features."""

    labels: Sequence[int] = ()
    row_id: int | None = None
    text: int | None = None
    dropped: Collection[int] = ()


class ColumnEncoder:
    """Encodes parsed rows.

    A numeric attribute or a date (in seconds since 1970) is one column. A nominal attribute of two
    values is one 0/1 column: 0/1, no/yes and false/true keep their meaning; of other values the
    second is 1, and the column is named ``attribute=value``. A nominal attribute of more values is
    one-hot encoded with a column ``attribute=value`` per value or, without `one_hot`, one column of
    positions (0, 1, 2, ...). In sparse rows a nominal attribute that is not stored has its first
    value, as the ARFF standard says.
    """

    def __init__(
        self,
        attributes: Sequence[Attribute],
        roles: ColumnRoles,
        path: FilePath,
        *,
        one_hot: bool = True,
    ) -> None:
        self.attributes = attributes
        self.roles = roles
        self.path = path
        self.one_hot = one_hot
        self.feature_names: list[str] = []
        # The feature column (or the first of the one-hot columns) of each attribute, or -1.
        self._feature_column = np.full(len(attributes), -1, dtype=np.int32)
        self._is_one_hot = np.zeros(len(attributes), dtype=bool)
        self._label_column = np.full(len(attributes), -1, dtype=np.int32)
        self._label_column[list(roles.labels)] = np.arange(len(roles.labels))
        labels = set(roles.labels)
        others = {*roles.dropped, roles.row_id, roles.text}
        for j, attribute in enumerate(attributes):
            if j in labels:
                self._check_label(attribute)
            elif j not in others and roles.text is None:
                self._add_feature(j, attribute)
        codes = [nominal_codes(attribute.values) for attribute in attributes]
        self._first_code = np.array([next(iter(code.values()), 0.0) for code in codes])
        # Attributes whose first value is not encoded as zero: sparse rows do not store it.
        used = (self._feature_column >= 0) | (self._label_column >= 0)
        self._implicit = np.flatnonzero(used & ((self._first_code != 0) | self._is_one_hot))
        self._n_added = 0

    def _check_label(self, attribute: Attribute) -> None:
        codes = nominal_codes(attribute.values)
        by_position = any(value.lower() not in ZERO_ONE_WORDS for value in codes)
        if attribute.kind not in ("numeric", "nominal") or len(codes) > 2 or by_position:
            values = ", ".join(attribute.values[:5])
            raise DataFileError(
                f"the label attribute {attribute.name!r} is {attribute.kind} "
                f"({values or 'any value'}), but a label must have the values 0 and 1",
                path=self.path,
            )

    def _add_feature(self, j: int, attribute: Attribute) -> None:
        if attribute.kind == "string":
            raise DataFileError(
                f"the attribute {attribute.name!r} holds strings, which cannot be features: "
                "name it as text_column=, id_column= or drop=",
                path=self.path,
                parameter=("text_column", "id_column", "drop"),
            )
        self._feature_column[j] = len(self.feature_names)
        codes = nominal_codes(attribute.values)
        if len(codes) > 2 and not self.one_hot:
            self.feature_names.append(attribute.name)
        elif len(codes) > 2:
            self._is_one_hot[j] = True
            self.feature_names.extend(f"{attribute.name}={value}" for value in codes)
        elif any(value.lower() not in ZERO_ONE_WORDS for value in codes):
            self.feature_names.append(f"{attribute.name}={list(codes)[-1]}")
        else:
            self.feature_names.append(attribute.name)

    @property
    def label_names(self) -> list[str]:
        return [self.attributes[j].name for j in self.roles.labels]

    def encode(self, rows: DenseRows | SparseRows) -> RowChunk:
        """Encode rows as features, labels and row ids."""
        encoded = self._sparse(rows) if isinstance(rows, SparseRows) else self._dense(rows)
        if self.roles.text is not None:
            encoded.X = rows.texts[self.roles.text]
        if self.roles.row_id is not None:
            encoded.row_ids = self._row_ids(rows, self.roles.row_id)
        return encoded

    def _count_added(self, n_entries: int) -> None:
        self._n_added += n_entries
        if self._n_added > MAX_ADDED_ENTRIES:
            widest = max(self.attributes, key=lambda attribute: len(attribute.values))
            raise DataFileError(
                f"the nominal attributes need more than {MAX_ADDED_ENTRIES:,} entries; the widest "
                f"is {widest.name!r} with {len(widest.values)} values: leave it out with drop= or "
                "make it the id_column=",
                path=self.path,
                parameter=("drop", "id_column"),
            )

    def _dense(self, rows: DenseRows) -> RowChunk:
        values = rows.values
        scalar = np.flatnonzero((self._feature_column >= 0) & ~self._is_one_hot)
        labels = values[:, list(self.roles.labels)].astype(np.float32)
        if not self._is_one_hot.any():
            features = values[:, scalar]
            return RowChunk(features.astype(feature_dtype(features), copy=False), labels)
        one_hot = np.flatnonzero(self._is_one_hot)
        width = len(self.feature_names)
        self._count_added(len(values) * (width - len(scalar)))
        dtype = feature_dtype(values[:, scalar])
        features = np.zeros((len(values), width), dtype=dtype)
        features[:, self._feature_column[scalar]] = values[:, scalar]
        for j in one_hot.tolist():
            codes = values[:, j]
            known = np.flatnonzero(~np.isnan(codes))
            features[known, self._feature_column[j] + codes[known].astype(np.intp)] = 1
            columns = slice(
                self._feature_column[j], self._feature_column[j] + len(self.attributes[j].values)
            )
            features[np.isnan(codes), columns] = np.nan
        return RowChunk(features, labels)

    def _sparse(self, rows: SparseRows) -> RowChunk:
        if len(self._implicit):
            rows = self._with_first_values(rows)
        n_rows, n_labels = len(rows.counts), len(self.roles.labels)
        feature_columns = self._feature_column[rows.columns]
        others = np.flatnonzero(feature_columns < 0)
        row_of_other = np.searchsorted(np.cumsum(rows.counts), others, side="right")
        label_columns = self._label_column[rows.columns[others]]
        is_label = label_columns >= 0
        labels = sparse_rows(
            np.bincount(row_of_other[is_label], minlength=n_rows),
            label_columns[is_label],
            rows.values[others[is_label]].astype(np.float32),
            n_labels,
        )
        counts = rows.counts - np.bincount(row_of_other, minlength=n_rows)
        is_feature = feature_columns >= 0
        columns, values = feature_columns[is_feature], rows.values[is_feature]
        if self._is_one_hot.any():
            attributes = rows.columns[is_feature]
            counts, columns, values = self._one_hot_entries(counts, columns, values, attributes)
        features = sparse_rows(
            counts, columns, values.astype(feature_dtype(values)), len(self.feature_names)
        )
        for matrix in (features, labels):
            if (matrix.data == 0).any():
                matrix.eliminate_zeros()
        return RowChunk(features, labels if n_labels > MAX_DENSE_LABELS else labels.toarray())

    def _with_first_values(self, rows: SparseRows) -> SparseRows:
        """Add the entries that are not stored although they are not encoded as zero."""
        n_rows = len(rows.counts)
        self._count_added(n_rows * len(self._implicit))
        row = np.repeat(np.arange(n_rows), rows.counts)
        position = np.full(len(self.attributes), -1)
        position[self._implicit] = np.arange(len(self._implicit))
        is_stored = np.zeros((n_rows, len(self._implicit)), dtype=bool)
        relevant = position[rows.columns] >= 0
        is_stored[row[relevant], position[rows.columns[relevant]]] = True
        added_rows, added = np.nonzero(~is_stored)
        added_columns = self._implicit[added]
        order = np.argsort(np.concatenate([row, added_rows]), kind="stable")
        return SparseRows(
            rows.counts + np.bincount(added_rows, minlength=n_rows),
            np.concatenate([rows.columns, added_columns])[order],
            np.concatenate([rows.values, self._first_code[added_columns]])[order],
            rows.texts,
        )

    def _one_hot_entries(
        self,
        counts: np.ndarray,
        columns: np.ndarray,
        values: np.ndarray,
        attributes: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Turn codes into one-hot columns; a missing code becomes NaN in all of them."""
        is_one_hot = self._is_one_hot[attributes]
        if not is_one_hot.any():
            return counts, columns, values
        missing = is_one_hot & np.isnan(values)
        known = is_one_hot & ~missing
        columns, values = columns.copy(), values.astype(np.float64)
        columns[known] += values[known].astype(np.int32)
        values[known] = 1
        widths = np.ones(len(columns), dtype=np.int64)
        widths[missing] = [len(self.attributes[j].values) for j in attributes[missing]]
        self._count_added(int(widths[missing].sum()))
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
            values = np.full(len(rows.counts), self._first_code[j])
            is_id = rows.columns == j
            row = np.repeat(np.arange(len(rows.counts)), rows.counts)
            values[row[is_id]] = rows.values[is_id]
        attribute = self.attributes[j]
        if attribute.kind == "nominal":
            names = {code: value for value, code in nominal_codes(attribute.values).items()}
            return [names.get(value, "") for value in values.tolist()]
        return [int(v) if v.is_integer() else v for v in values.tolist()]
