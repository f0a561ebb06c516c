"""Which classes a model folder may name: those of the table of methods, no others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from labelweave.exceptions import InputError, ModelFolderError
from labelweave.methods import WRAPPERS, get_class

__all__ = ["build", "saved_parameters"]


def saved_parameters(model: Any) -> dict[str, Any]:
    """The parameters that belong to a model.

    Those that belong to the run that made it (callbacks, say) are listed in the class
    attribute `_unsaved_parameters` and have their defaults after loading.
    """
    unsaved = getattr(model, "_unsaved_parameters", ())
    return {n: value for n, value in model.get_params(deep=False).items() if n not in unsaved}


def build(id: str, parameters: dict[str, Any], folder: Path) -> Any:
    """An unfitted estimator of a method that a folder names."""
    try:
        wrapper = next((wrapper for wrapper in WRAPPERS if wrapper.id == id), None)
        cls = get_class(id) if wrapper is None else wrapper.load()
    except InputError as error:
        raise ModelFolderError(
            f"{folder} holds a model of the method {id!r}, which is not installed here"
        ) from error
    except ImportError as error:
        raise ModelFolderError(
            f"{folder} holds a model of the method {id!r}, which cannot be imported: {error}"
        ) from error
    known = set(cls._get_param_names())  # type: ignore[attr-defined]
    if strange := sorted(set(parameters) - known):
        raise ModelFolderError(
            f"{folder}: {cls.__name__} has no parameter {strange[0]!r} in this version"
        )
    return cls(**parameters)
