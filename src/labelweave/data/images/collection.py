"""A collection of images that behaves like a matrix and decodes its images on demand."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from labelweave.data.images.decoding import RESIZES, ImageError
from labelweave.data.images.image_store import ImageStore, Problem
from labelweave.exceptions import InputError
from labelweave.files import is_path

__all__ = [
    "Images",
    "as_images",
    "checked_images",
    "concatenate_images",
    "pixel_rows",
]


class Images:
    """A collection of images that behaves like a matrix with one row per image.

    It is indexed by rows like an array. An image is decoded by workers when its pixels are first
    needed, and is then kept. As a matrix the collection has ``size * size * 3`` columns, so that
    ``np.asarray(images)`` is an array of bytes for methods that learn from vectors.

    Parameters
    ----------
    source : sequence of paths, of arrays or of PIL images, or an array of images
        An array has the shape (n, height, width) or (n, height, width, 3) and holds bytes or
        numbers from 0 to 1.
    root : path, optional
        Folder that relative paths start from.
    size : int, default=64
        Width and height after decoding, in pixels.
    resize : {"squash", "crop", "pad"}, default="squash"
        See :func:`labelweave.data.images.decoding.decode`.
    workers : int, optional
        Number of threads that decode in parallel. 0 decodes in the calling thread; None means one
        per processor, at most four.

    Examples
    --------
    >>> images = Images(np.zeros((5, 8, 8), dtype=np.uint8), size=8)
    >>> images.shape, images[1:3].pixels().shape
    ((5, 192), (2, 8, 8, 3))
    """

    ndim = 2
    dtype = np.dtype(np.uint8)

    def __init__(
        self,
        source: Any,
        *,
        root: str | PathLike[str] | None = None,
        size: int = 64,
        resize: str = "squash",
        workers: int | None = None,
    ) -> None:
        if resize not in RESIZES:
            raise InputError(f"resize must be one of {', '.join(RESIZES)}, not {resize!r}")
        if size < 1:
            raise InputError(f"the size of images must be at least 1, not {size}")
        sources = _sources(source, root)
        self._store = ImageStore(sources, size=size, resize=resize, workers=workers)
        self.index = np.arange(len(self._store))

    # -- the collection as a matrix ----------------------------------------------------

    @property
    def size(self) -> int:
        """Width and height of the decoded images, in pixels."""
        return self._store.size

    @property
    def resize(self) -> str:
        """How a rectangular image is made square."""
        return self._store.resize

    @property
    def shape(self) -> tuple[int, int]:
        """Number of images, and number of columns: pixels in three colours."""
        return len(self.index), self.size * self.size * 3

    def __len__(self) -> int:
        return len(self.index)

    def __getitem__(self, rows: Any) -> Images:
        """Return the images of these rows (a slice, a mask or an index array).

        Both collections share the images that are already decoded.
        """
        return self._view(self._store, self.index[rows].reshape(-1))

    @staticmethod
    def _view(store: ImageStore, index: np.ndarray) -> Images:
        images = object.__new__(Images)
        images._store = store
        images.index = index
        return images

    def __iter__(self) -> Iterator[np.ndarray]:
        return (self.pixels(np.array([k]))[0].reshape(-1) for k in range(len(self)))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        rows = self.pixels().reshape(self.shape)
        return rows if dtype is None else rows.astype(dtype)

    def __repr__(self) -> str:
        return f"<Images: {len(self)} of {self.size} x {self.size} pixels>"

    # -- the images --------------------------------------------------------------------

    @property
    def sources(self) -> list[Any]:
        """Paths (or arrays) of the images."""
        return [self._store.sources[i] for i in self.index]

    def at(self, size: int, resize: str | None = None) -> Images:
        """Return the same images at another size."""
        return self._view(self._store.at(size, resize or self.resize), self.index)

    def pixels(self, rows: np.ndarray | None = None) -> np.ndarray:
        """Return the images of these rows (by default all) as (n, size, size, 3) bytes."""
        return self._store.pixels(self.index if rows is None else self.index[rows])

    def batches(self, row_lists: Sequence[np.ndarray], *, ahead: int = 2) -> Iterator[np.ndarray]:
        """Iterate over the pixels of each list of rows; `ahead` lists are decoded in advance."""
        return self._store.batches([self.index[rows] for rows in row_lists], ahead=ahead)

    def problems(self) -> list[Problem]:
        """Decode all images and return row and reason for each one that cannot be read."""
        position = {int(row): k for k, row in enumerate(self.index)}
        return sorted((position[row], why) for row, why in self._store.problems(self.index))

    def hashes(self) -> list[str]:
        """Return a hash of the content of each image's file, the key for cached features."""
        return [self._store.content_hash(int(row)) for row in self.index]

    def fingerprint(self) -> str:
        """Return one hash of all images, their order and their size."""
        digest = hashlib.sha256(f"images {self.size} {self.resize}".encode())
        for content_hash in self.hashes():
            digest.update(content_hash.encode())
        return digest.hexdigest()


def as_images(X: Any, *, size: int | None = None) -> Images:
    """Return a collection of the images of X, at this size.

    Parameters
    ----------
    X : Images, array of images, or sequence of paths, of arrays or of PIL images
    size : int, optional
        By default the size of the collection or of the array.

    Examples
    --------
    >>> as_images(np.zeros((2, 8, 8)), size=4)
    <Images: 2 of 4 x 4 pixels>
    """
    if not isinstance(X, Images):
        if size is None:
            size = X.shape[1] if isinstance(X, np.ndarray) and X.ndim > 2 else 64
        return Images(X, size=size)
    return X if size is None else X.at(size)


def checked_images(X: Any, size: int | None = None) -> Images:
    """Return the images of X as :func:`as_images` does; an empty X is refused."""
    images = as_images(X, size=size)
    if len(images) == 0:
        raise InputError("X holds no images")
    return images


def concatenate_images(collections: Sequence[Images]) -> Images:
    """Concatenate collections of images, at the size of the first.

    >>> images = Images(np.zeros((2, 4, 4), dtype=np.uint8), size=4)
    >>> len(concatenate_images([images, images[:1]]))
    3
    """
    sources = [source for images in collections for source in images.sources]
    return Images(sources, size=collections[0].size, resize=collections[0].resize)


def pixel_rows(images: Images, n_columns: int | None = None) -> np.ndarray:
    """Return images as rows of numbers from 0 to 1, for methods that learn from vectors.

    With `n_columns` the images are resized so that a row has this number of columns, if possible.

    >>> pixel_rows(Images(np.zeros((5, 8, 8), dtype=np.uint8), size=8), 48).shape
    (5, 48)
    """
    if n_columns is not None:
        size = math.isqrt(n_columns // 3)
        images = images.at(size) if 3 * size * size == n_columns else images
    return np.asarray(images).astype(np.float32) / 255


def _sources(source: Any, root: str | PathLike[str] | None) -> Any:
    if is_path(source):
        raise InputError(f"{source} is a single path: pass a list of paths")
    if isinstance(source, np.ndarray) and source.ndim > 1:
        return _as_bytes(source)
    if not hasattr(source, "__len__"):
        raise InputError(f"images must be a list of paths or an array, not {type(source).__name__}")
    sources = list(source)
    for k, image in enumerate(sources):
        if is_path(image):
            sources[k] = image if root is None else Path(root) / image
        elif not hasattr(image, "__array_interface__"):
            raise InputError(f"row {k} is not an image but {type(image).__name__}: pass a path")
    return sources


def _as_bytes(array: np.ndarray) -> np.ndarray:
    if array.ndim == 4 and array.shape[3] == 1:
        array = array[..., 0]
    if array.ndim not in (3, 4) or (array.ndim == 4 and array.shape[3] not in (3, 4)):
        raise InputError(
            f"an array of images must have the shape (n, height, width) or (n, height, width, 3), "
            f"not {array.shape}"
        )
    if array.dtype == np.uint8:
        return array
    if array.dtype == bool:
        return array.astype(np.uint8) * 255
    low, high = (array.min(), array.max()) if array.size else (0, 0)
    if array.dtype.kind == "f" and low >= 0 and high <= 1:
        return np.rint(array * 255).astype(np.uint8)
    if array.dtype.kind in "iu" and low >= 0 and high <= 255:
        return array.astype(np.uint8)
    raise ImageError(
        f"pixels must be bytes or numbers from 0 to 1, but this array holds {array.dtype} from "
        f"{low} to {high}"
    )
