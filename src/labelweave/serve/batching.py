"""Requests that arrive together are predicted together, on a thread beside the event loop."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

__all__ = ["Batcher", "QueueFullError", "StoppedError"]


class QueueFullError(Exception):
    """So many requests wait that another one is refused."""


class StoppedError(Exception):
    """The batcher takes no more requests."""


@dataclass(eq=False, slots=True)
class _Job:
    rows: int
    content: Any
    future: asyncio.Future[Any]
    alone: bool


class Batcher:
    """A queue, and one thread that works it off in order.

    While a batch is computed, requests gather; the next batch takes all of them, up to
    `max_batch` rows. Where the last batch held several requests more are likely on their way, and
    it waits for them, `max_wait` at most; a client that is alone never waits.

    Parameters
    ----------
    run : callable
        From a list of contents to a list of results, one each; called on the thread. A result
        that is an exception is raised for its request. Where the whole call raises, the contents
        are tried one by one.
    max_batch : int
        Rows of a batch; a single larger request is a batch of its own.
    max_wait : float
        Seconds.
    max_queue : int
        Requests that may wait; :class:`QueueFullError` is raised for more.
    on_batch : callable, optional
        Told the number of rows of each batch.

    Examples
    --------
    >>> async def main():
    ...     batcher = Batcher(lambda batch: [2 * content for content in batch])
    ...     results = await asyncio.gather(*(batcher.submit(i, rows=1) for i in range(3)))
    ...     await batcher.close()
    ...     return results
    >>> asyncio.run(main())
    [0, 2, 4]
    """

    def __init__(
        self,
        run: Callable[[list[Any]], Sequence[Any]],
        *,
        max_batch: int = 256,
        max_wait: float = 0.002,
        max_queue: int = 1024,
        on_batch: Callable[[int], None] | None = None,
    ) -> None:
        self._run = run
        self.max_batch = max_batch
        self.max_wait = max_wait
        self.max_queue = max_queue
        self._on_batch = on_batch
        self._waiting: deque[_Job] = deque()
        self._arrived = asyncio.Event()
        self._enough = asyncio.Event()  # rows for a whole batch
        self._rows = 0
        self._several = False
        self._closing = False
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="predict")
        self._task: asyncio.Task[None] | None = None

    @property
    def depth(self) -> int:
        """Requests that wait."""
        return len(self._waiting)

    async def submit(self, content: Any, *, rows: int) -> Any:
        """The result for one request, computed with others."""
        return await self._put(_Job(rows, content, self._future(), alone=False))

    async def call(self, function: Callable[[], Any]) -> Any:
        """The result of a function that runs on the thread, between two batches."""
        return await self._put(_Job(0, function, self._future(), alone=True))

    async def close(self) -> None:
        """Take no more, and return when everything accepted is done."""
        self._closing = True
        self._arrived.set()
        self._enough.set()
        if self._task is not None:
            await self._task
        self._thread.shutdown(wait=False)

    @staticmethod
    def _future() -> asyncio.Future[Any]:
        return asyncio.get_running_loop().create_future()

    async def _put(self, job: _Job) -> Any:
        if self._closing:
            raise StoppedError
        if len(self._waiting) >= self.max_queue:
            raise QueueFullError
        if self._task is None:
            self._task = asyncio.create_task(self._work())
        self._waiting.append(job)
        self._rows += job.rows
        self._arrived.set()
        if self._rows >= self.max_batch:
            self._enough.set()
        return await job.future

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        while batch := await self._next_batch():
            results = await loop.run_in_executor(self._thread, self._compute, batch)
            for job, (result, error) in zip(batch, results, strict=True):
                if job.future.done():  # its client has gone
                    continue
                if error is None:
                    job.future.set_result(result)
                else:
                    job.future.set_exception(error)

    async def _next_batch(self) -> list[_Job]:
        """The next jobs to do together; none when the batcher is closed and has nothing left."""
        while not self._waiting:
            if self._closing:
                return []
            self._arrived.clear()
            await self._arrived.wait()
        if self._waiting[0].alone:
            return [self._waiting.popleft()]
        await self._wait_for_more()
        batch: list[_Job] = []
        rows = 0
        while self._waiting and not self._waiting[0].alone:
            rows += self._waiting[0].rows
            if batch and rows > self.max_batch:
                break
            batch.append(self._waiting.popleft())
        taken = sum(job.rows for job in batch)
        self._rows -= taken
        self._several = len(batch) > 1
        if self._on_batch is not None:
            self._on_batch(taken)
        return batch

    async def _wait_for_more(self) -> None:
        await asyncio.sleep(0)  # what has been read already may still enter
        if not self._several or not self.max_wait or self._closing or self._rows >= self.max_batch:
            return
        self._enough.clear()
        try:
            async with asyncio.timeout(self.max_wait):
                await self._enough.wait()
        except TimeoutError:
            pass

    def _compute(self, batch: list[_Job]) -> list[tuple[Any, Exception | None]]:
        """Results and errors; where a batch fails its requests are tried one by one."""
        if batch[0].alone:
            return [_attempt(batch[0].content)]
        contents = [job.content for job in batch]
        results, error = _attempt(lambda: self._run(contents))
        if error is None:
            return [_told_apart(result) for result in results]
        if len(batch) == 1:
            return [(None, error)]
        found = []
        for content in contents:
            one, error = _attempt(partial(self._run, [content]))
            found.append((None, error) if error else _told_apart(one[0]))
        return found


def _told_apart(result: Any) -> tuple[Any, Exception | None]:
    return (None, result) if isinstance(result, Exception) else (result, None)


def _attempt(function: Callable[[], Any]) -> tuple[Any, Exception | None]:
    try:
        return function(), None
    except Exception as error:
        return None, error
