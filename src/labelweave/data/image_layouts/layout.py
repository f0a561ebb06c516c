"""The interface of an image layout, and what all layouts use to make data sets.

Every layout accepts the options of :class:`ImageOptions`.
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

_MAX_SHOWN = 20


@dataclass(frozen=True)
class ImageLayout:
    """One layout of images on disk.

    `matches(path)` is whether a folder, or a file with an ending of this layout, has it.
    `read(path, **options)` returns a data set whose X is an
    :class:`~labelweave.data.images.collection.Images`.
    """

    matches: Callable[[Path], bool]
    read: Callable[..., Dataset]


@dataclass(frozen=True)
class ImageOptions:
    """How images are read."""

    size: int = 64  # Width and height after decoding, in pixels
    # {"squash", "crop", "pad"}: How rectangular images are made square; see
    # :func:`labelweave.data.images.decoding.decode`
    resize: str = "squash"
    # {"raise", "skip"}: What to do about a missing or broken image. "raise" raises an error, for a
    # missing image at once and for a broken one when it is first needed. "skip" decodes all images
    # at once, leaves out the rows without a good image, and names them in a warning.
    on_error: str = "raise"
    workers: int | None = None  # Number of workers that decode in parallel

    def __post_init__(self) -> None:
        if self.on_error not in ("raise", "skip"):
            raise InputError(f"on_error must be 'raise' or 'skip', not {self.on_error!r}")


def make_image_dataset(
    root: Path,
    files: Sequence[Path],
    Y: LabelMatrix,
    options: ImageOptions,
    *,
    row_ids: Sequence[Any] | None = None,
    part: Sequence[str] | None = None,
    facts: dict[str, Any] | None = None,
) -> Dataset:
    """Make a data set of image files and labels; missing and broken images as `on_error` says."""
    if not files:
        raise DataFileError("there are no images", path=root)
    images = Images(list(files), size=options.size, resize=options.resize, workers=options.workers)
    if row_ids is None:
        folder = root if root.is_dir() else root.parent
        row_ids = [
            file.relative_to(folder).as_posix() if file.is_relative_to(folder) else str(file)
            for file in files
        ]
    data = Dataset(
        images,
        Y,
        name=root.stem or root.name or "images",
        row_ids=list(row_ids),
        part=part,
        facts={**(facts or {}), "image_size": options.size},
    )
    missing = [k for k, file in enumerate(files) if not file.is_file()]
    if missing and options.on_error == "raise":
        count = f" ({len(missing)} images are missing)" if len(missing) > 1 else ""
        raise DataFileError(
            f"the image {row_ids[missing[0]]} is annotated but missing{count}: add it, or leave "
            "such rows out with on_error='skip'",
            path=root,
            parameter="on_error",
        )
    if options.on_error == "raise":
        return data
    present = np.setdiff1d(np.arange(len(files)), missing)
    broken = [(int(present[k]), why) for k, why in images[present].problems()]
    left_out = sorted([*((k, f"{row_ids[k]}: there is no such image") for k in missing), *broken])
    if not left_out:
        return data
    kept = np.setdiff1d(np.arange(len(files)), [k for k, _ in left_out])
    if len(kept) == 0:
        raise DataFileError(f"none of the {len(files)} images can be read: {left_out[0][1]}")
    shown = "; ".join(why for _, why in left_out[:_MAX_SHOWN])
    more = f"; and {len(left_out) - _MAX_SHOWN} more" if len(left_out) > _MAX_SHOWN else ""
    warnings.warn(
        f"{len(left_out)} of {len(files)} images are left out: {shown}{more}",
        LabelweaveWarning,
        stacklevel=4,
    )
    return data[kept]


def labels_from_lists(
    lists: Sequence[Iterable[str]],
    names: Sequence[str],
    *,
    unknown: Sequence[Iterable[str]] | None = None,
) -> LabelMatrix:
    """Labels from one list of names per row; `unknown` lists the unknown labels of each row."""
    column = {name: j for j, name in enumerate(names)}
    values = np.zeros((len(lists), len(names)), dtype=np.float32)
    for k, row in enumerate(unknown or ()):
        values[k, [column[name] for name in row]] = np.nan
    for k, row in enumerate(lists):
        values[k, [column[name] for name in row]] = 1
    return LabelMatrix(values, tuple(names))


def image_files(folder: Path) -> list[Path]:
    """All files under a folder whose ending is that of an image, in order."""
    return sorted(
        path for path in folder.rglob("*") if path.suffix.lower() in ENDINGS and path.is_file()
    )


def locate_file(folders: Sequence[Path], names: Sequence[str]) -> Path:
    """The first of these names that exists in one of the folders; if none, the first candidate."""
    candidates = [folder / name for name in names for folder in folders]
    return next((path for path in candidates if path.is_file()), candidates[0])
