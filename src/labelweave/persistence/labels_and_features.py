"""What every model has, in its folder: the labels, and attributes that the base class sets."""

from __future__ import annotations

from typing import Any

import numpy as np

from labelweave.exceptions import InputError
from labelweave.persistence.value_reader import ValueReader
from labelweave.persistence.value_writer import Place, ValueWriter

__all__ = ["COMMON", "check_common", "checked_labels", "common_of", "labels_of", "set_labels"]

# Attributes that the base class sets for every method.
COMMON = (
    "n_features_in_",
    "feature_names_in_",
    "n_labels_",
    "label_prevalence_",
    "table_encoder_",
    "_target_dtype",
)


def common_of(model: Any, writer: ValueWriter) -> dict[str, Any]:
    """The attributes of the base class, as JSON."""
    return {
        name: writer.encode(value, Place("fitted attribute", name))
        for name, value in vars(model).items()
        if name in COMMON
    }


def labels_of(model: Any, writer: ValueWriter) -> dict[str, Any]:
    """The content of labels.json."""
    classes = None
    if getattr(model, "_single_label", False):  # an array of objects, which keeps their types
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


def set_labels(model: Any, stored: dict[str, Any], reader: ValueReader) -> None:
    """Give a model the labels of labels.json."""
    names, model.label_descriptions_ = checked_labels(stored)
    model.label_names_ = np.array(names, dtype=object)
    classes = stored["single_label_classes"]
    model._single_label = classes is not None
    if classes is None:
        model.classes_ = np.tile([0, 1], (len(names), 1))
    else:
        model.classes_ = reader.typed(reader.decode(classes["values"]), classes["dtype"])


def checked_labels(stored: dict[str, Any]) -> tuple[list[str], dict[str, str]]:
    """Names and descriptions of the labels: texts, no name twice."""
    names, descriptions = list(stored["names"]), dict(stored["descriptions"])
    texts = (*names, *descriptions, *descriptions.values())
    if not all(isinstance(text, str) for text in texts) or len(set(names)) != len(names):
        raise InputError("the names or descriptions of the labels are not distinct texts")
    return names, descriptions


def check_common(model: Any) -> None:
    """Refuse attributes of the base class that do not fit together."""
    names, values = model.label_names_, vars(model)
    n_features = values.get("n_features_in_", 0)
    columns = values.get("feature_names_in_")
    dtype = values.get("_target_dtype", np.dtype(int))
    prevalence = values.get("label_prevalence_", np.zeros(len(names)))
    fits = (
        len(names) == values.get("n_labels_", len(names))
        and (isinstance(n_features, int) and n_features >= 0)
        and (columns is None or np.shape(columns) == (n_features,))
        and (columns is None or all(isinstance(name, str) for name in columns))
        and (isinstance(dtype, np.dtype) and dtype.kind in "biu")
        and np.shape(prevalence) == names.shape
        and not ((prevalence < 0) | (prevalence > 1)).any()  # NaN: unknown to all teachers
        and len(model.classes_) == len(names)
    )
    if not fits:
        raise InputError("the names and numbers of labels and features do not fit together")
