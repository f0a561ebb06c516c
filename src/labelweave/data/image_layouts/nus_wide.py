"""NUS-WIDE: lists of images, and for each concept a file with one line per image."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from labelweave.data.dataset import Dataset
from labelweave.data.image_layouts.layout import (
    ImageLayout,
    ImageOptions,
    locate_file,
    make_image_dataset,
)
from labelweave.exceptions import DataFileError
from labelweave.labels import LabelMatrix

_IMAGE_FOLDERS = ("Flickr", "images", "Images", "")


def read_nus_wide(path: Path, **image_options: Any) -> Dataset:
    r"""Read ``ImageList/``, ``Groundtruth/TrainTestLabels/`` and the images of a folder.

    ``TrainImagelist.txt`` and ``TestImagelist.txt`` name the images
    (``actor\0001_2124494179.jpg``), which are searched in ``Flickr/``, ``images/`` and the folder
    itself, with or without their sub-folder. ``Labels_airport_Train.txt`` and similar files hold 1
    or 0 for each of them. `image_options` are those of
    :class:`labelweave.data.image_layouts.layout.ImageOptions`.
    """
    path = Path(path)
    folders = [path / name for name in _IMAGE_FOLDERS]
    names = _concepts(path)
    files: list[Path] = []
    ids: list[str] = []
    part: list[str] = []
    label_arrays = []
    for part_name in ("Train", "Test"):
        listed = [line.replace("\\", "/") for line in _lines(_list_file(path, part_name))]
        columns = [_column(path, name, part_name, len(listed)) for name in names]
        label_arrays.append(np.stack(columns, axis=1))
        files += [locate_file(folders, [name, name.rpartition("/")[2]]) for name in listed]
        ids += listed
        part += [part_name.lower()] * len(listed)
    Y = LabelMatrix(np.concatenate(label_arrays), tuple(names))
    return make_image_dataset(path, files, Y, ImageOptions(**image_options), row_ids=ids, part=part)


def _list_file(path: Path, part_name: str) -> Path:
    return locate_file([path / "ImageList", path], [f"{part_name}Imagelist.txt"])


def _labels_folder(path: Path) -> Path:
    for folder in (path / "Groundtruth" / "TrainTestLabels", path / "TrainTestLabels"):
        if folder.is_dir():
            return folder
    raise DataFileError("the folder has no sub-folder Groundtruth/TrainTestLabels", path=path)


def _concepts(path: Path) -> list[str]:
    """Names of the concepts, in the order of Concepts81.txt where there is one."""
    folder = _labels_folder(path)
    concepts = sorted(
        file.stem.removeprefix("Labels_").removesuffix("_Train")
        for file in folder.glob("Labels_*_Train.txt")
    )
    listed = (path / "Concepts81.txt", path / "ConceptsList" / "Concepts81.txt")
    for file in listed:
        if file.is_file():
            order = _lines(file)
            if set(order) == set(concepts):
                return order
    if not concepts:
        raise DataFileError("the folder has no Labels_*_Train.txt", path=folder)
    return concepts


def _column(path: Path, concept: str, part_name: str, n_rows: int) -> np.ndarray:
    file = _labels_folder(path) / f"Labels_{concept}_{part_name}.txt"
    lines = _lines(file)
    if wrong := set(lines) - {"0", "1"}:
        line = next(k for k, text in enumerate(lines, 1) if text in wrong)
        raise DataFileError(f"expected 0 or 1, not {lines[line - 1]!r}", path=file, line=line)
    if len(lines) != n_rows:
        raise DataFileError(
            f"the file has {len(lines)} lines, but the list has {n_rows} images", path=file
        )
    return np.array(lines, dtype=np.float32)


def _lines(file: Path) -> list[str]:
    try:
        text = file.read_text("utf-8")
    except FileNotFoundError:
        raise DataFileError("there is no such file", path=file) from None
    return [line.strip() for line in text.splitlines() if line.strip()]


def _matches(path: Path) -> bool:
    return _list_file(path, "Train").is_file()


LAYOUT = ImageLayout(_matches, read_nus_wide)
