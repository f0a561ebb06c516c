"""The shapes of requests and answers."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

__all__ = [
    "AddLabels",
    "ExplainRequest",
    "Health",
    "InferOutput",
    "InferRequest",
    "InferTensor",
    "LabelInfo",
    "LabelList",
    "LabelMap",
    "LabelPair",
    "LabelPairs",
    "LabelPoint",
    "LabelVersion",
    "ModelDetail",
    "ModelList",
    "ModelSummary",
    "NewLabel",
    "PredictRequest",
    "PredictResponse",
    "Prediction",
    "QueueList",
    "QueueProgress",
    "RenameLabel",
    "ReviewEntry",
    "ReviewPage",
    "ScoredLabel",
    "SetVerdict",
]

_INPUT = {
    "anyOf": [
        {"type": "array", "items": {"type": "number"}},
        {"type": "object", "additionalProperties": {"type": "number"}},
        {"type": "string"},
    ]
}
Inputs = Annotated[
    list[Any],
    Field(
        min_length=1,
        description="Vectors, records (feature name to number) or texts, as the model takes.",
        json_schema_extra={"items": _INPUT},
    ),
]
# What a label may be called: no control characters, which neither a page nor a database likes.
LabelName = Annotated[
    str, StringConstraints(min_length=1, max_length=500, pattern=r"^[^\x00-\x1f\x7f]+$")
]
Description = Annotated[str, StringConstraints(max_length=10_000, pattern=r"^[^\x00]*$")]


class Strictly(BaseModel):
    """A request: a field that is not known is an error, not a surprise."""

    model_config = ConfigDict(extra="forbid")


class PredictRequest(Strictly):
    """Inputs, and which labels to return for them."""

    inputs: Inputs
    threshold: float | None = Field(
        None, ge=0, le=1, description="Another cut than the model's own rule."
    )
    top_k: int | None = Field(
        None, ge=1, le=100_000, description="The k best labels; with a threshold, at most k."
    )
    labels: list[str] | None = Field(None, min_length=1, description="Only these labels.")
    known: list[dict[str, bool]] | None = Field(
        None, description="For each input labels that are known to be there, or not."
    )
    scores: bool = Field(False, description="Return the score of every label too, best first.")
    absent: Literal["error", "zero"] = Field(
        "error", description="What a feature that a record leaves out is."
    )


class ExplainRequest(Strictly):
    """Inputs whose labels are to be explained."""

    inputs: Inputs
    top_k: int = Field(5, ge=1, le=100)
    absent: Literal["error", "zero"] = "error"


class ScoredLabel(BaseModel):
    """A label and its probability."""

    label: str
    score: float


class Prediction(BaseModel):
    """The labels of one input, best first."""

    labels: list[ScoredLabel]
    scores: list[ScoredLabel] | None = None


class PredictResponse(BaseModel):
    """One prediction an input, in their order."""

    model: str
    predictions: list[Prediction]


class LabelInfo(BaseModel):
    """A label and what it means."""

    name: str
    description: str | None = None


class ModelSummary(BaseModel):
    """A model of the service."""

    name: str
    method: str
    labels: int
    state: Literal["not loaded", "ready", "failed"]


class ModelDetail(ModelSummary):
    """What a model takes and can do."""

    input: Literal["texts", "vectors", "images"]
    features: int | None
    feature_names: list[str] | None
    takes_known: bool
    can_change_labels: bool
    can_explain: bool
    has_label_map: bool


class ModelList(BaseModel):
    """All models of the service."""

    models: list[ModelSummary]


class LabelList(BaseModel):
    """Some of the labels of a model; `version` grows with every change of them."""

    total: int
    version: int
    labels: list[LabelInfo]


class LabelVersion(BaseModel):
    """The state of a model's labels after a change."""

    version: int
    labels: int


class NewLabel(Strictly):
    """A label to add."""

    name: LabelName
    description: Description | None = None


class AddLabels(Strictly):
    """Labels to add, all or none."""

    labels: list[NewLabel] = Field(min_length=1, max_length=1000)


class RenameLabel(Strictly):
    """Another name, another description, or both."""

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
    """Labels in two dimensions, near where their meanings are."""

    points: list[LabelPoint]


class LabelPair(BaseModel):
    """Two labels, the rows that have both, and these as a share of the rows that have one."""

    first: str
    second: str
    rows: int
    share: float


class LabelPairs(BaseModel):
    """Labels that go together."""

    pairs: list[LabelPair]


class InferTensor(BaseModel):
    """A tensor of the Open Inference Protocol."""

    name: str = Field(max_length=200)
    datatype: str = Field(max_length=20)
    shape: list[Annotated[int, Field(ge=0, le=2**31)]] = Field(max_length=8)
    data: list[Any]


class InferOutput(BaseModel):
    """An output that is asked for."""

    name: str = Field(max_length=200)


class InferRequest(BaseModel):
    """A request of the Open Inference Protocol; parameters are not used."""

    id: str | None = Field(None, max_length=200)
    inputs: list[InferTensor] = Field(min_length=1, max_length=16)
    outputs: list[InferOutput] | None = None


class Health(BaseModel):
    """A word on the service."""

    status: Literal["live", "ready"]


class QueueProgress(BaseModel):
    """How far a review is."""

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
        None, description="How often entries like it are annotated: what the order goes by."
    )
    label: str
    row: int
    id: str
    text: str
    known_labels: list[str]
    verdict: Literal["yes", "no", "unsure"] | None = None


class ReviewPage(BaseModel):
    """Some of the entries of a list."""

    total: int
    entries: list[ReviewEntry]


class SetVerdict(Strictly):
    """A verdict on the entry of this number; null takes it back."""

    entry: int = Field(ge=0, le=2**31)
    verdict: Literal["yes", "no", "unsure"] | None
