"""Which columns or fields of a file hold texts, labels, row names and parts."""

from __future__ import annotations

import difflib
from collections.abc import Container, Sequence
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from labelweave.data.compressed_files import FilePath
from labelweave.exceptions import DataFileError, InputError

TEXT_FIELDS = ("text", "abstract", "body", "description", "content", "sentence", "document")
LABEL_FIELDS = ("labels", "tags", "topics", "label", "categories", "classes", "keywords", "major")
ID_FIELDS = ("id", "_id", "row_id", "doc_id")
SPLIT_FIELDS = ("split", "part")

_PARTS = {
    "train": "train", "training": "train", "test": "test", "testing": "test",
    "validation": "validation", "valid": "validation", "val": "validation", "dev": "validation",
}  # fmt: skip


def first_of(names: Sequence[str], available: Container[str]) -> str | None:
    """The first of these names that is available, if any."""
    return next((name for name in names if name in available), None)


def text_fields(available: Container[str]) -> list[str]:
    """The fields that make up the text of a row: the title, if there is one, and the body.

    >>> text_fields({"id", "title", "abstract"})
    ['title', 'abstract']
    """
    body = first_of(TEXT_FIELDS, available)
    return [name for name in ("title", body) if name is not None and name in available]


def part_name(value: Any) -> str:
    """Name of an official part in our spelling; other values are returned in lower case.

    >>> part_name("TRAIN"), part_name("dev"), part_name("NOT-USED")
    ('train', 'validation', 'not-used')
    """
    word = "" if value is None else str(value).strip().lower()
    return _PARTS.get(word, word)


def clean_text(text: str) -> str:
    """Replace lone surrogates, which JSON allows and no text encoder accepts."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def choose_columns(labels: Any, names: Sequence[str], path: FilePath) -> list[int]:
    """Positions of the label columns that the option `labels=` chooses.

    * `labels`: A positive number k chooses the last k columns, a negative one the first k; a string
      is a pattern such as ``"Class*"``; a sequence lists the names of the columns.
    * `names`: All columns of the file.
    * `path`: For the error message.

    >>> choose_columns(2, ["a", "b", "c"], "f")
    [1, 2]
    >>> choose_columns(-1, ["a", "b", "c"], "f")
    [0]
    >>> choose_columns("tag_*", ["x", "tag_1", "tag_2"], "f")
    [1, 2]
    """
    if isinstance(labels, int | np.integer) and not isinstance(labels, bool):
        count = int(labels)
        if not 0 < abs(count) <= len(names):
            raise DataFileError(
                f"labels={count} asks for {abs(count)} columns, but there are {len(names)}",
                path=path,
                parameter="labels",
            )
        columns = list(range(len(names)))
        return columns[-count:] if count > 0 else columns[:-count]
    if isinstance(labels, str):
        chosen = [j for j, name in enumerate(names) if fnmatchcase(name, labels)]
        if not chosen:
            raise DataFileError(
                f"no column is named {labels!r} (labels=); {_suggestion(labels, names)}",
                path=path,
                parameter="labels",
            )
        return chosen
    if not isinstance(labels, Sequence) or not all(isinstance(name, str) for name in labels):
        raise InputError(
            f"labels= must be a number of columns, a pattern or a list of names, not {labels!r}",
            parameter="labels",
        )
    return find_columns(labels, names, path)


def find_columns(wanted: Sequence[str], names: Sequence[str], path: FilePath) -> list[int]:
    """Positions of the columns with these names; each name must occur exactly once."""
    position = {name: j for j, name in enumerate(names)}
    for name in wanted:
        if name not in position:
            raise DataFileError(
                f"there is no column {name!r}; {_suggestion(name, names)}", path=path
            )
    if len(position) < len(names):
        for name in wanted:
            if names.count(name) > 1:
                raise DataFileError(f"more than one column is named {name!r}", path=path)
    return [position[name] for name in wanted]


def _suggestion(name: str, names: Sequence[str]) -> str:
    """What an error message adds about a name or pattern that matches no column.

    >>> _suggestion("bleu", ["red", "blue"]), _suggestion("kind_*", list("abcdefgh"))
    ("did you mean 'blue'?", "the columns are 'a', 'b', 'c', 'd', 'e', ..., 'h'")
    """
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.7)
    if near and "*" not in name:
        return f"did you mean {near[0]!r}?"
    shown = [repr(other) for other in names]
    if len(shown) > 7:
        shown = [*shown[:5], "...", shown[-1]]
    return f"the columns are {', '.join(shown)}"
