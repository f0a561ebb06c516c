"""Starting the server, and stopping it without losing a request."""

from __future__ import annotations

import logging
import secrets
import warnings
from collections.abc import Callable
from typing import Any

from labelweave.exceptions import InputError, require
from labelweave.serve.gate import key_hash
from labelweave.serve.service import Service
from labelweave.serve.settings import Settings
from labelweave.serve.state.store import LEAST_KEY

__all__ = ["run", "server_options"]

GRACE = 30  # seconds in which requests may finish after a signal to stop


def server_options(settings: Settings) -> dict[str, Any]:
    """What uvicorn is told."""
    return {
        "host": settings.host,
        "port": settings.port,
        "log_config": None,
        "access_log": False,  # the gate writes one, without content
        "server_header": False,
        "proxy_headers": False,  # a header must not decide who a client is
        "timeout_graceful_shutdown": GRACE,
        "timeout_keep_alive": 30,
        "limit_concurrency": 4096,
        "backlog": 2048,
        "ws": "none",
    }


def run(
    service: Service,
    *,
    key: str | None = None,
    access_log: bool = True,
    on_start: Callable[[str, str | None], None] | None = None,
) -> None:
    """Serve until a signal to stop, then finish what was accepted.

    Parameters
    ----------
    service : Service
    key : str, optional
        An API key beside those of the database.
    access_log : bool, default=True
        Log one line a request.
    on_start : callable, optional
        Told the address and the key that was made for this session, if there was no other.
    """
    uvicorn = require("uvicorn", "serve")
    from labelweave.serve.app import create_app

    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(name)s %(message)s")
    logging.getLogger("labelweave.serve").setLevel(logging.INFO)
    logging.getLogger("labelweave.access").setLevel(logging.INFO if access_log else logging.WARNING)
    # Rows are matched with the names of features before they become arrays.
    warnings.filterwarnings("ignore", message="X does not have valid feature names")
    made = _session_key(service, key)
    if on_start is not None:
        on_start(_address(service.settings, made), made)
    uvicorn.run(create_app(service), **server_options(service.settings))


def _session_key(service: Service, key: str | None) -> str | None:
    """A key of this process alone: the one given or, where there is none at all, a new one."""
    if key is not None:
        if len(key) < LEAST_KEY:
            raise InputError(f"the API key is too short: it needs {LEAST_KEY} characters")
        service.keys.own["environment"] = key_hash(key)
        return None
    if service.keys.hashes:
        return None
    made = secrets.token_urlsafe(32)
    service.keys.own["session"] = key_hash(made)
    return made


def _address(settings: Settings, key: str | None) -> str:
    """Of the page. What stands after # a browser keeps to itself: it is neither sent nor logged."""
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    return f"http://{host}:{settings.port}/" + (f"#key={key}" if key else "")
