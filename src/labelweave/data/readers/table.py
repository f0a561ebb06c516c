"""CSV, TSV and Parquet tables, with label columns or one column of label names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from labelweave.data.compression import decode
from labelweave.data.dataset import Dataset
from labelweave.data.readers.base import (
    LISTED,
    FeatureSpec,
    FilePath,
    Piece,
    Reader,
    choose_columns,
    feature_dtype,
    find_columns,
    join_pieces,
    make_dataset,
)
from labelweave.data.readers.label_lists import (
    find_label_file,
    label_matrix,
    named_ids,
    read_label_file,
    vocabulary,
)
from labelweave.data.readers.table_columns import id_list_column, separator_of
from labelweave.data.readers.table_source import (
    PARQUET_ENDINGS,
    Table,
    TableRows,
    numbers,
    open_table,
)
from labelweave.data.readers.texts import (
    ID_FIELDS,
    LABEL_FIELDS,
    SPLIT_FIELDS,
    clean_text,
    first_of,
    part_of,
)
from labelweave.exceptions import DataFileError, InputError

__all__ = ["READER", "read_table"]

_LABEL_CELLS = "expected 1, 0 or an empty cell"


def read_table(
    path: FilePath,
    *,
    labels: Any = None,
    label_column: str | None = None,
    label_separator: str | None = None,
    text_column: str | None = None,
    id_column: str | None = None,
    split_column: str | None = None,
    drop: Sequence[str] = (),
    labels_file: FilePath | None = None,
    separator: str | None = None,
    header: bool | None = None,
    quotes: bool | None = None,
    require_labels: bool = True,
) -> Dataset:
    r"""Read a CSV, TSV or Parquet table.

    Columns of numbers are features. A column of texts, where it is the only column besides
    labels and ids, is X instead; of two such columns, one of single words that are all
    different is taken for the row's name. Columns called `id` and `split` name the rows and
    their official parts.

    Parameters
    ----------
    path : path-like
    labels : int, str or sequence of str, optional
        The columns that hold a label each (1, 0, or empty for unknown): k for the last k, -k
        for the first k, a pattern (``"Class*"``) or a list of names. Together with
        `label_column`: the vocabulary.
    label_column : str, optional
        One column that holds the names of a row's labels, separated. An empty cell means that
        no label applies. By default a column called `labels`, `tags`, `topics`, ..., or in a
        table without header the one column of comma-separated whole numbers.
    label_separator : str, optional
        What separates the names; by default the first of ``;``, ``|``, ``,`` and blank that
        occurs in the column.
    text_column, id_column, split_column : str, optional
        The column of texts (X is then these texts alone), of row names, of official parts.
    drop : sequence of str
        Columns to leave out, also of those that `labels` chooses.
    labels_file : path-like, optional
        Names and descriptions of the labels. Where `label_column` holds numbers, the names of
        label 0, 1, ...; by default `labels.txt` (or .json, .jsonl) in the same folder.
    separator, header, quotes : optional
        The character between cells; whether the first line names the columns; whether cells
        may be quoted. By default the file's first line decides, and tab-separated files have
        no quotes.
    require_labels : bool, default=True
        False allows a table without labels.

    Returns
    -------
    Dataset
        X is float32 (float64 where that would damage large whole numbers); an empty cell of a
        feature is NaN.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "days.csv"
    ...     _ = path.write_text("degrees,sunny,windy\n21.5,1,0\n14,,1\n")
    ...     data = read_table(path, labels=["sunny", "windy"])
    >>> data.X.tolist(), data.Y.to_numpy().tolist()
    ([[21.5], [14.0]], [[1.0, 0.0], [nan, 1.0]])
    """
    table = open_table(path, separator=separator, header=header, quotes=quotes)
    named = _Named(text_column, id_column, split_column, label_column, tuple(drop))
    layout = _Layout(path, table, named, labels, label_separator)
    if not layout.label_columns and layout.names_column is None and require_labels:
        raise DataFileError(
            "nothing says which columns are labels: give labels= (names, or a number k for the "
            "last k columns) or label_column= (one column of separated names)",
            path=path,
        )
    rows: list[list[str]] = []
    lines: list[int] = []
    pieces = []
    for chunk in table.chunks():
        pieces.append(layout.piece(chunk))
        if layout.names_column is not None:
            rows.extend(layout.label_lists(chunk.columns[layout.names_column]))
            lines.extend(chunk.lines)
    if not pieces:
        raise DataFileError("the table has no rows", path=path)
    whole = join_pieces(pieces)
    more: dict[str, Any] = {
        "row_ids": whole.row_ids,
        "part": whole.part,
        "feature_names": None if layout.text is not None else layout.feature_names,
    }
    if layout.names_column is None:
        return make_dataset(path, whole.X, whole.Y, layout.label_names, **more)
    names, named_rows, descriptions = _names_and_rows(path, rows, labels, labels_file)
    if not names and require_labels:
        raise DataFileError("no row has a label", path=path)
    Y = label_matrix(named_rows, names, path, lines)
    return make_dataset(path, whole.X, Y, names, descriptions=descriptions, facts=LISTED, **more)


def _names_and_rows(
    path: FilePath, rows: list[list[str]], labels: Any, labels_file: FilePath | None
) -> tuple[list[str], Sequence[Sequence[str] | None], dict[str, str]]:
    """Vocabulary, rows of names (from ids where they are ids) and descriptions."""
    beside = find_label_file(path) if labels_file is None else labels_file
    file = None if beside is None else read_label_file(beside)
    listed = labels if labels is not None else None if file is None else file.names
    if listed is not None and not isinstance(listed, str | int):
        from_ids = named_ids(rows, listed)
        if from_ids is not None and not {name for row in rows for name in row} <= set(listed):
            return list(listed), from_ids, {} if file is None else file.descriptions
    names = vocabulary(labels, rows)
    known = set(names)
    texts = {} if file is None else file.descriptions
    return names, rows, {name: text for name, text in texts.items() if name in known}


def _feature_pieces(
    path: FilePath,
    features: FeatureSpec,
    *,
    labels: Any = None,
    label_column: str | None = None,
    label_separator: str | None = None,
    text_column: str | None = None,
    id_column: str | None = None,
    split_column: str | None = None,
    drop: Sequence[str] = (),
    labels_file: object = None,
    separator: str | None = None,
    header: bool | None = None,
    quotes: bool | None = None,
) -> Iterator[Piece]:
    table = open_table(path, separator=separator, header=header, quotes=quotes)
    if isinstance(labels, list | tuple) and label_column is None:
        labels = [name for name in labels if name in table.names] or None
    named = _Named(text_column, id_column, split_column, label_column, tuple(drop))
    layout = _Layout(path, table, named, labels, label_separator, wanted=features.names)
    if layout.text is None:
        features.check_width(len(layout.features), path)
    for chunk in table.chunks():
        piece = layout.piece(chunk)
        yield Piece(piece.X, row_ids=piece.row_ids)


@dataclass(frozen=True)
class _Named:
    """The columns that the caller named."""

    text: str | None
    row_id: str | None
    split: str | None
    labels: str | None
    drop: tuple[str, ...]


class _Layout:
    """Which column of a table is what."""

    def __init__(
        self,
        path: FilePath,
        table: Table,
        named: _Named,
        labels: Any,
        label_separator: str | None,
        *,
        wanted: Sequence[str] | None = None,
    ) -> None:
        self.path = path
        self.names = names = table.names

        def place(name: str | None, usual: Sequence[str] = ()) -> int | None:
            name = name if name is not None else first_of(usual, names)
            return None if name is None else find_columns([name], names, path)[0]

        sample = next(islice(table.chunks(), 1), None)
        if sample is None:
            raise DataFileError("the table has no rows", path=path)
        self.text = place(named.text)
        self.row_id = place(named.row_id, ID_FIELDS)
        self.split = place(named.split, SPLIT_FIELDS)
        self.names_column = place(named.labels)
        self.label_columns: list[int] = []
        if labels is not None and self.names_column is None:
            self.label_columns = choose_columns(labels, names, path)
        elif self.names_column is None:
            self.names_column = place(None, LABEL_FIELDS)
        if self.names_column is None and not self.label_columns and wanted is None:
            self.names_column = id_list_column(names, sample)
        dropped = set(find_columns(named.drop, names, path))
        self.label_columns = [j for j in self.label_columns if j not in dropped]
        taken = {self.text, self.row_id, self.split, self.names_column, *self.label_columns}
        taken |= dropped
        left = [j for j in range(len(names)) if j not in taken]
        self.features: list[int] = []
        if self.text is None:
            self._find_features(left, sample, wanted)
        self.label_separator = label_separator
        if self.names_column is not None and label_separator is None:
            self.label_separator = separator_of(sample.columns[self.names_column])

    def _find_features(
        self, left: list[int], sample: TableRows, wanted: Sequence[str] | None
    ) -> None:
        if wanted is not None:
            self.features = find_columns(list(wanted), self.names, self.path)
            return
        texts = [j for j in left if numbers(sample.columns[j])[1] is not None]
        if len(texts) == 2 and len(left) == 2 and self.row_id is None:
            texts = self._row_id_among(texts, sample)
            left = texts
        if len(texts) == 1 and len(left) == 1:
            self.text = texts[0]
        elif texts:
            shown = ", ".join(repr(self.names[j]) for j in texts[:4])
            what = f"column {shown} holds" if len(texts) == 1 else f"columns {shown} hold"
            first = numbers(sample.columns[texts[0]])[1] or 0
            cell = str(sample.columns[texts[0]][first])[:40]
            raise DataFileError(
                f"the {what} texts ({cell!r} in line {sample.lines[first]}), which are no "
                "features: put them right, or name them as text_column=, id_column= or drop=",
                path=self.path,
            )
        else:
            self.features = left

    def _row_id_among(self, texts: list[int], sample: TableRows) -> list[int]:
        """Of two text columns, one whose cells are all different single words is the id."""
        for j in texts:
            cells = [str(cell) for cell in sample.columns[j]]
            if (
                len(cells) > 1
                and len(set(cells)) == len(cells)
                and not any(" " in c for c in cells)
            ):
                other = [k for k in texts if k != j]
                if any(" " in str(cell).strip() for cell in sample.columns[other[0]]):
                    self.row_id = j
                    return other
        return texts

    @property
    def feature_names(self) -> list[str]:
        return [self.names[j] for j in self.features]

    @property
    def label_names(self) -> list[str]:
        return [self.names[j] for j in self.label_columns]

    def piece(self, rows: TableRows) -> Piece:
        """Features, indicator labels, ids and parts of some rows."""
        X: Any
        if self.text is not None:
            X = [clean_text("" if cell is None else str(cell)) for cell in rows.columns[self.text]]
        else:
            X = self._matrix(rows, self.features)
            X = X.astype(feature_dtype(X), copy=False)
        Y = self._matrix(rows, self.label_columns).astype(np.float32)
        wrong = ~((Y == 0) | (Y == 1) | np.isnan(Y))
        if wrong.any():
            i, k = (int(place) for place in np.argwhere(wrong)[0])
            name = self.names[self.label_columns[k]]
            raise DataFileError(
                f"the label column {name!r} holds {Y[i, k]:g}: {_LABEL_CELLS}",
                path=self.path,
                line=rows.lines[i],
            )
        return Piece(
            X,
            Y if self.names_column is None and self.label_columns else None,
            None if self.row_id is None else _plain(rows.columns[self.row_id]),
            None if self.split is None else [part_of(cell) for cell in rows.columns[self.split]],
        )

    def _matrix(self, rows: TableRows, columns: list[int]) -> np.ndarray:
        matrix = np.empty((len(rows.lines), len(columns)))
        for k, j in enumerate(columns):
            matrix[:, k], bad = numbers(rows.columns[j])
            if bad is not None:
                cell, name = str(rows.columns[j][bad])[:40], self.names[j]
                told = f"{cell!r} in column {name!r} is no number"
                if j in self.label_columns:
                    told = f"the label column {name!r} holds {cell!r}: {_LABEL_CELLS}"
                raise DataFileError(told, path=self.path, line=rows.lines[bad])
        return matrix

    def label_lists(self, cells: Sequence[Any]) -> list[list[str]]:
        """The label names of each cell."""
        if isinstance(cells, np.ndarray):
            cells = [None if np.isnan(cell) else f"{cell:g}" for cell in cells]
        return [self._names_in(cell) for cell in cells]

    def _names_in(self, cell: Any) -> list[str]:
        if cell is None:
            return []
        if isinstance(cell, list | tuple):
            return [str(name) for name in cell if name is not None]
        names = str(cell).split(self.label_separator)
        return [clean_text(name.strip()) for name in names if name.strip()]


def _plain(cells: Sequence[Any]) -> list[Any]:
    if not isinstance(cells, np.ndarray):
        return list(cells)
    return [int(cell) if float(cell).is_integer() else cell for cell in cells.tolist()]


def _score(name: str, head: bytes) -> int:
    if head.startswith(b"PAR1"):
        return 3
    if name.lower().endswith((".csv", ".tsv", ".tab", *PARQUET_ENDINGS)):
        return 3
    first = head.partition(b"\n")[0]
    if b"\0" in head or not any(sign in first for sign in (b",", b";", b"\t")):
        return 0
    try:
        decode(head[: head.rfind(b"\n") + 1], name, None)
    except InputError:
        return 0
    return 1


READER = Reader(
    "table",
    "CSV, TSV or Parquet with label columns or one column of label names",
    _score,
    read_table,
    _feature_pieces,
)
