"""Predicting and explaining."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel
from pydantic_core import to_json
from starlette.responses import Response

from labelweave.serve.images import IMAGE_TYPES, read_image
from labelweave.serve.inputs import as_model_input
from labelweave.serve.loaded import Asked, LoadedModel
from labelweave.serve.prediction import Choice
from labelweave.serve.problems import PROBLEMS, ProblemError
from labelweave.serve.schemas import ExplainRequest, PredictRequest, PredictResponse
from labelweave.serve.service import Service, service_of

__all__ = ["answer_predict", "json_response", "parsed", "parsed_body", "router", "takes"]

router = APIRouter(prefix="/v1/models/{model}", tags=["prediction"], responses=PROBLEMS)
Shape = TypeVar("Shape", bound=BaseModel)


def parsed_body(kind: str, body: bytes, shape: type[Shape]) -> Shape:
    """The body as JSON of a shape, read by pydantic directly: the quickest way there is."""
    if kind.partition(";")[0].strip().lower() != "application/json":
        raise ProblemError(415, "The body must be sent as application/json.")
    return shape.model_validate_json(body)


async def parsed(request: Request, shape: type[Shape]) -> Shape:
    """The body of a request as JSON of a shape."""
    kind = request.headers.get("content-type", "")
    return parsed_body(kind, await request.body(), shape)


def json_response(content: Any) -> Response:
    """An answer of plain values."""
    return Response(to_json(content), media_type="application/json")


def takes(shape: type[BaseModel]) -> dict[str, Any]:
    """For the OpenAPI document: the body that `parsed` reads."""
    schema = shape.model_json_schema()
    schema = _inlined(schema, schema.pop("$defs", {}))
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


def _inlined(part: Any, definitions: dict[str, Any]) -> Any:
    """A schema with its parts in place: only FastAPI may add to the document's components."""
    if isinstance(part, list):
        return [_inlined(item, definitions) for item in part]
    if not isinstance(part, dict):
        return part
    if "$ref" in part:
        return _inlined(definitions[part["$ref"].rpartition("/")[2]], definitions)
    return {key: _inlined(value, definitions) for key, value in part.items()}


@router.post(
    "/predict",
    response_model=PredictResponse,
    response_model_exclude_none=True,
    openapi_extra=takes(PredictRequest),
)
async def predict(model: str, request: Request) -> Response:
    """The labels of vectors, records or texts, best first."""
    kind = request.headers.get("content-type", "")
    answer = await answer_predict(service_of(request), model, kind, await request.body())
    return Response(answer, media_type="application/json")


async def answer_predict(service: Service, model: str, kind: str, body: bytes) -> bytes:
    """The answer to a body of a content type."""
    served = service.models.get(model)
    asked = parsed_body(kind, body, PredictRequest)
    choice = Choice(asked.threshold, asked.top_k, asked.labels, asked.scores)

    def make(loaded: LoadedModel) -> Asked:
        X = as_model_input(asked.inputs, loaded, service.settings, absent=asked.absent)
        return Asked(X, loaded.label_set(asked.known, len(X)), choice)

    predictions = await served.predict(make)
    return to_json({"model": model, "predictions": predictions})


_IMAGE = {"schema": {"type": "string", "format": "binary"}}


@router.post(
    "/predict/image",
    response_model=PredictResponse,
    response_model_exclude_none=True,
    openapi_extra={
        "requestBody": {"required": True, "content": dict.fromkeys(IMAGE_TYPES, _IMAGE)}
    },
)
async def predict_image(
    model: str,
    request: Request,
    threshold: Annotated[float | None, Query(ge=0, le=1)] = None,
    top_k: Annotated[int | None, Query(ge=1, le=100_000)] = None,
    scores: bool = False,
) -> Response:
    """The labels of one image, sent as it is; it is never written to a disk."""
    service = service_of(request)
    served = service.models.get(model)
    if request.headers.get("content-type", "").lower() not in IMAGE_TYPES:
        raise ProblemError(415, f"The body must be one of {', '.join(IMAGE_TYPES)}.")
    if (await served.loaded()).kind != "images":
        raise ProblemError(409, "This model does not take images.")
    content = await request.body()
    image = await asyncio.to_thread(read_image, content, service.settings.max_pixels)
    choice = Choice(threshold, top_k, None, scores)
    predictions = await served.predict(lambda _: Asked([image], None, choice))
    return json_response({"model": model, "predictions": predictions})


@router.post("/explain", openapi_extra=takes(ExplainRequest))
async def explain(model: str, request: Request) -> Response:
    """Why the likeliest unseen labels are given: what pointed to them."""
    service = service_of(request)
    served = service.models.get(model)
    asked = await parsed(request, ExplainRequest)

    def work(loaded: LoadedModel) -> list[list[Any]]:
        if not loaded.can_explain:
            raise ProblemError(409, "This model does not explain its labels.")
        X = as_model_input(asked.inputs, loaded, service.settings, absent=asked.absent)
        return loaded.model.explain(X, asked.top_k)

    found = await served.call(work)
    return json_response(
        {"model": model, "explanations": [[_plain(one) for one in row] for row in found]}
    )


def _plain(explanation: Any) -> dict[str, Any]:
    values = explanation._asdict()
    values["because_of"] = [
        {"label": label, "score": score} for label, score in values["because_of"]
    ]
    return values
