"""Limits of connections: size and time of a header, connections of one client and of all.

uvicorn with httptools has none of them: one header without end would fill the memory, and some
thousand connections that send half a header would leave no room for others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from functools import partial
from http import HTTPStatus
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from labelweave.serve.problems import ProblemError, problem_response
from labelweave.serve.settings import Settings

__all__ = ["OpenConnections", "limited_protocol"]

_PART = 2**14  # bytes that are parsed at once: the limit of a header is kept to within this size
_OTHER_FILES = 128  # that a process may have open beside its connections


def limited_protocol(settings: Settings) -> Callable[..., asyncio.Protocol]:
    """Return what uvicorn calls for each connection (its option `http`)."""
    return partial(LimitedProtocol, settings=settings, open_connections=OpenConnections(settings))


def open_files_limit() -> int | None:
    """Return the number of files that this process may open, as many as the system allows."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return None
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return None if hard == resource.RLIM_INFINITY else hard


class OpenConnections:
    """The open connections by client address, oldest first.

    A connection too many takes the place of the oldest one that has not sent a whole header, or
    else of the oldest idle one: a client that opens many connections harms only itself, and even
    other programs at its address (behind a proxy all clients have one) are still answered.
    """

    def __init__(self, settings: Settings) -> None:
        self.per_client = settings.max_connections
        files = open_files_limit()
        most = settings.max_total_connections
        self.total = most if files is None else max(1, min(most, files - _OTHER_FILES))
        self._by_client: dict[str, dict[LimitedProtocol, None]] = {}
        self._count = 0

    def add(self, connection: LimitedProtocol) -> bool:
        """Count a connection; return False if there is no room for it."""
        own = self._by_client.get(connection.address, {})
        if len(own) >= self.per_client and not self._close_one(own):
            return False
        if self._count >= self.total:
            largest = max(self._by_client.values(), key=len)
            if not self._close_one(largest):
                return False
        self._by_client.setdefault(connection.address, {})[connection] = None
        self._count += 1
        return True

    def remove(self, connection: LimitedProtocol) -> None:
        """Count a connection no longer."""
        own = self._by_client.get(connection.address, {})
        if connection in own:
            del own[connection]
            self._count -= 1
            if not own:
                del self._by_client[connection.address]

    def _close_one(self, connections: Iterable[LimitedProtocol]) -> bool:
        # Mostly the first one is the right one: looking at all would cost an attacker nothing.
        idle = None
        for connection in connections:
            if connection.has_request:
                continue
            if connection.awaits_header:
                idle = connection
                break
            idle = idle or connection
        if idle is None:
            return False
        self.remove(idle)
        idle.transport.abort()
        return True


class LimitedProtocol(HttpToolsProtocol):
    """uvicorn's protocol with the limits of the settings."""

    def __init__(
        self, *args: Any, settings: Settings, open_connections: OpenConnections, **keywords: Any
    ) -> None:
        super().__init__(*args, **keywords)
        self._settings = settings
        self._open_connections = open_connections
        self._timer: asyncio.TimerHandle | None = None
        self._write_timer: asyncio.TimerHandle | None = None
        self._size = 0  # bytes received since the last whole header or part of a body

    @property
    def address(self) -> str:
        """The address of the client."""
        return self.client[0] if self.client else ""

    @property
    def has_request(self) -> bool:
        """Whether a request has arrived whose response is not complete."""
        return self.cycle is not None and not self.cycle.response_complete

    @property
    def awaits_header(self) -> bool:
        """Whether the connection is new or has sent a part of a header."""
        return self._timer is not None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Count the connection, and give it some seconds to send a header."""
        super().connection_made(transport)
        if self._open_connections.add(self):
            self._await_header()
        else:
            self._refuse(503, "The client has too many connections.")

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop to count the connection."""
        self._open_connections.remove(self)
        self._stop_timer()
        self.resume_writing()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse what has arrived, part by part, so that no header becomes large."""
        for first in range(0, len(data), _PART):
            part = data[first : first + _PART]
            self._size += len(part)
            super().data_received(part)  # sets the size to 0 at the end of a header and in a body
            if self.transport.is_closing():
                return
            if self._size > self._settings.max_header:
                self._refuse(431, f"A header may have {self._settings.max_header:,} bytes.")
                return
        if not self.has_request and self._timer is None:
            self._await_header()

    def on_headers_complete(self) -> None:
        """Start the request, whose body has a time of its own."""
        self._size = 0
        self._stop_timer()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Take a part of a body."""
        self._size = 0
        super().on_body(body)

    def pause_writing(self) -> None:
        """Give the client some seconds to read."""
        super().pause_writing()
        seconds = self._settings.body_timeout
        self._write_timer = self.loop.call_later(seconds, self.transport.abort)

    def resume_writing(self) -> None:
        """Continue to write."""
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None
        super().resume_writing()

    def _await_header(self) -> None:
        seconds = self._settings.header_timeout
        message = "The header was not received in time."
        self._timer = self.loop.call_later(seconds, self._refuse, 408, message)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _refuse(self, status: int, detail: str) -> None:
        self._stop_timer()
        if self.transport.is_closing():
            return
        response = problem_response(ProblemError(status, detail, Connection="close"))
        head = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n".encode()
        lines = b"".join(b"%s: %s\r\n" % pair for pair in response.raw_headers)
        self.transport.write(head + lines + b"\r\n" + bytes(response.body))
        self.transport.close()
