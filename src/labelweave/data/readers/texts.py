"""What the readers of texts share: names of fields, parts of a split, clean text."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Any

__all__ = ["LABEL_FIELDS", "TEXT_FIELDS", "clean_text", "first_of", "part_of", "text_fields"]

TEXT_FIELDS = ("text", "abstract", "body", "description", "content", "sentence", "document")
LABEL_FIELDS = ("labels", "tags", "topics", "label", "categories", "classes", "keywords", "major")
ID_FIELDS = ("id", "_id", "row_id", "doc_id")
SPLIT_FIELDS = ("split", "part")

_PARTS = {
    "train": "train", "training": "train", "test": "test", "testing": "test",
    "validation": "validation", "valid": "validation", "val": "validation", "dev": "validation",
}  # fmt: skip


def first_of(wanted: Sequence[str], there: Container[str]) -> str | None:
    """The first of some field names that a file has."""
    return next((name for name in wanted if name in there), None)


def text_fields(there: Container[str]) -> list[str]:
    """Fields that make up the text of a row: a title, if there is one, and the body.

    >>> text_fields({"id", "title", "abstract"})
    ['title', 'abstract']
    """
    body = first_of(TEXT_FIELDS, there)
    return [name for name in ("title", body) if name is not None and name in there]


def part_of(value: Any) -> str:
    """train, validation or test, however it is spelt; other values in lower case.

    >>> part_of("TRAIN"), part_of("dev"), part_of("NOT-USED")
    ('train', 'validation', 'not-used')
    """
    word = "" if value is None else str(value).strip().lower()
    return _PARTS.get(word, word)


def clean_text(text: str) -> str:
    """The text without lone surrogates, which JSON can write and no encoder can take."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
