"""Saving, loading and describing a model."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from sklearn.base import is_classifier
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from labelweave.exceptions import InputError, LabelweaveError, ModelFolderError, in_one_line
from labelweave.methods import make_part, method_of
from labelweave.persistence.atomic_folder import replaced_folder
from labelweave.persistence.labels_and_features import (
    COMMON,
    check_common,
    checked_labels,
    common_of,
    labels_of,
    set_labels,
)
from labelweave.persistence.manifest import (
    EDITABLE_FILES,
    read_config,
    read_json,
    verify_files,
    write_config,
    write_json,
)
from labelweave.persistence.model_card import model_card
from labelweave.persistence.signing import read_signed
from labelweave.persistence.value_reader import ValueReader, build
from labelweave.persistence.value_writer import Place, ValueWriter, saved_parameters
from labelweave.persistence.versions import compare_versions, versions
from labelweave.thresholds import Threshold

__all__ = ["ModelInfo", "load", "model_info", "save"]

# Attributes that are written to labels.json and thresholds.json.
_OTHER_FILES = ("label_names_", "label_descriptions_", "classes_", "_single_label", "threshold_")
_FITTED_ATTRIBUTE = re.compile(r"[A-Za-z][A-Za-z0-9_]*_")


@runtime_checkable
class CustomState(Protocol):
    """An estimator that chooses what is saved of it, in place of all fitted attributes."""

    def _state(self) -> dict[str, Any]: ...

    def _set_state(self, state: dict[str, Any]) -> None: ...


@runtime_checkable
class CheckedState(Protocol):
    """An estimator that checks what was loaded, before it predicts by it."""

    def _check_state(self) -> None: ...


def save(
    model: Any,
    path: str | PathLike[str],
    *,
    scores: Mapping[str, float] | None = None,
    data: Mapping[str, Any] | None = None,
    extra_files: Mapping[str, bytes] | None = None,
) -> None:
    """Save a fitted model to a folder.

    An earlier model in that folder is replaced in one step: if anything fails, it is unchanged.

    Parameters
    ----------
    model : estimator of a method of labelweave or of a plug-in, or a Pipeline that ends in one
    path : path of the folder
    scores : mapping of metric name to number, optional
        Scores for the model card and ``metrics.json``.
    data : mapping, optional
        Facts about the training data (``Dataset.summary()``) for the model card.
    extra_files : mapping of file name to content, optional
        Files that `load` does not read: ``metrics.json`` (in place of `scores`),
        ``training.json``, ``rows-seen.npy`` and ``reference.json``.

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
    if type(model) is Pipeline:
        model = make_part("pipeline", steps=model.steps, transform_input=model.transform_input)
    if method_of(model) is None:
        raise InputError(
            f"{type(model).__name__} cannot be saved: it is not a registered method of labelweave "
            "(register your own classes in the entry-point group 'labelweave.methods')"
        )
    check_is_fitted(model)
    plain_data = _to_plain(data, "data")
    plain_scores = _to_plain(scores, "scores")
    for name in extra_files or {}:
        if name not in EDITABLE_FILES:
            raise InputError(f"{name!r} is not an extra file of a model folder")
    with replaced_folder(path) as folder:
        _write_model(model, folder, data=plain_data, scores=plain_scores)
        if plain_scores:
            write_json(folder / "metrics.json", plain_scores)
        for name, content in (extra_files or {}).items():
            (folder / name).write_bytes(content)


def load(
    path: str | PathLike[str],
    *,
    trusted: Iterable[str] = (),
    trusted_keys: Iterable[str | PathLike[str]] | None = None,
) -> Any:
    """Load a model that :func:`save` wrote.

    Loading runs no code of the folder: there is no pickle, every file is checked against its
    hash, and only classes of the table of methods are created. It reads nothing outside the
    folder, except the sentence encoder that comes with the ``text`` extra. A warning tells if the
    model was saved with other versions of labelweave, scikit-learn or torch.

    Parameters
    ----------
    path : path of the folder
    trusted : names of encoders and patterns of words, optional
        Folders or names of the Hugging Face hub that the model may use as the encoder of its
        texts. Only name those whose authors you trust, because an encoder can contain code. Also
        values of `token_pattern`, by which a vectorizer of scikit-learn splits texts into words:
        unusual ones are refused, as some take very long on a short text.
    trusted_keys : paths of files of public keys, optional
        Load the folder only if one of these keys signed it (``labelweave sign``) and no file was
        changed, added or removed since. By default no signature is needed.

    Raises
    ------
    ModelFolderError
        If the folder is damaged, was changed, is not a model, needs a newer version, names
        something that is not `trusted`, or is not signed by `trusted_keys`.
    """
    if isinstance(trusted, str):
        raise InputError("trusted must be a list of names, not one text")
    names = frozenset(map(str, trusted))
    return read_signed(path, trusted_keys, lambda folder: _read_whole_model(folder, names))


@dataclass(frozen=True)
class ModelInfo:
    """A description of a saved model; `parameters` are in the form of config.json."""

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
        """Return the description as values that JSON can represent."""
        return asdict(self)


def model_info(
    path: str | PathLike[str], *, trusted_keys: Iterable[str | PathLike[str]] | None = None
) -> ModelInfo:
    """Describe a saved model without loading it or importing its method.

    Parameters
    ----------
    path : path of the folder
    trusted_keys : paths of files of public keys, optional
        See :func:`load`.

    Raises
    ------
    ModelFolderError
        If there is no model, its description is damaged, or `trusted_keys` did not sign it.
    """
    return read_signed(path, trusted_keys, lambda folder: _describe(folder, str(path)))


def _describe(folder: Path, path: str) -> ModelInfo:
    config = read_config(folder)
    verify_files(folder, config, ["labels.json", "state.json"])
    with _as_folder_error(folder):
        names, descriptions = checked_labels(read_json(folder, "labels.json"))
        return ModelInfo(
            path=path,
            method=str(config["method"]),
            class_name=str(config["class"]),
            parameters=dict(config["parameters"]),
            label_names=names,
            label_descriptions=descriptions,
            n_features=read_json(folder, "state.json")["common"].get("n_features_in_"),
            versions=config["versions"],
            saved=str(config["saved"]),
            data=config["data"],
            scores=config["scores"],
            size=sum(facts["size"] for facts in config["files"].values()),
        )


def _write_model(
    model: Any,
    folder: Path,
    *,
    data: dict[str, Any] | None = None,
    scores: dict[str, Any] | None = None,
) -> list[str]:
    """Write the files of a model to an empty folder, and return those that `load` reads."""
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
        "labels.json": labels_of(model, writer),
        "state.json": {"method": state, "common": common_of(model, writer)},
    }
    if "threshold_" in vars(model):
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
        "versions": versions(method.module),
        "saved": datetime.now(UTC).isoformat(timespec="seconds"),
        "data": data,
        "scores": scores,
    }
    write_config(folder, config, files)
    card = model_card(model, method, config, documents["labels.json"])
    (folder / "README.md").write_text(card, encoding="utf-8", errors="replace")
    return ["config.json", *files]


def _read_whole_model(folder: Path, trusted: Collection[str]) -> Any:
    """Read the model of a folder that is not inside another model."""
    config = read_config(folder)
    compare_versions(folder, config.get("versions"))
    model = _read_model(folder, trusted)
    if is_classifier(model):
        classifier = model.steps[-1][1] if isinstance(model, Pipeline) else model
        classifier._loaded_from = str(folder)
    return model


def _read_model(folder: Path, trusted: Collection[str]) -> Any:
    config = read_config(folder)
    verify_files(folder, config)
    with _as_folder_error(folder):
        reader = ValueReader(
            folder, set(config["files"]), lambda inner: _read_model(inner, trusted), trusted
        )
        model = build(config["method"], reader.decode(config["parameters"]), folder, trusted)
        stored = read_json(folder, "state.json")
        for name, value in stored["common"].items():
            if name not in COMMON:
                raise ModelFolderError(f"{folder}: state.json has the unknown name {name!r}")
            setattr(model, name, reader.decode(value))
        # embedders have no labels, and those of a pipeline are in its last step
        if is_classifier(model) and not isinstance(model, Pipeline):
            set_labels(model, read_json(folder, "labels.json"), reader)
            check_common(model)
        if "thresholds.json" in config["files"]:
            rule = reader.decode(read_json(folder, "thresholds.json"))
            model.threshold_ = Threshold.from_dict(rule)
        _set_state(model, {k: reader.decode(v) for k, v in stored["method"].items()}, folder)
        return model


@contextmanager
def _as_folder_error(folder: Path) -> Iterator[None]:
    """Report any error that the content of a folder causes as an error about the folder."""
    try:
        yield
    except ModelFolderError:
        raise
    except LabelweaveError as error:
        raise ModelFolderError(f"{folder}: {error}") from error
    except ImportError:
        raise
    except MemoryError as error:
        raise ModelFolderError(f"{folder} needs more memory than there is") from error
    except Exception as error:
        raise ModelFolderError(
            f"{folder} is not a valid model folder ({in_one_line(error)})"
        ) from error


# -- the state of a model --------------------------------------------------------------


def _state_of(model: Any) -> dict[str, Any]:
    """Return the custom state of a model, or all fitted attributes without a file of their own."""
    if isinstance(model, CustomState):
        return model._state()
    return {
        name: value
        for name, value in vars(model).items()
        if _FITTED_ATTRIBUTE.fullmatch(name) and name not in _OTHER_FILES + COMMON
    }


def _set_state(model: Any, state: dict[str, Any], folder: Path) -> None:
    is_custom = isinstance(model, CustomState)
    for name in state:
        is_valid = name.isidentifier() if is_custom else _FITTED_ATTRIBUTE.fullmatch(name)
        if not is_valid or hasattr(type(model), name):
            raise ModelFolderError(f"{folder}: {name!r} is not the name of a fitted attribute")
    if is_custom:
        model._set_state(state)
        return
    for name, value in state.items():
        setattr(model, name, value)
    if isinstance(model, CheckedState):
        model._check_state()


# -- data and scores --------------------------------------------------------------------


def _to_plain(mapping: Mapping[str, Any] | None, name: str) -> dict[str, Any] | None:
    """Return a mapping as values that JSON can represent; NumPy numbers become Python's."""
    if mapping is None:
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
        raise InputError(f"{name} has the type {type(value).__name__}, which JSON cannot represent")

    return plain(mapping, name)
