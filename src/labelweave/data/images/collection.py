"""Images as the rows of a matrix, decoded when they are asked for."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from labelweave.data.images.decoding import RESIZES, ImageError, is_path
from labelweave.data.images.store import ImageStore, Problem
from labelweave.exceptions import InputError

__all__ = [
    "Images",
    "as_images",
    "checked_images",
    "is_images",
    "concatenate_images",
    "pixel_rows",
    "side_of",
]


class Images:
    """A collection of images that looks like a matrix with a row an image.

    It is indexed by rows like an array; an image is decoded when its pixels are first needed,
    by workers, and kept. As a matrix it has ``size * size * 3`` columns, so that
    ``np.asarray(images)`` gives rows of bytes to a method that takes vectors.

    Parameters
    ----------
    source : sequence of paths, of arrays or of PIL images, or an array of images
        An array has the shape (n, height, width) or (n, height, width, 3) and holds bytes, or
        numbers from 0 to 1.
    root : path, optional
        Folder that relative paths start from.
    size : int, default=64
        Pixels of a side after decoding.
    resize : {"squash", "crop", "pad"}, default="squash"
        See :func:`labelweave.data.images.decoding.decode`.
    workers : int, optional
        How many decode at a time; 0: this thread itself, None: one a processor, at most four.
    processes : bool, default=False
        Whether workers are processes instead of threads. Pillow lets threads decode side by
        side; processes are for decoders that do not.

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
        processes: bool = False,
    ) -> None:
        if resize not in RESIZES:
            raise InputError(f"resize is one of {', '.join(RESIZES)}, not {resize!r}")
        if size < 1:
            raise InputError(f"the size of images must be at least 1, not {size}")
        self._store = ImageStore(
            _sources(source, root), size=size, resize=resize, workers=workers, processes=processes
        )
        self.index = np.arange(len(self._store))

    # -- like a matrix -----------------------------------------------------------------

    @property
    def size(self) -> int:
        """Pixels of a side."""
        return self._store.size

    @property
    def resize(self) -> str:
        """How a rectangle becomes a square."""
        return self._store.resize

    @property
    def shape(self) -> tuple[int, int]:
        """Rows, and features of an image: its pixels in three colours."""
        return len(self.index), self.size * self.size * 3

    def __len__(self) -> int:
        return len(self.index)

    def __getitem__(self, rows: Any) -> Images:
        """The images of these rows (slice, mask or index array); they share what is decoded."""
        found = object.__new__(Images)
        found._store = self._store
        found.index = self.index[rows].reshape(-1)
        return found

    def __iter__(self) -> Iterator[np.ndarray]:
        return (self.pixels(np.array([k]))[0].reshape(-1) for k in range(len(self)))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        rows = self.pixels().reshape(self.shape)
        return rows if dtype is None else rows.astype(dtype)

    def __repr__(self) -> str:
        return f"<Images: {len(self)} of {self.size} x {self.size} pixels>"

    # -- what is in them ---------------------------------------------------------------

    @property
    def sources(self) -> list[Any]:
        """The paths (or arrays) of the images."""
        return [self._store.sources[i] for i in self.index]

    def at(self, size: int, resize: str | None = None) -> Images:
        """The same images at another size."""
        found = self[:]
        found._store = self._store.at(size, resize or self.resize)
        return found

    def pixels(self, rows: np.ndarray | None = None) -> np.ndarray:
        """The images of these rows, or all, as (n, size, size, 3) bytes."""
        return self._store.pixels(self.index if rows is None else self.index[rows])

    def batches(self, row_lists: Sequence[np.ndarray], *, ahead: int = 2) -> Iterator[np.ndarray]:
        """Pixels of one list of rows after the other; the next are decoded meanwhile."""
        return self._store.batches([self.index[rows] for rows in row_lists], ahead=ahead)

    def problems(self) -> list[Problem]:
        """Row and reason for each image that cannot be read; decodes all of them."""
        place = {int(row): k for k, row in enumerate(self.index)}
        return sorted((place[row], why) for row, why in self._store.problems(self.index))

    def hashes(self) -> list[str]:
        """A hash of the content of each image's file, by which features are kept."""
        return [self._store.content_hash(int(row)) for row in self.index]

    def fingerprint(self) -> str:
        """One hash of all of them, their order and their size."""
        found = hashlib.sha256(f"images {self.size} {self.resize}".encode())
        for one in self.hashes():
            found.update(one.encode())
        return found.hexdigest()


def is_images(X: Any) -> bool:
    """Whether X is a collection of images, or an array of images.

    >>> is_images(np.zeros((2, 8, 8), dtype=np.uint8)), is_images(np.zeros((2, 64)))
    (True, False)
    """
    return isinstance(X, Images) or (isinstance(X, np.ndarray) and X.ndim in (3, 4))


def as_images(X: Any, *, size: int | None = None) -> Images:
    """A collection of images of anything that holds images, at this size.

    Parameters
    ----------
    X : Images, array of images, or sequence of paths, of arrays or of PIL images
    size : int, optional
        By default that of the collection, or of the array.

    Examples
    --------
    >>> as_images(np.zeros((2, 8, 8)), size=4)
    <Images: 2 of 4 x 4 pixels>
    """
    if not isinstance(X, Images):
        own = X.shape[1] if isinstance(X, np.ndarray) and X.ndim > 2 else 64
        X = Images(X, size=own if size is None else size)
    return X if size is None else X.at(size)


def checked_images(X: Any, size: int) -> Images:
    """The images of X at this size, of which there must be one at least."""
    images = as_images(X, size=size)
    if len(images) == 0:
        raise InputError("X holds no image")
    return images


def concatenate_images(parts: Sequence[Images]) -> Images:
    """Return one collection of the images of all parts, at the size of the first part.

    >>> one = Images(np.zeros((2, 4, 4), dtype=np.uint8), size=4)
    >>> len(concatenate_images([one, one[:1]]))
    3
    """
    sources = [source for part in parts for source in part.sources]
    return Images(sources, size=parts[0].size, resize=parts[0].resize)


def side_of(n_columns: int) -> int | None:
    """Pixels of a side of square RGB images with so many columns; None if there is none.

    >>> side_of(8 * 8 * 3), side_of(100)
    (8, None)
    """
    side = math.isqrt(n_columns // 3)
    return side if 3 * side * side == n_columns else None


def pixel_rows(images: Images, n_columns: int | None = None) -> np.ndarray:
    """Images as rows of numbers from 0 to 1, for methods that take vectors.

    With `n_columns`, at the size that has so many.

    >>> pixel_rows(Images(np.zeros((5, 8, 8), dtype=np.uint8), size=8), 48).shape
    (5, 48)
    """
    side = None if n_columns is None else side_of(n_columns)
    images = images if side is None else images.at(side)
    return np.asarray(images).astype(np.float32) / 255


def _sources(source: Any, root: str | PathLike[str] | None) -> Any:
    if is_path(source):
        raise InputError(f"{source} is one path: pass a list of paths")
    if isinstance(source, np.ndarray) and source.ndim > 1:
        return _as_bytes(source)
    if not hasattr(source, "__len__"):
        raise InputError(f"images are a list of paths or an array, not {type(source).__name__}")
    found = list(source)
    for k, one in enumerate(found):
        if not is_path(one) and not hasattr(one, "__array_interface__"):
            raise InputError(f"row {k} is no image but {type(one).__name__}: give a path")
    return [_located(one, root) for one in found]


def _located(source: Any, root: str | PathLike[str] | None) -> Any:
    return source if root is None or not is_path(source) else Path(root) / source


def _as_bytes(array: np.ndarray) -> np.ndarray:
    if array.ndim == 4 and array.shape[3] == 1:
        array = array[..., 0]
    if array.ndim not in (3, 4) or (array.ndim == 4 and array.shape[3] not in (3, 4)):
        raise InputError(
            f"images are an array of shape (n, height, width) or (n, height, width, 3), not "
            f"{array.shape}"
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
        f"pixels are bytes or numbers from 0 to 1, but this array has {array.dtype} from "
        f"{low} to {high}"
    )
