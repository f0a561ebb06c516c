"""Which column of a table is what: features, text, labels, row ids and parts."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from labelweave.data.compressed_files import FilePath
from labelweave.data.readers._shared.columns import (
    ID_FIELDS,
    LABEL_FIELDS,
    SPLIT_FIELDS,
    choose_columns,
    find_columns,
    first_of,
    part_name,
)
from labelweave.data.readers._table.cells import all_floats, is_number, parse_numbers
from labelweave.data.readers._table.csv_parquet import TableRows
from labelweave.data.readers._table.mixed_columns import is_missing, mixed_table
from labelweave.data.readers._table.open_table import OpenTable
from labelweave.data.readers.reader import FeatureSpec, RowChunk, feature_dtype
from labelweave.exceptions import DataFileError, LabelweaveWarning

_LABEL_CELLS = "expected 1, 0 or an empty cell"


class ColumnRoles:
    """The role of each column of a table, from the first rows and the options of the reader.

    The options are those of :func:`labelweave.data.readers.table.read_table`; `model` describes
    the features of a fitted model. Attributes hold positions of columns: `features`, `text`,
    `row_id`, `split`, `group`, `weight`, `label_columns` (one per label) and `label_list` (the
    column that lists the names of a row's labels).

    X is a mixed table (`is_mixed`) where a column holds words and is not the only one, or where
    the kind of a column is given; else X is the column `text`, or numbers.
    """

    def __init__(
        self,
        path: FilePath,
        table: OpenTable,
        *,
        labels: Any = None,
        label_column: str | None = None,
        label_separator: str | None = None,
        text_column: str | None = None,
        id_column: str | None = None,
        split_column: str | None = None,
        group_column: str | None = None,
        weight_column: str | None = None,
        kinds: Mapping[str, str] | None = None,
        drop: Sequence[str] = (),
        model: FeatureSpec | None = None,
    ) -> None:
        self.path = path
        self.names = names = table.names
        self.decimal, self._null_is_unknown = table.decimal, table.null_is_unknown
        sample = next(table.chunks(numbers=range(len(names))), None)
        if sample is None:
            raise DataFileError("the table has no rows", path=path)
        self.is_mixed = False
        self.text = self._position(text_column)
        self.row_id = self._position(id_column, ID_FIELDS)
        self.index = table.index_column
        if self.row_id is None:
            self.row_id = self.index
        self.split = self._position(split_column, SPLIT_FIELDS)
        self.group = self._position(group_column)
        self.weight = self._position(weight_column)
        self.label_list = self._position(label_column)
        self.label_columns: list[int] = []
        if labels is not None and self.label_list is None:
            self.label_columns = choose_columns(labels, names, path)
        elif self.label_list is None:
            self.label_list = self._position(None, LABEL_FIELDS)
        wanted = None if model is None else model.names
        if self.label_list is None and not self.label_columns and wanted is None:
            self.label_list = _column_of_label_ids(table)
        self.dropped = find_columns(drop, names, path)
        self.label_columns = [j for j in self.label_columns if j not in set(self.dropped)]
        others = (self.index, self.row_id, self.split, self.group, self.weight, self.label_list)
        used = {*others, *self.label_columns, *self.dropped}
        self._remaining = remaining = [j for j in range(len(names)) if j not in used]
        self.features: list[int] = []
        if model is not None and model.is_table:
            self.is_mixed = True
            known = set(model.names or ())
            self.features = [j for j, name in enumerate(names) if name in known]
        elif wanted is not None and self.text is None:
            self.features = find_columns(list(wanted), names, path)
        elif model is not None and self.text is not None:
            pass  # a model of texts alone
        else:
            self._find_features(remaining, sample, kinds or {}, may_be_mixed=model is None)
        self._words = self._columns_of_words(table, sample) if self.is_mixed else []
        if self.index is not None and model is None and self.index not in self.dropped:
            warnings.warn(
                f"{path}: the column {names[self.index]!r} is taken for the index that pandas "
                "writes, and is not a feature",
                LabelweaveWarning,
                stacklevel=4,
            )
        self.label_separator = label_separator
        if self.label_list is not None and self.label_separator is None:
            self.label_separator = _separator_of(sample.columns[self.label_list])

    def _position(self, name: str | None, usual_names: Sequence[str] = ()) -> int | None:
        name = name if name is not None else first_of(usual_names, self.names)
        return None if name is None else find_columns([name], self.names, self.path)[0]

    def _find_features(
        self,
        columns: list[int],
        sample: TableRows,
        kinds: Mapping[str, str],
        *,
        may_be_mixed: bool,
    ) -> None:
        """Take the remaining columns as features, or the only one of them as the text."""
        of_kinds = find_columns(list(kinds), self.names, self.path)
        for j in of_kinds:
            if j not in columns:
                raise DataFileError(
                    f"a kind is given for the column {self.names[j]!r}, which is no feature",
                    path=self.path,
                    parameter="kinds",
                )
        texts = [
            j for j in columns if parse_numbers(sample.columns[j], self.decimal)[1] is not None
        ]
        named = self.text is not None or bool(kinds)
        if len(texts) == 2 and len(columns) == 2 and self.row_id is None and not named:
            self.row_id = self._row_id_among(texts, sample)
            texts = columns = [j for j in texts if j != self.row_id]
        if self.text is not None and self.text not in columns:
            columns = sorted([*columns, self.text])
        if len(columns) == 1 and not kinds and (texts or self.text is not None):
            self.text = columns[0]
        elif not texts and not named:
            self.features = columns
        elif may_be_mixed:
            self.is_mixed, self.features = True, columns
        else:
            shown = ", ".join(repr(self.names[j]) for j in texts[:4])
            which = f"column {shown} holds" if len(texts) == 1 else f"columns {shown} hold"
            first = parse_numbers(sample.columns[texts[0]], self.decimal)[1] or 0
            cell = str(sample.columns[texts[0]][first])[:40]
            raise DataFileError(
                f"the {which} texts ({cell!r} in line {sample.lines[first]}), and the model has no "
                "such columns: name them as text_column=, id_column= or drop=",
                path=self.path,
                parameter=("text_column", "id_column", "drop"),
            )

    def _columns_of_words(self, table: OpenTable, sample: TableRows) -> list[int]:
        """The features that are not numbers: words such as "yes" stay as they are."""
        words = {j for j in self.features if not self._are_numbers(sample.columns[j])}
        arrays = {j for j in self.features if isinstance(sample.columns[j], np.ndarray)}
        if unclear := arrays - set(sample.written):
            columns = next(table.chunks()).columns
            words |= {j for j in unclear if not self._are_numbers(columns[j])}
        return sorted(words)

    def _are_numbers(self, cells: Any) -> bool:
        """Whether all cells are numbers, as they are written, or missing."""
        if isinstance(cells, np.ndarray):
            return True
        cells = _plain_values(cells)
        if all(isinstance(cell, str) for cell in cells):
            if self.decimal == "." and all_floats(cells) is not None:
                return True
            cells = set(cells)
        return all(
            is_missing(cell) or (isinstance(cell, str) and is_number(cell, self.decimal))
            for cell in cells
        )

    def _row_id_among(self, texts: list[int], sample: TableRows) -> int | None:
        """Of two text columns, the one whose cells are all different single words, if any."""
        for j, other in (texts, texts[::-1]):
            cells = [str(cell) for cell in sample.columns[j]]
            are_distinct = len(cells) > 1 and len(set(cells)) == len(cells)
            are_words = not any(" " in cell for cell in cells)
            others_are_texts = any(" " in str(cell).strip() for cell in sample.columns[other])
            if are_distinct and are_words and others_are_texts:
                return j
        return None

    @property
    def feature_names(self) -> list[str] | None:
        """Names of the feature columns; None where X is a column of texts."""
        return [self.names[j] for j in self.features] if self._has_columns else None

    @property
    def _has_columns(self) -> bool:
        return self.is_mixed or self.text is None

    @property
    def not_features(self) -> dict[str, str]:
        """The columns that are neither features nor labels, and what they are."""
        roles = {
            self.index: "the index that pandas wrote",
            self.row_id: "the name of the row",
            self.split: "the part of the row",
            self.group: "the group of the row",
            self.weight: "the weight of the row",
        }
        roles |= dict.fromkeys(self.dropped, "dropped, as asked")
        return {self.names[j]: what for j, what in roles.items() if j is not None}

    def other_columns(self, known: Collection[str | None]) -> list[str]:
        """The columns without a role, besides these."""
        others = sorted({*self._remaining} - {*self.features, self.text})
        return [self.names[j] for j in others if self.names[j] not in known]

    @property
    def numbers(self) -> list[int]:
        """Positions of the columns that must hold numbers; in a mixed table, of those that do."""
        features = [j for j in self.features if not self.is_mixed or j not in self._words]
        weight = [] if self.weight is None else [self.weight]
        return [*features, *self.label_columns, *weight]

    @property
    def texts(self) -> list[int]:
        """Positions of the columns that are read as they are written."""
        roles = (self.row_id, self.split, self.group, self.label_list)
        if self.is_mixed:
            return [*self._words, *(j for j in roles if j is not None)]
        return [j for j in (self.text, *roles) if j is not None]

    @property
    def label_names(self) -> list[str]:
        """Names of the columns that hold one label each."""
        return [self.names[j] for j in self.label_columns]

    def row_chunk(self, rows: TableRows) -> RowChunk:
        """Features, ids and parts of rows, and their labels where each has its own column."""
        X: Any
        if self.is_mixed:
            X = mixed_table({self.names[j]: self._cells(rows, j) for j in self.features})
        elif self.text is not None:
            texts = _plain_values(rows.columns[self.text])
            X = ["" if cell is None else str(cell) for cell in texts]
        else:
            X = self._matrix(rows, self.features)
            X = X.astype(feature_dtype(X), copy=False)
        Y = self._matrix(rows, self.label_columns).astype(np.float32)
        wrong = ~((Y == 0) | (Y == 1) | np.isnan(Y))
        if wrong.any():
            i, k = (int(position) for position in np.argwhere(wrong)[0])
            name = self.names[self.label_columns[k]]
            raise DataFileError(
                f"the label column {name!r} holds {Y[i, k]:g}: {_LABEL_CELLS}",
                path=rows.path or self.path,
                line=rows.lines[i],
                parameter="labels",
            )
        return RowChunk(
            X,
            Y if self.label_list is None and self.label_columns else None,
            None if self.row_id is None else _plain_values(rows.columns[self.row_id]),
            None if self.split is None else _parts(rows.columns[self.split]),
            None if self.group is None else _groups(rows.columns[self.group]),
            None if self.weight is None else self._weights(rows),
        )

    def _weights(self, rows: TableRows) -> np.ndarray:
        """The weights of rows, none of them blank, negative or infinite."""
        assert self.weight is not None
        weights = self._matrix(rows, [self.weight])[:, 0]
        wrong = ~((weights >= 0) & np.isfinite(weights))
        if wrong.any():
            row = int(np.argmax(wrong))
            what = "the cell is blank" if np.isnan(weights[row]) else f"{weights[row]:g} is none"
            raise DataFileError(
                f"the column {self.names[self.weight]!r} cannot be weights: {what}; write a number "
                "of at least 0, 1 for a row that counts once",
                path=rows.path or self.path,
                line=rows.lines[row],
                parameter="weight_column",
            )
        return weights

    def _cells(self, rows: TableRows, j: int) -> Any:
        """A column of a mixed table: numbers where all its cells are."""
        if j in self._words:
            return rows.columns[j]
        numbers, wrong = parse_numbers(rows.columns[j], self.decimal)
        return numbers if wrong is None else rows.columns[j]

    def _matrix(self, rows: TableRows, columns: list[int]) -> np.ndarray:
        matrix = np.empty((len(rows.lines), len(columns)))
        for k, j in enumerate(columns):
            matrix[:, k], wrong = parse_numbers(rows.columns[j], self.decimal)
            if wrong is not None:
                cell, name = str(rows.columns[j][wrong])[:40], self.names[j]
                message = (
                    f"{cell!r} in column {name!r} is not a number, as the cells above it are: "
                    f"correct it, or give the column a kind (kinds={name}=number reads such cells "
                    f"as blanks, kinds={name}=category all as words)"
                )
                parameter = "kinds"
                if j in self.label_columns:
                    message = f"the label column {name!r} holds {cell!r}: {_LABEL_CELLS}"
                    parameter = "labels"
                elif j == self.weight:
                    message = f"the column {name!r} cannot be weights: {cell!r} is not a number"
                    parameter = "weight_column"
                raise DataFileError(
                    message,
                    path=rows.path or self.path,
                    line=rows.lines[wrong],
                    parameter=parameter,
                )
        return matrix

    def label_lists(self, rows: TableRows) -> list[list[str] | None]:
        """The label names of each row, from the column that lists them."""
        assert self.label_list is not None
        cells = rows.columns[self.label_list]
        if isinstance(cells, np.ndarray):
            cells = [None if np.isnan(cell) else f"{cell:g}" for cell in cells]
        return [self._names_in(cell) for cell in _plain_values(cells)]

    def _names_in(self, cell: Any) -> list[str] | None:
        if cell is None:
            return None if self._null_is_unknown else []
        if isinstance(cell, list | tuple):
            return [str(name) for name in cell if name is not None]
        names = str(cell).split(self.label_separator)
        return [name.strip() for name in names if name.strip()]


def _plain_values(cells: Any) -> list[Any]:
    """The cells as a list; of an array of numbers, the whole ones are int."""
    if isinstance(cells, np.ndarray):
        return [int(cell) if float(cell).is_integer() else cell for cell in cells.tolist()]
    return list(cells) if isinstance(cells, list | tuple) else cells.tolist()


def _parts(cells: Any) -> list[str]:
    return [part_name(cell) for cell in _plain_values(cells)]


def _groups(cells: Sequence[Any]) -> list[Any]:
    """The groups of rows; None for blanks."""
    return [None if is_missing(cell) else cell for cell in _plain_values(cells)]


def _separator_of(cells: Sequence[Any]) -> str | None:
    """The separator between label names: the first of ; | , that occurs in some cell."""
    texts = [cell for cell in cells if isinstance(cell, str)]
    return next((sign for sign in ";|," if any(sign in text for text in texts)), None)


def _column_of_label_ids(table: OpenTable) -> int | None:
    """In a table of texts without header, the only column of comma-separated whole numbers."""
    if not all(name.startswith("column_") for name in table.names):
        return None
    columns = next(table.chunks()).columns
    holds_ids = [
        all(part.strip().isdecimal() for cell in cells for part in str(cell).split(","))
        for cells in columns
    ]
    has_text = any(
        not is_id and parse_numbers(cells, table.decimal)[1] is not None
        for is_id, cells in zip(holds_ids, columns, strict=True)
    )
    return holds_ids.index(True) if has_text and sum(holds_ids) == 1 else None
