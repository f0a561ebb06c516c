"""Access control, limits, security headers and the access log, around the whole application."""

from __future__ import annotations

import asyncio
import hmac
import itertools
import logging
import re
import secrets
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from labelweave.serve.problems import ProblemError, as_problem, internal_error, problem_response
from labelweave.serve.prometheus_metrics import ServiceMetrics
from labelweave.serve.settings import Settings
from labelweave.serve.state.service_store import key_hash

__all__ = ["DirectRoute", "KeyRing", "ProtectionMiddleware", "RateLimit"]

# Paths that never need a key: the page itself and the health checks.
_PUBLIC = re.compile(r"/(?:page/[a-z_-]+\.(?:js|css|svg))?|/v[12]/health/(?:live|ready)")
# Paths whose POST requests change nothing.
_READING_POST = re.compile(
    r"/v1/models/[^/]+/(?:predict(?:/image)?|explain)|/v2/models/[^/]+/infer"
)
_PORT = re.compile(r":\d+$")
_LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")
_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        b"img-src 'self' blob:; form-action 'none'; base-uri 'none'; frame-ancestors 'none'",
    ),
)
_JSON_HEADERS = (  # JSON is not a page: it may load nothing at all
    (b"content-type", b"application/json"),
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
)
_access = logging.getLogger("labelweave.access")
_log = logging.getLogger("labelweave.serve")
_PROCESS, _COUNT = secrets.token_hex(4), itertools.count(1)  # the parts of a request id


class KeyRing:
    """Hashes of the valid API keys by name.

    `stored_hashes` are those of the database; `process_hashes` are valid in this process only.
    """

    def __init__(self, stored_hashes: Mapping[str, str] | None = None) -> None:
        self.stored_hashes = dict(stored_hashes or {})
        self.process_hashes: dict[str, str] = {}

    def owner(self, key: str) -> str | None:
        """Return the name of a key, or None if the key is not valid.

        The key is compared with all valid ones, in constant time.
        """
        presented = key_hash(key)
        owner = None
        for name, valid in (*self.stored_hashes.items(), *self.process_hashes.items()):
            if hmac.compare_digest(presented, valid):
                owner = name
        return owner


class RateLimit:
    """A token bucket per client; the clients seen longest ago are forgotten.

    >>> limit = RateLimit(rate=1, burst=2)
    >>> [limit.wait("a", now) for now in (0.0, 0.0, 0.0, 1.0)]
    [0.0, 0.0, 1.0, 0.0]
    """

    def __init__(self, rate: float, burst: float, max_clients: int = 10_000) -> None:
        self.rate = rate
        self.burst = max(burst, 1.0)
        self.max_clients = max_clients
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait(self, client: str, now: float) -> float:
        """Return the seconds that a client must wait; 0 takes a token and allows the request."""
        if not self.rate:
            return 0.0
        tokens, then = self._buckets.pop(client, (self.burst, now))
        tokens = min(self.burst, tokens + (now - then) * self.rate)
        allowed = tokens >= 1
        self._buckets[client] = (tokens - 1 if allowed else tokens, now)
        if len(self._buckets) > self.max_clients:
            self._buckets.popitem(last=False)
        return 0.0 if allowed else (1 - tokens) / self.rate


class DirectRoute(NamedTuple):
    """A route that the middleware answers itself, without FastAPI's handling of a request.

    >>> route = DirectRoute("/v1/models/{model}/predict", lambda *_: None)
    >>> route.model_of("/v1/models/yeast/predict")
    'yeast'
    >>> route.model_of("/v1/models/yeast/labels"), route.model_of("/v1/models/a/b/predict")
    (None, None)
    """

    path: str  # A path with one ``{model}`` in it, such as ``"/v1/models/{model}/predict"``
    # Maps the model's name, the content type and the body to the bytes of a JSON response
    respond: Callable[[str, bytes, bytes], Awaitable[bytes]]

    def model_of(self, path: str) -> str | None:
        """Return the model's name in a path, or None if the path belongs to another route."""
        before, _, after = self.path.partition("{model}")
        if not (path.startswith(before) and path.endswith(after)):
            return None
        name = path[len(before) : -len(after)]
        return None if "/" in name else name


class ProtectionMiddleware:
    """ASGI middleware around the whole application.

    It checks the host name, the API key, the rate and the size of a request, reads its body, adds
    security headers to the response, counts it, and logs one line without any content.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        settings: Settings,
        keys: KeyRing,
        metrics: ServiceMetrics,
        direct_routes: Sequence[DirectRoute] = (),
    ) -> None:
        self.app = app
        self.settings = settings
        self.keys = keys
        self.metrics = metrics
        self.limit = RateLimit(settings.rate, settings.burst)
        self._hosts = {host.lower() for host in (*_LOOPBACK_NAMES, *settings.allowed_hosts)}
        self._key_for_reading = settings.key_for_reading
        self._direct_routes = direct_routes
        self._bytes_in_flight = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # web sockets are not supported
        started = time.perf_counter()
        response = _Response(send)
        state = {**scope.get("state", {}), "id": response.id, "owner": "", "received": 0}
        try:
            scope["state"] = state
            headers = dict(scope["headers"])
            self._check_access(scope, headers)
            body = await self._read_body(headers, receive, state)
            if not await self._respond_directly(scope, headers, body, response):
                await self.app(scope, _replay(body, receive), response)
        except _DisconnectedError:
            response.status = 499  # there is no client left to respond to
        except Exception as error:
            problem = as_problem(error)
            if problem is None:
                _log.exception("request %s failed", response.id)
                problem = internal_error(response.id)
            if not response.started:
                await problem_response(problem)(scope, receive, response)
        finally:
            self._bytes_in_flight -= state["received"]
            self._record(scope, response, time.perf_counter() - started)

    async def _respond_directly(
        self, scope: Scope, headers: dict[bytes, bytes], body: bytes, response: _Response
    ) -> bool:
        """Respond to a request of a direct route; return False for requests of other routes."""
        if scope["method"] != "POST":
            return False
        for route in self._direct_routes:
            model = route.model_of(scope["path"])
            if model is not None:
                scope["route"] = route  # responses are counted by route
                content = await route.respond(model, headers.get(b"content-type", b""), body)
                await response.send_json(content)
                return True
        return False

    def _check_access(self, scope: Scope, headers: dict[bytes, bytes]) -> None:
        method, path = scope["method"], scope["path"]
        owner = self._owner(headers)
        client = scope.get("client")
        sender = f"key {owner}" if owner else f"address {client[0] if client else ''}"
        if wait := self.limit.wait(sender, time.monotonic()):
            self.metrics.refused.labels("rate").inc()
            raise ProblemError(
                429, "The rate limit of this client is exceeded.", Retry_After=str(int(wait) + 1)
            )
        if owner is None and not self._key_for_reading:
            host = headers.get(b"host", b"").decode("latin-1").lower()
            if host not in self._hosts and _PORT.sub("", host) not in self._hosts:
                raise ProblemError(403, "The service does not respond to this host name.")
        changes = method not in ("GET", "HEAD", "OPTIONS") and not _READING_POST.fullmatch(path)
        needs_key = changes or (self._key_for_reading and not _PUBLIC.fullmatch(path))
        if needs_key and owner is None and method != "OPTIONS":
            self.metrics.refused.labels("key").inc()
            raise ProblemError(
                401,
                "A valid API key is required: send it as 'Authorization: Bearer KEY'.",
                WWW_Authenticate="Bearer",
            )
        scope["state"]["owner"] = owner or ""

    def _owner(self, headers: dict[bytes, bytes]) -> str | None:
        key = headers.get(b"x-api-key", b"")
        scheme, _, token = headers.get(b"authorization", b"").partition(b" ")
        if scheme.lower() == b"bearer":
            key = token.strip()
        return self.keys.owner(key.decode("latin-1")) if key else None

    async def _read_body(
        self, headers: dict[bytes, bytes], receive: Receive, state: dict[str, Any]
    ) -> bytes:
        """Return the body; `state` counts its bytes, which are in flight as soon as they arrive."""
        length = headers.get(b"content-length")
        if length is not None:
            if not length.isdigit():
                raise ProblemError(400, "The Content-Length header is not a number.")
            self._check_size(int(length), int(length))
            if int(length) == 0:
                return b""
        elif b"transfer-encoding" not in headers:
            return b""
        parts: list[bytes] = []
        try:
            async with asyncio.timeout(self.settings.body_timeout):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise _DisconnectedError
                    part = message.get("body", b"")
                    self._check_size(state["received"] + len(part), len(part))
                    parts.append(part)
                    state["received"] += len(part)
                    self._bytes_in_flight += len(part)
                    if not message.get("more_body", False):
                        return b"".join(parts)
        except TimeoutError:
            raise ProblemError(
                408, "The body was not received in time.", Connection="close"
            ) from None

    def _check_size(self, size: int, added: int) -> None:
        """Refuse a body of this size, or bytes that are added to those in flight."""
        if size > self.settings.max_body:
            raise ProblemError(
                413,
                f"The body is larger than {self.settings.max_body:,} bytes.",
                Connection="close",
            )
        if self._bytes_in_flight + added > self.settings.max_bytes_in_flight:
            self.metrics.refused.labels("memory").inc()
            raise ProblemError(
                429,
                "The service is handling too much data; try again.",
                Retry_After="1",
                Connection="close",
            )

    def _record(self, scope: Scope, response: _Response, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", None) or "none"
        self.metrics.observe(route, scope["method"], response.status, seconds)
        if _access.isEnabledFor(logging.INFO):
            _access.info(
                "%s %s %s %d %.1fms %dB %s",
                response.id,
                scope["method"],
                route,
                response.status,
                1000 * seconds,
                response.size,
                scope["state"]["owner"] or "-",
            )


class _DisconnectedError(Exception):
    """The client closed the connection before its request was complete."""


class _Response:
    """Sends a response, adds headers to it, and keeps its status and size."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.id = f"{_PROCESS}{next(_COUNT):08x}"
        self.status = 500
        self.size = 0
        self.started = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.started = True
            self.status = message["status"]
            present = {name for name, _ in message["headers"]}
            added = [pair for pair in _HEADERS if pair[0] not in present]
            request_id = (b"x-request-id", self.id.encode())
            message = {**message, "headers": [*message["headers"], *added, request_id]}
        else:
            self.size += len(message.get("body", b""))
        await self._send(message)

    async def send_json(self, content: bytes) -> None:
        """Send a complete response of JSON."""
        self.started, self.status, self.size = True, 200, len(content)
        length, request_id = b"%d" % len(content), self.id.encode()
        headers = [*_JSON_HEADERS, (b"content-length", length), (b"x-request-id", request_id)]
        await self._send({"type": "http.response.start", "status": 200, "headers": headers})
        await self._send({"type": "http.response.body", "body": content})


def _replay(body: bytes, receive: Receive) -> Callable[[], Any]:
    """Return a `receive` that delivers a body that was already read."""
    sent = False

    async def receive_again() -> Message:
        nonlocal sent
        if sent:
            return await receive()
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return receive_again
