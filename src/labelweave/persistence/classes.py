"""Which classes a model folder may name: those of the registry and our wrappers, no others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sklearn.base import BaseEstimator

from labelweave.exceptions import InputError, ModelFolderError
from labelweave.registry import Method, get_class, list_methods

__all__ = ["WRAPPERS", "build", "method_of", "saved_parameters"]

# Estimators around a method, or before one: saved and loaded like one, but none themselves.
WRAPPERS = (
    Method(
        id="text",
        room="wrapper",
        module="labelweave.text.classifier",
        class_name="TextClassifier",
        summary="TF-IDF weights or vectors of texts before any classifier",
    ),
    Method(
        id="sentence-embedder",
        room="wrapper",
        module="labelweave.text.sentence",
        class_name="SentenceEmbedder",
        summary="vectors of texts by a sentence encoder",
    ),
    Method(
        id="fast-embedder",
        room="wrapper",
        module="labelweave.text.fast",
        class_name="FastEmbedder",
        summary="vectors of texts by a table of token vectors",
    ),
    Method(
        id="tfidf-embedder",
        room="wrapper",
        module="labelweave.text.tfidf",
        class_name="TfidfEmbedder",
        summary="TF-IDF weights of texts",
    ),
    Method(
        id="label-tree",
        room="wrapper",
        module="labelweave.unseen.label_tree",
        class_name="LabelTree",
        summary="a quick classifier of thousands of labels, by napkinXC",
    ),
    Method(
        id="image",
        room="wrapper",
        module="labelweave.images.classifier",
        class_name="ImageClassifier",
        summary="features of images by a frozen network before any classifier",
    ),
    Method(
        id="image-encoder",
        room="wrapper",
        module="labelweave.images.encoder",
        class_name="ImageEncoder",
        summary="features of images by a frozen network",
    ),
    Method(
        id="resnet",
        room="wrapper",
        module="labelweave.nn.image_network",
        class_name="ResNet",
        summary="settings of a residual network for images",
    ),
    Method(
        id="calibrated",
        room="wrapper",
        module="labelweave.calibration",
        class_name="CalibratedMultiLabel",
        summary="calibrated probabilities of any classifier",
    ),
)


def method_of(model: Any) -> Method | None:
    """The registered method that `model` is an estimator of, or None.

    An estimator of a subclass is not one of the method: loading would give it another class.
    """
    if not isinstance(model, BaseEstimator):
        return None
    cls = type(model)
    for method in (*list_methods(), *WRAPPERS):
        if method.class_name != cls.__name__:
            continue
        in_place = method.module == cls.__module__
        # A plug-in may name a module that only re-exports the class.
        if in_place or (method.room == "plug-in" and method.load() is cls):
            return method
    return None


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
