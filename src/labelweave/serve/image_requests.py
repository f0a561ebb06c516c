"""Images of requests: decoded in memory, with a bound on the pixels of all of them together."""

from __future__ import annotations

import asyncio
import base64
import io
import warnings
from collections import deque
from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import numpy as np

from labelweave.data.images.decoding import rgb_strips, upright
from labelweave.exceptions import InputError, require
from labelweave.serve.inputs_and_labels import check_n_rows
from labelweave.serve.problems import ProblemError
from labelweave.serve.prometheus_metrics import ServiceMetrics
from labelweave.serve.settings import Settings

__all__ = ["IMAGE_TYPES", "ImageDecoder", "PixelBudget"]

IMAGE_TYPES = ("image/png", "image/jpeg", "image/webp")
_FORMATS = ("PNG", "JPEG", "WEBP")  # Pillow could open many more
_THREADS = 2
_STRIP = 2**20  # pixels that are converted to RGB at once
_AN_IMAGE = "a complete PNG, JPEG or WebP image"


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
    async def decoded(self, contents: Mapping[str, bytes]) -> AsyncIterator[list[np.ndarray]]:
        """Decode the images of a request; their pixels are counted until the end of the block.

        The sizes are read from the headers and checked before any pixel is decoded.

        * `contents`: The images, by what the messages call them.
        """
        loop = asyncio.get_running_loop()
        pixels = await loop.run_in_executor(self._threads, count_pixels, contents)
        if pixels > self._settings.max_pixels:
            has = "image has" if len(contents) == 1 else "images of the request together have"
            raise ProblemError(413, f"The {has} more than {self._settings.max_pixels:,} pixels.")
        try:
            await self._budget.take(pixels, seconds=self._settings.body_timeout)
        except TimeoutError:
            self._metrics.refused.labels("pixels").inc()
            raise ProblemError(
                503, "The service is decoding too many images; try again.", Retry_After="1"
            ) from None
        try:
            yield await loop.run_in_executor(self._threads, decode_all, contents)
        finally:
            self._budget.give_back(pixels)

    @asynccontextmanager
    async def in_records(
        self, fields: Mapping[str, Sequence[Any]], columns: Collection[str]
    ) -> AsyncIterator[Mapping[str, Sequence[Any]]]:
        """Put pixels in the place of the images in records, which are sent in base64.

        Other values of these columns stay as they are.

        * `fields`: The records of the fields of a request.
        * `columns`: The columns of images.
        """
        if not columns:
            yield fields
            return
        rows = {field: list(records) for field, records in fields.items()}
        contents, places = {}, []
        for field, records in rows.items():
            check_n_rows(len(records), self._settings)
            for i, record in enumerate(records):
                for name in columns if isinstance(record, dict) else ():
                    if isinstance(record.get(name), str):
                        where = f"{field}.{i}.{name}"
                        contents[where] = _from_base64(record[name], where)
                        places.append((records, i, name))
        async with self.decoded(contents) as images:
            for (records, i, name), image in zip(places, images, strict=True):
                records[i] = {**records[i], name: image}
            yield rows


def _from_base64(text: str, where: str) -> bytes:
    """Return the bytes of an image in base64 or in a data URL."""
    if text.startswith("data:"):
        text = text.partition(";base64,")[2]
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except ValueError:
        raise InputError(
            f"{where} is not {_AN_IMAGE} in base64; files that a record names are not read"
        ) from None


def count_pixels(contents: Mapping[str, bytes]) -> int:
    """Return the number of pixels that the headers of images state."""
    total = 0
    for where, content in contents.items():
        with _opened(content, where) as image:
            total += image.width * image.height
    return total


def decode_all(contents: Mapping[str, bytes]) -> list[np.ndarray]:
    """Return images as arrays (height, width, 3) of uint8, in RGB, as training reads them."""
    return [_decode(content, where) for where, content in contents.items()]


def _decode(content: bytes, where: str) -> np.ndarray:
    with _opened(content, where) as image:
        image.load()
        turned = upright(image)
        pixels = np.empty((turned.height, turned.width, 3), dtype=np.uint8)
        for top, strip in rgb_strips(turned, _STRIP):  # of all at once Pillow holds three copies
            pixels[top : top + strip.height] = np.asarray(strip)
        return pixels


@contextmanager
def _opened(content: bytes, where: str) -> Iterator[Any]:
    pillow = require("PIL.Image", "serve")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about sizes, which are checked here
            with pillow.open(io.BytesIO(content), formats=_FORMATS) as image:
                yield image
    except pillow.DecompressionBombError:
        raise ProblemError(413, "The image has too many pixels.") from None
    except Exception:  # decoders raise many kinds of errors for damaged files
        raise InputError(f"{where} is not {_AN_IMAGE}") from None
