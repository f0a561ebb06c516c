"""Predicting requests that arrive together as one batch, on a thread of its own."""

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
    """The queue is full, so the request is refused."""


class StoppedError(Exception):
    """The batcher is closed and accepts no more requests."""


@dataclass(eq=False, slots=True)
class _Job:
    rows: int
    content: Any
    future: asyncio.Future[Any]
    alone: bool


class Batcher:
    """A queue of requests, and one thread that processes them in order.

    Requests that arrive while a batch is computed form the next batch, up to `max_batch` rows.
    If the last batch had several requests, more are likely to arrive soon, so the next batch
    waits for them for up to `max_wait` seconds. A single client therefore never waits.

    * `run`: Maps a list of contents to a list of results; called on the thread. A result that is an
      exception is raised for its request. If the call itself raises, the contents are tried one by
      one.
    * `max_batch`: Maximum number of rows per batch; a single larger request is a batch of its own.
    * `max_wait`: Maximum number of seconds to wait for more requests.
    * `max_queue`: Number of requests that may wait; :class:`QueueFullError` is raised for more.
    * `on_batch`: Called with the number of rows of each batch.

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
        self._batch_full = asyncio.Event()
        self._rows = 0
        self._last_had_several = False
        self._closing = False
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="predict")
        self._task: asyncio.Task[None] | None = None

    @property
    def depth(self) -> int:
        """The number of waiting requests."""
        return len(self._waiting)

    async def submit(self, content: Any, *, rows: int) -> Any:
        """Return the result of one request, computed together with others."""
        return await self._put(_Job(rows, content, self._future(), alone=False))

    async def call(self, function: Callable[[], Any]) -> Any:
        """Return the result of a function that runs on the thread, between two batches."""
        return await self._put(_Job(0, function, self._future(), alone=True))

    async def close(self) -> None:
        """Accept no more requests, and return when all accepted ones are finished."""
        self._closing = True
        self._arrived.set()
        self._batch_full.set()
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
            self._batch_full.set()
        return await job.future

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        while batch := await self._next_batch():
            results = await loop.run_in_executor(self._thread, self._compute, batch)
            for job, (result, error) in zip(batch, results, strict=True):
                if job.future.done():  # the client has disconnected
                    continue
                if error is None:
                    job.future.set_result(result)
                else:
                    job.future.set_exception(error)

    async def _next_batch(self) -> list[_Job]:
        """Return the jobs to process together; none once the batcher is closed and empty."""
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
        n_rows = sum(job.rows for job in batch)
        self._rows -= n_rows
        self._last_had_several = len(batch) > 1
        if self._on_batch is not None:
            self._on_batch(n_rows)
        return batch

    async def _wait_for_more(self) -> None:
        await asyncio.sleep(0)  # requests that were already received may still be queued
        may_wait = self._last_had_several and self.max_wait > 0 and not self._closing
        if not may_wait or self._rows >= self.max_batch:
            return
        self._batch_full.clear()
        try:
            async with asyncio.timeout(self.max_wait):
                await self._batch_full.wait()
        except TimeoutError:
            pass

    def _compute(self, batch: list[_Job]) -> list[tuple[Any, Exception | None]]:
        """Return results and errors; if a batch fails, its requests are tried one by one."""
        if batch[0].alone:
            return [_attempt(batch[0].content)]
        contents = [job.content for job in batch]
        results, error = _attempt(lambda: self._run(contents))
        if error is None:
            return [_result_or_error(result) for result in results]
        if len(batch) == 1:
            return [(None, error)]
        outcomes = []
        for content in contents:
            results, error = _attempt(partial(self._run, [content]))
            outcomes.append((None, error) if error else _result_or_error(results[0]))
        return outcomes


def _result_or_error(result: Any) -> tuple[Any, Exception | None]:
    return (None, result) if isinstance(result, Exception) else (result, None)


def _attempt(function: Callable[[], Any]) -> tuple[Any, Exception | None]:
    try:
        return function(), None
    except Exception as error:
        return None, error
