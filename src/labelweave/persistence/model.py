"""Saving and loading one model."""

from __future__ import annotations

import platform
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib import metadata
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from labelweave.exceptions import InputError, LabelweaveError, ModelFolderError
from labelweave.methods import method_of
from labelweave.persistence.card import model_card
from labelweave.persistence.classes import build, saved_parameters
from labelweave.persistence.decoding import ValueReader
from labelweave.persistence.encoding import Place, ValueWriter
from labelweave.persistence.folder import existing_folder, replaced_folder
from labelweave.persistence.manifest import (
    EDITABLE_FILES,
    read_config,
    read_json,
    verify_files,
    write_config,
    write_json,
)
from labelweave.thresholds import Threshold

__all__ = ["load", "save"]

_PACKAGES = ("labelweave", "numpy", "scipy", "scikit-learn", "torch")
# Written to labels.json and thresholds.json, where people look for them.
_APART = ("label_names_", "label_descriptions_", "classes_", "_single_label", "threshold_")
# What the base class keeps beside the state of a method.
_COMMON = ("n_features_in_", "feature_names_in_", "n_labels_", "label_rates_", "_target_dtype")
_ATTRIBUTE = re.compile(r"[A-Za-z][A-Za-z0-9_]*_")


def save(
    model: Any,
    path: str | PathLike[str],
    *,
    scores: Mapping[str, float] | None = None,
    data: Mapping[str, Any] | None = None,
    extra_files: Mapping[str, bytes] | None = None,
) -> None:
    """Write a fitted model to a folder, in one step.

    A model that stands there already is replaced as a whole; if anything fails, it stays.

    Parameters
    ----------
    model : estimator of a registered method
    path : path of the folder
    scores : mapping of metric name to number, optional
        Scores to put on the model card and into ``metrics.json``.
    data : mapping, optional
        Facts about the training data (``Dataset.summary()``) for the model card.
    extra_files : mapping of file name to content, optional
        Files that belong to the model but are not read by `load`: ``metrics.json`` (instead of
        the plain scores), ``training.json``, ``rows-seen.npy``.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import labelweave as lw
    >>> X = np.array([[0.0], [0.1], [0.9], [1.0]])
    >>> model = lw.make("mlknn", k=1).fit(X, [["low"], ["low"], ["high"], ["high"]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     lw.save(model, f"{folder}/model")
    ...     lw.load(f"{folder}/model").predict_labels([[0.05]])
    [['low']]
    """
    if method_of(model) is None:
        raise InputError(
            f"{type(model).__name__} cannot be saved: it is not a registered method of labelweave "
            "(a class of your own joins through the entry-point group 'labelweave.methods')"
        )
    check_is_fitted(model)
    facts = _plain(data, "data")
    figures = _plain(scores, "scores")
    for name in extra_files or {}:
        if name not in EDITABLE_FILES:
            raise InputError(f"a model folder has no extra file {name!r}")
    with replaced_folder(path) as folder:
        _write_model(model, folder, data=facts, scores=figures)
        if figures:
            write_json(folder / "metrics.json", figures)
        for name, content in (extra_files or {}).items():
            (folder / name).write_bytes(content)


def load(path: str | PathLike[str]) -> Any:
    """Read a model that :func:`save` wrote.

    Nothing in the folder is run: there is no pickle, every file is checked against its hash,
    and only methods of the table are built.

    Raises
    ------
    ModelFolderError
        If the folder is damaged, was changed, is no model, or is of a newer version.
    """
    folder = existing_folder(path)
    config = read_config(folder)
    verify_files(folder, config)
    return _read_model(folder, config)


def _write_model(
    model: Any,
    folder: Path,
    *,
    data: dict[str, Any] | None = None,
    scores: dict[str, Any] | None = None,
) -> list[str]:
    """Write the files of a model to an empty folder and name those that `load` reads."""
    method = method_of(model)
    assert method is not None
    folder.mkdir(exist_ok=True)
    writer = ValueWriter(folder, _write_model)
    parameters = {
        name: writer.encode(value, Place("parameter", name))
        for name, value in saved_parameters(model).items()
    }
    state = {
        name: writer.encode(value, Place("fitted attribute", name))
        for name, value in _state_of(model).items()
    }
    documents = {
        "labels.json": _labels_of(model, writer),
        "state.json": {"method": state, "common": _common_of(model, writer)},
    }
    if hasattr(model, "threshold_"):
        documents["thresholds.json"] = writer.encode(
            model.threshold_.to_dict(), Place("fitted attribute", "threshold_")
        )
    writer.finish()
    for name, document in documents.items():
        write_json(folder / name, document)
    files = [*writer.files, *documents]
    config = {
        "method": method.id,
        "class": type(model).__name__,
        "parameters": parameters,
        "versions": _versions(method.module),
        "saved": datetime.now(UTC).isoformat(timespec="seconds"),
        "data": data,
        "scores": scores,
    }
    write_config(folder, config, files)
    card = model_card(model, method, config, documents["labels.json"])
    (folder / "README.md").write_text(card, encoding="utf-8", errors="replace")
    return ["config.json", *files]


def _read_model(folder: Path, config: dict[str, Any]) -> Any:
    with _as_folder_error(folder):
        reader = ValueReader(folder, set(config["files"]), _read_inner_model)
        model = build(config["method"], reader.decode(config["parameters"]), folder)
        stored = read_json(folder, "state.json")
        for name, value in stored["common"].items():
            if name not in _COMMON:
                raise ModelFolderError(f"{folder}: state.json holds the unknown name {name!r}")
            setattr(model, name, reader.decode(value))
        if hasattr(model, "predict"):  # an embedder has no labels
            _set_labels(model, read_json(folder, "labels.json"), reader)
        if "thresholds.json" in config["files"]:
            rule = reader.decode(read_json(folder, "thresholds.json"))
            model.threshold_ = Threshold.from_dict(rule)
        _set_state(model, {k: reader.decode(v) for k, v in stored["method"].items()}, folder)
        return model


def _read_inner_model(folder: Path) -> Any:
    config = read_config(folder)
    verify_files(folder, config)  # it may name files that the outer folder does not
    return _read_model(folder, config)


@contextmanager
def _as_folder_error(folder: Path) -> Iterator[None]:
    """Whatever a folder makes go wrong is said as one sentence about the folder."""
    try:
        yield
    except ModelFolderError:
        raise
    except LabelweaveError as error:
        raise ModelFolderError(f"{folder}: {error}") from error
    except (MemoryError, ImportError):
        raise
    except Exception as error:
        raise ModelFolderError(
            f"{folder} does not hold what labelweave writes ({type(error).__name__}: {error})"
        ) from error


# -- the state of a model --------------------------------------------------------------


def _state_of(model: Any) -> dict[str, Any]:
    """What a method says its state is, or all fitted attributes that are not kept elsewhere."""
    if hasattr(model, "_state"):
        return model._state()
    return {
        name: value
        for name, value in vars(model).items()
        if _ATTRIBUTE.fullmatch(name) and name not in _APART + _COMMON
    }


def _set_state(model: Any, state: dict[str, Any], folder: Path) -> None:
    own = hasattr(model, "_set_state")
    for name in state:
        well_formed = name.isidentifier() if own else _ATTRIBUTE.fullmatch(name)
        if not well_formed or hasattr(type(model), name):
            raise ModelFolderError(f"{folder}: {name!r} is no name of a fitted attribute")
    if own:
        model._set_state(state)
        return
    for name, value in state.items():
        setattr(model, name, value)


def _common_of(model: Any, writer: ValueWriter) -> dict[str, Any]:
    return {
        name: writer.encode(getattr(model, name), Place("fitted attribute", name))
        for name in _COMMON
        if hasattr(model, name)
    }


def _labels_of(model: Any, writer: ValueWriter) -> dict[str, Any]:
    single = bool(getattr(model, "_single_label", False))
    classes = None
    if single:  # as an array of objects, which JSON holds with their types
        place = Place("fitted attribute", "classes_")
        classes = {
            "dtype": model.classes_.dtype.str,
            "values": writer.encode(model.classes_.astype(object), place),
        }
    return {
        "names": [str(name) for name in getattr(model, "label_names_", [])],
        "descriptions": dict(getattr(model, "label_descriptions_", {})),
        "single_label_classes": classes,
    }


def _set_labels(model: Any, stored: dict[str, Any], reader: ValueReader) -> None:
    names = stored["names"]
    model.label_names_ = np.asarray(names, dtype=object)
    model.label_descriptions_ = dict(stored["descriptions"])
    classes = stored["single_label_classes"]
    model._single_label = classes is not None
    if classes is None:
        model.classes_ = np.tile([0, 1], (len(names), 1))
    else:
        model.classes_ = reader.decode(classes["values"]).astype(np.dtype(classes["dtype"]))


# -- facts -----------------------------------------------------------------------------


def _plain(facts: Mapping[str, Any] | None, what: str) -> dict[str, Any] | None:
    """Facts as values that JSON holds; NumPy numbers become Python's."""
    if facts is None:
        return None

    def plain(value: Any, name: str) -> Any:
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, float) and not np.isfinite(value):
            return None
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if isinstance(value, Mapping):
            return {str(key): plain(item, f"{name}.{key}") for key, item in value.items()}
        if isinstance(value, list | tuple | np.ndarray):
            return [plain(item, name) for item in value]
        raise InputError(f"{name} holds a {type(value).__name__}, which JSON cannot hold")

    return plain(facts, what)


def _versions(module: str) -> dict[str, str]:
    """Versions of what a prediction depends on, found without importing any of it."""
    packages = dict.fromkeys([*_PACKAGES, module.partition(".")[0]])
    found = {"python": platform.python_version()}
    for package in packages:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found
