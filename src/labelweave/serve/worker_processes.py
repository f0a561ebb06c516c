"""Several processes that answer at one address: each a whole service, sharing only the database.

The first process opens the socket, starts the workers, and starts those that end again. A worker
ends with it: it watches the first process, and stops as after a signal when that has ended.
"""

from __future__ import annotations

import logging
import multiprocessing
import signal
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, Any

from labelweave.exceptions import LabelweaveError
from labelweave.serve.backoff import Backoff

if TYPE_CHECKING:
    from multiprocessing.context import SpawnProcess

__all__ = ["NOT_STARTED", "WorkerProcesses", "follow_parent"]

NOT_STARTED = 3  # the exit code of a worker whose service did not start
_LOOK_SECONDS = 0.5  # between two looks at the workers, and for a signal
_KILL_SECONDS = 15.0  # that a worker has in addition to its own time to stop
_log = logging.getLogger("labelweave.serve")
_spawn = multiprocessing.get_context("spawn")  # threads and event loops do not survive a fork


class _Worker:
    """The place of one worker, whose process may be replaced."""

    def __init__(self, restart_delay: float) -> None:
        self.process: SpawnProcess | None = None
        self.backoff = Backoff(restart_delay)
        self.is_first = True  # whether its first process runs, or has not been started yet


class WorkerProcesses:
    """Starts workers and keeps them running until a signal to stop arrives.

    * `n_workers`: How many.
    * `work`: What a worker does with the socket; it must be possible to pickle it.
    * `restart_delay`: Seconds until a worker that ended is started again; twice as many after each
      failure.
    * `stop_seconds`: What a worker takes to stop, at most.
    """

    def __init__(
        self,
        n_workers: int,
        work: Callable[[socket.socket], None],
        *,
        restart_delay: float,
        stop_seconds: float,
    ) -> None:
        self._work = work
        self._workers = [_Worker(restart_delay) for _ in range(n_workers)]
        self._stop_seconds = stop_seconds
        self._is_stopping = False

    @property
    def pids(self) -> list[int | None]:
        """The numbers of the processes."""
        return [None if one.process is None else one.process.pid for one in self._workers]

    def stop(self, *_: Any) -> None:
        """Let `run` end, with all workers."""
        self._is_stopping = True

    def run(self, listening: socket.socket) -> None:
        """Keep the workers running until `stop` is called or a signal to stop arrives."""
        if threading.current_thread() is threading.main_thread():
            for name in ("SIGINT", "SIGTERM"):
                signal.signal(getattr(signal, name), self.stop)
        try:
            while not self._is_stopping:
                for worker in self._workers:
                    self._look_after(worker, listening)
                running = [one.process.sentinel for one in self._workers if one.process is not None]
                wait(running, _LOOK_SECONDS)
        finally:
            self._end_all()

    def _look_after(self, worker: _Worker, listening: socket.socket) -> None:
        process = worker.process
        if process is not None and process.exitcode is not None:
            _log.error("worker %s has ended with code %s", process.pid, process.exitcode)
            if process.exitcode == NOT_STARTED and worker.is_first:
                raise LabelweaveError("a worker could not start: the log has the reason")
            worker.process, worker.is_first = None, False
            worker.backoff.failed()
        if worker.process is None and not worker.backoff.seconds_left:
            worker.process = _spawn.Process(target=self._work, args=(listening,))
            worker.process.start()
            worker.backoff.started()

    def _end_all(self) -> None:
        processes = [one.process for one in self._workers if one.process is not None]
        for process in processes:
            process.terminate()
        for process in processes:
            process.join(self._stop_seconds + _KILL_SECONDS)
            if process.is_alive():
                process.kill()
                process.join()


def follow_parent(stop: Callable[[], None]) -> None:
    """Call a function when the process that started this one has ended."""
    parent = multiprocessing.parent_process()
    assert parent is not None, "this process was not started by another one"

    def watch() -> None:
        with suppress(OSError):  # the parent has ended already
            parent.join()
        stop()

    threading.Thread(target=watch, daemon=True, name="parent").start()
