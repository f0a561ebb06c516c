"""A folder of images with a table of their labels, or images alone to predict on."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

from labelweave.data.dataset import Dataset, no_labels
from labelweave.data.image_layouts.layout import (
    ImageLayout,
    ImageOptions,
    image_files,
    locate_file,
    make_image_dataset,
)
from labelweave.data.images.decoding import ENDINGS
from labelweave.data.readers._shared.columns import ID_FIELDS, LABEL_FIELDS, SPLIT_FIELDS, first_of
from labelweave.data.readers._table.csv_parquet import CsvTable
from labelweave.data.readers.table import read_table
from labelweave.exceptions import DataFileError, LabelweaveWarning

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
    **image_options: Any,
) -> Dataset:
    """Read a table of images, or the folder that holds one.

    Paths in the table are relative to its folder (or to ``images/`` in it). One column names the
    image. The others are labels (1, 0, or empty for unknown), unless one column lists label names.

    Parameters
    ----------
    path : path
        A CSV or TSV file, or a folder that holds one. A folder without a table, or a single
        image, is read without labels.
    image_column : str, optional
        By default the first column called image, file, filename, path or similar.
    labels, label_column, label_separator, split_column, drop
        As in :func:`labelweave.data.readers.table.read_table`; without `labels` and
        `label_column` every other column is a label.
    require_labels : bool, default=True
        False accepts images without labels.
    **image_options
        Options of :class:`labelweave.data.image_layouts.layout.ImageOptions`.
    """
    path = Path(path)
    options = ImageOptions(**image_options)
    is_image = path.suffix.lower() in ENDINGS and not path.is_dir()
    table = path if path.is_file() else _table_in(path)
    if table is None or is_image:
        files = [path] if is_image else image_files(path)
        if require_labels and files:
            raise DataFileError(
                "there are images but no table of labels: add a labels.csv with a column image",
                path=path,
            )
        return make_image_dataset(path, files, no_labels(len(files)), options)
    header = CsvTable(table).names
    column = image_column or next((c for c in header if c.lower() in IMAGE_COLUMNS), None)
    if column is None or column not in header:
        usual = f"{', '.join(IMAGE_COLUMNS[:4])} or similar"
        raise DataFileError(
            f"no column is called {repr(image_column) if image_column else usual}: name the column "
            "of images with image_column=",
            path=table,
            parameter="image_column",
        )
    if labels is None and label_column is None and first_of(LABEL_FIELDS, header) is None:
        others = {column, split_column, *drop, *SPLIT_FIELDS, *ID_FIELDS}
        labels = [name for name in header if name not in others] or None
    reading: dict[str, Any] = {
        "text_column": column,
        "labels": labels,
        "label_column": label_column,
        "label_separator": label_separator,
        "split_column": split_column,
        "require_labels": require_labels,
    }
    data = read_table(table, drop=drop, **reading)
    if data.is_table:
        further = [name for name in data.feature_names or () if name != column]
        warnings.warn(
            f"{table.name}: X is the images of the column {column!r}, and the columns "
            f"{', '.join(map(repr, further))} are left out",
            LabelweaveWarning,
            stacklevel=2,
        )
        data = read_table(table, drop=[*drop, *further], **reading)
    folders = [table.parent, table.parent / "images"]
    files = [locate_file(folders, [str(name)]) for name in data.X]
    return make_image_dataset(
        path,
        files,
        data.Y,
        options,
        row_ids=data.row_ids if data.row_ids is not None else list(data.X),
        part=None if data.part is None else list(data.part),
        facts=dict(data.facts),
    )


def _table_in(folder: Path) -> Path | None:
    tables = sorted(file for file in folder.glob("*") if file.suffix.lower() in _TABLES)
    if len(tables) > 1:
        names = ", ".join(file.name for file in tables)
        tables = [file for file in tables if file.stem.lower() == "labels"]
        if not tables:
            raise DataFileError(
                f"the folder holds several tables ({names}): name one of them", path=folder
            )
    return tables[0] if tables else None


def _matches(path: Path) -> bool:
    if not path.is_dir():
        return path.suffix.lower() in ENDINGS or _names_images(path)
    tables = [file for file in path.glob("*") if file.suffix.lower() in _TABLES]
    return any(_names_images(table) for table in tables) or any(
        file.suffix.lower() in ENDINGS for file in path.rglob("*")
    )


def _names_images(path: Path) -> bool:
    """Whether a table has a column of images whose first cell has the ending of one."""
    try:
        table = CsvTable(path)
    except DataFileError:
        return False
    return any(
        name.lower() in IMAGE_COLUMNS and cell.lower().endswith(ENDINGS)
        for name, cell in zip(table.names, table.first_cells, strict=False)
    )


LAYOUT = ImageLayout(_matches, read_folder)
