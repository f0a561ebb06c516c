"""Objects365: MS-COCO's JSON under names of its own, and images in patches."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from labelweave.data.dataset import Dataset
from labelweave.data.layouts.base import ImageLayout, Reading
from labelweave.data.layouts.coco import read_instances
from labelweave.exceptions import DataFileError

__all__ = ["LAYOUT", "read_objects365"]

_PATTERNS = ("zhiyuan_objv2_*.json", "objects365_*.json")


def read_objects365(
    path: Path, *, crowd: bool = True, keep_unlabelled: bool = True, **reading: Any
) -> Dataset:
    """Read ``annotations/zhiyuan_objv2_train.json`` and ``..._val.json`` of a folder, or one file.

    The files name an image by ``images/v1/patch0/objects365_v1_00000000.jpg``; it is looked for
    under that path, and by its patch and name in ``train/``, ``images/train/`` and the like.

    Parameters
    ----------
    path : path
    crowd, keep_unlabelled : bool
        As in :func:`labelweave.data.layouts.coco.read_coco`.
    **reading
        Options of :class:`labelweave.data.layouts.base.Reading`.
    """
    path = Path(path)
    files = [path] if path.is_file() else sorted(_instances_in(path))
    if not files:
        raise DataFileError(f"there is no annotations/{_PATTERNS[0]} in it", path=path)
    return read_instances(
        path, files, _folders, Reading(**reading), crowd=crowd, keep_unlabelled=keep_unlabelled
    )


def _folders(root: Path, file: Path) -> list[Path]:
    match = re.search(r"train|val|test", file.stem.lower())
    which = match.group() if match else ""
    return [root, root / which, root / "images" / which, root / "images"]


def _instances_in(path: Path) -> list[Path]:
    return [
        file
        for pattern in _PATTERNS
        for folder in (path / "annotations", path)
        for file in folder.glob(pattern)
    ]


def _recognise(path: Path) -> int:
    if path.is_dir():
        return 5 if _instances_in(path) else 0
    return 5 if any(path.match(pattern) for pattern in _PATTERNS) and path.is_file() else 0


LAYOUT = ImageLayout(
    "objects365", "Objects365 zhiyuan_objv2_*.json with images", _recognise, read_objects365
)
