"""Checking what a metric is given, once for all metrics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelweave.exceptions import InputError
from labelweave.labels import LabelMatrix, as_labels
from labelweave.rows import row_chunks

__all__ = ["check_pred", "check_score", "check_true", "check_weight", "mean_of_defined"]

# Large matrices are processed in chunks of about this many entries, which stay in the cache.
_CHUNK_ENTRIES = 2**19


def check_true(Y_true: Any) -> LabelMatrix:
    """Labels to score against: at least one row and one known entry."""
    labels = as_labels(Y_true)
    if labels.n_rows == 0 or labels.n_labels == 0:
        raise InputError(f"Y_true is empty: it has shape {labels.shape}")
    if labels.n_unknown == labels.n_rows * labels.n_labels:
        raise InputError("Y_true has no known entry (all are NaN): there is nothing to score")
    return labels


def check_pred(Y_true: Any, Y_pred: Any) -> tuple[LabelMatrix, LabelMatrix]:
    """Labels and predicted label sets of the same rows, in the same order of labels."""
    if _holds_names(Y_true) and _holds_names(Y_pred):
        names = sorted({name for rows in (Y_true, Y_pred) for row in rows for name in row})
        if not names:
            raise InputError("neither Y_true nor Y_pred holds a label name: there is none to score")
        truth, predicted = (
            check_true(as_labels(Y_true, names=names)),
            as_labels(Y_pred, names=names),
        )
    else:
        truth = check_true(Y_true)
        predicted = _as_sets(Y_pred, truth.names if _holds_names(Y_pred) else None)
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
    """Labels and scores of the same rows, in the same order of labels.

    A sparse `Y_score` holds the best labels of each row only; where `sparse` is false a
    metric needs the scores of all labels and refuses it.
    """
    truth = check_true(Y_true)
    if isinstance(Y_score, list) and len(Y_score) and np.ndim(Y_score[0]) == 2:
        raise InputError(
            "Y_score is a list of arrays, one a label: stack the columns of class 1 to (rows, "
            "labels), or let labelweave.metrics.evaluate read the model"
        )
    if sp.issparse(Y_score):
        if not sparse:
            raise InputError("Y_score is sparse, but this metric needs the scores of all labels")
        scores: Any = sp.csr_array(Y_score)
        if not scores.has_canonical_format:
            scores = scores.copy()
            scores.sum_duplicates()
        stored = scores.data
    else:
        try:
            scores = stored = np.asarray(Y_score)
            if scores.dtype not in (np.float32, np.float64):
                scores = stored = scores.astype(np.float64)
        except (TypeError, ValueError):
            raise InputError("Y_score is not a matrix of numbers (rows x labels)") from None
    _check_shape("Y_score", truth, scores.shape)
    _check_finite(scores, stored)
    if hasattr(Y_score, "columns"):
        columns = aligned_columns(truth.names, [str(name) for name in Y_score.columns], "Y_score")
        if columns is not None:
            scores = scores[:, columns]
    return truth, scores


def check_weight(sample_weight: Any, n_rows: int) -> np.ndarray | None:
    """One finite, non-negative weight a row, not all zero; None stands for equal weights."""
    if sample_weight is None:
        return None
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.shape != (n_rows,):
        raise InputError(f"sample_weight has shape {weight.shape}, but there are {n_rows} rows")
    if not np.isfinite(weight).all() or (weight < 0).any() or not weight.any():
        raise InputError("sample_weight must be finite, not negative and not all zero")
    return weight


def mean_of_defined(
    values: np.ndarray, defined: np.ndarray, weight: np.ndarray | None = None
) -> float:
    """Weighted mean of the values that are defined; nan where there is none."""
    defined = defined & ~np.isnan(values)
    if weight is None:
        return float(values[defined].mean()) if defined.any() else float("nan")
    total = weight[defined].sum()
    return float(values[defined] @ weight[defined] / total) if total > 0 else float("nan")


def chunks(length: int, width: int) -> list[slice]:
    """Split `length` rows (or labels) of `width` entries each into slices that fit the cache."""
    return row_chunks(length, width, _CHUNK_ENTRIES)


def aligned_columns(
    wanted: tuple[str, ...], given: tuple[str, ...] | list[str], what: str
) -> list[int] | None:
    """Columns of `given` in the order of `wanted`; None where the order is the same.

    Names that were made up (label_0, label_1, ...) say nothing, so the order stands.
    """
    if tuple(given) == wanted or is_made_up(wanted) or is_made_up(given):
        return None
    position = {name: j for j, name in enumerate(given)}
    missing = next((name for name in wanted if name not in position), None)
    if missing is not None:
        raise InputError(f"{what} has no label {missing!r}, which Y_true has")
    return [position[name] for name in wanted]


def is_made_up(names: tuple[str, ...] | list[str]) -> bool:
    """Whether the names are the numbers that `as_labels` gives to unnamed labels."""
    return all(name == f"label_{j}" for j, name in enumerate(names))


def _holds_names(Y: Any) -> bool:
    """Whether Y is, for each row, a collection of label names."""
    if isinstance(Y, LabelMatrix) or sp.issparse(Y) or hasattr(Y, "columns"):
        return False
    is_array = isinstance(Y, np.ndarray) and Y.ndim == 1
    if not (is_array or isinstance(Y, Sequence)) or isinstance(Y, str) or len(Y) == 0:
        return False
    if not all(isinstance(row, list | tuple | set | frozenset) for row in Y):
        return False
    return all(isinstance(item, str) for row in Y for item in row)


def _as_sets(Y_pred: Any, names: Sequence[str] | None) -> LabelMatrix:
    try:
        return as_labels(Y_pred, names=names)
    except InputError as error:
        raise InputError(f"Y_pred holds no label sets: {error}") from None


def _check_shape(what: str, truth: LabelMatrix, shape: tuple[int, ...]) -> None:
    if shape != truth.shape:
        raise InputError(
            f"Y_true has shape {truth.shape} (rows, labels) but {what} has shape {shape}"
        )


def _check_finite(scores: Any, stored: np.ndarray) -> None:
    # A finite sum proves every entry finite, without a mask the size of the scores.
    with np.errstate(all="ignore"):
        if np.isfinite(stored.sum(dtype=np.float64)) or np.isfinite(stored).all():
            return
    if sp.issparse(scores):
        k = int(np.flatnonzero(~np.isfinite(stored))[0])
        row, column = int(np.searchsorted(scores.indptr, k, side="right")) - 1, scores.indices[k]
        value = stored[k]
    else:
        row, column = (int(i) for i in np.argwhere(~np.isfinite(scores))[0])
        value = scores[row, column]
    kind = "NaN" if np.isnan(value) else "infinity"
    raise InputError(f"Y_score contains {kind} at row {row}, column {column}")
