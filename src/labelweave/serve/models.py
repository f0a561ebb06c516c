"""The models of the service: loaded when first asked for, exchanged while others are answered."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from labelweave.exceptions import InputError
from labelweave.persistence import ModelInfo, model_info
from labelweave.serve.batching import QueueFullError, StoppedError
from labelweave.serve.loaded import Asked, LoadedModel, read_model
from labelweave.serve.metrics import ServiceMetrics
from labelweave.serve.problems import ProblemError
from labelweave.serve.settings import Settings

__all__ = ["Models", "ServedModel", "named_folders"]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_log = logging.getLogger("labelweave.serve")


def named_folders(arguments: Iterable[str]) -> dict[str, Path]:
    """Names and folders of the models to serve, from ``FOLDER`` or ``NAME=FOLDER``.

    >>> named_folders(["models/yeast", "tags=old/model"])
    {'yeast': PosixPath('models/yeast'), 'tags': PosixPath('old/model')}
    """
    found: dict[str, Path] = {}
    for argument in arguments:
        name, sign, folder = argument.partition("=")
        path = Path(folder if sign else argument)
        name = name if sign else path.resolve().name
        if not _NAME.fullmatch(name):
            raise InputError(
                f"{name!r} cannot be the name of a model in an address: give NAME={path}"
            )
        if name in found:
            raise InputError(f"two models are called {name!r}: give one of them as NAME={path}")
        found[name] = path
    return found


class ServedModel:
    """One model by its name; which one is in memory may change."""

    def __init__(
        self,
        name: str,
        folder: Path,
        settings: Settings,
        metrics: ServiceMetrics,
        prepare: Callable[[str, LoadedModel], None],
    ) -> None:
        self.name = name
        self.folder = folder
        self.info: ModelInfo = model_info(folder)
        self.lock = asyncio.Lock()  # held while the model or its labels change
        self.current: LoadedModel | None = None
        self.failed = False
        self._settings = settings
        self._metrics = metrics
        self._prepare = prepare
        self._retiring: set[asyncio.Task[None]] = set()
        self._stopping = False

    @property
    def state(self) -> str:
        """Whether it can answer at once."""
        if self.current is not None:
            return "ready"
        return "failed" if self.failed else "not loaded"

    async def loaded(self) -> LoadedModel:
        """The model, loaded if it is not yet."""
        if self.current is not None:
            return self.current
        async with self.lock:
            if self.current is None:
                self.current = await self._load()
            return self.current

    async def reload(self) -> None:
        """Read the folder again; requests go to the old model until the new one is ready."""
        async with self.lock:
            await self.replace()

    async def replace(self) -> None:
        """As `reload`, where the lock is held already."""
        old, self.current = self.current, await self._load()
        if old is not None:
            task = asyncio.create_task(old.batcher.close())
            self._retiring.add(task)
            task.add_done_callback(self._retiring.discard)

    async def predict(self, make: Callable[[LoadedModel], Asked]) -> Any:
        """What a request wants, which `make` checks against the model that will answer."""
        for _ in range(3):
            loaded = await self.loaded()
            asked = make(loaded)
            try:
                return await loaded.batcher.submit(asked, rows=len(asked.X))
            except StoppedError:  # exchanged in between: the new one answers
                continue
            except QueueFullError:
                raise self.busy() from None
        raise self.leaving()

    async def call(self, function: Callable[[LoadedModel], Any]) -> Any:
        """The result of a function of the model, on the model's thread."""
        for _ in range(3):
            loaded = await self.loaded()
            try:
                return await loaded.batcher.call(partial(function, loaded))
            except StoppedError:
                continue
            except QueueFullError:
                raise self.busy() from None
        raise self.leaving()

    async def close(self) -> None:
        """Finish what was accepted."""
        self._stopping = True
        if self.current is not None:
            await self.current.batcher.close()
        await asyncio.gather(*self._retiring)

    async def _load(self) -> LoadedModel:
        if self._stopping:
            raise self.leaving()
        try:
            loaded = await asyncio.to_thread(self._read)
        except Exception:
            self.failed = True
            raise
        self.failed = False
        return loaded

    def _read(self) -> LoadedModel:
        info = model_info(self.folder)
        model, feature_names = read_model(self.folder, self._settings.threads)
        loaded = LoadedModel(self.name, model, feature_names, self._settings, self._metrics)
        self._prepare(self.name, loaded)
        self.info = info
        _log.info("model %s loaded: %d labels", self.name, len(model.label_names_))
        return loaded

    def busy(self) -> ProblemError:
        """The answer to a request for which there is no room."""
        self._metrics.refused.labels("queue full").inc()
        return ProblemError(
            429, "Too many requests wait for this model; try again.", Retry_After="1"
        )

    @staticmethod
    def leaving() -> ProblemError:
        """The answer to a request that comes too late."""
        return ProblemError(503, "The service is about to stop.", Retry_After="5")


class Models:
    """All models of the service."""

    def __init__(
        self,
        folders: dict[str, Path],
        settings: Settings,
        metrics: ServiceMetrics,
        prepare: Callable[[str, LoadedModel], None],
    ) -> None:
        if not folders:
            raise InputError("there is no model to serve: name at least one folder")
        self._metrics = metrics
        self._served = {
            name: ServedModel(name, folder, settings, metrics, prepare)
            for name, folder in folders.items()
        }

    def __iter__(self) -> Iterator[ServedModel]:
        return iter(self._served.values())

    def get(self, name: str) -> ServedModel:
        """The model of this name, or a problem."""
        if name not in self._served:
            raise ProblemError(404, "There is no model of this name.")
        return self._served[name]

    def observe(self) -> None:
        """Write the lengths of the queues into the metrics."""
        for served in self:
            depth = 0 if served.current is None else served.current.batcher.depth
            self._metrics.queue.labels(served.name).set(depth)

    async def close(self) -> None:
        """Finish what was accepted by any model."""
        await asyncio.gather(*(served.close() for served in self))
