"""Readers of data files, one module per format.

To add a format, write a module with a constant `READER`
(:class:`labelweave.data.readers.reader.Reader`), add it to :data:`FORMATS`, and say in
:data:`ENDINGS` or in :func:`find_format` how its files are recognised.
"""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from labelweave.data.compressed_files import BYTE_ORDER_MARK

if TYPE_CHECKING:
    from labelweave.data.readers.reader import Reader

__all__ = ["FORMATS", "find_format", "get_reader"]

FORMATS = {
    "arff": "ARFF, dense or sparse (Weka, Mulan, MEKA)",
    "xc": "Extreme Classification repository, 'rows features labels' then "
    "'label,label index:value'",
    "svmlight": "svmlight or libsvm lines, 'label,label index:value ...'",
    "jsonl": "JSON Lines or a JSON array, one object with text and labels per row",
    "fasttext": "fastText lines, '__label__name ... text'",
    "npz": "NumPy archive with X and Y",
    "table": "CSV, TSV, Parquet or Excel with one column per label or one column of label names",
}
"""Names of the formats, which are also the names of their modules, and what they look like."""

ENDINGS = {
    ".arff": "arff",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".npz": "npz",
    ".csv": "table",
    ".tsv": "table",
    ".tab": "table",
    ".parquet": "table",
    ".pq": "table",
    ".xlsx": "table",
    ".xlsm": "table",
}
"""Endings of names that decide the format, whatever the file holds."""


def get_reader(format: str) -> Reader:
    """Import the reader of a format."""
    return import_module(f"labelweave.data.readers.{format}").READER


def find_format(name: str, head: bytes) -> str | None:
    """The format of a file, by the ending of its name or else by its content.

    `name` has no ending of a compression, and `head` holds the first bytes, unpacked.

    >>> find_format("days.csv", b""), find_format("days.txt", b"__label__sea waves")
    ('table', 'fasttext')
    """
    ending = Path(name).suffix.lower()
    if ending in ENDINGS:
        return ENDINGS[ending]
    return _format_of_content(head.removeprefix(BYTE_ORDER_MARK), ending)


_ARFF = re.compile(rb"\s*(%[^\n]*\n\s*)*@(relation|attribute)", re.IGNORECASE)
_XC_HEADER = re.compile(rb"\s*\d{1,20}\s+\d{1,20}\s+\d{1,20}\s*")
_SVMLIGHT_LINE = re.compile(rb"\s*(-?\d+(,-?\d+)*)?(\s+|^)\d+:[-+.\deE]+(\s|$)")


def _format_of_content(head: bytes, ending: str) -> str | None:
    """The most specific formats are tried first."""
    first, _, rest = head.partition(b"\n")
    second = rest.partition(b"\n")[0]
    if head.startswith(b"PAR1"):
        return "table"
    if head.startswith(b"PK\x03\x04") and b".npy" in head[:200]:
        return "npz"
    if _ARFF.match(head):
        return "arff"
    if _XC_HEADER.fullmatch(first) and (b":" in second or not second.strip()):
        return "xc"
    if b"__label__" in first or b"\n__label__" in head:
        return "fasttext"
    lines = [line for line in head.split(b"\n")[:20] if line.strip()]
    lines = lines[: max(1, len(lines) - 1)]  # the last may be incomplete
    if lines and all(_SVMLIGHT_LINE.match(line) for line in lines if not line.startswith(b"#")):
        return "svmlight"
    if re.match(rb"\s*(\[\s*)?\{", head) and b'"' in head and b":" in head:
        return "jsonl"
    if ending in (".svm", ".svmlight", ".libsvm"):
        return "svmlight"
    if b"\0" in head:
        return None
    if ending == ".txt":
        return "fasttext"
    try:
        head[: head.rfind(b"\n") + 1].decode()
    except UnicodeDecodeError:
        return None
    return "table" if re.search(rb"[,;\t]", first) else None
