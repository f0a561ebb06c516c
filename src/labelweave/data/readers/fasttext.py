"""fastText lines: `__label__sea __label__sun the text`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from labelweave.data.compression import iter_lines
from labelweave.data.dataset import Dataset
from labelweave.data.readers.base import LISTED, FeatureSpec, FilePath, Piece, Reader, make_dataset
from labelweave.data.readers.label_lists import label_matrix, vocabulary
from labelweave.exceptions import DataFileError, InputError

__all__ = ["READER", "read_fasttext"]

_PIECE_ROWS = 1024


def read_fasttext(
    path: FilePath,
    *,
    label_prefix: str = "__label__",
    labels: Sequence[str] | None = None,
    require_labels: bool = True,
) -> Dataset:
    r"""Read lines of labels and text as fastText takes them.

    Every word that begins with the prefix is a label, wherever it stands; the other words,
    with single blanks between them, are the text. Empty lines are skipped.

    Parameters
    ----------
    path : path-like
    label_prefix : str, default="__label__"
    labels : sequence of str, optional
        The vocabulary and its order; by default the sorted names that occur.
    require_labels : bool, default=True
        False allows a file of plain texts, one a line.

    Returns
    -------
    Dataset
        X is a list of texts.

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
    texts, rows, lines = [], [], []
    for number, text, names in _rows(path, label_prefix):
        texts.append(text)
        rows.append(names)
        lines.append(number)
    if not texts:
        raise DataFileError("the file has no rows", path=path)
    found = vocabulary(labels, rows)
    if not found:
        if require_labels:
            raise DataFileError(
                f"no line has a word that begins with {label_prefix}: give label_prefix= if "
                "labels are marked in another way",
                path=path,
            )
        return make_dataset(path, texts, None, None)
    return make_dataset(path, texts, label_matrix(rows, found, path, lines), found, facts=LISTED)


def _feature_pieces(
    path: FilePath,
    features: FeatureSpec,
    *,
    label_prefix: str = "__label__",
    labels: object = None,
) -> Iterator[Piece]:
    texts: list[str] = []
    for _, text, _ in _rows(path, label_prefix):
        texts.append(text)
        if len(texts) == _PIECE_ROWS:
            yield Piece(texts)
            texts = []
    if texts:
        yield Piece(texts)


def _rows(path: FilePath, prefix: str) -> Iterator[tuple[int, str, list[str]]]:
    if not prefix:
        raise InputError("label_prefix= must not be empty")
    for number, line in iter_lines(path):
        words = line.split()
        if not words:
            continue
        names = [word.removeprefix(prefix) for word in words if word.startswith(prefix)]
        if "" in names:
            raise DataFileError(f"{prefix} is followed by no name", path=path, line=number)
        yield number, " ".join(word for word in words if not word.startswith(prefix)), names


def _score(name: str, head: bytes) -> int:
    if b"__label__" in head.partition(b"\n")[0] or head.count(b"\n__label__") > 0:
        return 3
    return 1 if name.lower().endswith(".txt") and b"\0" not in head else 0


READER = Reader(
    "fasttext", "fastText lines, '__label__name ... text'", _score, read_fasttext, _feature_pieces
)
