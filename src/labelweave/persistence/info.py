"""What a model folder holds, without loading the model."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from os import PathLike
from typing import Any

from labelweave.exceptions import ModelFolderError
from labelweave.persistence.folder import existing_folder
from labelweave.persistence.manifest import read_config, read_json, verify_files

__all__ = ["ModelInfo", "model_info"]


@dataclass(frozen=True)
class ModelInfo:
    """Facts about a saved model; `parameters` are shown as they stand in config.json."""

    path: str
    method: str
    class_name: str
    parameters: dict[str, Any]
    label_names: list[str]
    label_descriptions: dict[str, str]
    n_features: int | None
    versions: dict[str, str]
    saved: str
    data: dict[str, Any] | None
    scores: dict[str, Any] | None
    size: int

    def to_dict(self) -> dict[str, Any]:
        """The same facts as values that JSON can hold."""
        return asdict(self)


def model_info(path: str | PathLike[str]) -> ModelInfo:
    """Read what a model folder says about its model, importing nothing of the method.

    Raises
    ------
    ModelFolderError
        If there is no model, or its description is damaged.
    """
    folder = existing_folder(path)
    config = read_config(folder)
    verify_files(folder, config, ["labels.json", "state.json"])
    try:
        labels = read_json(folder, "labels.json")
        common = read_json(folder, "state.json")["common"]
        return ModelInfo(
            path=str(path),
            method=config["method"],
            class_name=config["class"],
            parameters=config["parameters"],
            label_names=labels["names"],
            label_descriptions=labels["descriptions"],
            n_features=common.get("n_features_in_"),
            versions=config["versions"],
            saved=config["saved"],
            data=config["data"],
            scores=config["scores"],
            size=sum(facts["size"] for facts in config["files"].values()),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ModelFolderError(
            f"{folder} does not hold what labelweave writes ({type(error).__name__}: {error})"
        ) from error
