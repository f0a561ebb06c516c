"""JSON Lines or a JSON array: one object per row with a text, its labels and further fields."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any

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
from labelweave.data.readers._table.records import Record, RecordTable
from labelweave.data.readers.reader import (
    LABELS_LISTED,
    FeatureSpec,
    FilePath,
    Reader,
    RowChunk,
    make_dataset,
)
from labelweave.data.readers.table import dataset_of_table, features_of_table
from labelweave.data.several_files import SeveralFiles
from labelweave.exceptions import DataFileError, LabelweaveWarning

_SAMPLE_ROWS = 100
_CHUNK_ROWS = 1024


def read_jsonl(
    path: FilePath,
    *,
    text_column: str | Sequence[str] | None = None,
    label_column: str | Sequence[str] | None = None,
    id_column: str | None = None,
    split_column: str | None = None,
    group_column: str | None = None,
    weight_column: str | None = None,
    kinds: Mapping[str, str] | None = None,
    labels: Any = None,
    labels_file: FilePath | None = None,
    drop: Sequence[str] = (),
    text_only: bool = False,
    require_labels: bool = True,
) -> Dataset:
    r"""Read JSON Lines, or a JSON array, of records: a text, its labels and further fields.

    Fields that are not named are found by their usual names: `title` and one of `text`,
    `abstract`, `body`, `description` for the text (joined by a line feed), one of `labels`,
    `tags`, `topics`, `label`, `categories`, `major` for the labels, `id`, and `split`. Where there
    is nothing else, X is a list of texts. Further fields are columns, as those of a table, and X is
    as :func:`labelweave.data.readers.table.read_table` says; the column of the text has the name of
    its (last) field. Fields that hold lists or objects are left out, with a warning.

    Parameters
    ----------
    path : path-like
    text_column : str or sequence of str, optional
        The field or fields of the text.
    label_column : str or sequence of str, optional
        The field of the labels (or several, which are combined): a list of names, or one name. The
        labels of a row without the field, or with null, are unknown; an empty list means that no
        label applies.
    id_column, split_column, group_column, weight_column : str, optional
        The fields of row names, official parts, groups and weights.
    kinds : mapping of field to kind, optional
        The kinds of fields for which they are not to be found by themselves.
    labels : int, str or sequence of str, optional
        The vocabulary and its order; by default the sorted names that occur. In records without a
        field of labels, the fields that hold one label each: a pattern, or their names.
    labels_file : path-like, optional
        File of names and descriptions of the labels (see
        :func:`labelweave.data.label_files.read_label_file`); by default `labels.jsonl`,
        `labels.json` or `labels.txt` in the same folder, if there is one.
    drop : sequence of str
        Fields to leave out.
    text_only : bool, default=False
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
    fields = _Fields(path, text_column, label_column, id_column, split_column, drop)
    if isinstance(labels, str | int) and label_column is None:
        fields.labels = []  # each label has a field of its own
    records = list(_iter_records(path))
    named = {"group_column": group_column, "weight_column": weight_column}
    further = [] if text_only else fields.further(records)
    if further:
        table = RecordTable(path, fields.columns(further), lambda: records, None)
        return dataset_of_table(
            table,
            labels=labels,
            labels_file=labels_file,
            kinds=kinds,
            require_labels=require_labels,
            drop=list(drop),
            **fields.roles(),
            **named,
        )
    for option, value in {**named, "kinds": kinds}.items():
        if value is not None:
            raise DataFileError(
                f"there are no fields besides texts and labels for {option}=", path=path
            )
    fields.require_text()
    if not fields.labels and require_labels:
        raise DataFileError(
            "no field looks like labels: name it with label_column= (the fields are "
            f"{', '.join(sorted(fields.available))})",
            path=path,
            parameter="label_column",
        )
    label_lists = [fields.labels_of(record) for record in records] if fields.labels else []
    labels_file = find_label_file(path) if labels_file is None else labels_file
    descriptions: dict[str, str] = {}
    if labels_file is not None and fields.labels:
        descriptions = read_label_file(labels_file, field=fields.labels[0])
    names = vocabulary(labels, label_lists) if fields.labels else []
    if not names and require_labels:
        raise DataFileError(f"no row has a label in {', '.join(fields.labels)}", path=path)
    lines = [record.line for record in records]
    parts = [part_name(record.values.get(fields.split or "")) for record in records]
    return make_dataset(
        path,
        [fields.text_of(record) for record in records],
        label_matrix(label_lists, names, path, lines) if fields.labels else None,
        names,
        descriptions=descriptions,
        row_ids=fields.ids_of(records),
        part=None if fields.split is None else parts,
        facts=LABELS_LISTED,
    )


def _iter_features(
    path: FilePath,
    features: FeatureSpec,
    *,
    text_column: str | Sequence[str] | None = None,
    id_column: str | None = None,
    label_column: str | Sequence[str] | None = None,
    drop: Sequence[str] = (),
    **ignored: object,
) -> Iterator[RowChunk]:
    fields = _Fields(path, text_column, label_column, id_column, None)
    not_features = {*fields.labels, *features.not_features, *drop, *map(str, ignored.values())}
    fields.labels = []
    known = [name for name in features.names or () if name in fields.available]
    if known or features.is_table:
        further = [name for name in known if name not in fields.text]
        if features.is_table:
            from labelweave.tables.column_warnings import report_ignored

            report_ignored(fields.others({*known, *not_features}))
        columns = fields.columns(further)
        table = RecordTable(path, columns, lambda: _iter_records(path), _CHUNK_ROWS)
        yield from features_of_table(table, features, id_column=fields.row_id)
        return
    fields.require_text()
    records = _iter_records(path)
    while rows := list(islice(records, _CHUNK_ROWS)):
        yield RowChunk([fields.text_of(row) for row in rows], row_ids=fields.ids_of(rows))


def _iter_records(path: FilePath) -> Iterator[Record]:
    for file in path.files if isinstance(path, SeveralFiles) else (path,):
        for line, values in iter_json_objects(file):
            yield Record(file, line, values)


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
    ) -> None:
        self.path = path
        sample = islice(_iter_records(path), _SAMPLE_ROWS)
        self.available = {key for record in sample for key in record.values}
        if not self.available:
            raise DataFileError("the file has no rows", path=path)
        self.dropped = set(drop)
        kept = self.available - self.dropped
        text_names = [text] if isinstance(text, str) else list(text or text_fields(kept))
        label_names = [labels] if isinstance(labels, str) else list(labels or ())
        for name in (*text_names, *label_names, row_id, split, *drop):
            if name is not None and name not in self.available:
                raise DataFileError(
                    f"no row has the field {name!r}; the fields are "
                    f"{', '.join(sorted(self.available))}",
                    path=path,
                )
        self.text = text_names
        usual = first_of(LABEL_FIELDS, kept - set(text_names))
        self.labels = label_names or ([] if usual is None else [usual])
        self.row_id = row_id or first_of(ID_FIELDS, kept)
        self.split = split or first_of(SPLIT_FIELDS, kept)

    def require_text(self) -> None:
        """Raise an error if no field is a text."""
        if not self.text:
            raise DataFileError(
                "no field looks like text: name it with text_column= (the fields are "
                f"{', '.join(sorted(self.available))})",
                path=self.path,
                parameter="text_column",
            )

    def further(self, records: Sequence[Record]) -> list[str]:
        """The fields of these records that have no other role and hold single values."""
        used = {*self.text, *self.labels, *self.dropped, self.row_id, self.split}
        further = {key: None for record in records for key in record.values if key not in used}
        nested = {
            key
            for record in records
            for key, value in record.values.items()
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

    def others(self, known: Collection[str]) -> list[str]:
        """The fields without a role, besides these."""
        others = self.available - {*self.text, self.row_id, self.split}
        return sorted(others - {*known})

    def columns(self, further: Sequence[str]) -> dict[str, Callable[[Record], Any]]:
        """The columns of a table: the text as one of them, the labels, and other fields."""
        others = [name for name in (self.row_id, self.split) if name is not None]
        others += sorted(self.dropped)  # to be named among the columns that are left out
        columns: dict[str, Callable[[Record], Any]] = {}
        if self.text:
            columns[self.text[-1]] = self.text_of
        columns |= {name: partial(_value, name) for name in (*further, *others)}
        if self.labels:
            columns[self.labels[0]] = self.labels_of
        return columns

    def roles(self) -> dict[str, str | None]:
        """The options of a table that name these columns."""
        return {
            "text_column": self.text[-1] if self.text else None,
            "label_column": self.labels[0] if self.labels else None,
            "id_column": self.row_id,
            "split_column": self.split,
        }

    def ids_of(self, records: Sequence[Record]) -> list[Any] | None:
        return None if self.row_id is None else [_value(self.row_id, row) for row in records]

    def text_of(self, record: Record) -> str:
        texts = [record.values.get(name) for name in self.text]
        for name, text in zip(self.text, texts, strict=True):
            if text is not None and not isinstance(text, str):
                raise DataFileError(
                    f"the field {name!r} is not a text", path=record.path, line=record.line
                )
        return clean_text("\n".join(text for text in texts if text))

    def labels_of(self, record: Record) -> list[str] | None:
        names: list[str] = []
        for field in self.labels:
            value = record.values.get(field)
            if value is None:
                return None
            values = [value] if isinstance(value, str | int) else value
            if not isinstance(values, list) or not all(isinstance(v, str | int) for v in values):
                raise DataFileError(
                    f"the field {field!r} must be a list of label names",
                    path=record.path,
                    line=record.line,
                )
            names.extend(clean_text(str(name)) for name in values)
        return names


def _value(name: str, record: Record) -> Any:
    value = record.values.get(name)
    return clean_text(value) if isinstance(value, str) else value


READER = Reader(read_jsonl, _iter_features)
