"""The models of the service: loaded at their first request, replaced without a pause."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from labelweave.exceptions import InputError
from labelweave.persistence import ModelInfo, model_info
from labelweave.serve.backoff import Backoff
from labelweave.serve.batching import QueueFullError, StoppedError
from labelweave.serve.loaded_model import LoadedModel, PreparedRequest
from labelweave.serve.model_process import ModelCrashedError, ModelInService, ModelProcess
from labelweave.serve.problems import ProblemError
from labelweave.serve.prometheus_metrics import ServiceMetrics
from labelweave.serve.settings import Settings
from labelweave.serve.state.service_store import Change

__all__ = ["Models", "ServedModel", "named_folders"]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_log = logging.getLogger("labelweave.serve")


def named_folders(arguments: Iterable[str]) -> dict[str, Path]:
    """Return folders by model name, from arguments of the form ``FOLDER`` or ``NAME=FOLDER``.

    >>> named_folders(["models/yeast", "tags=old/model"])
    {'yeast': PosixPath('models/yeast'), 'tags': PosixPath('old/model')}
    """
    folders: dict[str, Path] = {}
    for argument in arguments:
        name, sign, folder = argument.partition("=")
        path = Path(folder if sign else argument)
        name = name if sign else path.resolve().name
        if not _NAME.fullmatch(name):
            raise InputError(
                f"{name!r} cannot be used as the name of a model in an address: write NAME={path}"
            )
        if name in folders:
            raise InputError(f"two models have the name {name!r}: rename one with NAME={path}")
        folders[name] = path
    return folders


class ServedModel:
    """A served model: its name, its folder, and the current version in memory.

    * `in_process`: Whether the model is loaded in a process of its own.
    * `prepare`: Applies the stored label changes to a model that was just loaded.
    """

    def __init__(
        self,
        name: str,
        folder: Path,
        settings: Settings,
        metrics: ServiceMetrics,
        prepare: Callable[[ServedModel, LoadedModel], None],
        *,
        in_process: bool,
    ) -> None:
        self.name = name
        self.folder = folder
        self.info: ModelInfo = model_info(folder, trusted_keys=settings.trusted_keys)
        self.lock = asyncio.Lock()  # held while the model or its labels are changed
        self.current: LoadedModel | None = None
        self.changes: list[tuple[int, Change]] = []  # the label changes that are known to be stored
        self._host = ModelProcess if in_process else ModelInService
        self._has_failed = False  # at the last attempt to load it, or since
        self._backoff = Backoff(settings.restart_delay)
        self._settings = settings
        self._metrics = metrics
        self._prepare = prepare
        self._tasks: set[asyncio.Task[None]] = set()
        self._stopping = False

    @property
    def state(self) -> str:
        """ "ready", "not loaded", or "failed" if there is no model because of a failure."""
        if self.current is not None:
            return "ready"
        return "failed" if self._has_failed else "not loaded"

    async def loaded(self) -> LoadedModel:
        """Return the model in memory, and load it first if necessary."""
        if self.current is not None:
            return self.current
        async with self.lock:
            if self.current is None:
                if wait := self._backoff.seconds_left:
                    raise self._not_ready(wait)
                self.current = await self._load()
            return self.current

    def recover(self) -> None:
        """Begin to load a model that has failed, if it is time to."""
        loaded = self.current
        if loaded is not None and not loaded.host.is_alive:
            self.crashed(loaded)
        is_time = self.state == "failed" and not self._backoff.seconds_left
        if is_time and not self.lock.locked() and not self._stopping:
            self._start(self._try_to_load())

    async def _try_to_load(self) -> None:
        try:
            await self.loaded()
        except Exception as error:
            _log.warning("model %s cannot be loaded: %s", self.name, error)

    async def reload(self) -> None:
        """Load the folder again; the old model answers until the new one is ready."""
        async with self.lock:
            await self.replace()

    async def replace(self) -> None:
        """Do what `reload` does, for callers that hold the lock."""
        old, self.current = self.current, await self._load()
        self._retire(old)

    def drop(self, loaded: LoadedModel) -> None:
        """Answer no more requests with a model; the next request loads the folder again."""
        if self.current is loaded:
            self.current = None
            self._retire(loaded)

    def crashed(self, loaded: LoadedModel) -> ProblemError:
        """Drop a model whose process has ended, and return the problem to respond with."""
        if self.current is loaded:
            _log.error("the process of the model %s has ended", self.name)
            self.drop(loaded)
            self._note_failure()
        return self._not_ready(self._backoff.seconds_left)

    def _retire(self, loaded: LoadedModel | None) -> None:
        if loaded is not None:
            self._start(loaded.close())

    def _start(self, coroutine: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _note_failure(self) -> None:
        self._has_failed = True
        self._backoff.failed()

    @staticmethod
    def _not_ready(wait: float) -> ProblemError:
        return ProblemError(
            503,
            "The model cannot be used at the moment; the log of the service has the reason.",
            Retry_After=str(max(1, int(wait) + 1)),
        )

    async def predict(self, prepare: Callable[[LoadedModel], PreparedRequest]) -> Any:
        """Return the result of a request, which `prepare` checks against the model that answers."""

        def submit(loaded: LoadedModel) -> Awaitable[Any]:
            request = prepare(loaded)
            return loaded.batcher.submit(request, rows=len(request.X))

        return await self._submit(submit)

    async def call(self, function: Callable[[LoadedModel], Any]) -> Any:
        """Return the result of a function of the model, which runs on the model's thread."""
        return await self._submit(lambda loaded: loaded.batcher.call(partial(function, loaded)))

    async def _submit(self, submit: Callable[[LoadedModel], Awaitable[Any]]) -> Any:
        for _ in range(3):
            loaded = await self.loaded()
            try:
                return await submit(loaded)
            except ModelCrashedError:
                raise self.crashed(loaded) from None
            except StoppedError:  # the model was replaced in between: ask the new one
                continue
            except QueueFullError:
                raise self.queue_full() from None
        raise self.stopping()

    async def close(self) -> None:
        """Finish the accepted requests."""
        self._stopping = True
        await asyncio.gather(*self._tasks)
        if self.current is not None:
            await self.current.close()

    async def _load(self) -> LoadedModel:
        if self._stopping:
            raise self.stopping()
        try:
            loaded = await asyncio.to_thread(self._read)
        except Exception:
            self._note_failure()
            raise
        self._has_failed = False
        self._backoff.started()
        return loaded

    def _read(self) -> LoadedModel:
        settings = self._settings
        info = model_info(self.folder, trusted_keys=settings.trusted_keys)
        host = self._host(self.folder, settings.threads, settings.trusted, settings.trusted_keys)
        try:
            loaded = LoadedModel(self.name, host, settings, self._metrics)
            self._prepare(self, loaded)
        except BaseException:
            host.close()
            raise
        self.info = info
        _log.info("model %s loaded: %d labels", self.name, len(loaded.label_names))
        return loaded

    def queue_full(self) -> ProblemError:
        """Count a refused request and return the problem to respond with."""
        self._metrics.refused.labels("queue full").inc()
        return ProblemError(
            429, "Too many requests are waiting for this model; try again.", Retry_After="1"
        )

    @staticmethod
    def stopping() -> ProblemError:
        """Return the problem to respond with while the service stops."""
        return ProblemError(503, "The service is stopping.", Retry_After="5")


class Models:
    """All models of the service."""

    def __init__(
        self,
        folders: dict[str, Path],
        settings: Settings,
        metrics: ServiceMetrics,
        prepare: Callable[[ServedModel, LoadedModel], None],
    ) -> None:
        if not folders:
            raise InputError("there is no model to serve: name at least one folder")
        self._metrics = metrics
        in_process = settings.model_processes
        if in_process is None:
            in_process = len(folders) > 1
        self._served = {
            name: ServedModel(name, folder, settings, metrics, prepare, in_process=in_process)
            for name, folder in folders.items()
        }

    def __iter__(self) -> Iterator[ServedModel]:
        return iter(self._served.values())

    def get(self, name: str) -> ServedModel:
        """Return the model of this name; raise a 404 problem if there is none."""
        if name not in self._served:
            raise ProblemError(404, "There is no model with this name.")
        return self._served[name]

    def observe(self) -> None:
        """Update the metrics of the queue lengths."""
        for served in self:
            depth = 0 if served.current is None else served.current.batcher.depth
            self._metrics.queue.labels(served.name).set(depth)

    async def close(self) -> None:
        """Finish the accepted requests of all models."""
        await asyncio.gather(*(served.close() for served in self))
