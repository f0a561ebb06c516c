"""What the routes share: the models, the stored state, the keys and the metrics."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from fastapi import Request
from sqlalchemy.exc import SQLAlchemyError

from labelweave.serve.image_requests import ImageDecoder
from labelweave.serve.label_changes import catch_up, replay
from labelweave.serve.label_relations import Cooccurrence
from labelweave.serve.loaded_model import LoadedModel
from labelweave.serve.middleware import KeyRing
from labelweave.serve.prometheus_metrics import ServiceMetrics
from labelweave.serve.review_queues import ReviewQueue
from labelweave.serve.served_models import Models, ServedModel
from labelweave.serve.settings import Settings
from labelweave.serve.state.database import open_database
from labelweave.serve.state.service_store import Store

__all__ = ["Service", "service_of"]

_log = logging.getLogger("labelweave.serve")


class Service:
    """The state that all routes of one process share.

    * `folders`: The folders of the models, by the names under which they are served.
    * `queues`: The lists of likely missing labels to review.
    * `cooccurrence`: How often labels occur together in a data set, for the page.
    * `preload`: Load all models at the start instead of at their first request.
    """

    def __init__(
        self,
        folders: Mapping[str, Path],
        settings: Settings,
        queues: Mapping[str, ReviewQueue] | None = None,
        *,
        cooccurrence: Cooccurrence | None = None,
        preload: bool = False,
    ) -> None:
        self.settings = settings
        self.metrics = ServiceMetrics()
        self.store = Store(open_database(settings.database))
        self.keys = KeyRing(self.store.key_hashes())
        self.models = Models(
            dict(folders),
            settings,
            self.metrics,
            prepare=self._apply_stored_changes,
        )
        self.images = ImageDecoder(settings, self.metrics)
        self.queues = dict(queues or {})
        self.cooccurrence = cooccurrence
        self.preload = preload
        self.is_stopping = False
        self._polling: asyncio.Task[None] | None = None

    def _apply_stored_changes(self, served: ServedModel, loaded: LoadedModel) -> None:
        """Apply the label changes of the database or, if it fails, those that are known."""
        try:
            served.changes = self.store.changes(served.name)
        except SQLAlchemyError:
            if not served.changes:
                raise
            _log.warning("the database does not respond; label changes are those of memory")
        replay(loaded, served.changes)

    async def start(self) -> None:
        """Load the models if `preload` is set, and start to poll the database for changes."""
        if self.preload:
            for served in self.models:
                await served.loaded()
        self._polling = asyncio.create_task(self._poll())

    async def stop(self) -> None:
        """Finish the accepted requests, then close the database."""
        self.is_stopping = True
        if self._polling is not None:
            self._polling.cancel()
            with suppress(asyncio.CancelledError):
                await self._polling
        await self.models.close()
        self.store.engine.dispose()

    async def _poll(self) -> None:
        """Follow the keys and label changes that other replicas write to the database."""
        while True:
            await asyncio.sleep(self.settings.poll)
            for served in self.models:
                served.recover()
            try:
                self.keys.stored_hashes = await asyncio.to_thread(self.store.key_hashes)
                versions = await asyncio.to_thread(self.store.versions)
                for served in self.models:
                    loaded = served.current
                    if loaded is not None and versions.get(served.name, 0) > loaded.version:
                        await catch_up(served, self.store)
            except SQLAlchemyError as error:
                _log.warning("the database does not respond (%s)", type(error).__name__)
            except Exception:
                _log.exception("changes of other replicas could not be applied")


def service_of(request: Request) -> Service:
    """Return the service that a request was sent to."""
    return request.app.state.service
