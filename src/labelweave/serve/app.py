"""The application: routes behind the gate."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp

from labelweave.serve import problems
from labelweave.serve.direct import DirectRoute
from labelweave.serve.gate import Gate
from labelweave.serve.routes import health, inference, models, page, prediction, reviews
from labelweave.serve.service import Service

__all__ = ["create_app"]


def create_app(service: Service) -> ASGIApp:
    """The ASGI application of a service; it starts and stops with it.

    Parameters
    ----------
    service : Service
    """
    settings = service.settings

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        await service.start()
        yield
        await service.stop()

    app = FastAPI(
        title="labelweave",
        version="1",
        description="Labels for vectors, records and texts.",
        openapi_url="/v1/openapi.json",
        docs_url=None,  # they would load scripts from the network
        redoc_url=None,
        lifespan=life,
        redirect_slashes=False,
    )
    app.state.service = service
    problems.install(app)
    for topic in (prediction, models, inference, health, reviews, page):
        app.include_router(topic.router)
    if settings.allowed_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(settings.allowed_origins),
            allow_methods=["GET", "POST", "PUT", "PATCH", "DELETE"],
            allow_headers=["Authorization", "Content-Type", "X-API-Key"],
        )
    # FastAPI's handling of a request would take most of the time of a small one: the routes that
    # carry the load are answered by the gate itself. Pages of other sites need the headers of
    # CORS, which FastAPI adds.
    direct = () if settings.allowed_origins else _direct_routes(service)
    return Gate(app, settings=settings, keys=service.keys, metrics=service.metrics, direct=direct)


def _direct_routes(service: Service) -> tuple[DirectRoute, ...]:
    def reached(answer: Any) -> Any:
        return lambda model, kind, body: answer(service, model, kind.decode("latin-1"), body)

    return (
        DirectRoute("/v1/models/{model}/predict", reached(prediction.answer_predict)),
        DirectRoute("/v2/models/{model}/infer", reached(inference.answer_infer)),
    )
