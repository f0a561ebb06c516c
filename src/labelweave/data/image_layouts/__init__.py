"""Layouts of image data sets on disk, one module per layout.

To add a layout, write a module with a constant `LAYOUT`
(:class:`labelweave.data.image_layouts.layout.ImageLayout`) and add it to :data:`LAYOUTS`.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from labelweave.data.image_layouts.layout import ImageLayout

__all__ = ["LAYOUTS", "find_layout", "get_layout"]

LAYOUTS = {
    "voc": "voc",
    "coco": "coco",
    "nus-wide": "nus_wide",
    "mirflickr": "mirflickr",
    "objects365": "objects365",
    "images": "image_table",
}
"""Names of the layouts and their modules."""


def get_layout(name: str) -> ImageLayout:
    """Import a layout."""
    return import_module(f"labelweave.data.image_layouts.{LAYOUTS[name]}").LAYOUT


def find_layout(path: Path) -> str | None:
    """Name of the layout that a folder or file has most likely; None if it has none."""
    confidence = {name: get_layout(name).confidence(path) for name in LAYOUTS}
    best = max(LAYOUTS, key=confidence.__getitem__)
    return best if confidence[best] > 0 else None
