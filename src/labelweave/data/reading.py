"""Reading a data file, or a folder of images, of any supported format."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labelweave.data.compression import inner_name, inner_stem, open_binary
from labelweave.data.dataset import Dataset
from labelweave.data.readers.base import FeatureSpec, FilePath, Reader, no_labels, regroup
from labelweave.exceptions import DataFileError, InputError

if TYPE_CHECKING:
    from labelweave.data.layouts.base import ImageLayout

__all__ = ["FORMATS", "LAYOUTS", "iter_batches", "read_dataset"]

FORMATS = ("arff", "xc", "svmlight", "jsonl", "fasttext", "npz", "table")
"""Names of the formats; each is a module of :mod:`labelweave.data.readers`."""

LAYOUTS = {
    "voc": "voc",
    "coco": "coco",
    "nus-wide": "nus_wide",
    "mirflickr": "mirflickr",
    "objects365": "objects365",
    "images": "folder",
}
"""Layouts of images, each with its module of :mod:`labelweave.data.layouts`."""

_HEAD_BYTES = 2**16


def read_dataset(path: FilePath, *, format: str | None = None, **options: Any) -> Dataset:
    r"""Read a data file, compressed or not, or a folder of images, in any supported format.

    Parameters
    ----------
    path : path-like
    format : str, optional
        One of :data:`FORMATS` or :data:`LAYOUTS`; by default the content and the file's ending
        decide.
    **options
        What the format's reader takes, such as `labels`, `label_column`, `text_column`,
        `id_column`, `drop`, `require_labels`; of images `size`, `resize`, `on_error`.

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
    layout = _layout(path, format)
    if layout is not None:
        _check_options(layout.name, layout.read, options, more=_reading_options())
        return layout.read(Path(path), **options)
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
    layout = _layout(path, format)
    if layout is not None:
        known = _known_options(layout.read, _reading_options())
        if "require_labels" in known:
            options["require_labels"] = False
        data = read_dataset(path, format=layout.name, **options)
        for at in range(0, len(data), batch_rows):
            some = data[at : at + batch_rows]
            yield replace(some, Y=no_labels(len(some)), groups=None, part=None)
        return
    reader = _reader(path, format)
    options = {key: value for key, value in options.items() if key != "require_labels"}
    _check_options(reader.name, reader.pieces, options)
    features = FeatureSpec(feature_names, n_features)
    for piece in regroup(reader.pieces(path, features, **options), batch_rows):
        yield Dataset(piece.X, no_labels(len(piece)), name=inner_stem(path), row_ids=piece.row_ids)


def _layout(path: FilePath, format: str | None) -> ImageLayout | None:
    """The layout of images that a path has, if it has one."""
    place = Path(path)
    if format is not None:
        return _load_layout(format) if format in LAYOUTS else None
    if not place.is_dir() and place.suffix.lower() not in (".json", ".csv", ".tsv", *_images()):
        return None
    found = find_layout(place)
    if found is not None:
        return _load_layout(found)
    if place.is_dir():
        layouts = [_load_layout(name) for name in LAYOUTS]
        known = "; ".join(f"{layout.name}: {layout.summary}" for layout in layouts)
        raise DataFileError(f"the folder has no known layout ({known})", path=path)
    return None


def find_layout(path: Path) -> str | None:
    """The name of the layout of images that a folder or file looks like, if it does."""
    surest = {name: _load_layout(name).recognise(path) for name in LAYOUTS}
    best = max(LAYOUTS, key=surest.__getitem__)
    return best if surest[best] > 0 else None


def _images() -> tuple[str, ...]:
    from labelweave.data.images.decoding import ENDINGS

    return ENDINGS


def _load_layout(name: str) -> ImageLayout:
    return import_module(f"labelweave.data.layouts.{LAYOUTS[name]}").LAYOUT


def _reading_options() -> list[str]:
    from labelweave.data.layouts.base import Reading

    return [field.name for field in fields(Reading)]


def _reader(path: FilePath, format: str | None) -> Reader:
    if format is not None:
        if format not in FORMATS:
            known = ", ".join((*FORMATS, *LAYOUTS))
            raise InputError(f"there is no format {format!r}; there are {known}")
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


def _known_options(function: Any, more: Sequence[str] = ()) -> list[str]:
    own = [
        name
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    ]
    return [*own, *more]


def _check_options(
    format: str, function: Any, options: dict[str, Any], more: Sequence[str] = ()
) -> None:
    known = _known_options(function, more)
    for option in options:
        if option not in known:
            raise InputError(
                f"the {format} reader has no option {option!r}; it has {', '.join(sorted(known))}"
            )
