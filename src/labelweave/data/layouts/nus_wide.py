"""NUS-WIDE: lists of images, and for each concept a file with one line an image."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from labelweave.data.dataset import Dataset
from labelweave.data.layouts.base import ImageLayout, Reading, find_file, make_images
from labelweave.exceptions import DataFileError
from labelweave.labels import LabelMatrix

__all__ = ["LAYOUT", "read_nus_wide"]

_IMAGE_FOLDERS = ("Flickr", "images", "Images", "")


def read_nus_wide(path: Path, **reading: Any) -> Dataset:
    r"""Read ``ImageList/``, ``Groundtruth/TrainTestLabels/`` and the images of a folder.

    ``TrainImagelist.txt`` and ``TestImagelist.txt`` name the images
    (``actor\0001_2124494179.jpg``), which are looked for in ``Flickr/``, ``images/`` and the
    folder itself, with their sub-folder or without; ``Labels_airport_Train.txt`` and the like
    hold 1 or 0 for each of them.

    Parameters
    ----------
    path : path
    **reading
        Options of :class:`labelweave.data.layouts.base.Reading`.
    """
    path = Path(path)
    folders = [path / name for name in _IMAGE_FOLDERS]
    names = _concepts(path)
    files: list[Path] = []
    ids: list[str] = []
    part: list[str] = []
    blocks = []
    for which in ("Train", "Test"):
        listed = [line.replace("\\", "/") for line in _lines(_list_file(path, which))]
        columns = [_column(path, name, which, len(listed)) for name in names]
        blocks.append(np.stack(columns, axis=1))
        files += [find_file(folders, [name, name.rpartition("/")[2]]) for name in listed]
        ids += listed
        part += [which.lower()] * len(listed)
    Y = LabelMatrix(np.concatenate(blocks), tuple(names))
    return make_images(path, files, Y, Reading(**reading), row_ids=ids, part=part)


def _list_file(path: Path, which: str) -> Path:
    return find_file([path / "ImageList", path], [f"{which}Imagelist.txt"])


def _labels_folder(path: Path) -> Path:
    for folder in (path / "Groundtruth" / "TrainTestLabels", path / "TrainTestLabels"):
        if folder.is_dir():
            return folder
    raise DataFileError("there is no folder Groundtruth/TrainTestLabels in it", path=path)


def _concepts(path: Path) -> list[str]:
    """Names of the concepts, in the order of Concepts81.txt where there is one."""
    folder = _labels_folder(path)
    found = sorted(
        file.stem.removeprefix("Labels_").removesuffix("_Train")
        for file in folder.glob("Labels_*_Train.txt")
    )
    listed = (path / "Concepts81.txt", path / "ConceptsList" / "Concepts81.txt")
    for file in listed:
        if file.is_file():
            order = _lines(file)
            if set(order) == set(found):
                return order
    if not found:
        raise DataFileError("there is no Labels_*_Train.txt in it", path=folder)
    return found


def _column(path: Path, concept: str, which: str, n_rows: int) -> np.ndarray:
    file = _labels_folder(path) / f"Labels_{concept}_{which}.txt"
    lines = _lines(file)
    if wrong := set(lines) - {"0", "1"}:
        line = next(k for k, text in enumerate(lines, 1) if text in wrong)
        raise DataFileError(f"expected 0 or 1, not {lines[line - 1]!r}", path=file, line=line)
    if len(lines) != n_rows:
        raise DataFileError(
            f"it has {len(lines)} lines, but the list has {n_rows} images", path=file
        )
    return np.array(lines, dtype=np.float32)


def _lines(file: Path) -> list[str]:
    try:
        text = file.read_text("utf-8")
    except FileNotFoundError:
        raise DataFileError("there is no such file", path=file) from None
    return [line.strip() for line in text.splitlines() if line.strip()]


def _recognise(path: Path) -> int:
    return 5 if path.is_dir() and _list_file(path, "Train").is_file() else 0


LAYOUT = ImageLayout(
    "nus-wide", "NUS-WIDE folder with ImageList and Groundtruth", _recognise, read_nus_wide
)
