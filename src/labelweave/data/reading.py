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
from labelweave.data.readers import ENDINGS, FORMATS, find_format, get_reader
from labelweave.data.several_files import SeveralFiles, resolve_files
from labelweave.exceptions import DataFileError, InputError

if TYPE_CHECKING:
    from labelweave.data.image_layouts.layout import ImageLayout
    from labelweave.data.readers.reader import Reader

__all__ = ["iter_batches", "read_dataset"]

_HEAD_BYTES = 2**16
_SEVERAL = ("table", "jsonl")  # formats of which several files can be read together
_BINARY = ("npz",)


def read_dataset(
    path: FilePath | Sequence[FilePath],
    *,
    format: str | None = None,
    encoding: str | None = None,
    **options: Any,
) -> Dataset:
    r"""Read a data file, compressed or not, several files, or a folder.

    Parameters
    ----------
    path : path-like, or sequence of path-like
        A file, a folder of images or of Parquet files (also partitioned), or several tables or
        JSON Lines files with the same columns: a list, or a pattern such as ``"part-*.csv"``.
    format : str, optional
        A format (one of :data:`labelweave.data.readers.FORMATS`) or an image layout (one of
        :data:`labelweave.data.image_layouts.LAYOUTS`). By default the content and the ending of
        the file decide.
    encoding : str, optional
        The encoding of a text file, such as ``"cp1252"``. Default: UTF-8.
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
    path = resolve_files(path, encoding)
    name = _format_of(path, format, has_kinds=bool(options.get("kinds")))
    _check_options(name, options, encoding)
    return _reader_of(name).read(path, **options)


def iter_batches(
    path: FilePath | Sequence[FilePath],
    *,
    batch_rows: int = 4096,
    n_features: int | None = None,
    feature_names: Sequence[str] | None = None,
    is_table: bool = False,
    not_features: Sequence[str] = (),
    format: str | None = None,
    encoding: str | None = None,
    **options: Any,
) -> Iterator[Dataset]:
    r"""Read the features of a file in batches of rows, to predict on large files.

    Labels are not needed and not read: Y has no columns.

    Parameters
    ----------
    path : path-like, or sequence of path-like
        As for :func:`read_dataset`.
    batch_rows : int, default=4096
        Number of rows per batch (the last may be shorter).
    n_features : int, optional
        Number of columns that the model was fitted on; a file with another number is refused.
    feature_names : sequence of str, optional
        Names of the model's columns. In a file that names its columns these are read, in this
        order, and all others are left out.
    is_table : bool, default=False
        Whether the model takes a mixed table: X of the batches is then a
        :class:`~labelweave.tables.Table`, whose cells may be words or blank. Columns of the model
        that the file does not have are left to the model, and a warning names further ones that
        are ignored.
    not_features : sequence of str
        Columns of a table that the warning does not name, such as those of labels.
    format, encoding : str, optional
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
    path = resolve_files(path, encoding)
    name = _format_of(path, format, has_kinds=is_table or bool(options.get("kinds")))
    if name in LAYOUTS:
        if "require_labels" in _options_of(name):
            options["require_labels"] = False
        data = read_dataset(path, format=name, **options)
        for start in range(0, len(data), batch_rows):
            batch = data[start : start + batch_rows]
            yield replace(batch, Y=no_labels(len(batch)), groups=None, part=None)
        return
    from labelweave.data.readers.reader import FeatureSpec, rebatch

    options = {key: value for key, value in options.items() if key != "require_labels"}
    _check_options(name, options, encoding)
    features = FeatureSpec(feature_names, n_features, is_table, not_features)
    chunks = get_reader(name).iter_features(path, features, **options)
    for rows in rebatch(chunks, batch_rows):
        stem = uncompressed_stem(path)
        yield Dataset(rows.X, no_labels(len(rows)), name=stem, row_ids=rows.row_ids)


def _format_of(path: FilePath, format: str | None, *, has_kinds: bool = False) -> str:
    """Name of the format or image layout of a path: the one that is asked for, or that fits.

    With kinds of columns, a file that names images is a table, and they are one of its columns.
    """
    if format is not None:
        if format not in FORMATS and format not in LAYOUTS:
            known = ", ".join((*FORMATS, *LAYOUTS))
            raise InputError(
                f"there is no format {format!r}; the formats are {known}", parameter="format"
            )
        return format
    if isinstance(path, SeveralFiles):
        return _format_of_several(path, has_kinds)
    layout = None if has_kinds and Path(path).is_file() else find_layout(Path(path))
    if layout is not None:
        return layout
    if Path(path).is_dir():
        known = "; ".join(f"{name}: {summary}" for name, summary in LAYOUTS.items())
        raise DataFileError(f"the folder has no known layout ({known})", path=path)
    ending_decides = Path(uncompressed_name(path)).suffix.lower() in ENDINGS
    with open_binary(Path(path) if ending_decides else path) as file:  # not decoded without need
        head = file.read(_HEAD_BYTES)
    if not head.strip():
        raise DataFileError("the file is empty", path=path)
    name = find_format(uncompressed_name(path), head)
    if name is None:
        known = "; ".join(f"{name}: {summary}" for name, summary in FORMATS.items())
        raise DataFileError(
            f"the file has no known format. Use format= if it is one of these ({known})",
            path=path,
            parameter="format",
        )
    return name


def _format_of_several(files: SeveralFiles, has_kinds: bool) -> str:
    formats = [_format_of(file, None, has_kinds=has_kinds) for file in files.files]
    for file, name in zip(files.files, formats, strict=True):
        if name not in _SEVERAL:
            raise DataFileError(
                f"a file of the format {name} cannot be read together with others; only tables "
                "and JSON Lines can",
                path=file,
            )
        if name != formats[0]:
            raise DataFileError(
                f"the file has the format {name}, but {files.files[0]} has {formats[0]}: files "
                "that are read together must have the same format",
                path=file,
            )
    return formats[0]


def _reader_of(name: str) -> Reader | ImageLayout:
    return get_layout(name) if name in LAYOUTS else get_reader(name)


def _options_of(name: str) -> list[str]:
    """The options of a format or image layout: the keyword-only parameters of its `read`."""
    parameters = inspect.signature(_reader_of(name).read).parameters.items()
    options = [key for key, value in parameters if value.kind is inspect.Parameter.KEYWORD_ONLY]
    if name in LAYOUTS:
        from labelweave.data.image_layouts.layout import ImageOptions

        options += [field.name for field in fields(ImageOptions)]
    return options


def _check_options(name: str, options: Mapping[str, Any], encoding: str | None) -> None:
    if encoding is not None and (name in LAYOUTS or name in _BINARY):
        raise InputError(f"files of the format {name} have no encoding: leave out encoding=")
    known = _options_of(name)
    for option in options:
        if option not in known:
            raise InputError(
                f"the {name} reader has no option {option!r}; "
                f"its options are {', '.join(sorted(known))}"
            )
