"""Images that were sent: decoded in memory, within limits."""

from __future__ import annotations

import io
import warnings

import numpy as np

from labelweave.exceptions import InputError, require
from labelweave.serve.problems import ProblemError

__all__ = ["IMAGE_TYPES", "read_image"]

IMAGE_TYPES = ("image/png", "image/jpeg", "image/webp")
_FORMATS = ("PNG", "JPEG", "WEBP")  # of the many that Pillow could open


def read_image(content: bytes, max_pixels: int) -> np.ndarray:
    """An image as an array (height, width, 3) of uint8, red, green and blue.

    The size is read from the header and checked before a pixel is decoded.
    """
    pillow = require("PIL.Image", "serve")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # our own limit is below Pillow's
            with pillow.open(io.BytesIO(content), formats=_FORMATS) as image:
                width, height = image.size
                if width * height > max_pixels:
                    raise _too_large(max_pixels)
                return np.asarray(image.convert("RGB"))
    except ProblemError:
        raise
    except pillow.DecompressionBombError:
        raise _too_large(max_pixels) from None
    except Exception:  # decoders fail in many ways on damaged files
        raise InputError("the body is no whole PNG, JPEG or WebP image") from None


def _too_large(max_pixels: int) -> ProblemError:
    return ProblemError(413, f"The image has more than {max_pixels:,} pixels.")
