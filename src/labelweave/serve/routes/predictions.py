"""Predicting and explaining labels."""

from __future__ import annotations

from operator import methodcaller
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from pydantic_core import to_json
from starlette.responses import Response

from labelweave.serve.explanations import explain_by_features
from labelweave.serve.image_requests import IMAGE_TYPES
from labelweave.serve.inputs_and_labels import LabelSelection, new_category_warnings, read_inputs
from labelweave.serve.loaded_model import LoadedModel, PreparedRequest
from labelweave.serve.problems import PROBLEMS, ProblemError
from labelweave.serve.schemas import (
    ExplainRequest,
    PredictRequest,
    PredictResponse,
    parse_json,
    read_body,
    request_body,
)
from labelweave.serve.service import Service, service_of

__all__ = ["predict_response", "router"]

router = APIRouter(prefix="/v1/models/{model}", tags=["prediction"], responses=PROBLEMS)


@router.post(
    "/predict",
    response_model=PredictResponse,
    response_model_exclude_none=True,
    openapi_extra=request_body(PredictRequest),
)
async def predict(model: str, request: Request) -> Response:
    """The labels of vectors, records or texts, best first."""
    content_type = request.headers.get("content-type", "")
    content = await predict_response(service_of(request), model, content_type, await request.body())
    return Response(content, media_type="application/json")


async def predict_response(service: Service, model: str, content_type: str, body: bytes) -> bytes:
    """Return the JSON of the response to a body."""
    served = service.models.get(model)
    loaded = await served.loaded()  # bodies wait for it as they came: parsed, they are larger
    request = parse_json(content_type, body, PredictRequest, loaded.body_limits)
    selection = LabelSelection(request.threshold, request.top_k, request.labels, request.scores)

    unusual: list[str] = []
    sent, image_columns = {"inputs": request.inputs}, loaded.facts.image_columns
    async with service.images.in_records(sent, image_columns) as rows:

        def prepare(loaded: LoadedModel) -> PreparedRequest:
            X = read_inputs(rows["inputs"], loaded, service.settings, absent=request.absent)
            unusual[:] = new_category_warnings(rows["inputs"], loaded)
            return PreparedRequest(X, loaded.known_labels(request.known, len(X)), selection)

        predictions = await served.predict(prepare)
    response = {"model": model, "predictions": predictions}
    return to_json(response | ({"warnings": unusual} if unusual else {}))


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
    """The labels of the image in the body, which is never written to disk."""
    service = service_of(request)
    served = service.models.get(model)
    if request.headers.get("content-type", "").lower() not in IMAGE_TYPES:
        raise ProblemError(415, f"The body must be one of {', '.join(IMAGE_TYPES)}.")
    if (await served.loaded()).facts.input != "images":
        raise ProblemError(409, "This model does not predict from images.")
    selection = LabelSelection(threshold, top_k, None, scores)
    async with service.images.decoded({"the body": await request.body()}) as images:
        prepared = PreparedRequest(images, None, selection)
        predictions = await served.predict(lambda _: prepared)
    return _json_response({"model": model, "predictions": predictions})


@router.post("/explain", openapi_extra=request_body(ExplainRequest))
async def explain(model: str, request: Request) -> Response:
    """Why labels are predicted: the columns or words that speak for and against them.

    A zero-shot model names the seen labels that point to its likeliest unseen labels, unless
    labels or words are asked for.
    """
    service = service_of(request)
    served = service.models.get(model)
    loaded = await served.loaded()
    body = await read_body(request, ExplainRequest, loaded.body_limits)
    sent = {"inputs": body.inputs} | ({"background": body.background} if body.background else {})

    def explain_inputs(loaded: LoadedModel) -> dict[str, Any]:
        if loaded.facts.input == "images":
            raise ProblemError(409, "The labels of images cannot be explained.")
        asks_for_labels = body.labels is None and body.columns is None
        if loaded.facts.explains_by != "labels" or not asks_for_labels:
            return explain_by_features(body, loaded, service.settings)
        X = read_inputs(body.inputs, loaded, service.settings, absent=body.absent)
        explanations = loaded.ask(methodcaller("explain", X, body.top_k))
        rows = [[_plain(explanation) for explanation in row] for row in explanations]
        return {"by": "labels", "explanations": rows}

    async with service.images.in_records(sent, loaded.facts.image_columns) as rows:
        body = body.model_copy(update=rows)
        return _json_response({"model": model, **await served.call(explain_inputs)})


def _plain(explanation: Any) -> dict[str, Any]:
    values = explanation._asdict()
    values["because_of"] = [
        {"label": label, "score": score} for label, score in values["because_of"]
    ]
    return values


def _json_response(content: Any) -> Response:
    return Response(to_json(content), media_type="application/json")
