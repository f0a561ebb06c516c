"""The models and their labels."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request

from labelweave.serve.label_changes import change_labels
from labelweave.serve.label_relations import nearest_labels, similarity_map
from labelweave.serve.loaded_model import LoadedModel
from labelweave.serve.problems import PROBLEMS, ProblemError
from labelweave.serve.schemas import (
    AddLabels,
    LabelInfo,
    LabelList,
    LabelMap,
    LabelPair,
    LabelPairs,
    LabelVersion,
    ModelDetail,
    ModelList,
    ModelSummary,
    RenameLabel,
    ScoredLabel,
    read_body,
    request_body,
)
from labelweave.serve.served_models import ServedModel
from labelweave.serve.service import service_of
from labelweave.serve.state.service_store import Change
from labelweave.tables.input_columns import InputColumn

__all__ = ["router"]

_MAX_VALUES = 100  # categories of a column that are shown

router = APIRouter(prefix="/v1/models", tags=["models"], responses=PROBLEMS)


def _summary(served: ServedModel) -> dict[str, Any]:
    current = served.current
    labels = served.info.label_names if current is None else current.label_names
    return {
        "name": served.name,
        "method": served.info.method,
        "labels": len(labels),
        "state": served.state,
    }


@router.get("")
async def list_models(request: Request) -> ModelList:
    """All models; none is loaded by this request."""
    return ModelList(models=[ModelSummary(**_summary(m)) for m in service_of(request).models])


@router.get("/{model}")
async def describe_model(model: str, request: Request) -> ModelDetail:
    """What a model predicts from and can do; it is loaded if necessary."""
    served = service_of(request).models.get(model)
    loaded = await served.loaded()
    facts = loaded.facts
    details = {
        "input": facts.input,
        "features": facts.n_features,
        "feature_names": loaded.feature_names,
        "columns": None if facts.columns is None else _used_columns(facts.columns),
        "takes_known": facts.accepts_known,
        "can_change_labels": facts.can_change_labels,
        "explains_by": facts.explains_by,
        "has_label_map": facts.has_label_vectors,
    }
    return ModelDetail.model_validate(_summary(served) | details)


def _used_columns(columns: list[InputColumn]) -> list[dict[str, Any]]:
    return [
        {
            "name": column.name,
            "kind": column.kind,
            "may_be_blank": column.may_be_blank,
            "may_be_absent": column.may_be_absent,
            "values": None if column.values is None else list(column.values[:_MAX_VALUES]),
            "format": column.format,
        }
        for column in columns
        if column.is_used
    ]


@router.post("/{model}/reload", status_code=204)
async def reload_model(model: str, request: Request) -> None:
    """Load the model's folder again; the old model answers requests until it is done."""
    await service_of(request).models.get(model).reload()


@router.get("/{model}/labels")
async def list_labels(
    model: str,
    request: Request,
    offset: Annotated[int, Query(ge=0, le=2**31)] = 0,
    limit: Annotated[int, Query(ge=1, le=100_000)] = 1000,
) -> LabelList:
    """The labels of a model, with their descriptions."""
    loaded = await service_of(request).models.get(model).loaded()
    names, descriptions = loaded.label_names, loaded.facts.descriptions
    return LabelList(
        total=len(names),
        version=loaded.version,
        labels=[
            LabelInfo(name=name, description=descriptions.get(name))
            for name in names[offset : offset + limit]
        ],
    )


@router.get("/{model}/labels/nearest")
async def list_nearest(
    model: str,
    request: Request,
    name: Annotated[str, Query(max_length=500)],
    k: Annotated[int, Query(ge=1, le=100)] = 10,
) -> list[ScoredLabel]:
    """The labels most similar in meaning to a label, by the cosine of their vectors."""
    served = service_of(request).models.get(model)

    def ask(loaded: LoadedModel) -> list[tuple[str, float]]:
        _check_label_vectors(loaded)
        if name not in loaded.label_names:
            raise ProblemError(404, "The model has no label with this name.")
        return loaded.ask(partial(nearest_labels, name=name, k=k))

    nearest = await served.call(ask)
    return [ScoredLabel(label=label, score=score) for label, score in nearest]


@router.get("/{model}/map")
async def label_map(model: str, request: Request) -> LabelMap:
    """The labels in two dimensions: similar labels are close to each other."""
    served = service_of(request).models.get(model)

    def ask(loaded: LoadedModel) -> list[dict[str, Any]]:
        _check_label_vectors(loaded)
        return loaded.ask(similarity_map)

    return LabelMap(points=await served.call(ask))


def _check_label_vectors(loaded: LoadedModel) -> None:
    if not loaded.facts.has_label_vectors:
        raise ProblemError(409, "This model has no label vectors.")


@router.get("/{model}/cooccurrence")
async def cooccurrence(
    model: str,
    request: Request,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> LabelPairs:
    """Pairs of labels that occur together in the data of `--data`, largest share first."""
    service = service_of(request)
    loaded = await service.models.get(model).loaded()
    if service.cooccurrence is None:
        raise ProblemError(
            409, "The service was started without --data, so it cannot count labels."
        )
    pairs = service.cooccurrence.pairs(loaded.label_names, limit)
    return LabelPairs(pairs=[LabelPair.model_validate(pair) for pair in pairs])


async def _change(model: str, request: Request, changes: list[Change]) -> LabelVersion:
    service = service_of(request)
    served = service.models.get(model)
    if len(changes) > service.settings.max_rows:
        raise ProblemError(
            413, f"A request may change at most {service.settings.max_rows:,} labels."
        )
    version = await change_labels(served, service.store, changes, request.state.owner)
    assert served.current is not None
    return LabelVersion(version=version, labels=len(served.current.label_names))


@router.post("/{model}/labels", openapi_extra=request_body(AddLabels))
async def add_labels(model: str, request: Request) -> LabelVersion:
    """Add labels that have a name but no training example; they are predicted from now on."""
    body = await read_body(request, AddLabels)
    changes = [
        Change("add", label.name, description=label.description or None) for label in body.labels
    ]
    return await _change(model, request, changes)


@router.patch("/{model}/labels", openapi_extra=request_body(RenameLabel))
async def rename_label(model: str, request: Request) -> LabelVersion:
    """Change the name or the description of a label."""
    body = await read_body(request, RenameLabel)
    change = Change("rename", body.name, body.new_name or body.name, body.description)
    return await _change(model, request, [change])


@router.delete("/{model}/labels")
async def remove_labels(
    model: str,
    request: Request,
    name: Annotated[list[str], Query(min_length=1, max_length=1000)],
) -> LabelVersion:
    """Remove labels; the parameter `name` may be repeated."""
    return await _change(model, request, [Change("remove", label) for label in dict.fromkeys(name)])
