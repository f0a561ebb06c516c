"""The Open Inference Protocol, version 2, which many clients and servers support."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from fastapi import APIRouter, Request
from pydantic_core import to_json
from starlette.responses import Response

from labelweave.exceptions import InputError
from labelweave.serve.inputs_and_labels import check_n_rows, read_inputs
from labelweave.serve.loaded_model import LoadedModel, ModelFacts, PreparedRequest
from labelweave.serve.problems import PROBLEMS, ProblemError
from labelweave.serve.schemas import InferRequest, InferTensor, parse_json, request_body
from labelweave.serve.service import Service, service_of
from labelweave.serve.settings import Settings

__all__ = ["infer_response", "router"]

router = APIRouter(prefix="/v2", tags=["Open Inference v2"], responses=PROBLEMS)
_NUMBERS = {"FP64", "FP32", "FP16", "INT64", "INT32", "INT16", "INT8", "UINT8", "UINT16", "UINT32"}
OUTPUT = "probabilities"


@router.get("")
async def server_metadata() -> dict[str, Any]:
    """Name of the server and version of the API."""
    return {"name": "labelweave", "version": "1", "extensions": []}


@router.get("/models/{model}")
async def model_metadata(model: str, request: Request) -> dict[str, Any]:
    """Inputs and outputs of a model; parameters of the output are the labels and thresholds."""
    loaded = await service_of(request).models.get(model).loaded()
    names = loaded.label_names
    return {
        "name": model,
        "versions": [str(loaded.version)],
        "platform": "labelweave",
        "inputs": _described_inputs(loaded.facts),
        "outputs": [
            {
                "name": OUTPUT,
                "datatype": "FP64",
                "shape": [-1, len(names)],
                "parameters": {"labels": names, "threshold": _threshold(loaded.facts)},
            }
        ],
    }


def _threshold(facts: ModelFacts) -> float | list[float] | None:
    """The threshold of all labels or of each; None where it depends on the row."""
    applied = facts.threshold.applied_threshold
    return None if applied is None else np.asarray(applied, dtype=np.float64).tolist()


def _described_inputs(facts: ModelFacts) -> list[dict[str, Any]]:
    if facts.columns is not None:
        return [
            {
                "name": column.name,
                "datatype": "BYTES" if str in column.types else "FP64",
                "shape": [-1],
                "parameters": {"kind": column.kind},
            }
            for column in facts.columns
            if column.is_used
        ]
    texts = facts.input == "texts"
    return [
        {
            "name": "X",
            "datatype": "BYTES" if texts else "FP64",
            "shape": [-1] if texts else [-1, facts.n_features],
        }
    ]


@router.get("/models/{model}/ready")
async def model_ready(model: str, request: Request) -> dict[str, Any]:
    """Load the model if necessary, and respond when it is ready."""
    await service_of(request).models.get(model).loaded()
    return {"name": model, "ready": True}


@router.post("/models/{model}/infer", openapi_extra=request_body(InferRequest))
async def infer(model: str, request: Request) -> Response:
    """Probabilities of all labels, as a tensor with one row per input."""
    content_type = request.headers.get("content-type", "")
    content = await infer_response(service_of(request), model, content_type, await request.body())
    return Response(content, media_type="application/json")


async def infer_response(service: Service, model: str, content_type: str, body: bytes) -> bytes:
    """Return the JSON of the response to a body."""
    served = service.models.get(model)
    loaded = await served.loaded()  # bodies wait for it as they came: parsed, they are larger
    request = parse_json(content_type, body, InferRequest, loaded.body_limits)
    if any(output.name != OUTPUT for output in request.outputs or ()):
        raise InputError(f"the only output is {OUTPUT!r}")

    if loaded.facts.input == "records":
        inputs = _records(request.inputs, service.settings)
    elif len(request.inputs) == 1:
        inputs = _rows(request.inputs[0], service.settings)
    else:
        raise InputError("inputs must contain exactly one tensor")
    image_columns = loaded.facts.image_columns
    async with service.images.in_records({"inputs": inputs}, image_columns) as rows:

        def prepare(loaded: LoadedModel) -> PreparedRequest:
            X = read_inputs(rows["inputs"], loaded, service.settings)
            return PreparedRequest(X, None, None)

        scored = await served.predict(prepare)
    probabilities = scored.probabilities.astype(np.float64)
    if sp.issparse(probabilities):  # the tensor has an entry for every label
        probabilities = probabilities.toarray()
    output = {
        "name": OUTPUT,
        "datatype": "FP64",
        "shape": list(probabilities.shape),
        "parameters": {"labels": scored.names.tolist()},
        "data": probabilities.ravel().tolist(),
    }
    response: dict[str, Any] = {"model_name": model, "outputs": [output]}
    if request.id is not None:
        response["id"] = request.id
    return to_json(response)


def _records(tensors: Sequence[InferTensor], settings: Settings) -> list[dict[str, Any]]:
    """Return the rows of a table of which each tensor is a column; null is a blank."""
    n_rows = tensors[0].shape[0] if tensors[0].shape else 0
    check_n_rows(n_rows, settings)
    records: list[dict[str, Any]] = [{} for _ in range(n_rows)]
    for tensor in tensors:
        name = tensor.name[:80]
        if tensor.datatype not in {"BYTES", "BOOL", *_NUMBERS}:
            raise InputError(f"the column {name!r} has the unknown datatype {tensor.datatype!r}")
        if tensor.shape not in ([n_rows], [n_rows, 1]) or len(tensor.data) != n_rows:
            raise InputError(
                f"the tensor {name!r} must have the shape [{n_rows}] and as many values: one per "
                "row, like the first tensor"
            )
        if tensor.name in records[0]:
            raise InputError(f"there are two tensors named {name!r}")
        for record, value in zip(records, tensor.data, strict=True):
            is_nested = isinstance(value, list) and len(value) == 1
            record[tensor.name] = value[0] if is_nested else value
    return records


def _rows(tensor: InferTensor, settings: Settings) -> list[Any]:
    """Return the rows of a tensor, whose data may be flat or nested."""
    if not tensor.shape:
        raise InputError("the shape of the tensor is empty")
    check_n_rows(tensor.shape[0], settings)
    if tensor.datatype == "BYTES":
        if math.prod(tensor.shape) != tensor.shape[0] or len(tensor.data) != tensor.shape[0]:
            raise InputError("a tensor of texts must have one element per row")
        return [x[0] if isinstance(x, list) and len(x) == 1 else x for x in tensor.data]
    if tensor.datatype not in _NUMBERS:
        raise ProblemError(
            422, f"The datatype must be BYTES or one of {', '.join(sorted(_NUMBERS))}."
        )
    if len(tensor.shape) != 2:
        raise InputError("a tensor of numbers must have two dimensions: rows and features")
    rows, width = tensor.shape
    if tensor.data and isinstance(tensor.data[0], list):
        if len(tensor.data) != rows:
            raise InputError(f"the shape has {rows} rows, but the data has {len(tensor.data)}")
        return tensor.data
    if len(tensor.data) != rows * width:
        raise InputError(
            f"the shape has {rows} x {width} numbers, but the data has {len(tensor.data)}"
        )
    return [tensor.data[first : first + width] for first in range(0, rows * width, width or 1)]
