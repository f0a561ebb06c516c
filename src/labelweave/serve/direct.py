"""Routes without FastAPI's handling of parameters, for the addresses that carry the load."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

__all__ = ["direct_route"]


def direct_route(path: str, answer: Callable[[str, Request], Awaitable[Response]]) -> Route:
    """A POST route of an address with ``{model}`` in it, answered by a function of both."""

    async def endpoint(request: Request) -> Response:
        request.scope["route"] = route  # the gate counts by it
        return await answer(request.path_params["model"], request)

    route = Route(path, endpoint, methods=["POST"])
    return route
