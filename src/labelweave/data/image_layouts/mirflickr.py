"""MIRFLICKR: images im1.jpg, im2.jpg, ..., and one file of image numbers per label."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from labelweave.data.dataset import Dataset
from labelweave.data.image_layouts.layout import (
    ImageLayout,
    ImageOptions,
    labels_from_lists,
    make_image_dataset,
)
from labelweave.exceptions import DataFileError, InputError

_RELEVANT = "_r1"
_CHOICES = ("all", "potential", "relevant")


def read_mirflickr(path: Path, *, annotated: str = "all", **image_options: Any) -> Dataset:
    """Read the images ``im*.jpg`` and the annotation files of a folder.

    ``animals.txt`` lists the numbers of the images that may show animals, ``animals_r1.txt`` those
    in which they are relevant. The images may be in ``mirflickr/`` or ``images/``, the annotations
    in ``annotations/`` or ``mirflickr25k_annotations_v080/``.

    `annotated` says which files are labels: "all" 38, the 24 "potential" ones, or the 14 "relevant"
    ones, which end in ``_r1``. `image_options` are those of
    :class:`labelweave.data.image_layouts.layout.ImageOptions`.
    """
    if annotated not in _CHOICES:
        raise InputError(f"annotated must be one of {', '.join(_CHOICES)}, not {annotated!r}")
    path = Path(path)
    numbers = {
        int(match.group(1)): file
        for file in _images(path)
        if (match := re.fullmatch(r"im(\d+)", file.stem))
    }
    labels: dict[int, set[str]] = {number: set() for number in sorted(numbers)}
    names = []
    for file in _label_files(path):
        is_relevant = file.stem.endswith(_RELEVANT)
        if annotated != "all" and is_relevant != (annotated == "relevant"):
            continue
        names.append(file.stem)
        for line, text in enumerate(file.read_text("utf-8").splitlines(), 1):
            if not text.strip():
                continue
            if not text.strip().isdigit():
                raise DataFileError(
                    f"expected the number of an image, not {text!r}", path=file, line=line
                )
            labels.setdefault(int(text), set()).add(file.stem)
    if not names:
        raise DataFileError(f"there are no annotations of the kind {annotated!r}", path=path)
    folder = next(iter(numbers.values())).parent if numbers else path
    files = [numbers.get(number, folder / f"im{number}.jpg") for number in sorted(labels)]
    lists = [labels[number] for number in sorted(labels)]
    return make_image_dataset(
        path,
        files,
        labels_from_lists(lists, names),
        ImageOptions(**image_options),
        row_ids=[file.name for file in files],
    )


def _images(path: Path) -> list[Path]:
    for folder in (path, path / "mirflickr", path / "images"):
        images = list(folder.glob("im[0-9]*.jpg"))
        if images:
            return images
    return []


def _label_files(path: Path) -> list[Path]:
    folders = [path / "annotations", *path.glob("mirflickr*annotations*"), path / "mirflickr", path]
    for folder in folders:
        files = [
            file
            for file in sorted(folder.glob("*.txt"))
            if not file.stem.lower().startswith(("readme", "license", "tags", "exif"))
        ]
        if files:
            return files
    return []


def _matches(path: Path) -> bool:
    return bool(_images(path) and _label_files(path))


LAYOUT = ImageLayout(_matches, read_mirflickr)
