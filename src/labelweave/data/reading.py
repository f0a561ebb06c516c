"""Reading a data file of any supported format, or a folder of images."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labelweave.data.compressed_files import (
    FilePath,
    open_binary,
    uncompressed_name,
    uncompressed_stem,
)
from labelweave.data.dataset import Dataset, no_labels
from labelweave.data.image_layouts import LAYOUTS, find_layout, get_layout
from labelweave.data.readers import FORMATS, get_reader
from labelweave.exceptions import DataFileError, InputError

if TYPE_CHECKING:
    from labelweave.data.image_layouts.layout import ImageLayout
    from labelweave.data.readers.reader import Reader

__all__ = ["iter_batches", "read_dataset"]

_HEAD_BYTES = 2**16


def read_dataset(path: FilePath, *, format: str | None = None, **options: Any) -> Dataset:
    r"""Read a data file, compressed or not, or a folder of images.

    Parameters
    ----------
    path : path-like
    format : str, optional
        A format (one of :data:`labelweave.data.readers.FORMATS`) or an image layout (one of
        :data:`labelweave.data.image_layouts.LAYOUTS`). By default the content and the ending of
        the file decide.
    **options
        Options of the reader of the format, such as `labels`, `label_column`, `text_column`,
        `id_column`, `drop`, `require_labels`; for images `size`, `resize`, `on_error`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "days.csv"
    ...     _ = path.write_text("degrees,sunny,windy\n21.5,1,0\n14,,1\n")
    ...     read_dataset(path, labels=2)
    <Dataset days: 2 rows x 1 features, 2 labels, 1.000 labels per row>
    """
    layout = _layout_of(path, format)
    if layout is not None:
        _check_options(layout.name, _layout_options(layout), options)
        return layout.read(Path(path), **options)
    reader = _reader_of(path, format)
    _check_options(reader.name, _keyword_options(reader.read), options)
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
    r"""Read the features of a file in batches of rows, to predict on large files.

    Labels are not needed and not read: Y has no columns.

    Parameters
    ----------
    path : path-like
    batch_rows : int, default=4096
        Number of rows per batch (the last may be shorter).
    n_features : int, optional
        Number of columns that the model was fitted on; a file with another number is refused.
    feature_names : sequence of str, optional
        Names of the model's columns. In a file that names its columns these are read, in this
        order, and all others are left out.
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
    layout = _layout_of(path, format)
    if layout is not None:
        if "require_labels" in _layout_options(layout):
            options["require_labels"] = False
        data = read_dataset(path, format=layout.name, **options)
        for start in range(0, len(data), batch_rows):
            batch = data[start : start + batch_rows]
            yield replace(batch, Y=no_labels(len(batch)), groups=None, part=None)
        return
    from labelweave.data.readers.reader import FeatureSpec, rebatch

    reader = _reader_of(path, format)
    options = {key: value for key, value in options.items() if key != "require_labels"}
    _check_options(reader.name, _keyword_options(reader.read), options)
    features = FeatureSpec(feature_names, n_features)
    for rows in rebatch(reader.iter_features(path, features, **options), batch_rows):
        name = uncompressed_stem(path)
        yield Dataset(rows.X, no_labels(len(rows)), name=name, row_ids=rows.row_ids)


def _layout_of(path: FilePath, format: str | None) -> ImageLayout | None:
    """The layout of images at a path; None if it is a file of another kind."""
    from labelweave.data.images.decoding import ENDINGS

    path = Path(path)
    if format is not None:
        return get_layout(format) if format in LAYOUTS else None
    if not path.is_dir() and path.suffix.lower() not in (".json", ".csv", ".tsv", *ENDINGS):
        return None
    name = find_layout(path)
    if name is not None:
        return get_layout(name)
    if path.is_dir():
        layouts = [get_layout(name) for name in LAYOUTS]
        known = "; ".join(f"{layout.name}: {layout.summary}" for layout in layouts)
        raise DataFileError(f"the folder has no known layout ({known})", path=path)
    return None


def _reader_of(path: FilePath, format: str | None) -> Reader:
    """The reader of a format or, without one, the reader that is most confident."""
    if format is not None:
        if format not in FORMATS:
            known = ", ".join((*FORMATS, *LAYOUTS))
            raise InputError(
                f"there is no format {format!r}; the formats are {known}", parameter="format"
            )
        return get_reader(format)
    with open_binary(path) as file:
        head = file.read(_HEAD_BYTES)
    if not head.strip():
        raise DataFileError("the file is empty", path=path)
    name = uncompressed_name(path)
    readers = [get_reader(known) for known in FORMATS]
    best = max(readers, key=lambda reader: reader.confidence(name, head))
    if best.confidence(name, head) == 0:
        known = "; ".join(f"{reader.name}: {reader.summary}" for reader in readers)
        raise DataFileError(
            f"the file has no known format. Use format= if it is one of these ({known})",
            path=path,
            parameter="format",
        )
    return best


def _keyword_options(function: Any) -> list[str]:
    parameters = inspect.signature(function).parameters.items()
    return [name for name, value in parameters if value.kind is inspect.Parameter.KEYWORD_ONLY]


def _layout_options(layout: ImageLayout) -> list[str]:
    from labelweave.data.image_layouts.layout import ImageOptions

    return [*_keyword_options(layout.read), *(field.name for field in fields(ImageOptions))]


def _check_options(format: str, known: Sequence[str], options: Mapping[str, Any]) -> None:
    for option in options:
        if option not in known:
            raise InputError(
                f"the {format} reader has no option {option!r}; "
                f"its options are {', '.join(sorted(known))}"
            )
