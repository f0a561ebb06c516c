"""The output of a model, in whatever shape, as one checked matrix of probabilities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelweave.exceptions import InputError

_ROUNDING = 1e-6  # beyond 0 and 1, as float32 sums of votes are


def as_probabilities(
    output: Any, labels: Sequence[str], n_rows: int, teacher: str, model: Any = None
) -> np.ndarray:
    """The output of a model as an (n, L) array, its columns in the order of `labels`.

    The output is an array, a sparse matrix, a DataFrame, a mapping of label to column, or a list of
    one (n, classes) array per label, as scikit-learn's multi-output classifiers return;
    `model.classes_` tells which column is that of 1. `teacher` is named in messages.

    >>> a, b = np.array([[0.9, 0.1], [0.2, 0.8]]), np.array([[0.5, 0.5], [1.0, 0.0]])
    >>> as_probabilities([a, b], ["x", "y"], 2, "forest")
    array([[0.1, 0.5],
           [0.8, 0. ]])
    """
    values = _as_matrix(output, labels, n_rows, teacher, model)
    if values.shape != (n_rows, len(labels)):
        raise InputError(
            f"teacher {teacher!r} returned {_shape_in_words(values.shape)} for {n_rows} rows and "
            f"its {len(labels)} labels: it must return one column per label"
        )
    if np.isnan(values).any():
        row, column = (int(i) for i in np.argwhere(np.isnan(values))[0])
        raise InputError(
            f"teacher {teacher!r} returned NaN for row {row}, label {labels[column]!r}: a teacher "
            "must return a probability for each of its labels"
        )
    outside = (values < -_ROUNDING) | (values > 1 + _ROUNDING)
    if outside.any():
        row, column = (int(i) for i in np.argwhere(outside)[0])
        raise InputError(
            f"teacher {teacher!r} returned {values[row, column]:g} for row {row}, label "
            f"{labels[column]!r}: probabilities lie between 0 and 1"
        )
    return np.clip(values, 0.0, 1.0)


def _as_matrix(
    output: Any, labels: Sequence[str], n_rows: int, teacher: str, model: Any
) -> np.ndarray:
    if hasattr(output, "columns") or isinstance(output, Mapping):
        output = _columns_by_name(output, labels, teacher)
    if sp.issparse(output):
        output = output.toarray()
    if isinstance(output, list | tuple) and len(output) and np.ndim(output[0]) == 2:
        return _from_multi_output(output, labels, teacher, model)
    try:
        values = np.asarray(output, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(
            f"teacher {teacher!r} returned {type(output).__name__} that does not hold numbers"
        ) from None
    if values.ndim == 1 and len(labels) == 1:
        return values[:, None]
    if values.ndim == 2 and values.shape[1] == 2 and len(labels) == 1:
        return values[:, [1]]  # a binary classifier: the columns are its two classes
    if values.ndim == 3 and values.shape[2] == 2:
        # (n, L, 2), or (L, n, 2) where a list of outputs was stacked.
        positive = values[:, :, 1]
        return positive if positive.shape == (n_rows, len(labels)) else positive.T
    return values


def _columns_by_name(output: Any, labels: Sequence[str], teacher: str) -> np.ndarray:
    """The columns of these labels, by their names."""
    names = [str(name) for name in (output.columns if hasattr(output, "columns") else output)]
    missing = [label for label in labels if label not in names]
    if missing:
        raise InputError(
            f"teacher {teacher!r} returned no column for its label {missing[0]!r} (there are: "
            f"{', '.join(names[:5])})"
        )
    keys = list(output.columns if hasattr(output, "columns") else output)
    key_of = dict(zip(names, keys, strict=True))
    return np.column_stack([np.asarray(output[key_of[label]], np.float64) for label in labels])


def _from_multi_output(
    outputs: Sequence[Any], labels: Sequence[str], teacher: str, model: Any
) -> np.ndarray:
    """P(1) of each label, from one array of class probabilities per label."""
    if len(outputs) != len(labels):
        raise InputError(
            f"teacher {teacher!r} returned {len(outputs)} outputs for its {len(labels)} labels"
        )
    classes = getattr(model, "classes_", None)
    columns = []
    for j, output in enumerate(outputs):
        values = np.asarray(output, dtype=np.float64)
        known = [0, 1] if classes is None or len(classes) != len(outputs) else list(classes[j])
        if values.shape[1] != len(known):
            raise InputError(
                f"teacher {teacher!r} returned {values.shape[1]} classes for the label "
                f"{labels[j]!r}, where two are expected"
            )
        # A label that was constant in training has one class only.
        columns.append(values[:, known.index(1)] if 1 in known else np.zeros(len(values)))
    return np.column_stack(columns)


def _shape_in_words(shape: tuple[int, ...]) -> str:
    return f"{shape[1]} columns for {shape[0]} rows" if len(shape) == 2 else f"the shape {shape}"
