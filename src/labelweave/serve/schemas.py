"""The JSON of requests and responses: its shapes, reading it and describing it in OpenAPI."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NamedTuple, TypeVar

import numpy as np
from fastapi import Request
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    WithJsonSchema,
)
from pydantic_core import PydanticCustomError, from_json

from labelweave.exceptions import InputError
from labelweave.serve.problems import ProblemError

# pydantic collects all faults of a body, and millions of them take seconds and gigabytes: lists
# stop at their first fault, and large bodies are looked at before they are validated.
_SMALL_BODY = 2**14  # bytes
_OTHERS = 2000  # lists, objects and values of a body, besides those of its inputs
_PART = 2**20  # bytes that are looked at together

_INPUT = {
    "anyOf": [
        {"type": "array", "items": {"type": "number"}},
        {
            "type": "object",
            "additionalProperties": {"type": ["number", "string", "boolean", "null"]},
        },
        {"type": "string"},
    ]
}
Inputs = Annotated[
    list[Any],
    Field(
        min_length=1,
        description="Vectors, records (name to value) or texts, depending on the model.",
        json_schema_extra={"items": _INPUT},
    ),
]
Background = Annotated[
    list[Any],
    Field(
        min_length=1,
        description="Rows like the inputs, whose values take the place of those of an input; by "
        "default typical values of the training rows.",
        json_schema_extra={"items": _INPUT},
    ),
]
# Label names may not contain control characters: pages and databases cannot handle them.
LabelName = Annotated[
    str, StringConstraints(min_length=1, max_length=500, pattern=r"^[^\x00-\x1f\x7f]+$")
]
Description = Annotated[str, StringConstraints(max_length=10_000, pattern=r"^[^\x00]*$")]


def _check_known(labels: dict[str, Any]) -> dict[str, Any]:
    for value in labels.values():
        if value not in (True, False):
            raise PydanticCustomError("known", "Known labels must be true or false")
    return labels


KnownLabels = Annotated[
    dict[str, Any],
    AfterValidator(_check_known),
    WithJsonSchema({"type": "object", "additionalProperties": {"type": "boolean"}}),
]


Absent = Literal["error", "zero", "blank"]


class StrictModel(BaseModel):
    """A request in which unknown fields, such as misspelt ones, are an error."""

    model_config = ConfigDict(extra="forbid")


class PredictRequest(StrictModel):
    """Inputs, and which of their labels to return."""

    inputs: Inputs
    threshold: float | None = Field(
        None, ge=0, le=1, description="Used in place of the threshold of the model."
    )
    top_k: int | None = Field(
        None,
        ge=1,
        le=100_000,
        description="The k best labels; with a threshold, those of them that reach it.",
    )
    labels: list[str] | None = Field(
        None, min_length=1, fail_fast=True, description="Only these labels."
    )
    known: list[KnownLabels] | None = Field(
        None,
        fail_fast=True,
        description="For each input, labels that are known to be present or absent.",
    )
    scores: bool = Field(
        False,
        description="Also return the scores of all labels, best first; from 5,000 labels on those "
        "of the 50 best.",
    )
    absent: Absent = Field(
        "error",
        description="Whether a record that lacks a feature is an error, or the feature is 0 or "
        "blank. In a table of mixed columns, one that had blanks in training may always be absent.",
    )


class ExplainRequest(StrictModel):
    """Inputs for which to explain the labels."""

    inputs: Inputs
    top_k: int = Field(5, ge=1, le=100, description="The k most probable labels.")
    labels: list[str] | None = Field(
        None, min_length=1, max_length=100, fail_fast=True, description="These labels instead."
    )
    columns: list[str] | None = Field(
        None, min_length=1, fail_fast=True, description="Only these columns or words."
    )
    features: int = Field(
        10, ge=1, le=1000, description="The most columns or words to return per label."
    )
    background: Background | None = None
    absent: Absent = "error"


class ScoredLabel(BaseModel):
    """A label and its probability."""

    label: str
    score: float


class Prediction(BaseModel):
    """The labels of one input, best first."""

    labels: list[ScoredLabel]
    scores: list[ScoredLabel] | None = None


class PredictResponse(BaseModel):
    """One prediction per input, in the order of the inputs."""

    model: str
    predictions: list[Prediction]
    warnings: list[str] | None = Field(
        None, description="Categories of the inputs that no training row had."
    )


class LabelInfo(BaseModel):
    """A label and its description."""

    name: str
    description: str | None = None


class ModelSummary(BaseModel):
    """A model of the service."""

    name: str
    method: str
    labels: int
    state: Literal["not loaded", "ready", "failed"]


class ColumnInfo(BaseModel):
    """A column of the records that a model predicts from."""

    name: str
    kind: str
    may_be_blank: bool
    may_be_absent: bool
    values: list[str | float] | None = Field(None, description="The first categories.")
    format: str | None = Field(None, description="The format of dates.")


class ModelDetail(ModelSummary):
    """What a model predicts from, and what it can do."""

    input: Literal["texts", "vectors", "images", "records"]
    features: int | None
    feature_names: list[str] | None
    columns: list[ColumnInfo] | None
    takes_known: bool
    can_change_labels: bool
    explains_by: Literal["labels", "words", "columns"] | None
    has_label_map: bool


class ModelList(BaseModel):
    """All models of the service."""

    models: list[ModelSummary]


class LabelList(BaseModel):
    """A part of the labels of a model; `version` grows with every change of its labels."""

    total: int
    version: int
    labels: list[LabelInfo]


class LabelVersion(BaseModel):
    """The version and number of the labels after a change."""

    version: int
    labels: int


class NewLabel(StrictModel):
    """A label to add."""

    name: LabelName
    description: Description | None = None


class AddLabels(StrictModel):
    """Labels to add; either all of them are added or none."""

    labels: list[NewLabel] = Field(min_length=1, max_length=1000)


class RenameLabel(StrictModel):
    """A label with a new name, a new description, or both."""

    name: LabelName
    new_name: LabelName | None = None
    description: Description | None = None


class LabelPoint(BaseModel):
    """A label on the map."""

    label: str
    x: float
    y: float
    nearest: list[ScoredLabel]


class LabelMap(BaseModel):
    """Labels in two dimensions: similar labels are close to each other."""

    points: list[LabelPoint]


class LabelPair(BaseModel):
    """Two labels, the number of rows that have both, and their share of the rows with either."""

    first: str
    second: str
    rows: int
    share: float


class LabelPairs(BaseModel):
    """Pairs of labels that occur together."""

    pairs: list[LabelPair]


class InferTensor(BaseModel):
    """A tensor of the Open Inference Protocol."""

    name: str = Field(max_length=200)
    datatype: str = Field(max_length=20)
    shape: list[Annotated[int, Field(ge=0, le=2**31)]] = Field(max_length=8)
    data: list[Any]


class InferOutput(BaseModel):
    """A requested output."""

    name: str = Field(max_length=200)


class InferRequest(BaseModel):
    """A request of the Open Inference Protocol; parameters are not used.

    There is one tensor, or for a table one per column.
    """

    id: str | None = Field(None, max_length=200)
    inputs: list[InferTensor] = Field(min_length=1, max_length=1000)
    outputs: list[InferOutput] | None = Field(None, fail_fast=True)


class Health(BaseModel):
    """The health of the service."""

    status: Literal["live", "ready"]


class QueueProgress(BaseModel):
    """The progress of a review."""

    name: str
    entries: int
    reviewed: int
    yes: int
    no: int
    unsure: int


class QueueList(BaseModel):
    """All lists to review."""

    queues: list[QueueProgress]


class ReviewEntry(BaseModel):
    """One likely missing label."""

    number: int
    score: float
    annotated: float | None = Field(
        None,
        description="Share of similar entries that are annotated; the entries are sorted by it.",
    )
    label: str
    row: int
    id: str
    text: str
    known_labels: list[str]
    verdict: Literal["yes", "no", "unsure"] | None = None


class ReviewPage(BaseModel):
    """A part of the entries of a list."""

    total: int
    entries: list[ReviewEntry]


class SetVerdict(StrictModel):
    """A verdict on the entry with this number; null withdraws it."""

    entry: int = Field(ge=0, le=2**31)
    verdict: Literal["yes", "no", "unsure"] | None


# -- reading and describing bodies -----------------------------------------------------

Shape = TypeVar("Shape", bound=BaseModel)


class BodyLimits(NamedTuple):
    """How much a JSON body may hold: parsed, it takes far more memory and time than its bytes."""

    containers: int  # lists and objects
    values: int

    @classmethod
    def of(cls, max_rows: int, values_per_row: int = 4) -> BodyLimits:
        """A list or an object for each input and for its known labels, and so many values."""
        return cls(2 * max_rows + _OTHERS, max_rows * values_per_row + _OTHERS)

    def check(self, body: bytes) -> None:
        """Refuse a body that holds more."""
        if self._allow(body.count(b"[") + body.count(b"{"), body.count(b",")):
            return
        n_containers, n_commas = _count_outside_strings(body)  # texts may have many of them
        if not self._allow(n_containers, n_commas):
            raise ProblemError(
                413,
                f"The body has more than {self.containers:,} lists and objects or more than "
                f"{self.values:,} values.",
            )

    def _allow(self, n_containers: int, n_commas: int) -> bool:
        return n_containers <= self.containers and n_commas <= self.values


def _count_outside_strings(body: bytes) -> tuple[int, int]:
    """Return the numbers of opening brackets and of commas that are not in a string.

    >>> _count_outside_strings(rb'{"a, [": [1, "\\\\", "\\", [,"]}')
    (2, 2)
    """
    text = np.frombuffer(body.replace(rb"\\", b"").replace(rb"\"", b""), dtype=np.uint8)
    n_containers = n_commas = 0
    is_inside = False
    for first in range(0, len(text), _PART):
        part = text[first : first + _PART]
        inside = np.logical_xor.accumulate(part == ord('"')) ^ is_inside
        is_inside = bool(inside[-1])
        outside = part[~inside]
        n_containers += int(((outside == ord("[")) | (outside == ord("{"))).sum())
        n_commas += int((outside == ord(",")).sum())
    return n_containers, n_commas


def parse_json(content_type: str, body: bytes, shape: type[Shape], limits: BodyLimits) -> Shape:
    """Parse and validate a JSON body by pydantic, which is faster than FastAPI."""
    if content_type.partition(";")[0].strip().lower() != "application/json":
        raise ProblemError(415, "The body must be sent as application/json.")
    if len(body) <= _SMALL_BODY:
        return shape.model_validate_json(body)
    limits.check(body)
    try:
        content = from_json(body)
    except ValueError as error:
        raise InputError(f"the body is not valid JSON: {error}") from None
    if isinstance(content, dict) and shape.model_config.get("extra") == "forbid":
        unknown = next((name for name in content if name not in shape.model_fields), None)
        if unknown is not None:
            raise InputError(f"the body has the unknown field {unknown[:80]!r}")
    return shape.model_validate(content)


async def read_body(
    request: Request, shape: type[Shape], limits: BodyLimits | None = None
) -> Shape:
    """Read the JSON body of a request."""
    content_type = request.headers.get("content-type", "")
    limits = limits or BodyLimits.of(request.app.state.service.settings.max_rows)
    return parse_json(content_type, await request.body(), shape, limits)


def request_body(shape: type[BaseModel]) -> dict[str, Any]:
    """Return the OpenAPI description of a body that `read_body` reads."""
    schema = shape.model_json_schema()
    schema = _inline(schema, schema.pop("$defs", {}))
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


def _inline(part: Any, definitions: dict[str, Any]) -> Any:
    """Replace references by what they refer to: FastAPI allows no components of ours."""
    if isinstance(part, list):
        return [_inline(item, definitions) for item in part]
    if not isinstance(part, dict):
        return part
    if "$ref" in part:
        return _inline(definitions[part["$ref"].rpartition("/")[2]], definitions)
    return {key: _inline(value, definitions) for key, value in part.items()}
