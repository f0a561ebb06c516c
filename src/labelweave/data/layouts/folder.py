"""A folder of images with a table of their labels; or images alone, to predict."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

from labelweave.data.dataset import Dataset
from labelweave.data.images.decoding import ENDINGS
from labelweave.data.layouts.base import ImageLayout, Reading, image_files, make_images
from labelweave.data.readers.base import no_labels
from labelweave.data.readers.table import read_table
from labelweave.data.readers.texts import ID_FIELDS, LABEL_FIELDS, SPLIT_FIELDS, first_of
from labelweave.exceptions import DataFileError

__all__ = ["LAYOUT", "read_folder"]

IMAGE_COLUMNS = ("image", "file", "filename", "file_name", "path", "image_path", "img", "photo")
_TABLES = (".csv", ".tsv")


def read_folder(
    path: Path,
    *,
    image_column: str | None = None,
    labels: Any = None,
    label_column: str | None = None,
    label_separator: str | None = None,
    split_column: str | None = None,
    drop: Any = (),
    require_labels: bool = True,
    **reading: Any,
) -> Dataset:
    """Read a table of images, or the folder that holds one.

    Paths in the table start from its folder (or from ``images/`` in it). One column names the
    image; the others are labels (1, 0 or nothing, for unknown), unless one column lists their
    names.

    Parameters
    ----------
    path : path
        A CSV or TSV file, or a folder with one of them. Without any table, all images under
        the folder, which then have no labels; or one image.
    image_column : str, optional
        By default the first column called image, file, filename, path or the like.
    labels, label_column, label_separator, split_column, drop
        As in :func:`labelweave.data.readers.table.read_table`; without `labels` and
        `label_column` every other column is a label.
    require_labels : bool, default=True
        False allows images without labels.
    **reading
        Options of :class:`labelweave.data.layouts.base.Reading`.
    """
    path = Path(path)
    how = Reading(**reading)
    is_image = path.suffix.lower() in ENDINGS and not path.is_dir()
    table = path if path.is_file() else _table_in(path)
    if table is None or is_image:
        files = [path] if is_image else image_files(path)
        if require_labels and files:
            raise DataFileError(
                "there are images but no table of labels: put a labels.csv beside them, with a "
                "column image",
                path=path,
            )
        return make_images(path, files, no_labels(len(files)), how)
    header = _header(table)
    column = image_column or next((c for c in header if c.lower() in IMAGE_COLUMNS), None)
    if column is None or column not in header:
        known = ", ".join(IMAGE_COLUMNS[:4])
        wanted = f"{image_column!r}" if image_column else f"{known} or the like"
        raise DataFileError(
            f"no column is called {wanted}: name the column of images with image_column=",
            path=table,
        )
    given = {
        "labels": labels,
        "label_column": label_column,
        "label_separator": label_separator,
        "split_column": split_column,
    }
    if labels is None and label_column is None and not _lists_names(header):
        no_labels_in = {column, split_column, *drop, *SPLIT_FIELDS, *ID_FIELDS}
        given["labels"] = [name for name in header if name not in no_labels_in] or None
    data = read_table(
        table,
        text_column=column,
        drop=drop,
        require_labels=require_labels,
        **{name: value for name, value in given.items() if value is not None},
    )
    folders = [table.parent, table.parent / "images"]
    files = [_place(folders, str(name)) for name in data.X]
    return make_images(
        path,
        files,
        data.Y,
        how,
        row_ids=data.row_ids if data.row_ids is not None else list(data.X),
        part=None if data.part is None else list(data.part),
        facts=dict(data.facts),
    )


def _place(folders: list[Path], name: str) -> Path:
    return next((f / name for f in folders if (f / name).is_file()), folders[0] / name)


def _lists_names(header: list[str]) -> bool:
    return first_of(LABEL_FIELDS, header) is not None


def _table_in(folder: Path) -> Path | None:
    found = sorted(file for file in folder.glob("*") if file.suffix.lower() in _TABLES)
    if len(found) > 1:
        labels = [file for file in found if file.stem.lower() == "labels"]
        if not labels:
            names = ", ".join(file.name for file in found)
            raise DataFileError(f"it holds several tables ({names}): give the one", path=folder)
        found = labels
    return found[0] if found else None


def _header(table: Path) -> list[str]:
    try:
        with table.open(encoding="utf-8-sig", newline="") as file:
            separator = "\t" if table.suffix.lower() == ".tsv" else ","
            head = file.readline()
            if separator not in head and ";" in head:
                separator = ";"
            return next(csv.reader([head], delimiter=separator), [])
    except (OSError, UnicodeDecodeError) as error:
        raise DataFileError(f"the table cannot be read ({error})", path=table) from None


def _recognise(path: Path) -> int:
    if path.suffix.lower() in ENDINGS and not path.is_dir():
        return 4
    if path.is_file():
        return 4 if path.suffix.lower() in _TABLES and _names_images(path) else 0
    if not path.is_dir():
        return 0
    tables = [file for file in path.glob("*") if file.suffix.lower() in _TABLES]
    if any(_names_images(table) for table in tables):
        return 3
    return 1 if next((f for f in path.rglob("*") if f.suffix.lower() in ENDINGS), None) else 0


def _names_images(table: Path) -> bool:
    """Whether a table has a column for images whose first cell ends like one."""
    try:
        with table.open(encoding="utf-8-sig", newline="") as file:
            head = [file.readline() for _ in range(2)]
    except (OSError, UnicodeDecodeError):
        return False
    for separator in (",", "\t", ";"):
        names, first = (next(csv.reader([line], delimiter=separator), []) for line in head)
        for name, cell in zip(names, first, strict=False):
            if name.strip().lower() in IMAGE_COLUMNS and cell.lower().endswith(ENDINGS):
                return True
    return False


LAYOUT = ImageLayout("images", "folder of images with a table of labels", _recognise, read_folder)
