"""Models and their labels."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request

from labelweave.serve.label_changes import change_labels
from labelweave.serve.label_map import has_label_vectors, nearest_labels, similarity_map
from labelweave.serve.problems import PROBLEMS, ProblemError
from labelweave.serve.routes.prediction import parsed, takes
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
)
from labelweave.serve.service import service_of
from labelweave.serve.state.store import Change

__all__ = ["router"]

router = APIRouter(prefix="/v1/models", tags=["models"], responses=PROBLEMS)


def _summary(served: Any) -> dict[str, Any]:
    current = served.current
    labels = served.info.label_names if current is None else current.model.label_names_
    return {
        "name": served.name,
        "method": served.info.method,
        "labels": len(labels),
        "state": served.state,
    }


@router.get("")
async def list_models(request: Request) -> ModelList:
    """All models; none is loaded for that."""
    return ModelList(models=[ModelSummary(**_summary(m)) for m in service_of(request).models])


@router.get("/{model}")
async def describe_model(model: str, request: Request) -> ModelDetail:
    """What a model takes and can do; it is loaded if it is not yet."""
    served = service_of(request).models.get(model)
    loaded = await served.loaded()
    about = {
        "input": loaded.kind,
        "features": loaded.width,
        "feature_names": loaded.feature_names,
        "takes_known": loaded.takes_known,
        "can_change_labels": loaded.can_change,
        "can_explain": loaded.can_explain,
        "has_label_map": has_label_vectors(loaded.model),
    }
    return ModelDetail.model_validate(_summary(served) | about)


@router.post("/{model}/reload", status_code=204)
async def reload_model(model: str, request: Request) -> None:
    """Read the model's folder again; requests are answered by the old one until then."""
    await service_of(request).models.get(model).reload()


@router.get("/{model}/labels")
async def list_labels(
    model: str,
    request: Request,
    offset: Annotated[int, Query(ge=0, le=2**31)] = 0,
    limit: Annotated[int, Query(ge=1, le=100_000)] = 1000,
) -> LabelList:
    """The labels of a model, with descriptions where there are such."""
    loaded = await service_of(request).models.get(model).loaded()
    names, said = loaded.label_names, loaded.descriptions
    part = names[offset : offset + limit]
    return LabelList(
        total=len(names),
        version=loaded.version,
        labels=[LabelInfo(name=name, description=said.get(name)) for name in part],
    )


@router.get("/{model}/labels/nearest")
async def list_nearest(
    model: str,
    request: Request,
    name: Annotated[str, Query(max_length=500)],
    k: Annotated[int, Query(ge=1, le=100)] = 10,
) -> list[ScoredLabel]:
    """The labels whose texts are nearest in meaning, by the cosine of their vectors."""
    served = service_of(request).models.get(model)
    found = await served.call(lambda loaded: nearest_labels(loaded, name, k))
    return [ScoredLabel(label=label, score=score) for label, score in found]


@router.get("/{model}/map")
async def label_map(model: str, request: Request) -> LabelMap:
    """Where the labels lie to each other, in two dimensions."""
    served = service_of(request).models.get(model)
    return LabelMap(points=await served.call(similarity_map))


@router.get("/{model}/cooccurrence")
async def cooccurrence(
    model: str,
    request: Request,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> LabelPairs:
    """Labels that go together in the data that the service was given, the closest first."""
    service = service_of(request)
    loaded = await service.models.get(model).loaded()
    if service.together is None:
        raise ProblemError(409, "The service was started without data to count labels in.")
    pairs = service.together.pairs(loaded.label_names, limit)
    return LabelPairs(pairs=[LabelPair.model_validate(pair) for pair in pairs])


async def _change(model: str, request: Request, changes: list[Change]) -> LabelVersion:
    service = service_of(request)
    served = service.models.get(model)
    if len(changes) > service.settings.max_rows:
        raise ProblemError(413, f"A request changes {service.settings.max_rows:,} labels at most.")
    version = await change_labels(served, service.store, changes, request.state.owner)
    assert served.current is not None
    return LabelVersion(version=version, labels=len(served.current.model.label_names_))


@router.post("/{model}/labels", openapi_extra=takes(AddLabels))
async def add_labels(model: str, request: Request) -> LabelVersion:
    """Add labels that have a name but no example; they are scored from now on."""
    asked = await parsed(request, AddLabels)
    changes = [
        Change("add", label.name, description=label.description or None) for label in asked.labels
    ]
    return await _change(model, request, changes)


@router.patch("/{model}/labels", openapi_extra=takes(RenameLabel))
async def rename_label(model: str, request: Request) -> LabelVersion:
    """Give a label another name or description."""
    asked = await parsed(request, RenameLabel)
    change = Change("rename", asked.name, asked.new_name or asked.name, asked.description)
    return await _change(model, request, [change])


@router.delete("/{model}/labels")
async def remove_labels(
    model: str,
    request: Request,
    name: Annotated[list[str], Query(min_length=1, max_length=1000)],
) -> LabelVersion:
    """Remove labels; `name` may be repeated."""
    return await _change(model, request, [Change("remove", one) for one in dict.fromkeys(name)])
