"""Objects365: JSON files as of MS-COCO with other names, and images in patches."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from labelweave.data.dataset import Dataset
from labelweave.data.image_layouts.coco import read_instances
from labelweave.data.image_layouts.layout import ImageLayout, ImageOptions
from labelweave.exceptions import DataFileError

_PATTERNS = ("zhiyuan_objv2_*.json", "objects365_*.json")


def read_objects365(
    path: Path, *, crowd: bool = True, keep_unlabelled: bool = True, **image_options: Any
) -> Dataset:
    """Read ``annotations/zhiyuan_objv2_train.json`` and ``..._val.json`` of a folder, or one file.

    The files name an image ``images/v1/patch0/objects365_v1_00000000.jpg``. It is searched under
    that path, and by its patch and name in ``train/``, ``images/train/`` and similar folders. The
    options are those of :func:`labelweave.data.image_layouts.coco.read_coco`.
    """
    path = Path(path)
    files = [path] if path.is_file() else sorted(_instances_in(path))
    if not files:
        raise DataFileError(f"the folder has no annotations/{_PATTERNS[0]}", path=path)
    return read_instances(
        path,
        files,
        _image_folders,
        ImageOptions(**image_options),
        crowd=crowd,
        keep_unlabelled=keep_unlabelled,
    )


def _image_folders(root: Path, file: Path) -> list[Path]:
    match = re.search(r"train|val|test", file.stem.lower())
    part = match.group() if match else ""
    return [root, root / part, root / "images" / part, root / "images"]


def _instances_in(path: Path) -> list[Path]:
    return [
        file
        for pattern in _PATTERNS
        for folder in (path / "annotations", path)
        for file in folder.glob(pattern)
    ]


def _matches(path: Path) -> bool:
    if path.is_dir():
        return bool(_instances_in(path))
    return any(path.match(pattern) for pattern in _PATTERNS) and path.is_file()


LAYOUT = ImageLayout(_matches, read_objects365)
