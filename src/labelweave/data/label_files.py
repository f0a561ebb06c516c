"""Files of label names and, where there are any, their descriptions and broader labels."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from labelweave.data.compressed_files import (
    FilePath,
    decode,
    parse_json,
    read_small_file,
    uncompressed_name,
)
from labelweave.data.several_files import SeveralFiles
from labelweave.exceptions import DataFileError

__all__ = ["find_label_file", "read_broader", "read_label_file"]

_FILE_NAMES = ("labels.jsonl", "labels.json", "labels.txt")
_NAME_COLUMNS = ("label", "name", "tag")
_NAME_KEYS = ("label", "id", "name", "tag")
_DESCRIPTION_KEYS = ("description", "definition", "text")
_BROADER = "broader"


class _Entry(NamedTuple):
    line: int | None
    name: str
    description: str
    broader: tuple[str, ...] | None = None  # None where the file does not say


def find_label_file(path: FilePath) -> Path | None:
    """Find `labels.jsonl`, `labels.json` or `labels.txt` in the folder of a data file."""
    if isinstance(path, SeveralFiles):
        path = path.files[0]
    candidates = (Path(path).parent / name for name in _FILE_NAMES)
    return next((file for file in candidates if file.is_file() and file != Path(path)), None)


def read_label_file(path: FilePath, *, field: str | None = None) -> dict[str, str]:
    """Read the names of labels and their descriptions, "" where a label has none.

    Parameters
    ----------
    path : path
        Compressed or not. ``.csv`` and ``.tsv`` files have a column `label` (or `name`, `tag`) and
        may have a column `description` (or `definition`, `text`). ``.jsonl`` files have one object
        per line with the same keys; where `label` or `id` is the name of the label, `name` is part
        of its description. ``.json`` files hold a list of such objects, a list of names, or an
        object from names to descriptions. All other files have one name per line.
    field : str, optional
        Which vocabulary to take from a ``.json`` file that has one per field of the data.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "new.csv"
    ...     _ = path.write_text("label,description\\nmoon,the earth's satellite\\nmars,\\n")
    ...     read_label_file(path)
    {'moon': "the earth's satellite", 'mars': ''}
    """
    return {entry.name: entry.description for entry in _read_entries(path, field)}


def read_broader(path: FilePath) -> dict[str, tuple[str, ...]]:
    """Read the labels directly above each label, from a file of :func:`read_label_file`.

    The column or key is `broader`. In a table several labels are separated by ``|``; in a JSON
    file they are a list.
    """
    entries = _read_entries(path, None)
    if all(entry.broader is None for entry in entries):
        raise DataFileError(
            f"no label has the column or key {_BROADER!r}, which names the labels above it",
            path=path,
        )
    names = {entry.name for entry in entries}
    for line, name, _, broader in entries:
        for above in broader or ():
            if above not in names:
                raise DataFileError(
                    f"the broader label {above!r} of {name!r} is not a label of the file: add a "
                    "line for it",
                    path=path,
                    line=line,
                )
    return {entry.name: entry.broader for entry in entries if entry.broader}


def _read_entries(path: FilePath, field: str | None) -> list[_Entry]:
    text = decode(read_small_file(path), path, None)
    ending = Path(uncompressed_name(path)).suffix.lower()
    listed: Iterator[_Entry]
    if ending in (".csv", ".tsv"):
        listed = _table_entries(text, "\t" if ending == ".tsv" else ",", path)
    elif ending in (".jsonl", ".ndjson"):
        listed = _json_line_entries(text, path)
    elif ending == ".json":
        listed = _json_entries(text, field, path)
    else:
        listed = (_Entry(n, line, "") for n, line in enumerate(text.splitlines(), 1))
    entries: dict[str, _Entry] = {}
    for entry in listed:
        line, name, description = entry.line, entry.name.strip(), entry.description.strip()
        if not name and not description:
            continue
        if not name:
            raise DataFileError("the label has no name", path=path, line=line)
        if name in entries:
            raise DataFileError(f"the label {name!r} is listed twice", path=path, line=line)
        entries[name] = _Entry(line, name, description, entry.broader)
    if not entries:
        raise DataFileError("the file holds no labels", path=path)
    return list(entries.values())


def _table_entries(text: str, separator: str, path: FilePath) -> Iterator[_Entry]:
    reader = csv.DictReader(text.splitlines(keepends=True), delimiter=separator)
    columns = {str(name).strip().lower(): name for name in reader.fieldnames or ()}
    name = next((columns[key] for key in _NAME_COLUMNS if key in columns), None)
    description = next((columns[key] for key in _DESCRIPTION_KEYS if key in columns), None)
    if name is None:
        raise DataFileError(
            f"there is no column {' or '.join(_NAME_COLUMNS)}: name one in the first line",
            path=path,
        )
    above = columns.get(_BROADER)
    for row in reader:
        text = "" if description is None else row[description] or ""
        broader = None if above is None else _split(row[above] or "")
        yield _Entry(reader.line_num, row[name] or "", text, broader)


def _split(cell: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in cell.split("|") if name.strip())


def _json_line_entries(text: str, path: FilePath) -> Iterator[_Entry]:
    for line, json_text in enumerate(text.splitlines(), 1):
        if json_text.strip():
            yield _entry(parse_json(json_text, path, line), path, line)


def _json_entries(text: str, field: str | None, path: FilePath) -> Iterator[_Entry]:
    content = parse_json(text, path)
    if isinstance(content, dict) and isinstance(content.get(field), dict | list):
        content = content[field]
    if isinstance(content, dict):
        content = [{"label": name, "description": text} for name, text in content.items()]
    if not isinstance(content, list):
        raise DataFileError(
            "expected a list of labels or an object from names to descriptions", path=path
        )
    for entry in content:
        yield _entry(entry, path, None)


def _entry(entry: Any, path: FilePath, line: int | None) -> _Entry:
    if isinstance(entry, str):
        return _Entry(line, entry, "")
    key = _name_key(entry) if isinstance(entry, dict) else None
    if key is None:
        raise DataFileError(
            f"expected a label name or an object with the key {' or '.join(_NAME_KEYS)}, "
            f"not {str(entry)[:60]}",
            path=path,
            line=line,
        )
    description = next((entry[k] for k in _DESCRIPTION_KEYS if entry.get(k)), "")
    texts = [entry.get("name") if key != "name" else "", description]
    broader = entry.get(_BROADER)
    if isinstance(broader, str):
        broader = [broader]
    if broader is not None and not isinstance(broader, list):
        raise DataFileError(
            f"{_BROADER!r} is the name of a label or a list of names, not {str(broader)[:60]}",
            path=path,
            line=line,
        )
    return _Entry(
        line,
        str(entry[key]),
        ": ".join(str(text) for text in texts if text),
        None if broader is None else tuple(map(str, broader)),
    )


def _name_key(entry: Mapping[str, Any]) -> str | None:
    """The key that holds the label's name. A number is a name, but not where it is an `id`."""
    for key in _NAME_KEYS:
        value = entry.get(key)
        if isinstance(value, str) or (isinstance(value, int) and key != "id"):
            return key
    return None
