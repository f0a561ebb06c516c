"""Layouts of image data sets on disk, one module per layout.

To add a layout, write a module with a constant `LAYOUT`
(:class:`labelweave.data.image_layouts.layout.ImageLayout`) and add it to :data:`LAYOUTS`.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from labelweave.data.images.decoding import ENDINGS

if TYPE_CHECKING:
    from labelweave.data.image_layouts.layout import ImageLayout

__all__ = ["LAYOUTS", "find_layout", "get_layout"]

LAYOUTS = {
    "voc": "PASCAL VOC folder with Annotations/*.xml",
    "nus-wide": "NUS-WIDE folder with ImageList and Groundtruth",
    "objects365": "Objects365 zhiyuan_objv2_*.json with images",
    "coco": "MS-COCO instances_*.json with images",
    "mirflickr": "MIRFLICKR folder with im*.jpg and lists",
    "images": "folder of images with a table of labels",
}
"""Names of the layouts, which are also those of their modules, and what they look like.

A folder has the first layout of this list that fits.
"""

_LAYOUTS_OF_FILES = {
    ".json": ("objects365", "coco"),
    ".csv": ("images",),
    ".tsv": ("images",),
    **dict.fromkeys(ENDINGS, ("images",)),
}
"""Layouts that a single file can have, by its ending."""


def get_layout(name: str) -> ImageLayout:
    """Import a layout."""
    return import_module(f"labelweave.data.image_layouts.{name.replace('-', '_')}").LAYOUT


def find_layout(path: Path) -> str | None:
    """Name of the layout that a folder or file has; None if it has none."""
    names = LAYOUTS if path.is_dir() else _LAYOUTS_OF_FILES.get(path.suffix.lower(), ())
    return next((name for name in names if get_layout(name).matches(path)), None)
