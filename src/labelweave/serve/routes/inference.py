"""The Open Inference Protocol, version 2: what other servers and clients speak."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from fastapi import APIRouter, Request
from pydantic_core import to_json
from starlette.responses import Response

from labelweave.exceptions import InputError
from labelweave.serve.inputs import as_model_input, check_count
from labelweave.serve.loaded import Asked, LoadedModel
from labelweave.serve.problems import PROBLEMS, ProblemError
from labelweave.serve.routes.prediction import parsed_body, takes
from labelweave.serve.schemas import InferRequest, InferTensor
from labelweave.serve.service import Service, service_of

__all__ = ["answer_infer", "router"]

router = APIRouter(prefix="/v2", tags=["Open Inference v2"], responses=PROBLEMS)
_NUMBERS = {"FP64", "FP32", "FP16", "INT64", "INT32", "INT16", "INT8", "UINT8", "UINT16", "UINT32"}
OUTPUT = "probabilities"


@router.get("")
async def server_metadata() -> dict[str, Any]:
    """What answers here; the version is that of the API."""
    return {"name": "labelweave", "version": "1", "extensions": []}


@router.get("/models/{model}")
async def model_metadata(model: str, request: Request) -> dict[str, Any]:
    """Inputs and outputs of a model; the labels stand in the parameters of the output."""
    loaded = await service_of(request).models.get(model).loaded()
    names = loaded.label_names
    texts = loaded.kind == "texts"
    return {
        "name": model,
        "versions": [str(loaded.version)],
        "platform": "labelweave",
        "inputs": [
            {
                "name": "X",
                "datatype": "BYTES" if texts else "FP64",
                "shape": [-1] if texts else [-1, loaded.width],
            }
        ],
        "outputs": [
            {
                "name": OUTPUT,
                "datatype": "FP64",
                "shape": [-1, len(names)],
                "parameters": {"labels": names},
            }
        ],
    }


@router.get("/models/{model}/ready")
async def model_ready(model: str, request: Request) -> dict[str, Any]:
    """Whether the model can answer at once; it is loaded if it is not yet."""
    await service_of(request).models.get(model).loaded()
    return {"name": model, "ready": True}


@router.post("/models/{model}/infer", openapi_extra=takes(InferRequest))
async def infer(model: str, request: Request) -> Response:
    """Probabilities of all labels, as a tensor of rows by labels."""
    kind = request.headers.get("content-type", "")
    answer = await answer_infer(service_of(request), model, kind, await request.body())
    return Response(answer, media_type="application/json")


async def answer_infer(service: Service, model: str, kind: str, body: bytes) -> bytes:
    """The answer to a body of a content type."""
    served = service.models.get(model)
    asked = parsed_body(kind, body, InferRequest)
    if len(asked.inputs) != 1:
        raise InputError("inputs must hold one tensor, the rows")
    wanted = [output.name for output in asked.outputs or ()]
    if any(name != OUTPUT for name in wanted):
        raise InputError(f"the only output is called {OUTPUT!r}")
    tensor = asked.inputs[0]

    def make(loaded: LoadedModel) -> Asked:
        X = as_model_input(_rows(tensor, service.settings), loaded, service.settings)
        return Asked(X, None, None)

    found = await served.predict(make)
    probabilities = found.probabilities.astype(np.float64)
    output = {
        "name": OUTPUT,
        "datatype": "FP64",
        "shape": list(probabilities.shape),
        "parameters": {"labels": found.names.tolist()},
        "data": probabilities.ravel().tolist(),
    }
    answer: dict[str, Any] = {"model_name": model, "outputs": [output]}
    if asked.id is not None:
        answer["id"] = asked.id
    return to_json(answer)


def _rows(tensor: InferTensor, settings: Any) -> list[Any]:
    """The tensor as a list of rows, flat or nested as it may come."""
    if not tensor.shape:
        raise InputError("the shape of the tensor is empty")
    check_count(tensor.shape[0], settings)
    if tensor.datatype == "BYTES":
        if math.prod(tensor.shape) != tensor.shape[0] or len(tensor.data) != tensor.shape[0]:
            raise InputError("a tensor of texts has one element a row")
        return [one[0] if isinstance(one, list) and len(one) == 1 else one for one in tensor.data]
    if tensor.datatype not in _NUMBERS:
        raise ProblemError(
            422, f"The datatype must be BYTES or one of {', '.join(sorted(_NUMBERS))}."
        )
    if len(tensor.shape) != 2:
        raise InputError("a tensor of numbers has two dimensions: rows and features")
    rows, width = tensor.shape
    if tensor.data and isinstance(tensor.data[0], list):
        if len(tensor.data) != rows:
            raise InputError(f"the shape says {rows} rows, but there are {len(tensor.data)}")
        return tensor.data
    if len(tensor.data) != rows * width:
        raise InputError(
            f"the shape says {rows} times {width} numbers, but there are {len(tensor.data)}"
        )
    return [tensor.data[first : first + width] for first in range(0, rows * width, width or 1)]
