"""The web page and its files, which are part of the package."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from labelweave.reporting.html import resource
from labelweave.serve.problems import ProblemError

__all__ = ["router"]

router = APIRouter(include_in_schema=False)
_SCRIPTS = ("page", "client", "try", "record", "labels", "compare", "review", "bars", "table")
_FILES = {"page.css": "text/css"} | {f"{name}.js": "text/javascript" for name in _SCRIPTS}


@router.get("/")
async def page() -> Response:
    """Return the page."""
    return Response(resource("page/index.html", "labelweave.serve"), media_type="text/html")


@router.get("/page/{name}")
async def file(name: str) -> Response:
    """Return one of the files that belong to the page."""
    if name not in _FILES:
        raise ProblemError(404, "There is no resource at this address.")
    return Response(resource(f"page/{name}", "labelweave.serve"), media_type=_FILES[name])
