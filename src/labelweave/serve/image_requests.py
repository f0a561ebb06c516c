"""Images of requests: decoded in memory, with a bound on the pixels of all of them together."""

from __future__ import annotations

import asyncio
import io
import warnings
from collections import deque
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import numpy as np

from labelweave.exceptions import InputError, require
from labelweave.serve.problems import ProblemError
from labelweave.serve.prometheus_metrics import ServiceMetrics
from labelweave.serve.settings import Settings

__all__ = ["IMAGE_TYPES", "ImageDecoder", "PixelBudget"]

IMAGE_TYPES = ("image/png", "image/jpeg", "image/webp")
_FORMATS = ("PNG", "JPEG", "WEBP")  # Pillow could open many more
_THREADS = 2
_STRIP = 2**20  # pixels that are converted to RGB at once


class PixelBudget:
    """A number of pixels that requests share, and receive in the order of their arrival.

    >>> async def main():
    ...     budget = PixelBudget(10)
    ...     await budget.take(8, seconds=1)
    ...     waiting = asyncio.create_task(budget.take(5, seconds=1))
    ...     await asyncio.sleep(0)
    ...     budget.give_back(8)
    ...     await waiting
    ...     return budget.left
    >>> asyncio.run(main())
    5
    """

    def __init__(self, total: int) -> None:
        self.left = total
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    async def take(self, pixels: int, *, seconds: float) -> None:
        """Take pixels as soon as they are left; raise TimeoutError after some seconds."""
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append((pixels, turn))
        self._distribute()
        try:
            async with asyncio.timeout(seconds):
                await turn
        except BaseException:
            if turn.done() and not turn.cancelled():  # its turn came while it was cancelled
                self.give_back(pixels)
            else:
                self._distribute()  # a smaller one may have waited behind it
            raise

    def give_back(self, pixels: int) -> None:
        """Return pixels that were taken."""
        self.left += pixels
        self._distribute()

    def _distribute(self) -> None:
        while self._waiting:
            pixels, turn = self._waiting[0]
            if not turn.cancelled():
                if pixels > self.left:
                    return
                self.left -= pixels
                turn.set_result(None)
            self._waiting.popleft()


class ImageDecoder:
    """Decodes the images of requests, within a shared budget of pixels.

    Its threads are its own: health checks and the database never wait for an image.
    """

    def __init__(self, settings: Settings, metrics: ServiceMetrics) -> None:
        self._budget = PixelBudget(settings.max_pixels_in_flight)
        self._settings = settings
        self._metrics = metrics
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="decode")

    @asynccontextmanager
    async def decoded(self, content: bytes) -> AsyncIterator[np.ndarray]:
        """Decode an image; its pixels are counted until the end of the block.

        The size is read from the header and checked before any pixel is decoded.
        """
        loop = asyncio.get_running_loop()
        pixels = await loop.run_in_executor(self._threads, n_pixels, content)
        if pixels > self._settings.max_pixels:
            raise ProblemError(
                413, f"The image has more than {self._settings.max_pixels:,} pixels."
            )
        try:
            await self._budget.take(pixels, seconds=self._settings.body_timeout)
        except TimeoutError:
            self._metrics.refused.labels("pixels").inc()
            raise ProblemError(
                503, "The service is decoding too many images; try again.", Retry_After="1"
            ) from None
        try:
            yield await loop.run_in_executor(self._threads, decode, content)
        finally:
            self._budget.give_back(pixels)


def n_pixels(content: bytes) -> int:
    """Return the number of pixels that the header of an image states."""
    with _opened(content) as image:
        return image.width * image.height


def decode(content: bytes) -> np.ndarray:
    """Return an image as an array (height, width, 3) of uint8, in RGB."""
    with _opened(content) as image:
        image.load()
        pixels = np.empty((image.height, image.width, 3), dtype=np.uint8)
        step = max(1, _STRIP // image.width)  # Pillow's own conversion holds three more copies
        for top in range(0, image.height, step):
            bottom = min(top + step, image.height)
            strip = image.crop((0, top, image.width, bottom))
            pixels[top:bottom] = np.asarray(strip.convert("RGB"))
        return pixels


@contextmanager
def _opened(content: bytes) -> Iterator[Any]:
    pillow = require("PIL.Image", "serve")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about sizes, which are checked here
            with pillow.open(io.BytesIO(content), formats=_FORMATS) as image:
                yield image
    except pillow.DecompressionBombError:
        raise ProblemError(413, "The image has too many pixels.") from None
    except Exception:  # decoders raise many kinds of errors for damaged files
        raise InputError("the body is not a complete PNG, JPEG or WebP image") from None
