"""Readers of data files, one module per format.

To add a format, write a module with a constant `READER`
(:class:`labelweave.data.readers.reader.Reader`) and add its name to :data:`FORMATS`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from labelweave.data.readers.reader import Reader

__all__ = ["FORMATS", "get_reader"]

FORMATS = ("arff", "xc", "svmlight", "jsonl", "fasttext", "npz", "table")
"""Names of the formats, which are also the names of their modules."""


def get_reader(format: str) -> Reader:
    """Import the reader of a format."""
    return import_module(f"labelweave.data.readers.{format}").READER
