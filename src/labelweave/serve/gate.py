"""Who may pass, how much, how often: what is decided before a route sees a request."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import itertools
import logging
import re
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from labelweave.serve.direct import DirectRoute
from labelweave.serve.metrics import ServiceMetrics
from labelweave.serve.problems import ProblemError, our_fault, problem_of, problem_response
from labelweave.serve.settings import Settings

__all__ = ["Gate", "KeyRing", "RateLimit", "key_hash"]

_OPEN = re.compile(r"/(?:page/[a-z_-]+\.(?:js|css|svg))?|/v[12]/health/(?:live|ready)")
# These are sent by POST, but change nothing.
_READING = re.compile(r"/v1/models/[^/]+/(?:predict(?:/image)?|explain)|/v2/models/[^/]+/infer")
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
_JSON_HEADERS = (  # of an answer that is no page: nothing may be loaded from it
    (b"content-type", b"application/json"),
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
)
_access = logging.getLogger("labelweave.access")
_log = logging.getLogger("labelweave.serve")
_PROCESS, _COUNT = secrets.token_hex(4), itertools.count(1)  # of request ids


def key_hash(key: str) -> str:
    """What is kept of a key. Keys are long and random, so a plain hash cannot be guessed back."""
    return hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()


class KeyRing:
    """Hashes of the valid keys, by name: those of the database, and `own` ones of this process."""

    def __init__(self, hashes: Mapping[str, str] | None = None) -> None:
        self.hashes = dict(hashes or {})
        self.own: dict[str, str] = {}

    def owner(self, key: str) -> str | None:
        """The name of a key; None if it is not valid. All are compared, in constant time."""
        presented = key_hash(key)
        found = None
        for name, known in (*self.hashes.items(), *self.own.items()):
            if hmac.compare_digest(presented, known):
                found = name
        return found


class RateLimit:
    """A bucket of tokens for each client; the least recent clients are forgotten.

    >>> limit = RateLimit(rate=1, burst=2)
    >>> [limit.wait("a", now) for now in (0.0, 0.0, 0.0, 1.0)]
    [0.0, 0.0, 1.0, 0.0]
    """

    def __init__(self, rate: float, burst: float, most_clients: int = 10_000) -> None:
        self.rate = rate
        self.burst = max(burst, 1.0)
        self.most_clients = most_clients
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait(self, client: str, now: float) -> float:
        """Seconds until this client may ask; 0, and a token is taken, if it may now."""
        if not self.rate:
            return 0.0
        tokens, then = self._buckets.pop(client, (self.burst, now))
        tokens = min(self.burst, tokens + (now - then) * self.rate)
        allowed = tokens >= 1
        self._buckets[client] = (tokens - 1 if allowed else tokens, now)
        if len(self._buckets) > self.most_clients:
            self._buckets.popitem(last=False)
        return 0.0 if allowed else (1 - tokens) / self.rate


class Gate:
    """ASGI middleware around the whole application.

    It checks the host name, the key, the rate and the size of a request, reads its body, adds
    the headers that protect a page, counts the answer and logs one line without any content.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        settings: Settings,
        keys: KeyRing,
        metrics: ServiceMetrics,
        direct: Sequence[DirectRoute] = (),
    ) -> None:
        self.app = app
        self.settings = settings
        self.keys = keys
        self.metrics = metrics
        self.limit = RateLimit(settings.rate, settings.burst)
        self._hosts = {host.lower() for host in (*_LOOPBACK_NAMES, *settings.allowed_hosts)}
        self._key_for_reading = settings.key_for_reading
        self._direct = direct
        self._in_flight = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # there are no web sockets here
        started = time.perf_counter()
        answer = _Answer(send)
        held = 0
        try:
            scope["state"] = {**scope.get("state", {}), "id": answer.id, "owner": ""}
            headers = dict(scope["headers"])
            self._check(scope, headers)
            body = await self._body(headers, receive)
            held = len(body)
            self._in_flight += held
            if not await self._answer_directly(scope, headers, body, answer):
                await self.app(scope, _replayed(body, receive), answer)
        except _GoneError:
            answer.status = 499  # nobody is there to be answered
        except Exception as error:
            problem = problem_of(error)
            if problem is None:
                _log.exception("request %s failed", answer.id)
                problem = our_fault(answer.id)
            await answer.instead(problem, scope, receive)
        finally:
            self._in_flight -= held
            self._record(scope, answer, time.perf_counter() - started)

    async def _answer_directly(
        self, scope: Scope, headers: dict[bytes, bytes], body: bytes, answer: _Answer
    ) -> bool:
        """Answer by a direct route; False where there is none for the request."""
        if scope["method"] != "POST":
            return False
        for route in self._direct:
            model = route.model_of(scope["path"])
            if model is not None:
                scope["route"] = route  # answers are counted by it
                content = await route.answer(model, headers.get(b"content-type", b""), body)
                await answer.json(content)
                return True
        return False

    # -- before ------------------------------------------------------------------------

    def _check(self, scope: Scope, headers: dict[bytes, bytes]) -> None:
        method, path = scope["method"], scope["path"]
        owner = self._owner(headers)
        client = scope.get("client")
        who = f"key {owner}" if owner else f"address {client[0] if client else ''}"
        if wait := self.limit.wait(who, time.monotonic()):
            self.metrics.refused.labels("rate").inc()
            raise ProblemError(
                429, "You ask more often than is allowed.", Retry_After=str(int(wait) + 1)
            )
        if owner is None and not self._key_for_reading:
            self._check_host(headers)
        changes = method not in ("GET", "HEAD", "OPTIONS") and not _READING.fullmatch(path)
        wanted = changes or (self._key_for_reading and not _OPEN.fullmatch(path))
        if wanted and owner is None and method != "OPTIONS":
            self.metrics.refused.labels("key").inc()
            raise ProblemError(
                401,
                "A valid API key is needed: send it as 'Authorization: Bearer KEY'.",
                WWW_Authenticate="Bearer",
            )
        scope["state"]["owner"] = owner or ""

    def _owner(self, headers: dict[bytes, bytes]) -> str | None:
        key = headers.get(b"x-api-key", b"")
        scheme, _, token = headers.get(b"authorization", b"").partition(b" ")
        if scheme.lower() == b"bearer":
            key = token.strip()
        return self.keys.owner(key.decode("latin-1")) if key else None

    def _check_host(self, headers: dict[bytes, bytes]) -> None:
        host = headers.get(b"host", b"").decode("latin-1").lower()
        if host not in self._hosts and _PORT.sub("", host) not in self._hosts:
            raise ProblemError(403, "The service does not answer under this host name.")

    async def _body(self, headers: dict[bytes, bytes], receive: Receive) -> bytes:
        said = headers.get(b"content-length")
        if said is not None:
            if not said.isdigit():
                raise ProblemError(400, "The content length is no number.")
            self._check_size(int(said))
            if int(said) == 0:
                return b""
        elif b"transfer-encoding" not in headers:
            return b""
        parts: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(self.settings.body_timeout):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise _GoneError
                    parts.append(message.get("body", b""))
                    size += len(parts[-1])
                    self._check_size(size)
                    if not message.get("more_body", False):
                        return b"".join(parts)
        except TimeoutError:
            raise ProblemError(
                408, "The request did not arrive in time.", Connection="close"
            ) from None

    def _check_size(self, size: int) -> None:
        if size > self.settings.max_body:
            raise ProblemError(
                413,
                f"The request is larger than {self.settings.max_body:,} bytes.",
                Connection="close",
            )
        if self._in_flight + size > self.settings.max_bytes_in_flight:
            self.metrics.refused.labels("memory").inc()
            raise ProblemError(
                429, "Too much is being answered at once; try again.", Retry_After="1"
            )

    # -- after -------------------------------------------------------------------------

    def _record(self, scope: Scope, answer: _Answer, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", None) or "none"
        self.metrics.observe(route, scope["method"], answer.status, seconds)
        if _access.isEnabledFor(logging.INFO):
            _access.info(
                "%s %s %s %d %.1fms %dB %s",
                answer.id,
                scope["method"],
                route,
                answer.status,
                1000 * seconds,
                answer.size,
                scope["state"]["owner"] or "-",
            )


class _GoneError(Exception):
    """The client closed the connection before its request was whole."""


class _Answer:
    """What is sent, with headers added and counted."""

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
            given = {name for name, _ in message["headers"]}
            added = [pair for pair in _HEADERS if pair[0] not in given]
            identity = (b"x-request-id", self.id.encode())
            message = {**message, "headers": [*message["headers"], *added, identity]}
        else:
            self.size += len(message.get("body", b""))
        await self._send(message)

    async def json(self, content: bytes) -> None:
        """Answer by JSON, past everything above."""
        self.started, self.status, self.size = True, 200, len(content)
        own = (b"content-length", b"%d" % len(content)), (b"x-request-id", self.id.encode())
        await self._send(
            {"type": "http.response.start", "status": 200, "headers": [*_JSON_HEADERS, *own]}
        )
        await self._send({"type": "http.response.body", "body": content})

    async def instead(self, problem: ProblemError, scope: Scope, receive: Receive) -> None:
        """Answer by a problem, unless an answer is on its way already."""
        if not self.started:
            await problem_response(problem)(scope, receive, self)


def _replayed(body: bytes, receive: Receive) -> Callable[[], Any]:
    """The body once more, for the application."""
    sent = False

    async def again() -> Message:
        nonlocal sent
        if sent:
            return await receive()
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again
