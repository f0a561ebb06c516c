"""JSON Lines of texts with labels: one object a line."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from labelweave.data.compression import iter_lines
from labelweave.data.dataset import Dataset
from labelweave.data.readers.base import LISTED, FeatureSpec, FilePath, Piece, Reader, make_dataset
from labelweave.data.readers.label_lists import (
    find_label_file,
    label_matrix,
    read_label_file,
    vocabulary,
)
from labelweave.data.readers.texts import (
    ID_FIELDS,
    LABEL_FIELDS,
    SPLIT_FIELDS,
    clean_text,
    first_of,
    part_of,
    text_fields,
)
from labelweave.exceptions import DataFileError

__all__ = ["READER", "read_jsonl"]

_PEEK_ROWS = 100
_PIECE_ROWS = 1024


def read_jsonl(
    path: FilePath,
    *,
    text_column: str | Sequence[str] | None = None,
    label_column: str | Sequence[str] | None = None,
    id_column: str | None = None,
    split_column: str | None = None,
    labels: Sequence[str] | None = None,
    labels_file: FilePath | None = None,
    require_labels: bool = True,
) -> Dataset:
    r"""Read JSON Lines of texts and their labels.

    Fields that are not named are found by their usual names: `title` and one of `text`,
    `abstract`, `body`, `description` for the text (joined by a line feed), one of `labels`,
    `tags`, `topics`, `label`, `categories`, `major` for the labels, `id`, and `split`.

    Parameters
    ----------
    path : path-like
    text_column : str or sequence of str, optional
        The field or fields of the text.
    label_column : str or sequence of str, optional
        The field of the labels (or several, taken together): a list of names, or one name. A
        row without the field, or with null, has unknown labels; an empty list means that none
        applies.
    id_column, split_column : str, optional
        The fields that name the row and its official part.
    labels : sequence of str, optional
        The vocabulary and its order; by default the sorted names that occur.
    labels_file : path-like, optional
        Names and descriptions of labels (see :func:`.label_lists.read_label_file`); by default
        `labels.jsonl` or `labels.json` in the same folder, if there is one.
    require_labels : bool, default=True
        False allows a file without a labels field.

    Returns
    -------
    Dataset
        X is a list of texts.

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
    fields = _Fields(path, text_column, label_column, id_column, split_column)
    if not fields.labels and require_labels:
        raise DataFileError(
            "no field looks like labels: name it with label_column= (the fields are "
            f"{', '.join(sorted(fields.seen))})",
            path=path,
        )
    texts, rows, ids, parts, lines = [], [], [], [], []
    for number, record in _records(path):
        lines.append(number)
        texts.append(fields.text_of(record, number))
        ids.append(record.get(fields.row_id or ""))
        parts.append(part_of(record.get(fields.split or "")))
        if fields.labels:
            rows.append(fields.labels_of(record, number))
    beside = find_label_file(path) if labels_file is None else labels_file
    descriptions: dict[str, str] = {}
    if beside is not None and fields.labels:
        descriptions = read_label_file(beside, field_name=fields.labels[0]).descriptions
    names = [] if not fields.labels else vocabulary(labels, rows)
    if not names and require_labels:
        raise DataFileError(f"no row has a label in {', '.join(fields.labels)}", path=path)
    known = set(names)
    return make_dataset(
        path,
        texts,
        None if not fields.labels else label_matrix(rows, names, path, lines),
        names,
        descriptions={name: text for name, text in descriptions.items() if name in known},
        row_ids=None if fields.row_id is None else ids,
        part=None if fields.split is None else parts,
        facts=LISTED,
    )


def _feature_pieces(
    path: FilePath,
    features: FeatureSpec,
    *,
    text_column: str | Sequence[str] | None = None,
    id_column: str | None = None,
    label_column: str | Sequence[str] | None = None,
    split_column: str | None = None,
    labels: object = None,
    labels_file: object = None,
) -> Iterator[Piece]:
    fields = _Fields(path, text_column, label_column, id_column, split_column)
    records = _records(path)
    while rows := list(islice(records, _PIECE_ROWS)):
        ids = None if fields.row_id is None else [record.get(fields.row_id) for _, record in rows]
        yield Piece([fields.text_of(record, number) for number, record in rows], row_ids=ids)


class _Fields:
    """Which fields of the records hold what; those not named are found in the first rows."""

    def __init__(
        self,
        path: FilePath,
        text: str | Sequence[str] | None,
        labels: str | Sequence[str] | None,
        row_id: str | None,
        split: str | None,
    ) -> None:
        self.path = path
        self.seen = {key for _, record in islice(_records(path), _PEEK_ROWS) for key in record}
        if not self.seen:
            raise DataFileError("the file has no rows", path=path)
        named = [text] if isinstance(text, str) else list(text or text_fields(self.seen))
        label_fields = [labels] if isinstance(labels, str) else list(labels or ())
        for name in (*named, *label_fields, row_id, split):
            if name is not None and name not in self.seen:
                raise DataFileError(
                    f"no row has the field {name!r}; the fields are {', '.join(sorted(self.seen))}",
                    path=path,
                )
        if not named:
            raise DataFileError(
                "no field looks like text: name it with text_column= (the fields are "
                f"{', '.join(sorted(self.seen))})",
                path=path,
            )
        self.text = named
        usual = first_of(LABEL_FIELDS, self.seen - set(named))
        self.labels = label_fields or ([] if usual is None else [usual])
        self.row_id = row_id or first_of(ID_FIELDS, self.seen)
        self.split = split or first_of(SPLIT_FIELDS, self.seen)

    def text_of(self, record: dict[str, Any], number: int) -> str:
        found = [record.get(name) for name in self.text]
        for name, text in zip(self.text, found, strict=True):
            if text is not None and not isinstance(text, str):
                raise DataFileError(f"the field {name!r} is no text", path=self.path, line=number)
        return clean_text("\n".join(text for text in found if text))

    def labels_of(self, record: dict[str, Any], number: int) -> list[str] | None:
        found: list[str] = []
        for field in self.labels:
            value = record.get(field)
            if value is None:
                return None
            names = [value] if isinstance(value, str | int) else value
            if not isinstance(names, list) or not all(isinstance(n, str | int) for n in names):
                raise DataFileError(
                    f"the field {field!r} must be a list of label names",
                    path=self.path,
                    line=number,
                )
            found.extend(clean_text(str(name)) for name in names)
        return found


def _records(path: FilePath) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in iter_lines(path):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise DataFileError(
                f"this is not valid JSON ({error})", path=path, line=number
            ) from None
        if not isinstance(record, dict):
            raise DataFileError(
                'expected an object such as {"text": ..., "labels": [...]}',
                path=path,
                line=number,
            )
        yield number, record


def _score(name: str, head: bytes) -> int:
    first = head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
    named = name.lower().endswith((".jsonl", ".ndjson"))
    return 3 if named else 2 if first == b"{" and b'"' in head and b":" in head else 0


READER = Reader(
    "jsonl",
    "JSON Lines, an object with text and labels a line",
    _score,
    read_jsonl,
    _feature_pieces,
)
