"""The page and its files, from the package."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from labelweave.reporting.html import resource
from labelweave.serve.problems import ProblemError

__all__ = ["router"]

router = APIRouter(include_in_schema=False)
_FILES = {
    "page.css": "text/css",
    "page.js": "text/javascript",
    "client.js": "text/javascript",
    "try.js": "text/javascript",
    "labels.js": "text/javascript",
    "compare.js": "text/javascript",
    "review.js": "text/javascript",
    "bars.js": "text/javascript",
    "table.js": "text/javascript",
}


@router.get("/")
async def page() -> Response:
    """The page."""
    return Response(resource("page/index.html", "labelweave.serve"), media_type="text/html")


@router.get("/page/{name}")
async def file(name: str) -> Response:
    """A file of the page; only those of the list."""
    if name not in _FILES:
        raise ProblemError(404, "There is nothing at this address.")
    return Response(resource(f"page/{name}", "labelweave.serve"), media_type=_FILES[name])
