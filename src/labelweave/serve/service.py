"""Everything that the routes share, from start to stop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from fastapi import Request
from sqlalchemy.exc import SQLAlchemyError

from labelweave.serve.cooccurrence import Cooccurrence
from labelweave.serve.gate import KeyRing
from labelweave.serve.label_changes import catch_up, replay
from labelweave.serve.loaded import LoadedModel
from labelweave.serve.metrics import ServiceMetrics
from labelweave.serve.models import Models
from labelweave.serve.reviews import ReviewQueue
from labelweave.serve.settings import Settings
from labelweave.serve.state.database import open_database
from labelweave.serve.state.store import Store

__all__ = ["Service", "service_of"]

_log = logging.getLogger("labelweave.serve")


class Service:
    """Models, state, keys and figures of one process."""

    def __init__(
        self,
        folders: Mapping[str, Path],
        settings: Settings,
        queues: Mapping[str, ReviewQueue] | None = None,
        *,
        together: Cooccurrence | None = None,
        preload: bool = False,
    ) -> None:
        self.settings = settings
        self.metrics = ServiceMetrics()
        self.store = Store(open_database(settings.database))
        self.keys = KeyRing(self.store.key_hashes())
        self.models = Models(dict(folders), settings, self.metrics, self._prepare)
        self.queues = dict(queues or {})
        self.together = together
        self.preload = preload
        self.is_stopping = False
        self._watch: asyncio.Task[None] | None = None

    def _prepare(self, name: str, loaded: LoadedModel) -> None:
        replay(loaded, self.store.changes(name))

    async def start(self) -> None:
        """Load the models, if that was asked for, and begin to look at what others change."""
        if self.preload:
            for served in self.models:
                await served.loaded()
        self._watch = asyncio.create_task(self._look_around())

    async def stop(self) -> None:
        """Finish what was accepted, then close the database."""
        self.is_stopping = True
        if self._watch is not None:
            self._watch.cancel()
            with suppress(asyncio.CancelledError):
                await self._watch
        await self.models.close()
        self.store.engine.dispose()

    async def _look_around(self) -> None:
        while True:
            await asyncio.sleep(self.settings.poll)
            try:
                self.keys.hashes = await asyncio.to_thread(self.store.key_hashes)
                versions = await asyncio.to_thread(self.store.versions)
                for served in self.models:
                    loaded = served.current
                    if loaded is not None and versions.get(served.name, 0) > loaded.version:
                        await catch_up(served, self.store)
            except asyncio.CancelledError:
                raise
            except SQLAlchemyError as error:
                _log.warning("the database does not answer (%s)", type(error).__name__)
            except Exception:
                _log.exception("changes of other replicas could not be applied")


def service_of(request: Request) -> Service:
    """The service that a request belongs to."""
    return request.app.state.service
