"""A store of images: decoded ahead of their use by workers, and kept once they are decoded."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from labelweave.data.images.decoding import ImageError, decode_many
from labelweave.files import is_path
from labelweave.tables.table import hashable

_CHUNK = 8  # images that a worker decodes at a time
_MAX_MEMORY_BYTES = 2**30
_FREE_DISK_BYTES = 2**30  # stay free on the disk to which decoded images are written

Problem = tuple[int, str]
"""Row number and what is wrong with its image."""


class ImageStore:
    """The sources of images and the images that have been decoded, at one size.

    Decoded images are kept in memory or, where they would take more than a gigabyte, in an unnamed
    file that disappears with the process. Without enough disk space they are decoded at each use.

    * `workers`: Number of threads that decode; None means one per processor, at most four. (Pillow
      decodes in parallel in threads.)
    """

    def __init__(
        self,
        sources: Any,
        *,
        size: int,
        resize: str,
        workers: int | None = None,
    ) -> None:
        self.sources = sources
        self.size = size
        self.resize = resize
        self.workers = min(os.cpu_count() or 1, 4) if workers is None else workers
        self._other_sizes: dict[tuple[int, str], ImageStore] = {}
        self._reset()

    def _reset(self) -> None:
        self._pending: dict[int, tuple[Future[Any], int]] = {}
        self._decoded: np.ndarray | None = None
        array = self.sources if isinstance(self.sources, np.ndarray) else None
        side = (self.size, self.size)
        if array is not None and (array.shape[1:] in (side, (*side, 3))):
            self._decoded = array  # no decoding needed; `pixels` repeats greyscale
            self._is_decoded = np.ones(len(array), dtype=bool)
        else:
            self._is_decoded = np.zeros(len(self.sources), dtype=bool)

    def __len__(self) -> int:
        return len(self.sources)

    def __getstate__(self) -> dict[str, Any]:
        state = {k: v for k, v in vars(self).items() if k in _PICKLED}
        return {**state, "_other_sizes": {}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._reset()

    def at(self, size: int, resize: str) -> ImageStore:
        """Return the store of the same images at another size; it is made once."""
        if (size, resize) == (self.size, self.resize):
            return self
        if (size, resize) not in self._other_sizes:
            self._other_sizes[size, resize] = ImageStore(
                self.sources, size=size, resize=resize, workers=self.workers
            )
        return self._other_sizes[size, resize]

    # -- decoding ----------------------------------------------------------------------

    def pixels(self, rows: np.ndarray) -> np.ndarray:
        """Return the images of these rows as (n, size, size, 3) bytes.

        Raises an ImageError for the first image that cannot be read.
        """
        self.request(rows)
        problems, fresh = self._collect(rows)
        if problems:
            raise problems[0][1]
        if self._decoded is None:
            if len(rows) == 0:
                return np.zeros((0, self.size, self.size, 3), dtype=np.uint8)
            return np.stack([fresh[int(row)] for row in rows])
        pixels = self._decoded[rows]
        return np.repeat(pixels[..., None], 3, axis=3) if pixels.ndim == 3 else pixels

    def batches(self, row_lists: Sequence[np.ndarray], *, ahead: int = 2) -> Iterator[np.ndarray]:
        """Iterate over the images of each list of rows; `ahead` lists are decoded in advance."""
        for k, rows in enumerate(row_lists):
            for next_rows in row_lists[k : k + 1 + ahead]:
                self.request(next_rows)
            yield self.pixels(rows)

    def request(self, rows: np.ndarray) -> None:
        """Let workers decode those of these rows that are not decoded yet."""
        missing = [int(row) for row in rows[~self._is_decoded[rows]] if row not in self._pending]
        missing = list(dict.fromkeys(missing))
        if not missing:
            return
        self._allocate()
        for start in range(0, len(missing), _CHUNK):
            chunk = missing[start : start + _CHUNK]
            sources = [self.sources[row] for row in chunk]
            future = self._submit(sources)
            self._pending |= {row: (future, k) for k, row in enumerate(chunk)}

    def problems(self, rows: np.ndarray) -> list[Problem]:
        """Decode these rows and return the number of each one that cannot be read, and why."""
        problems: list[Problem] = []
        step = 64 * _CHUNK
        for start in range(0, len(rows), step):
            part = rows[start : start + step]
            self.request(part)
            problems += [(row, str(error)) for row, error in self._collect(part)[0]]
        return problems

    def _collect(
        self, rows: np.ndarray
    ) -> tuple[list[tuple[int, ImageError]], dict[int, np.ndarray]]:
        """Wait for the workers; return the errors and, where nothing is kept, the images."""
        problems: list[tuple[int, ImageError]] = []
        fresh: dict[int, np.ndarray] = {}
        for row in dict.fromkeys(rows[~self._is_decoded[rows]].tolist()):
            future, k = self._pending.pop(row)
            image = future.result()[k]
            if isinstance(image, tuple):
                error = ImageError(image[0])
                error.path = image[1]
                problems.append((row, error))
            elif self._decoded is None:
                fresh[row] = image
            else:
                self._decoded[row] = image
                self._is_decoded[row] = True
        return problems, fresh

    def _submit(self, sources: list[Any]) -> Future[Any]:
        if self.workers == 0:
            done: Future[Any] = Future()
            done.set_result(decode_many(sources, self.size, self.resize))
            return done
        pool = _threads(os.getpid(), self.workers)
        return pool.submit(decode_many, sources, self.size, self.resize)

    def _allocate(self) -> None:
        """Allocate the memory or the file for decoded images before the first is decoded."""
        if self._decoded is not None:
            return
        shape = (len(self), self.size, self.size, 3)
        n_bytes = int(np.prod(shape, dtype=np.int64))
        if n_bytes <= _MAX_MEMORY_BYTES:
            self._decoded = np.zeros(
                shape, dtype=np.uint8
            )  # the system allocates pages when they are written
            return
        folder = tempfile.gettempdir()
        if shutil.disk_usage(folder).free < n_bytes + _FREE_DISK_BYTES:
            return
        with tempfile.TemporaryFile(dir=folder) as file:
            self._decoded = np.memmap(file, dtype=np.uint8, mode="w+", shape=shape)

    # -- identity ----------------------------------------------------------------------

    def content_hash(self, row: int) -> str:
        """Return a hash of the file (or the array) of a row, without decoding it."""
        source = self.sources[row]
        if is_path(source):
            try:
                state = Path(source).stat()
                return _file_hash(os.fspath(source), state.st_size, state.st_mtime_ns)
            except FileNotFoundError:
                raise ImageError("there is no such image", path=source) from None
            except OSError as error:
                raise ImageError(
                    f"the image cannot be read ({error.strerror})", path=source
                ) from None
        return hashable(np.asarray(source))


_PICKLED = ("sources", "size", "resize", "workers")


@lru_cache(maxsize=2)
def _threads(process: int, workers: int) -> ThreadPoolExecutor:
    """Return the threads that all stores of a process share (a forked process makes its own)."""
    return ThreadPoolExecutor(workers, thread_name_prefix="labelweave-image")


@lru_cache(maxsize=2**18)
def _file_hash(path: str, size: int, changed: int) -> str:
    with open(path, "rb") as file:  # noqa: PTH123 (a path may be any path-like)
        return hashlib.file_digest(file, "sha256").hexdigest()
