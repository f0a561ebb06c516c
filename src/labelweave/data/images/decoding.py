"""Decoding one image of any kind to RGB bytes of a fixed size.

Greyscale is repeated, CMYK and palettes are converted, transparent pixels are laid on white,
sixteen bits become eight, photographs are turned upright as their EXIF orientation says, and of an
animation the first picture is taken.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from os import fspath
from typing import Any

import numpy as np

from labelweave.exceptions import DataFileError, require

ENDINGS = (".jpg", ".jpeg", ".png", ".gif", ".bmp", ".webp", ".tif", ".tiff", ".ppm", ".pgm")
RESIZES = ("squash", "crop", "pad")
MAX_PIXELS = 64_000_000
"""An image with more pixels is refused before it is decoded; a JPEG is first scaled down."""

_STRIP_PIXELS = 4_000_000  # pixels that are converted to RGB at a time
_SIXTEEN_BITS = ("I", "I;16", "I;16B", "I;16L", "I;16N")


class ImageError(DataFileError):
    """An image cannot be read; the message names its file."""


def decode(source: Any, size: int, resize: str = "squash") -> np.ndarray:
    """Decode an image to a (size, size, 3) array of bytes.

    The source is a path, a PIL image or an array of (height, width) or (height, width, 1, 3 or 4)
    bytes. To make a rectangular image square, "squash" scales both sides to `size`, "crop" takes
    the middle, and "pad" adds black bars. Raises ImageError if the file is missing, damaged, not an
    image, or has more than :data:`MAX_PIXELS` pixels.

    >>> decode(np.zeros((5, 9), dtype=np.uint8), 4).shape
    (4, 4, 3)
    """
    Image = require("PIL.Image", "images")
    if isinstance(source, np.ndarray):
        return fit_square(_from_array(source, Image), size, resize)
    if isinstance(source, Image.Image):
        return fit_square(_to_rgb(source, Image), size, resize)
    try:
        with Image.open(source) as image:
            # A JPEG decoder can itself scale down to a half, a quarter or an eighth.
            image.draft(None, (2 * size, 2 * size))
            n_pixels = image.size[0] * image.size[1]
            if n_pixels > MAX_PIXELS:
                raise ImageError(
                    f"the image has {image.size[0]:,} x {image.size[1]:,} pixels, more than the "
                    f"limit of {MAX_PIXELS:,} pixels: make it smaller",
                    path=source,
                )
            return fit_square(_to_rgb(upright(image), Image), size, resize)
    except ImageError:
        raise
    except Image.DecompressionBombError:  # Pillow's own limit, met while the header is read
        raise ImageError(
            f"the image has more than the limit of {MAX_PIXELS:,} pixels: make it smaller",
            path=source,
        ) from None
    except FileNotFoundError:
        raise ImageError("there is no such image", path=source) from None
    except IsADirectoryError:
        raise ImageError("this is a folder, not an image", path=source) from None
    except Exception as error:
        # Pillow and its decoders have a dozen error classes for damaged files.
        words = str(error).replace(repr(fspath(source)), "the file").rstrip(".")
        reason = words or type(error).__name__
        raise ImageError(f"the image cannot be read ({reason})", path=source) from None


def decode_many(
    sources: Sequence[Any], size: int, resize: str
) -> list[np.ndarray | tuple[str, str | None]]:
    """Decode sources in a worker; for one that fails return the message and path of the error."""
    results: list[np.ndarray | tuple[str, str | None]] = []
    for source in sources:
        try:
            results.append(decode(source, size, resize))
        except ImageError as error:
            results.append((str(error), error.path))
    return results


def fit_square(image: Any, size: int, resize: str) -> np.ndarray:
    """Resize an RGB image of PIL to (size, size, 3) bytes."""
    Image = require("PIL.Image", "images")
    width, height = image.size
    box = None
    if resize == "crop":
        side = min(width, height)
        left, top = (width - side) / 2, (height - side) / 2
        box = (left, top, left + side, top + side)
    target = (size, size)
    if resize == "pad":
        longest = max(width, height)
        target = (max(round(size * width / longest), 1), max(round(size * height / longest), 1))
    if image.size != target or box is not None:
        image = image.resize(target, Image.Resampling.BILINEAR, box=box, reducing_gap=3.0)
    pixels = np.asarray(image)
    if target == (size, size):
        return pixels
    square = np.zeros((size, size, 3), dtype=np.uint8)
    top, left = (size - target[1]) // 2, (size - target[0]) // 2
    square[top : top + target[1], left : left + target[0]] = pixels
    return square


def upright(image: Any) -> Any:
    """Turn a photograph upright as its EXIF orientation says."""
    orientation = image.getexif().get(0x0112, 1) if hasattr(image, "getexif") else 1
    if orientation in (None, 1):
        return image
    return require("PIL.ImageOps", "images").exif_transpose(image)


def _to_rgb(image: Any, Image: Any) -> Any:
    """Convert any image to RGB; a large one is converted in strips to save memory."""
    if image.mode == "RGB" and "transparency" not in image.info:
        return image
    converted = None
    for top, strip in rgb_strips(image):
        if strip.size == image.size:
            return strip
        converted = converted or Image.new("RGB", image.size)
        converted.paste(strip, (0, top))
    return converted


def rgb_strips(image: Any, n_pixels: int = _STRIP_PIXELS) -> Iterator[tuple[int, Any]]:
    """Yield the first row and the RGB image of each strip of an image, of about `n_pixels`."""
    Image = require("PIL.Image", "images")
    width, height = image.size
    shift = 8 if image.mode in _SIXTEEN_BITS and image.getextrema()[1] > 255 else 0
    step = max(n_pixels // width, 1)
    for top in range(0, height, step):
        strip = image.crop((0, top, width, min(top + step, height))) if step < height else image
        yield top, _strip_to_rgb(strip, shift, Image)


def _strip_to_rgb(image: Any, shift: int, Image: Any) -> Any:
    if image.mode in _SIXTEEN_BITS:
        values = np.asarray(image) >> shift
        image = Image.fromarray(np.clip(values, 0, 255).astype(np.uint8))
    elif image.mode == "F":
        image = Image.fromarray(np.clip(np.nan_to_num(np.asarray(image)), 0, 255).astype(np.uint8))
    if image.mode in ("RGBA", "LA", "PA", "La", "RGBa") or "transparency" in image.info:
        white = Image.new("RGBA", image.size, (255, 255, 255, 255))
        return Image.alpha_composite(white, image.convert("RGBA")).convert("RGB")
    return image if image.mode == "RGB" else image.convert("RGB")


def _from_array(pixels: np.ndarray, Image: Any) -> Any:
    if pixels.ndim == 3 and pixels.shape[2] == 1:
        pixels = pixels[:, :, 0]
    is_image = pixels.ndim == 2 or (pixels.ndim == 3 and pixels.shape[2] in (3, 4))
    if pixels.dtype != np.uint8 or not is_image or 0 in pixels.shape:
        raise ImageError(
            f"an image must be (height, width) or (height, width, 3) bytes, not {pixels.shape} "
            f"{pixels.dtype}"
        )
    return _to_rgb(Image.fromarray(np.ascontiguousarray(pixels)), Image)
