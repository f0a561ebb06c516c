"""The application: routes behind the gate."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI
from starlette.middleware.cors import CORSMiddleware

from labelweave.serve import problems
from labelweave.serve.direct import direct_route
from labelweave.serve.gate import Gate
from labelweave.serve.routes import health, inference, models, page, prediction, reviews
from labelweave.serve.service import Service

__all__ = ["create_app"]


def create_app(service: Service) -> FastAPI:
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
    # Half of the time of a small request would go into FastAPI's handling of parameters: the
    # routes that carry the load are reached directly, and stay above for the document.
    app.router.routes[:0] = [
        direct_route("/v1/models/{model}/predict", prediction.predict),
        direct_route("/v2/models/{model}/infer", inference.infer),
    ]
    if settings.allowed_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(settings.allowed_origins),
            allow_methods=["GET", "POST", "PUT", "PATCH", "DELETE"],
            allow_headers=["Authorization", "Content-Type", "X-API-Key"],
        )
    app.add_middleware(Gate, settings=settings, keys=service.keys, metrics=service.metrics)
    return app
