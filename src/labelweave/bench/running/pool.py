"""Where cells run: in this process, in several on this machine, or on a Dask cluster.

joblib does the work; this module chooses its backend and reports a worker that dies.
"""

from __future__ import annotations

import importlib
import os
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, TypeVar

from labelweave.exceptions import InputError, require

BACKENDS = ("loky", "dask")
T = TypeVar("T")


class WorkerDiedError(Exception):
    """A worker process ended without an error message, as it does when memory runs out."""


@dataclass(frozen=True)
class Pool:
    """Workers for cells."""

    jobs: int = -1  # Number of cells at a time; -1 is one per core. 1 runs them in this process.
    threads: int = 1  # Threads per cell
    # {"loky", "dask"}: Processes of this machine, or the workers of a Dask cluster
    backend: str = "loky"
    # Address of the cluster's scheduler, such as ``"tcp://10.0.0.5:8786"``
    address: str | None = None
    # What the processes of this machine import when they start. loky ends a worker that has grown
    # by 300 MB since its first call, and torch, imported later, is more than that.
    modules: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.backend not in BACKENDS:
            raise InputError(f"backend is one of {', '.join(BACKENDS)}, not {self.backend!r}")
        if (self.backend == "dask") != (self.address is not None):
            raise InputError("an address of a scheduler is for the dask backend, which needs one")

    def describe(self) -> str:
        if self.backend == "dask":
            return f"Dask cluster at {self.address}"
        from joblib import effective_n_jobs

        number = effective_n_jobs(self.jobs)
        plural = "es" if number > 1 else ""
        return f"{number} process{plural}, {self.threads} thread{'s' * (self.threads > 1)} each"

    def workers(self) -> int:
        """Return the number of cells that run at a time; 1 for a cluster, where it is unknown."""
        from joblib import effective_n_jobs

        return 1 if self.backend == "dask" else effective_n_jobs(self.jobs)

    def map(self, function: Callable[..., T], calls: Iterable[tuple[Any, ...]]) -> Iterator[T]:
        """Yield results in the order in which they are ready; `calls` is read as workers are free.

        Raises WorkerDiedError if a process of this machine died; it is not known which call it ran.
        """
        if self.backend == "loky" and self.workers() == 1:
            for call in calls:
                yield function(*call)
            return
        from joblib import Parallel, delayed
        from joblib.externals.loky.process_executor import TerminatedWorkerError

        # One call at a time: batches would leave a worker idle at the end, and hide progress.
        options: dict[str, Any] = {"n_jobs": self.jobs, "batch_size": 1}
        options["return_as"] = "generator_unordered"
        if self.backend == "loky":
            options |= {"initializer": _start_worker, "initargs": (os.getpid(), self.modules)}
        with self._configured(), warnings.catch_warnings():
            parallel = Parallel(**options)
            # loky replaces a worker that has grown with large data: no reason for a warning.
            warnings.filterwarnings("ignore", "A worker stopped while some jobs", UserWarning)
            try:
                yield from parallel(delayed(function)(*call) for call in calls)
            except TerminatedWorkerError as error:
                raise WorkerDiedError(str(error).splitlines()[0]) from error

    @contextmanager
    def _configured(self) -> Iterator[None]:
        from joblib import parallel_config

        if self.backend == "loky":
            with parallel_config("loky", inner_max_num_threads=self.threads):
                yield
            return
        distributed = require("distributed", "dask")
        client: AbstractContextManager[Any] = nullcontext()
        try:
            client = distributed.Client(self.address, timeout="10s")
        except OSError as error:
            raise InputError(f"there is no Dask scheduler at {self.address}: {error}") from error
        with client, parallel_config("dask"):
            yield


def _start_worker(parent: int, modules: tuple[str, ...] = ()) -> None:
    """Let a process of this machine end with its parent, and import what it needs.

    A worker that outlived a killed run would go on for hours, and keep its cell from the next run.
    """
    threading.Thread(target=_end_with, args=[parent], daemon=True).start()
    for module in modules:
        importlib.import_module(module)


def _end_with(parent: int) -> None:
    while os.getppid() == parent:  # on Windows the number stays after the parent has ended
        time.sleep(1)
    os._exit(1)


def run_alone(function: Callable[..., T], *call: Any) -> T:
    """Run one call in a process of its own, so that the cell that ends it is known."""
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    with ProcessPoolExecutor(
        1, multiprocessing.get_context("spawn"), _start_worker, (os.getpid(),)
    ) as executor:
        try:
            return executor.submit(function, *call).result()
        except BrokenProcessPool as error:
            raise WorkerDiedError(str(error)) from error
