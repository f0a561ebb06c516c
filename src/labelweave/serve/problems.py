"""Errors as application/problem+json (RFC 9457), each with one clear sentence."""

from __future__ import annotations

import json
import logging
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from labelweave.exceptions import InputError, LabelweaveError

__all__ = [
    "PROBLEMS",
    "ProblemError",
    "install",
    "our_fault",
    "problem_of",
    "problem_response",
    "sentence_of",
]

MEDIA_TYPE = "application/problem+json"
_SCHEMA = {
    "type": "object",
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
    },
    "required": ["type", "title", "status", "detail"],
}
_STATUSES = (400, 401, 403, 404, 408, 409, 411, 413, 415, 422, 429, 503)
# For the OpenAPI document: any of these may come instead of an answer.
PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {
        "description": HTTPStatus(status).phrase,
        "content": {MEDIA_TYPE: {"schema": _SCHEMA}},
    }
    for status in _STATUSES
}
_log = logging.getLogger("labelweave.serve")


class ProblemError(Exception):
    """An answer that is an error."""

    def __init__(self, status: int, detail: str, **headers: str) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


def problem_response(problem: ProblemError) -> Response:
    """The problem as an answer."""
    body = {
        "type": "about:blank",
        "title": HTTPStatus(problem.status).phrase,
        "status": problem.status,
        "detail": " ".join(problem.detail.split()),
    }
    # ASCII only: what a client sent may hold characters that UTF-8 has no form for.
    return Response(
        json.dumps(body), problem.status, headers=problem.headers, media_type=MEDIA_TYPE
    )


def sentence_of(errors: Any) -> str:
    """The first of pydantic's errors as a sentence.

    >>> sentence_of([{"loc": ("body", "top_k"), "msg": "Input should be less than 5"}])
    'top_k: input should be less than 5'
    """
    first = errors[0]
    place = ".".join(str(part) for part in first["loc"] if part != "body")
    message = str(first["msg"])
    message = message[:1].lower() + message[1:]
    return f"{place[:200]}: {message}" if place else f"the body is not valid: {message}"


def problem_of(error: Exception) -> ProblemError | None:
    """The problem to answer instead of an error; None where the fault is ours."""
    if isinstance(error, ProblemError):
        return error
    if isinstance(error, HTTPException):
        said = {404: "There is nothing at this address.", 405: "This address takes other methods."}
        detail = said.get(error.status_code, "The request cannot be read.")
        return ProblemError(error.status_code, detail, **dict(error.headers or {}))
    if isinstance(error, RequestValidationError | ValidationError):
        return ProblemError(422, sentence_of(error.errors()))
    if isinstance(error, InputError):
        return ProblemError(422, str(error))
    if isinstance(error, LabelweaveError):
        # Messages about folders and packages name paths and versions: they go to the log.
        _log.error("%s", error)
        return ProblemError(503, "The model cannot be used now; the log says why.")
    return None


def our_fault(request_id: str) -> ProblemError:
    """The answer where no other is known; the log has the error."""
    return ProblemError(500, f"Something went wrong here; the log has it under {request_id}.")


def install(app: FastAPI) -> None:
    """Answer every error of the application with a problem."""

    async def on_error(request: Request, error: Exception) -> Response:
        return problem_response(problem_of(error) or our_fault(request.state.id))

    for kind in (
        ProblemError,
        HTTPException,
        RequestValidationError,
        ValidationError,
        LabelweaveError,
        Exception,
    ):
        app.add_exception_handler(kind, on_error)
