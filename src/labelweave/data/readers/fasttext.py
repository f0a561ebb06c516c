"""fastText lines: `__label__sea __label__sun the text`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from labelweave.data.compressed_files import iter_lines
from labelweave.data.dataset import Dataset
from labelweave.data.readers._shared.label_lists import label_matrix, vocabulary
from labelweave.data.readers.reader import (
    LABELS_LISTED,
    FeatureSpec,
    FilePath,
    Reader,
    RowChunk,
    make_dataset,
)
from labelweave.exceptions import DataFileError, InputError

_CHUNK_ROWS = 1024


def read_fasttext(
    path: FilePath,
    *,
    label_prefix: str = "__label__",
    labels: Sequence[str] | None = None,
    require_labels: bool = True,
) -> Dataset:
    r"""Read lines of labels and text in the format of fastText.

    Every word that begins with the prefix is a label, at any position of the line. The other words,
    joined by single blanks, are the text. Empty lines are skipped. X is a list of texts.

    Parameters
    ----------
    path : path-like
    label_prefix : str, default="__label__"
    labels : sequence of str, optional
        The vocabulary and its order; by default the sorted names that occur.
    require_labels : bool, default=True
        False accepts a file of plain texts, one per line.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "notes.txt"
    ...     _ = path.write_text("__label__sea waves\n__label__sea __label__sun a beach\n")
    ...     data = read_fasttext(path)
    >>> data.X, data.Y.to_lists()
    (['waves', 'a beach'], [['sea'], ['sea', 'sun']])
    """
    lines, texts, label_lists = [], [], []
    for line, text, labels_of_row in _rows(path, label_prefix):
        lines.append(line)
        texts.append(text)
        label_lists.append(labels_of_row)
    if not texts:
        raise DataFileError("the file has no rows", path=path)
    names = vocabulary(labels, label_lists)
    if not names:
        if require_labels:
            raise DataFileError(
                f"no line has a word that begins with {label_prefix}: use label_prefix= if labels "
                "have another prefix",
                path=path,
            )
        return make_dataset(path, texts, None, None)
    Y = label_matrix(label_lists, names, path, lines)
    return make_dataset(path, texts, Y, names, facts=LABELS_LISTED)


def _iter_features(
    path: FilePath, features: FeatureSpec, *, label_prefix: str = "__label__", **ignored: object
) -> Iterator[RowChunk]:
    texts: list[str] = []
    for _, text, _ in _rows(path, label_prefix):
        texts.append(text)
        if len(texts) == _CHUNK_ROWS:
            yield RowChunk(texts)
            texts = []
    if texts:
        yield RowChunk(texts)


def _rows(path: FilePath, prefix: str) -> Iterator[tuple[int, str, list[str]]]:
    if not prefix:
        raise InputError("label_prefix= must not be empty")
    for line, content in iter_lines(path):
        words = content.split()
        if not words:
            continue
        names = [word.removeprefix(prefix) for word in words if word.startswith(prefix)]
        if "" in names:
            raise DataFileError(f"there is no name after {prefix}", path=path, line=line)
        yield line, " ".join(word for word in words if not word.startswith(prefix)), names


READER = Reader(read_fasttext, _iter_features)
