"""The ASGI application of a service, and the server that runs it."""

from __future__ import annotations

import logging
import os
import secrets
import socket
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import uvicorn
from fastapi import FastAPI
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp

from labelweave.exceptions import InputError, LabelweaveError
from labelweave.serve.connection_limits import limited_protocol
from labelweave.serve.middleware import DirectRoute, ProtectionMiddleware
from labelweave.serve.model_process import ignore_expected_warnings
from labelweave.serve.problems import install_handlers
from labelweave.serve.routes import health, inference, models, page, predictions, reviews
from labelweave.serve.service import Service
from labelweave.serve.settings import Settings
from labelweave.serve.state.service_store import MIN_KEY_LENGTH, key_hash
from labelweave.serve.worker_processes import NOT_STARTED, WorkerProcesses, follow_parent

__all__ = ["create_app", "run", "run_workers", "server_options"]

SHUTDOWN_SECONDS = 30  # in which accepted requests may finish after a signal to stop
_BACKLOG = 2048
_log = logging.getLogger("labelweave.serve")


def create_app(service: Service) -> ASGIApp:
    """Return the ASGI application of a service, which starts and stops with the application."""
    settings = service.settings

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        await service.start()
        yield
        await service.stop()

    app = FastAPI(
        title="labelweave",
        version="1",
        description="Predict the labels of vectors, records, texts and images.",
        openapi_url="/v1/openapi.json",
        docs_url=None,  # the interactive documentation would load scripts from the network
        redoc_url=None,
        lifespan=lifespan,
        redirect_slashes=False,
    )
    app.state.service = service
    install_handlers(app)
    for module in (predictions, models, inference, health, reviews, page):
        app.include_router(module.router)
    if settings.allowed_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(settings.allowed_origins),
            allow_methods=["GET", "POST", "PUT", "PATCH", "DELETE"],
            allow_headers=["Authorization", "Content-Type", "X-API-Key"],
        )
    # FastAPI's own handling would take most of the time of a small request, so the middleware
    # answers the two busiest routes itself. With CORS it cannot, because FastAPI adds its headers.
    return ProtectionMiddleware(
        app,
        settings=settings,
        keys=service.keys,
        metrics=service.metrics,
        direct_routes=() if settings.allowed_origins else _direct_routes(service),
    )


def _direct_routes(service: Service) -> tuple[DirectRoute, ...]:
    def bind(respond: Any) -> Any:
        return lambda model, kind, body: respond(service, model, kind.decode("latin-1"), body)

    return (
        DirectRoute("/v1/models/{model}/predict", bind(predictions.predict_response)),
        DirectRoute("/v2/models/{model}/infer", bind(inference.infer_response)),
    )


def server_options(settings: Settings) -> dict[str, Any]:
    """Return the options with which uvicorn is started."""
    return {
        "host": settings.host,
        "port": settings.port,
        "http": limited_protocol(settings),
        "log_config": None,
        "access_log": False,  # the middleware writes one, without the content of requests
        "server_header": False,
        "proxy_headers": False,  # clients could forge the address that these headers state
        "timeout_graceful_shutdown": SHUTDOWN_SECONDS,
        "timeout_keep_alive": 30,
        "limit_concurrency": 4096,
        "backlog": _BACKLOG,
        "ws": "none",
    }


def run(
    service: Service,
    *,
    key: str | None = None,
    access_log: bool = True,
    on_start: Callable[[str, str | None], None] | None = None,
) -> None:
    """Run the service until a signal to stop arrives, then finish the accepted requests.

    * `key`: An API key that is valid in addition to those of the database.
    * `access_log`: Whether to log one line per request.
    * `on_start`: Called with the address of the page and with the key that was generated for this
      process (None if there is another valid key).
    """
    _set_up_process(access_log)
    generated = _add_process_key(service, key)
    _announce(service, generated, on_start)
    uvicorn.run(create_app(service), **server_options(service.settings))


def run_workers(
    make_service: Callable[[], Service],
    n_workers: int,
    *,
    key: str | None = None,
    access_log: bool = True,
    on_start: Callable[[str, str | None], None] | None = None,
) -> None:
    """Run several processes with a service each at one address, until a signal to stop arrives.

    * `make_service`: Makes the service of a process; it must be possible to pickle it.
    * Others: those of `run`.
    """
    _set_up_process(access_log)
    service = make_service()  # what is wrong with the folders or the database is found here
    settings = service.settings
    generated = _add_process_key(service, key)
    service.store.engine.dispose()
    work = partial(_work, make_service, dict(service.keys.process_hashes), access_log)
    workers = WorkerProcesses(
        n_workers,
        work,
        restart_delay=settings.restart_delay,
        stop_seconds=SHUTDOWN_SECONDS,
    )
    with _listen(settings) as listening:
        _announce(service, generated, on_start)
        workers.run(listening)


def _listen(settings: Settings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        return socket.create_server((settings.host, settings.port), family=family, backlog=_BACKLOG)
    except OSError as error:
        raise InputError(
            f"the service cannot listen on {settings.host}, port {settings.port}: {error.strerror}"
        ) from None


def _work(
    make_service: Callable[[], Service],
    key_hashes: Mapping[str, str],
    access_log: bool,
    listening: socket.socket,
) -> None:
    """Run the service of one worker."""
    _set_up_process(access_log)
    try:
        service = make_service()
    except LabelweaveError as error:
        _log.error("%s", error)
        sys.exit(NOT_STARTED)
    service.keys.process_hashes.update(key_hashes)
    config = uvicorn.Config(create_app(service), **server_options(service.settings))
    server = uvicorn.Server(config)
    follow_parent(partial(setattr, server, "should_exit", True))
    server.run([listening])
    if not server.started:
        sys.exit(NOT_STARTED)


def _set_up_process(access_log: bool) -> None:
    """Set up logging, and let torch make no folder, in this process and those that it starts."""
    # Encoders import torch's compiler, which is not used, but makes this folder if there is none.
    os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", sys.prefix)
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(name)s %(message)s")
    logging.getLogger("labelweave.serve").setLevel(logging.INFO)
    logging.getLogger("labelweave.access").setLevel(logging.INFO if access_log else logging.WARNING)
    ignore_expected_warnings()


def _announce(
    service: Service, generated: str | None, on_start: Callable[[str, str | None], None] | None
) -> None:
    if on_start is not None:
        host, port = service.settings.host, service.settings.port
        address = f"http://{f'[{host}]' if ':' in host else host}:{port}/"
        # A browser neither sends nor logs what follows the #.
        on_start(address + (f"#key={generated}" if generated else ""), generated)


def _add_process_key(service: Service, key: str | None) -> str | None:
    """Accept `key` in this process, or a generated one if there is no key at all; return that."""
    if key is not None:
        if len(key) < MIN_KEY_LENGTH:
            raise InputError(f"the API key is too short: it needs {MIN_KEY_LENGTH} characters")
        service.keys.process_hashes["environment"] = key_hash(key)
        return None
    if service.keys.stored_hashes:
        return None
    generated = secrets.token_urlsafe(32)
    service.keys.process_hashes["session"] = key_hash(generated)
    return generated
