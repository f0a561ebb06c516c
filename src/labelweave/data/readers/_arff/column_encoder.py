"""Encoding parsed ARFF rows as feature columns, labels, row ids and texts."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelweave.data.readers._arff.header import Attribute
from labelweave.data.readers._arff.row_parser import (
    ZERO_ONE_WORDS,
    ParsedRows,
    first_codes,
    nominal_codes,
)
from labelweave.data.readers.reader import MAX_DENSE_LABELS, FilePath, RowChunk, feature_dtype
from labelweave.exceptions import DataFileError

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

    A chunk of parsed rows is a matrix with one column per attribute. Labels and features of one
    column are taken out of it, and the columns of each one-hot attribute are put beside them.
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
        self._single: list[int] = []  # attributes that are one feature column each
        self._one_hot: list[int] = []
        places: dict[int, range] = {}  # the feature columns of each attribute
        labels = set(roles.labels)
        others = {*roles.dropped, roles.row_id, roles.text}
        for j, attribute in enumerate(attributes):
            if j in labels:
                self._check_label(attribute)
            elif j not in others and roles.text is None:
                start = len(self.feature_names)
                self._add_feature(j, attribute)
                places[j] = range(start, len(self.feature_names))
        # Features are computed in the order of `together`, and then brought to that of the file.
        together = [column for j in (*self._single, *self._one_hot) for column in places[j]]
        self._order = np.argsort(together)
        self._first_codes = first_codes(attributes)
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
        codes = nominal_codes(attribute.values)
        if len(codes) > 2 and self.one_hot:
            self._one_hot.append(j)
            self.feature_names.extend(f"{attribute.name}={value}" for value in codes)
            return
        self._single.append(j)
        if len(codes) == 2 and any(value.lower() not in ZERO_ONE_WORDS for value in codes):
            self.feature_names.append(f"{attribute.name}={list(codes)[-1]}")
        else:
            self.feature_names.append(attribute.name)

    @property
    def label_names(self) -> list[str]:
        return [self.attributes[j].name for j in self.roles.labels]

    def encode(self, rows: ParsedRows) -> RowChunk:
        """Encode rows as features, labels and row ids."""
        labels = self._columns(rows.values, self.roles.labels)
        if sp.issparse(labels) and labels.shape[1] <= MAX_DENSE_LABELS:
            labels = labels.toarray()
        row_id, text = self.roles.row_id, self.roles.text
        return RowChunk(
            self._features(rows.values) if text is None else rows.texts[text],
            labels.astype(np.float32),
            None if row_id is None else self._row_ids(rows, row_id),
        )

    def _columns(self, values: Any, columns: Sequence[int]) -> Any:
        """The codes of these attributes, also where sparse rows do not store their first value."""
        codes = values[:, list(columns)]
        first = self._first_codes[list(columns)]
        if not sp.issparse(values) or not first.any():
            return codes
        self._count_added(values.shape[0] * np.count_nonzero(first))
        not_stored = sp.csr_array(np.ones((values.shape[0], 1))) @ sp.csr_array(first[None, :])
        return sp.csr_array(codes + not_stored)

    def _features(self, values: Any) -> Any:
        single = self._columns(values, self._single)
        single = single.astype(feature_dtype(single.data if sp.issparse(single) else single))
        if not self._one_hot:
            return single
        blocks = [self._one_hot_block(values, j, single.dtype) for j in self._one_hot]
        if sp.issparse(values):
            return sp.hstack([single, *blocks], format="csr")[:, self._order]
        return np.hstack([single, *(block.toarray() for block in blocks)])[:, self._order]

    def _one_hot_block(self, values: Any, j: int, dtype: np.dtype) -> sp.csr_array:
        """One column per value of a nominal attribute; a missing value is NaN in all of them."""
        codes = _as_dense(values[:, [j]])
        n_values = len(self.attributes[j].values)
        is_missing = np.isnan(codes)
        known, missing = np.flatnonzero(~is_missing), np.flatnonzero(is_missing)
        n_rows = len(codes)
        self._count_added(
            len(known) + len(missing) * n_values if sp.issparse(values) else n_rows * n_values
        )
        rows = np.concatenate([known, np.repeat(missing, n_values)])
        columns = np.concatenate(
            [codes[known].astype(np.intp), np.tile(np.arange(n_values), len(missing))]
        )
        entries = np.repeat(np.array([1, np.nan], dtype), [len(known), len(missing) * n_values])
        return sp.csr_array((entries, (rows, columns)), shape=(n_rows, n_values))

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

    def _row_ids(self, rows: ParsedRows, j: int) -> list[Any]:
        if j in rows.texts:
            return rows.texts[j]
        values = _as_dense(self._columns(rows.values, [j]))
        attribute = self.attributes[j]
        if attribute.kind == "nominal":
            names = {code: value for value, code in nominal_codes(attribute.values).items()}
            return [names.get(value, "") for value in values.tolist()]
        return [int(v) if v.is_integer() else v for v in values.tolist()]


def _as_dense(column: Any) -> np.ndarray:
    """A matrix of one column as an array of numbers."""
    dense = column.toarray() if sp.issparse(column) else column
    return dense.ravel().astype(np.float64)
