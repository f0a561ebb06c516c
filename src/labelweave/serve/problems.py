"""Errors as application/problem+json (RFC 9457), each with one sentence for the client."""

from __future__ import annotations

import json
import logging
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from sqlalchemy.exc import SQLAlchemyError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from labelweave.exceptions import InputError, LabelweaveError

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
# For the OpenAPI document: the error responses of every route.
PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {
        "description": HTTPStatus(status).phrase,
        "content": {MEDIA_TYPE: {"schema": _SCHEMA}},
    }
    for status in _STATUSES
}
_log = logging.getLogger("labelweave.serve")


class ProblemError(Exception):
    """An error response: its status, its sentence for the client and its headers."""

    def __init__(self, status: int, detail: str, **headers: str) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


def problem_response(problem: ProblemError) -> Response:
    """Return the HTTP response for a problem."""
    body = {
        "type": "about:blank",
        "title": HTTPStatus(problem.status).phrase,
        "status": problem.status,
        "detail": " ".join(problem.detail.split()),
    }
    # Escaped to ASCII: a client may have sent lone surrogates, which UTF-8 cannot encode.
    return Response(
        json.dumps(body), problem.status, headers=problem.headers, media_type=MEDIA_TYPE
    )


def validation_message(errors: Any) -> str:
    """Return the first of pydantic's validation errors as one sentence.

    >>> validation_message([{"loc": ("body", "top_k"), "msg": "Input should be less than 5"}])
    'top_k: input should be less than 5'
    """
    first = errors[0]
    place = ".".join(str(part) for part in first["loc"] if part != "body")
    message = str(first["msg"])
    message = message[:1].lower() + message[1:]
    return f"{place[:200]}: {message}" if place else f"the body is not valid: {message}"


def as_problem(error: Exception) -> ProblemError | None:
    """Return the problem that reports an error to the client, or None for an unexpected error."""
    if isinstance(error, ProblemError):
        return error
    if isinstance(error, HTTPException):
        details = {
            404: "There is no resource at this address.",
            405: "This method is not allowed at this address.",
        }
        detail = details.get(error.status_code, "The request cannot be read.")
        return ProblemError(error.status_code, detail, **dict(error.headers or {}))
    if isinstance(error, RequestValidationError | ValidationError):
        return ProblemError(422, validation_message(error.errors()))
    if isinstance(error, InputError):
        return ProblemError(422, str(error))
    if isinstance(error, SQLAlchemyError):
        _log.error("the database does not respond (%s)", type(error).__name__)
        return ProblemError(503, "The database does not respond; try again.", Retry_After="5")
    if isinstance(error, LabelweaveError):
        # Messages about folders and packages contain paths and versions: log them only.
        _log.error("%s", error)
        return ProblemError(
            503, "The model cannot be used at the moment; the log of the service has the reason."
        )
    return None


def internal_error(request_id: str) -> ProblemError:
    """Return the problem that reports an unexpected error, which is in the log."""
    return ProblemError(500, f"Internal error; the log of the service has it under {request_id}.")


def install_handlers(app: FastAPI) -> None:
    """Make every error of the application a problem+json response."""

    async def handle(request: Request, error: Exception) -> Response:
        return problem_response(as_problem(error) or internal_error(request.state.id))

    for kind in (
        ProblemError,
        HTTPException,
        RequestValidationError,
        ValidationError,
        SQLAlchemyError,
        LabelweaveError,
        Exception,
    ):
        app.add_exception_handler(kind, handle)
