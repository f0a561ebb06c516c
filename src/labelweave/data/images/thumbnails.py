"""Small pictures of images as data URLs, for pages that load nothing."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from typing import Any

import numpy as np

from labelweave.data.images.collection import as_images
from labelweave.data.images.decoding import ImageError
from labelweave.exceptions import require

__all__ = ["thumbnail_urls"]

_SIDE = 128  # pixels


def thumbnail_urls(X: Any, rows: Sequence[int]) -> list[str]:
    """Return the images of these rows as JPEG data URLs; "" for one that cannot be read.

    >>> thumbnail_urls(np.zeros((2, 8, 8), dtype=np.uint8), [1])[0][:28]
    'data:image/jpeg;base64,/9j/4'
    """
    Image = require("PIL.Image", "images")
    images = as_images(X).at(_SIDE, "pad")
    urls = []
    for row in rows:
        try:
            pixels = images.pixels(np.array([row]))[0]
        except ImageError:
            urls.append("")
            continue
        file = io.BytesIO()
        Image.fromarray(pixels).save(file, "jpeg", quality=80)
        urls.append(f"data:image/jpeg;base64,{base64.b64encode(file.getvalue()).decode()}")
    return urls
