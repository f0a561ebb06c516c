"""Files of label names and descriptions."""

from __future__ import annotations

import csv
import json
from os import PathLike
from pathlib import Path

from labelweave.exceptions import DataFileError

__all__ = ["read_label_texts"]

_NAMES = ("label", "name", "tag")
_DESCRIPTIONS = ("description", "definition", "text")


def read_label_texts(path: str | PathLike[str]) -> dict[str, str]:
    """Label name to description, "" where there is none.

    Parameters
    ----------
    path : path
        ``.csv`` or ``.tsv`` with a column `label` (or `name`, `tag`) and, if there are any,
        `description` (or `definition`, `text`); ``.jsonl`` with the same keys; anything else
        holds one name a line.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "new.csv"
    ...     _ = path.write_text("label,description\\nmoon,the earth's satellite\\nmars,\\n")
    ...     read_label_texts(path)
    {'moon': "the earth's satellite", 'mars': ''}
    """
    path = Path(path)
    try:
        text = path.read_text("utf-8-sig")
    except FileNotFoundError:
        raise DataFileError("there is no such file", path=path) from None
    except OSError as error:
        raise DataFileError(error.strerror or "it cannot be read", path=path) from None
    except UnicodeDecodeError:
        raise DataFileError("it is no UTF-8 text", path=path) from None
    kind = path.suffix.lower()
    if kind in (".csv", ".tsv"):
        rows = _table_rows(text, "\t" if kind == ".tsv" else ",", path)
    elif kind in (".jsonl", ".ndjson"):
        rows = _json_rows(text, path)
    else:
        rows = [(n, line.strip(), "") for n, line in enumerate(text.splitlines(), 1)]
    found: dict[str, str] = {}
    for number, name, description in rows:
        if not name and not description:
            continue
        if not name:
            raise DataFileError("a label has no name", path=path, line=number)
        if name in found:
            raise DataFileError(f"the label {name!r} is there twice", path=path, line=number)
        found[name] = description
    if not found:
        raise DataFileError("it holds no label", path=path)
    return found


def _table_rows(text: str, separator: str, path: Path) -> list[tuple[int, str, str]]:
    reader = csv.DictReader(text.splitlines(), delimiter=separator)
    columns = {str(name).strip().lower(): name for name in reader.fieldnames or ()}
    name = next((columns[key] for key in _NAMES if key in columns), None)
    described = next((columns[key] for key in _DESCRIPTIONS if key in columns), None)
    if name is None:
        raise DataFileError(
            f"it has no column {' or '.join(_NAMES)}: name one in its first line", path=path
        )
    return [
        (
            reader.line_num,
            (row[name] or "").strip(),
            (row[described] or "").strip() if described is not None else "",
        )
        for row in reader
    ]


def _json_rows(text: str, path: Path) -> list[tuple[int, str, str]]:
    rows = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            facts = json.loads(line)
            name = next(facts[key] for key in _NAMES if key in facts)
        except (ValueError, TypeError, StopIteration):
            raise DataFileError(
                f"this is no JSON object with a key {' or '.join(_NAMES)}", path=path, line=number
            ) from None
        described = next((facts[key] for key in _DESCRIPTIONS if facts.get(key)), "")
        rows.append((number, str(name).strip(), str(described).strip()))
    return rows
