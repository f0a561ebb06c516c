"""One image as bytes of a fixed size, whatever its file holds; light enough for worker processes.

Everything becomes RGB: greyscale is repeated, CMYK and palettes are converted, what is
transparent is laid on white, sixteen bits become eight, photographs are turned as their camera
says, and of an animation the first picture is taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike, fspath
from typing import Any

import numpy as np

from labelweave.exceptions import DataFileError, require

__all__ = ["ENDINGS", "MOST_PIXELS", "RESIZES", "ImageError", "decode", "decode_many", "fit_square"]

ENDINGS = (".jpg", ".jpeg", ".png", ".gif", ".bmp", ".webp", ".tif", ".tiff", ".ppm", ".pgm")
RESIZES = ("squash", "crop", "pad")
MOST_PIXELS = 64_000_000
"""An image with more pixels is refused before it is decoded; a JPEG is first decoded smaller."""

_STRIP = 4_000_000  # pixels that are changed to RGB at a time
_SIXTEEN_BITS = ("I", "I;16", "I;16B", "I;16L", "I;16N")


class ImageError(DataFileError):
    """An image cannot be read; names its file."""


def decode(source: Any, size: int, resize: str = "squash") -> np.ndarray:
    """An image as a (size, size, 3) array of bytes.

    Parameters
    ----------
    source : path, ndarray or PIL image
        Of an array, (height, width) or (height, width, 1, 3 or 4) bytes.
    size : int
        Pixels of a side.
    resize : {"squash", "crop", "pad"}, default="squash"
        How a rectangle becomes a square: both sides to `size`, so that nothing is lost; the
        middle of it; or the whole of it on black.

    Raises
    ------
    ImageError
        The file is missing, damaged, no image, or has more than :data:`MOST_PIXELS`.

    Examples
    --------
    >>> decode(np.zeros((5, 9), dtype=np.uint8), 4).shape
    (4, 4, 3)
    """
    Image = require("PIL.Image", "images")
    if isinstance(source, np.ndarray):
        return fit_square(_from_array(source, Image), size, resize)
    if isinstance(source, Image.Image):
        return fit_square(_rgb(source, Image), size, resize)
    try:
        with Image.open(source) as image:
            # Of a JPEG, the decoder itself can give a half, a quarter or an eighth.
            image.draft(None, (2 * size, 2 * size))
            n_pixels = image.size[0] * image.size[1]
            if n_pixels > MOST_PIXELS:
                raise ImageError(
                    f"the image has {image.size[0]:,} x {image.size[1]:,} pixels, and more than "
                    f"{MOST_PIXELS:,} are not decoded: make it smaller",
                    path=source,
                )
            return fit_square(_rgb(_upright(image), Image), size, resize)
    except ImageError:
        raise
    except Image.DecompressionBombError:  # Pillow's own limit, met while the header is read
        raise ImageError(
            f"the image has more than {MOST_PIXELS:,} pixels, which are not decoded: make it "
            f"smaller",
            path=source,
        ) from None
    except FileNotFoundError:
        raise ImageError("there is no such image", path=source) from None
    except IsADirectoryError:
        raise ImageError("this is a folder, no image", path=source) from None
    except Exception as error:
        # Pillow and its decoders have a dozen error classes for damaged files.
        words = str(error).replace(repr(fspath(source)), "the file").rstrip(".")
        reason = words or type(error).__name__
        raise ImageError(f"the image cannot be read ({reason})", path=source) from None


def decode_many(
    sources: Sequence[Any], size: int, resize: str
) -> list[np.ndarray | tuple[str, str | None]]:
    """Each source decoded, or the message and the path of its error: what a worker gives back."""
    found: list[np.ndarray | tuple[str, str | None]] = []
    for source in sources:
        try:
            found.append(decode(source, size, resize))
        except ImageError as error:
            found.append((str(error), error.path))
    return found


def fit_square(image: Any, size: int, resize: str) -> np.ndarray:
    """An RGB image of PIL brought to (size, size, 3) bytes."""
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


def _upright(image: Any) -> Any:
    """Turned as the camera says it was held."""
    orientation = image.getexif().get(0x0112, 1) if hasattr(image, "getexif") else 1
    if orientation in (None, 1):
        return image
    return require("PIL.ImageOps", "images").exif_transpose(image)


def _rgb(image: Any, Image: Any) -> Any:
    """Any image in RGB; a large one is changed in strips, which take little memory."""
    wide, high = image.size
    shift = 8 if image.mode in _SIXTEEN_BITS and image.getextrema()[1] > 255 else 0
    if image.mode == "RGB" and "transparency" not in image.info:
        return image
    step = max(_STRIP // wide, 1)
    if high <= step:
        return _strip_in_rgb(image, shift, Image)
    whole = Image.new("RGB", image.size)
    for top in range(0, high, step):
        strip = image.crop((0, top, wide, min(top + step, high)))
        whole.paste(_strip_in_rgb(strip, shift, Image), (0, top))
    return whole


def _strip_in_rgb(image: Any, shift: int, Image: Any) -> Any:
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
            f"an image is (height, width) or (height, width, 3) bytes, not {pixels.shape} "
            f"{pixels.dtype}"
        )
    return _rgb(Image.fromarray(np.ascontiguousarray(pixels)), Image)


def is_path(value: Any) -> bool:
    """Whether a value names a file."""
    return isinstance(value, str | PathLike)
