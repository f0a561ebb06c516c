"""What all layouts of images share: their interface, and what happens to images that are not there.

Every layout takes the options of :class:`Reading`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from labelweave.data.dataset import Dataset
from labelweave.data.images.collection import Images
from labelweave.data.images.decoding import ENDINGS
from labelweave.exceptions import DataFileError, InputError, LabelweaveWarning
from labelweave.labels import LabelMatrix

__all__ = ["ImageLayout", "Reading", "find_file", "image_files", "label_values", "make_images"]

_SHOWN = 3


@dataclass(frozen=True)
class ImageLayout:
    """One layout: its name for `format=`, what it looks like, and how it is known and read.

    `recognise(path)` gives 0 for "not mine" and more for surer; `read(path, **options)` a
    Dataset whose X is an :class:`~labelweave.data.images.collection.Images`.
    """

    name: str
    summary: str
    recognise: Callable[[Path], int]
    read: Callable[..., Dataset]


@dataclass(frozen=True)
class Reading:
    """How images are read.

    Parameters
    ----------
    size : int, default=64
        Pixels of a side.
    resize : {"squash", "crop", "pad"}, default="squash"
    on_error : {"raise", "skip"}, default="raise"
        What happens to an image that is missing or broken. "raise": a missing one is named now,
        a broken one when it is first needed. "skip": all are decoded now, and rows without a
        good image are left out and named in a warning.
    workers : int, optional
        How many decode at a time.
    """

    size: int = 64
    resize: str = "squash"
    on_error: str = "raise"
    workers: int | None = None

    def __post_init__(self) -> None:
        if self.on_error not in ("raise", "skip"):
            raise InputError(f"on_error is 'raise' or 'skip', not {self.on_error!r}")


def make_images(
    root: Path,
    files: Sequence[Path],
    Y: LabelMatrix,
    reading: Reading,
    *,
    name: str | None = None,
    row_ids: Sequence[Any] | None = None,
    part: Sequence[str] | None = None,
    groups: Sequence[Any] | None = None,
    facts: dict[str, Any] | None = None,
) -> Dataset:
    """A data set of these files and labels, missing and broken images refused or left out."""
    if not files:
        raise DataFileError("there are no images", path=root)
    images = Images(list(files), size=reading.size, resize=reading.resize, workers=reading.workers)
    if row_ids is None:
        row_ids = [_relative(file, root) for file in files]
    data = Dataset(
        images,
        Y,
        name=name or root.stem or root.name or "images",
        row_ids=list(row_ids),
        part=part,
        groups=groups,
        facts={**(facts or {}), "image_size": reading.size},
    )
    missing = [k for k, file in enumerate(files) if not file.is_file()]
    if missing and reading.on_error == "raise":
        more = f" ({len(missing)} images are missing)" if len(missing) > 1 else ""
        raise DataFileError(
            f"the image {row_ids[missing[0]]} is annotated but not there{more}: put it there, or "
            "leave such rows out with on_error='skip'",
            path=root,
        )
    if reading.on_error == "raise":
        return data
    there = np.setdiff1d(np.arange(len(files)), missing)
    broken = [(int(there[k]), why) for k, why in images[there].problems()]
    wrong = sorted([*((k, f"{row_ids[k]}: there is no such image") for k in missing), *broken])
    if not wrong:
        return data
    kept = np.setdiff1d(np.arange(len(files)), [k for k, _ in wrong])
    if len(kept) == 0:
        raise DataFileError(f"none of the {len(files)} images can be read: {wrong[0][1]}")
    shown = "; ".join(why for _, why in wrong[:_SHOWN])
    more = f"; and {len(wrong) - _SHOWN} more" if len(wrong) > _SHOWN else ""
    warnings.warn(
        f"{len(wrong)} of {len(files)} images are left out: {shown}{more}",
        LabelweaveWarning,
        stacklevel=4,
    )
    return data[kept]


def label_values(
    lists: Sequence[Iterable[str]],
    names: Sequence[str],
    *,
    unknown: Sequence[Iterable[str]] | None = None,
) -> LabelMatrix:
    """Labels of rows from lists of names; `unknown` lists those that nobody can tell."""
    place = {name: j for j, name in enumerate(names)}
    values = np.zeros((len(lists), len(names)), dtype=np.float32)
    for k, row in enumerate(unknown or ()):
        values[k, [place[name] for name in row]] = np.nan
    for k, row in enumerate(lists):
        values[k, [place[name] for name in row]] = 1
    return LabelMatrix(values, tuple(names))


def image_files(folder: Path) -> list[Path]:
    """All files under a folder that are named like images, in order."""
    return sorted(
        path for path in folder.rglob("*") if path.suffix.lower() in ENDINGS and path.is_file()
    )


def find_file(folders: Sequence[Path], names: Sequence[str]) -> Path:
    """The first of these names that is in one of the folders; the first of all if none is."""
    tried = [folder / name for name in names for folder in folders]
    return next((path for path in tried if path.is_file()), tried[0])


def _relative(file: Path, root: Path) -> str:
    folder = root if root.is_dir() else root.parent
    return file.relative_to(folder).as_posix() if file.is_relative_to(folder) else str(file)
