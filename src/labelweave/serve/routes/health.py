"""Health, readiness and metrics of the service."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter, Request
from sqlalchemy.exc import SQLAlchemyError
from starlette.responses import Response

from labelweave.serve.problems import PROBLEMS, ProblemError
from labelweave.serve.schemas import Health
from labelweave.serve.service import service_of

__all__ = ["router"]

router = APIRouter(tags=["health"], responses=PROBLEMS)


@router.get("/v1/health/live")
@router.get("/v2/health/live")
async def live() -> Health:
    """Respond while the process runs."""
    return Health(status="live")


@router.get("/v1/health/ready")
@router.get("/v2/health/ready")
async def ready(request: Request) -> Health:
    """Respond with 200 if the database responds and the service is not stopping."""
    service = service_of(request)
    if service.is_stopping:
        raise ProblemError(503, "The service is stopping.")
    try:
        await asyncio.to_thread(service.store.is_alive)
    except SQLAlchemyError:
        raise ProblemError(503, "The database does not respond.") from None
    if all(served.state == "failed" for served in service.models):
        raise ProblemError(503, "No model can be loaded.")
    return Health(status="ready")


@router.get("/metrics", response_class=Response)
async def metrics(request: Request) -> Response:
    """Metrics in the text format of Prometheus."""
    service = service_of(request)
    service.models.observe()
    return Response(service.metrics.as_text(), media_type="text/plain; version=0.0.4")
