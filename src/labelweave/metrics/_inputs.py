"""Checks of the arguments of metrics, the same for all of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from labelweave.exceptions import InputError
from labelweave.input_checks import check_weight, first_out_of_range
from labelweave.labels import LabelMatrix, as_labels, is_frame, is_lists_of_names
from labelweave.rows import row_chunks

__all__ = ["check_pred", "check_score", "check_true", "check_weight", "mean_of_defined"]

# Large matrices are processed in chunks of about this many entries, which stay in the cache.
_CHUNK_ENTRIES = 2**19


def check_true(Y_true: Any) -> LabelMatrix:
    """Return the true labels; raise unless there is a row and a known entry."""
    labels = as_labels(Y_true)
    if labels.n_rows == 0 or labels.n_labels == 0:
        raise InputError(f"Y_true is empty: it has shape {labels.shape}")
    if labels.n_unknown == labels.n_rows * labels.n_labels:
        raise InputError("Y_true has no known entry (all are NaN): there is nothing to score")
    return labels


def check_pred(Y_true: Any, Y_pred: Any) -> tuple[LabelMatrix, LabelMatrix]:
    """Return true labels and predicted label sets of the same rows, labels in the same order."""
    if is_lists_of_names(Y_true) and is_lists_of_names(Y_pred):
        names = sorted({name for rows in (Y_true, Y_pred) for row in rows for name in row})
        if not names:
            raise InputError(
                "neither Y_true nor Y_pred holds a label name: there is nothing to score"
            )
        truth = check_true(as_labels(Y_true, names=names))
        predicted = as_labels(Y_pred, names=names)
    else:
        truth = check_true(Y_true)
        try:
            predicted = as_labels(Y_pred, names=truth.names if is_lists_of_names(Y_pred) else None)
        except InputError as error:
            raise InputError(f"Y_pred does not hold label sets: {error}") from None
    _check_shape("Y_pred", truth, predicted.shape)
    if predicted.has_unknown:
        raise InputError(
            f"Y_pred has {predicted.n_unknown} unknown entries (NaN): a predicted label is 1 or 0"
        )
    columns = aligned_columns(truth.names, predicted.names, "Y_pred")
    return truth, predicted if columns is None else predicted[:, columns]


def check_score(
    Y_true: Any, Y_score: Any, *, sparse: bool = False
) -> tuple[LabelMatrix, np.ndarray | sp.csr_array]:
    """Return true labels and scores of the same rows, labels in the same order.

    A sparse `Y_score` holds the best labels of each row only. It is an error unless `sparse` is
    true, for metrics that do not need the scores of all labels.
    """
    truth = check_true(Y_true)
    if isinstance(Y_score, list) and len(Y_score) and np.ndim(Y_score[0]) == 2:
        raise InputError(
            "Y_score is a list of arrays, one per label: stack the columns of class 1 to (rows, "
            "labels), or pass the model to labelweave.metrics.evaluate"
        )
    if sp.issparse(Y_score):
        if not sparse:
            raise InputError("Y_score is sparse, but this metric needs the scores of all labels")
        scores: Any = sp.csr_array(Y_score)
        if not scores.has_canonical_format:
            scores = scores.copy()
            scores.sum_duplicates()
    else:
        try:
            scores = np.asarray(Y_score)
            if scores.dtype not in (np.float32, np.float64):
                scores = scores.astype(np.float64)
        except (TypeError, ValueError):
            raise InputError("Y_score is not a matrix of numbers (rows x labels)") from None
    _check_shape("Y_score", truth, scores.shape)
    if (wrong := first_out_of_range(scores)) is not None:
        value, row, column = wrong
        kind = "NaN" if np.isnan(value) else "infinity"
        raise InputError(f"Y_score contains {kind} at row {row}, column {column}")
    if is_frame(Y_score):
        columns = aligned_columns(truth.names, [str(name) for name in Y_score.columns], "Y_score")
        if columns is not None:
            scores = scores[:, columns]
    return truth, scores


def mean_of_defined(
    values: np.ndarray, defined: np.ndarray | bool = True, weight: np.ndarray | None = None
) -> float:
    """Return the weighted mean of the values that are defined and not nan; nan if none is."""
    kept = np.logical_and(defined, ~np.isnan(values))
    if weight is None:
        return float(values[kept].mean()) if kept.any() else float("nan")
    total = weight[kept].sum()
    return float(values[kept] @ weight[kept] / total) if total > 0 else float("nan")


def chunks(length: int, width: int) -> list[slice]:
    """Split `length` rows (or labels) of `width` entries each into slices that fit the cache."""
    return row_chunks(length, width, _CHUNK_ENTRIES)


def aligned_columns(
    wanted: tuple[str, ...], names: tuple[str, ...] | list[str], what: str
) -> list[int] | None:
    """Return the columns of `names` in the order of `wanted`; None if the order is the same.

    Default names (label_0, label_1, ...) do not identify labels: their order is kept.
    """
    if tuple(names) == wanted or _are_default_names(wanted) or _are_default_names(names):
        return None
    position = {name: j for j, name in enumerate(names)}
    missing = next((name for name in wanted if name not in position), None)
    if missing is not None:
        raise InputError(f"{what} has no label {missing!r}, which Y_true has")
    return [position[name] for name in wanted]


def _are_default_names(names: tuple[str, ...] | list[str]) -> bool:
    """Whether these are the names that `as_labels` gives to unnamed labels."""
    return all(name == f"label_{j}" for j, name in enumerate(names))


def _check_shape(what: str, truth: LabelMatrix, shape: tuple[int, ...]) -> None:
    if shape != truth.shape:
        raise InputError(
            f"Y_true has shape {truth.shape} (rows, labels) but {what} has shape {shape}"
        )
