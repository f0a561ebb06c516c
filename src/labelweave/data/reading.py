"""Reading a data file of any supported format."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any

from labelweave.data.compression import inner_name, inner_stem, open_binary
from labelweave.data.dataset import Dataset
from labelweave.data.readers.base import FeatureSpec, FilePath, Reader, no_labels, regroup
from labelweave.exceptions import DataFileError, InputError

__all__ = ["FORMATS", "iter_batches", "read_dataset"]

FORMATS = ("arff", "xc", "svmlight", "jsonl", "fasttext", "npz", "table")
"""Names of the formats; each is a module of :mod:`labelweave.data.readers`."""

_HEAD_BYTES = 2**16


def read_dataset(path: FilePath, *, format: str | None = None, **options: Any) -> Dataset:
    r"""Read a data file, compressed or not, in any supported format.

    Parameters
    ----------
    path : path-like
    format : str, optional
        One of :data:`FORMATS`; by default the content and the file's ending decide.
    **options
        What the format's reader takes, such as `labels`, `label_column`, `text_column`,
        `id_column`, `drop`, `require_labels`.

    Returns
    -------
    Dataset

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "days.csv"
    ...     _ = path.write_text("degrees,sunny,windy\n21.5,1,0\n14,,1\n")
    ...     read_dataset(path, labels=2)
    <Dataset days: 2 rows x 1 features, 2 labels, 1.000 labels a row>
    """
    reader = _reader(path, format)
    _check_options(reader.name, reader.read, options)
    return reader.read(path, **options)


def iter_batches(
    path: FilePath,
    *,
    batch_rows: int = 4096,
    n_features: int | None = None,
    feature_names: Sequence[str] | None = None,
    format: str | None = None,
    **options: Any,
) -> Iterator[Dataset]:
    r"""Read the features of a file some rows at a time, for prediction on large inputs.

    Labels are not needed, and not read where they are there: Y has no columns.

    Parameters
    ----------
    path : path-like
    batch_rows : int, default=4096
        Rows of each batch (the last may be shorter).
    n_features : int, optional
        Number of columns the model was fitted on; a file of another width is refused.
    feature_names : sequence of str, optional
        Names of the model's columns: where the file names its columns these are taken, in
        this order, and the others are left out.
    format : str, optional
        As for :func:`read_dataset`.
    **options
        As for :func:`read_dataset`.

    Yields
    ------
    Dataset

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "days.csv"
    ...     _ = path.write_text("degrees,wind\n21.5,3\n14,5\n9,1\n")
    ...     [b.X.tolist() for b in iter_batches(path, batch_rows=2, feature_names=["wind"])]
    [[[3.0], [5.0]], [[1.0]]]
    """
    if batch_rows < 1:
        raise InputError(f"batch_rows must be at least 1, not {batch_rows}")
    reader = _reader(path, format)
    options = {key: value for key, value in options.items() if key != "require_labels"}
    _check_options(reader.name, reader.pieces, options)
    features = FeatureSpec(feature_names, n_features)
    for piece in regroup(reader.pieces(path, features, **options), batch_rows):
        yield Dataset(piece.X, no_labels(len(piece)), name=inner_stem(path), row_ids=piece.row_ids)


def _reader(path: FilePath, format: str | None) -> Reader:
    if format is not None:
        if format not in FORMATS:
            raise InputError(f"there is no format {format!r}; there are {', '.join(FORMATS)}")
        return _load(format)
    with open_binary(path) as file:
        head = file.read(_HEAD_BYTES)
    if not head.strip():
        raise DataFileError("the file is empty", path=path)
    name = inner_name(path)
    readers = [_load(known) for known in FORMATS]
    best = max(readers, key=lambda reader: reader.score(name, head))
    if best.score(name, head) == 0:
        known = "; ".join(f"{reader.name}: {reader.summary}" for reader in readers)
        raise DataFileError(
            f"the file is of no known format. Name it with format= if it is one of these ({known})",
            path=path,
        )
    return best


def _load(format: str) -> Reader:
    return import_module(f"labelweave.data.readers.{format}").READER


def _check_options(format: str, function: Any, options: dict[str, Any]) -> None:
    known = [
        name
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    ]
    for option in options:
        if option not in known:
            raise InputError(
                f"the {format} reader has no option {option!r}; it has {', '.join(sorted(known))}"
            )
