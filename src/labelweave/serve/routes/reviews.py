"""Reviewing likely missing labels: entries, verdicts, progress and export."""

from __future__ import annotations

import asyncio
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from labelweave.serve.problems import PROBLEMS, ProblemError
from labelweave.serve.review_queues import ReviewQueue
from labelweave.serve.schemas import (
    QueueList,
    QueueProgress,
    ReviewEntry,
    ReviewPage,
    SetVerdict,
    read_body,
    request_body,
)
from labelweave.serve.service import service_of

__all__ = ["router"]

router = APIRouter(prefix="/v1/reviews", tags=["reviews"], responses=PROBLEMS)


def _queue(request: Request, name: str) -> ReviewQueue:
    queues = service_of(request).queues
    if name not in queues:
        raise ProblemError(404, "There is no list with this name to review.")
    return queues[name]


async def _progress(request: Request, queue: ReviewQueue) -> QueueProgress:
    verdicts = await asyncio.to_thread(service_of(request).store.verdicts, queue.name)
    return QueueProgress(name=queue.name, **queue.progress(verdicts))


@router.get("")
async def list_queues(request: Request) -> QueueList:
    """The lists to review, with their progress."""
    queues = service_of(request).queues.values()
    return QueueList(queues=[await _progress(request, queue) for queue in queues])


@router.get("/{queue}/entries")
async def list_entries(
    queue: str,
    request: Request,
    offset: Annotated[int, Query(ge=0, le=2**31)] = 0,
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
    state: Literal["all", "open"] = "all",
) -> ReviewPage:
    """Entries with their verdicts, most likely first."""
    review = _queue(request, queue)
    verdicts = await asyncio.to_thread(service_of(request).store.verdicts, queue)
    entries = [e for e in review.entries if state == "all" or e.key not in verdicts]
    return ReviewPage(
        total=len(entries),
        entries=[
            ReviewEntry.model_validate(
                entry.to_dict() | {"number": entry.rank - 1, "verdict": verdicts.get(entry.key)}
            )
            for entry in entries[offset : offset + limit]
        ],
    )


@router.put("/{queue}/verdicts", openapi_extra=request_body(SetVerdict))
async def set_verdict(queue: str, request: Request) -> QueueProgress:
    """Set the verdict of an entry to yes, no or unsure; null withdraws it."""
    review = _queue(request, queue)
    body = await read_body(request, SetVerdict)
    if body.entry >= len(review.entries):
        raise ProblemError(404, "There is no entry with this number.")
    await asyncio.to_thread(
        service_of(request).store.set_verdict,
        queue,
        review.entries[body.entry].key,
        body.verdict,
        request.state.owner,
    )
    return await _progress(request, review)


@router.get("/{queue}/verdicts", response_class=Response)
async def export_verdicts(
    queue: str, request: Request, format: Literal["csv", "jsonl"] = "csv"
) -> Response:
    """The verdicts as a file for ``--corrections`` of `labelweave train` and `audit`."""
    review = _queue(request, queue)
    verdicts = await asyncio.to_thread(service_of(request).store.verdicts, queue)
    media_type = "text/csv" if format == "csv" else "application/jsonl"
    return Response(review.export(verdicts, format), media_type=media_type)
