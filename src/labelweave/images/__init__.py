"""Collections of images, networks for them, and features of a frozen network."""

from __future__ import annotations

import importlib
from typing import Any

_NAMES = {
    "EfficientNetLite": "labelweave.nn.image_network",
    "ImageClassifier": "labelweave.images.image_classifier",
    "ImageEncoder": "labelweave.images.encoder",
    "ImageError": "labelweave.data.images.decoding",
    "Images": "labelweave.data.images.collection",
    "ResNet": "labelweave.nn.image_network",
    "as_images": "labelweave.data.images.collection",
}

__all__ = [
    "EfficientNetLite",
    "ImageClassifier",
    "ImageEncoder",
    "ImageError",
    "Images",
    "ResNet",
    "as_images",
]


def __getattr__(name: str) -> Any:
    if name in _NAMES:  # imported on first use, because most of them need torch
        return getattr(importlib.import_module(_NAMES[name]), name)
    raise AttributeError(f"module 'labelweave.images' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_NAMES])
