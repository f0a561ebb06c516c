"""CSV, TSV and Parquet tables, with one column per label or one column of label names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from labelweave.data.dataset import Dataset
from labelweave.data.label_files import find_label_file, read_label_file
from labelweave.data.readers._shared.label_lists import label_matrix, names_of_ids, vocabulary
from labelweave.data.readers._table.column_roles import ColumnRoles
from labelweave.data.readers._table.open_table import OpenTable, open_table
from labelweave.data.readers.reader import (
    LABELS_LISTED,
    FeatureSpec,
    FilePath,
    Reader,
    RowChunk,
    concatenate_chunks,
    make_dataset,
)
from labelweave.data.several_files import folder_of
from labelweave.exceptions import DataFileError, InputError
from labelweave.tables.table import Table


def read_table(
    path: FilePath,
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
    labels_file: FilePath | None = None,
    separator: str | None = None,
    header: bool | None = None,
    quotes: bool | None = None,
    decimal: str = ".",
    sheet: str | int | None = None,
    require_labels: bool = True,
) -> Dataset:
    r"""Read a CSV, TSV, Parquet or Excel table.

    All columns besides labels and ids are features. X is an array where they are numbers without
    blanks, a list where the only one is a column of texts, and else a
    :class:`~labelweave.tables.Table` of mixed columns. Of two columns of words, one whose cells are
    all different single words is taken as the names of the rows. Columns called `id` and `split`
    hold the names of the rows and their official parts.

    Parameters
    ----------
    path : path-like
        A file, or :class:`~labelweave.data.several_files.SeveralFiles`. The index that pandas
        writes in a column without a name holds the names of the rows, and is not a feature.
    labels : int, str or sequence of str, optional
        The columns that hold one label each (1, 0, or empty for unknown): k for the last k, -k
        for the first k, a pattern (``"Class*"``) or a list of names. Together with
        `label_column` it is the vocabulary.
    label_column : str, optional
        One column that lists the names of a row's labels. An empty cell means that no label
        applies. By default a column called `labels`, `tags`, `topics`, ..., or in a table without
        header the only column of comma-separated whole numbers.
    label_separator : str, optional
        Separator of the names; by default the first of ``;``, ``|``, ``,`` and blank that occurs
        in the column.
    text_column, id_column, split_column : str, optional
        The column of texts, of row names, of official parts. Columns beside that of the texts are
        features too, unless `drop` names them.
    group_column : str, optional
        The column of the groups of rows: splits keep the rows of a group in one part.
    weight_column : str, optional
        The column of the weights of the rows.
    kinds : mapping of column to kind, optional
        The kinds of columns for which they are not to be found by themselves, as for
        :class:`~labelweave.tables.encoder.TableEncoder`.
    drop : sequence of str
        Columns to leave out, even if `labels` chooses them.
    labels_file : path-like, optional
        File of names and descriptions of the labels (see
        :func:`labelweave.data.label_files.read_label_file`). Where `label_column` holds numbers,
        it names label 0, 1, ... By default `labels.txt` (or .json, .jsonl) in the same folder.
    separator, header, quotes : optional
        The character between cells; whether the first line names the columns; whether cells
        may be quoted. By default the first line of the file decides, and tab-separated files
        have no quotes.
    decimal : {".", ","}
        The sign before the decimals of numbers in CSV files.
    sheet : str or int, optional
        The sheet of an Excel file, by its name or its number from 0. By default the first.
    require_labels : bool, default=True
        False accepts a table without labels.

    Returns
    -------
    Dataset
        An array X is float32, or float64 where float32 would round large whole numbers.

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
    table = open_table(
        path, separator=separator, header=header, quotes=quotes, decimal=decimal, sheet=sheet
    )
    return dataset_of_table(
        table,
        labels=labels,
        labels_file=labels_file,
        require_labels=require_labels,
        kinds=kinds,
        label_column=label_column,
        label_separator=label_separator,
        text_column=text_column,
        id_column=id_column,
        split_column=split_column,
        group_column=group_column,
        weight_column=weight_column,
        drop=drop,
    )


def dataset_of_table(
    table: OpenTable,
    *,
    labels: Any,
    labels_file: FilePath | None,
    require_labels: bool,
    kinds: Mapping[str, str] | None,
    **columns: Any,
) -> Dataset:
    """Make a data set of an open table; the options are those of :func:`read_table`."""
    path = table.path
    roles = ColumnRoles(path, table, labels=labels, kinds=kinds, **columns)
    if not roles.label_columns and roles.label_list is None and require_labels:
        raise DataFileError(
            "it is not known which columns are labels: use labels= (names, or a number k for the "
            "last k columns) or label_column= (one column that lists names)",
            path=path,
            parameter=("labels", "label_column"),
        )
    label_lists: list[list[str] | None] = []
    lines: list[Sequence[int]] = []
    chunks = []
    for table_rows in table.chunks(roles.numbers, roles.texts):
        chunks.append(roles.row_chunk(table_rows))
        lines.append(table_rows.lines)
        if roles.label_list is not None:
            label_lists.extend(roles.label_lists(table_rows))
    if not chunks:
        raise DataFileError("the table has no rows", path=path)
    rows = concatenate_chunks(chunks)
    facts: dict[str, Any] = {"not_features": roles.not_features} if roles.not_features else {}
    if roles.is_mixed:
        facts["folder"] = folder_of(path)  # from which paths in cells start
    if roles.text is not None:
        facts["text_column"] = table.names[roles.text]
    attributes: dict[str, Any] = {
        "row_ids": rows.row_ids,
        "part": rows.part,
        "groups": rows.groups,
        "weights": rows.weights,
        "feature_names": roles.feature_names,
        "facts": facts,
    }
    if rows.weights is not None and not rows.weights.any():
        message = f"the column {columns['weight_column']!r} cannot be weights: all are zero"
        raise DataFileError(message, path=path, parameter="weight_column")
    X = rows.X
    if roles.is_mixed:
        from labelweave.data.readers._table.stray_words import without_stray_words

        X = _with_kinds(without_stray_words(X, kinds or {}, table, lines), roles, kinds)
    if roles.label_list is None:
        return make_dataset(path, X, rows.Y, roles.label_names, **attributes)
    names, named_lists, descriptions = _name_labels(path, label_lists, labels, labels_file)
    if not names and require_labels:
        raise DataFileError("no row has a label", path=path)
    facts |= LABELS_LISTED
    return make_dataset(
        path,
        X,
        label_matrix(named_lists, names, path, [*chain.from_iterable(lines)]),
        names,
        descriptions=descriptions,
        **attributes,
    )


def _with_kinds(X: Table, roles: ColumnRoles, kinds: Mapping[str, str] | None) -> Table:
    """The table with the kinds that are given."""
    given = dict(kinds or {})
    if roles.text is not None:
        given.setdefault(roles.names[roles.text], "text")
    if not given:
        return X
    from labelweave.tables import TableEncoder
    from labelweave.tables.image_column import located
    from labelweave.tables.kinds import check_cells, check_kinds

    try:
        check_kinds(given, X.frame.columns)
        for name, kind in given.items():
            check_cells(X.frame[name], kind)
        images = [name for name, kind in given.items() if kind == "image"]
        paths = {name: located(X.frame[name], folder_of(roles.path)) for name in images}
    except InputError as error:
        raise DataFileError(str(error), path=roles.path, parameter="kinds") from None
    return Table(X.frame.assign(**paths), TableEncoder(given))


def _name_labels(
    path: FilePath, label_lists: list[list[str] | None], labels: Any, labels_file: FilePath | None
) -> tuple[list[str], Sequence[Sequence[str] | None], dict[str, str]]:
    """The vocabulary, the labels of each row as names (also where they are ids), descriptions."""
    labels_file = find_label_file(path) if labels_file is None else labels_file
    descriptions = {} if labels_file is None else read_label_file(labels_file)
    names = labels if labels is not None else list(descriptions) or None
    if names is not None and not isinstance(names, str | int):
        known = [row for row in label_lists if row is not None]
        from_ids = names_of_ids(known, names) if len(known) == len(label_lists) else None
        if from_ids is not None and not {name for row in known for name in row} <= set(names):
            return list(names), from_ids, descriptions
    return vocabulary(labels, label_lists), label_lists, descriptions


def _iter_features(
    path: FilePath,
    features: FeatureSpec,
    *,
    labels: Any = None,
    label_column: str | None = None,
    separator: str | None = None,
    header: bool | None = None,
    quotes: bool | None = None,
    decimal: str = ".",
    sheet: str | int | None = None,
    labels_file: object = None,
    **columns: Any,
) -> Iterator[RowChunk]:
    table = open_table(
        path, separator=separator, header=header, quotes=quotes, decimal=decimal, sheet=sheet
    )
    yield from features_of_table(
        table, features, labels=labels, label_column=label_column, **columns
    )


def features_of_table(
    table: OpenTable,
    features: FeatureSpec,
    *,
    labels: Any = None,
    label_column: str | None = None,
    **columns: Any,
) -> Iterator[RowChunk]:
    """Read the features of a model from an open table."""
    path = table.path
    if isinstance(labels, list | tuple) and label_column is None:
        labels = [name for name in labels if name in table.names] or None
    columns |= {"labels": labels, "label_column": label_column}
    if features.is_table:
        columns.pop("text_column", None)
    kinds = columns.pop("kinds", None) or {}
    given = {name: kind for name, kind in kinds.items() if kind == "number"}
    of_training = [columns.pop(f"{role}_column", None) for role in ("split", "group", "weight")]
    roles = ColumnRoles(path, table, **columns, model=features)
    if features.is_table:
        from labelweave.tables.column_warnings import report_ignored

        report_ignored(roles.other_columns({*features.not_features, *of_training}))
    if not features.is_table and roles.text is None:
        features.check_width(len(roles.features), path)
    for table_rows in table.chunks(roles.numbers, roles.texts):
        rows = roles.row_chunk(table_rows)
        if features.is_table and given:
            from labelweave.data.readers._table.stray_words import without_stray_words

            known = rows.X.frame[[name for name in given if name in rows.X.frame]]
            numbers = without_stray_words(Table(known), given, table, [table_rows.lines]).frame
            rows.X = Table(
                rows.X.frame.assign(**{name: numbers[name] for name in given if name in numbers})
            )
        yield RowChunk(rows.X, row_ids=rows.row_ids)


READER = Reader(read_table, _iter_features)
