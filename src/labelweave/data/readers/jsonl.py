"""JSON Lines or a JSON array: one object per row with a text, its labels and further fields."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

from labelweave.data.compressed_files import iter_json_objects
from labelweave.data.dataset import Dataset
from labelweave.data.label_files import find_label_file, read_label_file
from labelweave.data.readers._shared.columns import (
    ID_FIELDS,
    LABEL_FIELDS,
    SPLIT_FIELDS,
    clean_text,
    first_of,
    part_name,
    text_fields,
)
from labelweave.data.readers._shared.label_lists import label_matrix, vocabulary
from labelweave.data.readers.reader import (
    LABELS_LISTED,
    FeatureSpec,
    FilePath,
    Reader,
    RowChunk,
    make_dataset,
)
from labelweave.data.several_files import SeveralFiles
from labelweave.exceptions import DataFileError, LabelweaveWarning
from labelweave.tables.table import Table

_SAMPLE_ROWS = 100
_CHUNK_ROWS = 1024


def read_jsonl(
    path: FilePath,
    *,
    text_column: str | Sequence[str] | None = None,
    label_column: str | Sequence[str] | None = None,
    id_column: str | None = None,
    split_column: str | None = None,
    labels: Sequence[str] | None = None,
    labels_file: FilePath | None = None,
    drop: Sequence[str] = (),
    text_only: bool = True,
    require_labels: bool = True,
) -> Dataset:
    r"""Read JSON Lines, or a JSON array, of texts and their labels.

    Fields that are not named are found by their usual names: `title` and one of `text`,
    `abstract`, `body`, `description` for the text (joined by a line feed), one of `labels`,
    `tags`, `topics`, `label`, `categories`, `major` for the labels, `id`, and `split`. X is a list
    of texts. Where the objects have further fields, X is a :class:`~labelweave.tables.Table` of all
    fields; those that hold lists or objects are left out, with a warning.

    Parameters
    ----------
    path : path-like
    text_column : str or sequence of str, optional
        The field or fields of the text.
    label_column : str or sequence of str, optional
        The field of the labels (or several, which are combined): a list of names, or one name. The
        labels of a row without the field, or with null, are unknown; an empty list means that no
        label applies.
    id_column, split_column : str, optional
        The fields of row names and official parts.
    labels : sequence of str, optional
        The vocabulary and its order; by default the sorted names that occur.
    labels_file : path-like, optional
        File of names and descriptions of the labels (see
        :func:`labelweave.data.label_files.read_label_file`); by default `labels.jsonl`,
        `labels.json` or `labels.txt` in the same folder, if there is one.
    drop : sequence of str
        Fields to leave out.
    text_only : bool, default=True
        Whether to leave out all further fields, so that X is a list of texts.
    require_labels : bool, default=True
        False accepts a file without a labels field.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "notes.jsonl"
    ...     _ = path.write_text(
    ...         '{"text": "waves", "tags": ["sea"]}\n{"text": "beach", "tags": ["sea", "sun"]}\n'
    ...     )
    ...     data = read_jsonl(path)
    >>> data.X, data.Y.to_lists()
    (['waves', 'beach'], [['sea'], ['sea', 'sun']])
    """
    fields = _Fields(path, text_column, label_column, id_column, split_column, drop, text_only)
    if not fields.labels and require_labels:
        raise DataFileError(
            "no field looks like labels: name it with label_column= (the fields are "
            f"{', '.join(sorted(fields.available))})",
            path=path,
            parameter="label_column",
        )
    rows = list(_iter_rows(path))
    label_lists = [fields.labels_of(row) for row in rows] if fields.labels else []
    further = fields.further(rows)
    labels_file = find_label_file(path) if labels_file is None else labels_file
    descriptions: dict[str, str] = {}
    if labels_file is not None and fields.labels:
        descriptions = read_label_file(labels_file, field=fields.labels[0])
    names = vocabulary(labels, label_lists) if fields.labels else []
    if not names and require_labels:
        raise DataFileError(f"no row has a label in {', '.join(fields.labels)}", path=path)
    lines = [row.line for row in rows]
    return make_dataset(
        path,
        fields.features(rows, further),
        label_matrix(label_lists, names, path, lines) if fields.labels else None,
        names,
        descriptions=descriptions,
        feature_names=[*fields.text, *further] if further else None,
        row_ids=fields.values_of(fields.row_id, rows),
        part=None
        if fields.split is None
        else [part_name(row.record.get(fields.split)) for row in rows],
        facts=LABELS_LISTED,
    )


def _iter_features(
    path: FilePath,
    features: FeatureSpec,
    *,
    text_column: str | Sequence[str] | None = None,
    id_column: str | None = None,
    label_column: str | Sequence[str] | None = None,
    split_column: str | None = None,
    **ignored: object,
) -> Iterator[RowChunk]:
    fields = _Fields(path, text_column, label_column, id_column, split_column)
    records = _iter_rows(path)
    while rows := list(islice(records, _CHUNK_ROWS)):
        further = [name for name in features.names or () if name not in fields.text]
        X = fields.features(rows, further)
        yield RowChunk(X, row_ids=fields.values_of(fields.row_id, rows))


class _Row(NamedTuple):
    """One object, and where it is."""

    path: FilePath
    line: int
    record: dict[str, Any]


def _iter_rows(path: FilePath) -> Iterator[_Row]:
    for file in path.files if isinstance(path, SeveralFiles) else (path,):
        for line, record in iter_json_objects(file):
            yield _Row(file, line, record)


class _Fields:
    """The fields of text, labels, ids and parts; those not named are found in the first rows."""

    def __init__(
        self,
        path: FilePath,
        text: str | Sequence[str] | None,
        labels: str | Sequence[str] | None,
        row_id: str | None,
        split: str | None,
        drop: Sequence[str] = (),
        text_only: bool = False,
    ) -> None:
        self.path = path
        sample = islice(_iter_rows(path), _SAMPLE_ROWS)
        self.available = {key for row in sample for key in row.record}
        if not self.available:
            raise DataFileError("the file has no rows", path=path)
        text_names = [text] if isinstance(text, str) else list(text or text_fields(self.available))
        label_names = [labels] if isinstance(labels, str) else list(labels or ())
        for name in (*text_names, *label_names, row_id, split):
            if name is not None and name not in self.available:
                raise DataFileError(
                    f"no row has the field {name!r}; the fields are "
                    f"{', '.join(sorted(self.available))}",
                    path=path,
                )
        if not text_names:
            raise DataFileError(
                "no field looks like text: name it with text_column= (the fields are "
                f"{', '.join(sorted(self.available))})",
                path=path,
                parameter="text_column",
            )
        self.text = text_names
        usual = first_of(LABEL_FIELDS, self.available - set(text_names))
        self.labels = label_names or ([] if usual is None else [usual])
        self.row_id = row_id or first_of(ID_FIELDS, self.available)
        self.split = split or first_of(SPLIT_FIELDS, self.available)
        self.dropped = set(drop)
        self.text_only = text_only

    def further(self, rows: Sequence[_Row]) -> list[str]:
        """The fields of these rows that have no other role and hold single values."""
        if self.text_only:
            return []
        used = {*self.text, *self.labels, *LABEL_FIELDS, *self.dropped, self.row_id, self.split}
        further = {key: None for row in rows for key in row.record if key not in used}
        nested = {
            key
            for row in rows
            for key, value in row.record.items()
            if key in further and isinstance(value, list | dict)
        }
        if nested:
            warnings.warn(
                f"{self.path}: lists and objects are not columns, and these fields are left out: "
                f"{', '.join(sorted(nested))}",
                LabelweaveWarning,
                stacklevel=3,
            )
        return [key for key in further if key not in nested]

    def features(self, rows: Sequence[_Row], further: Sequence[str]) -> Any:
        """The texts of rows or, with further fields, a table with a column per field."""
        if not further:
            return [self.text_of(row) for row in rows]
        import pandas as pd

        for row in rows:
            self.text_of(row)
        columns = {name: self.values_of(name, rows) for name in (*self.text, *further)}
        return Table(pd.DataFrame(columns))

    def values_of(self, name: str | None, rows: Sequence[_Row]) -> list[Any] | None:
        """The values of a field."""
        if name is None:
            return None
        values = [row.record.get(name) for row in rows]
        return [clean_text(value) if isinstance(value, str) else value for value in values]

    def text_of(self, row: _Row) -> str:
        texts = [row.record.get(name) for name in self.text]
        for name, text in zip(self.text, texts, strict=True):
            if text is not None and not isinstance(text, str):
                raise DataFileError(
                    f"the field {name!r} is not a text", path=row.path, line=row.line
                )
        return clean_text("\n".join(text for text in texts if text))

    def labels_of(self, row: _Row) -> list[str] | None:
        names: list[str] = []
        for field in self.labels:
            value = row.record.get(field)
            if value is None:
                return None
            values = [value] if isinstance(value, str | int) else value
            if not isinstance(values, list) or not all(isinstance(v, str | int) for v in values):
                raise DataFileError(
                    f"the field {field!r} must be a list of label names",
                    path=row.path,
                    line=row.line,
                )
            names.extend(clean_text(str(name)) for name in values)
        return names


READER = Reader(read_jsonl, _iter_features)
