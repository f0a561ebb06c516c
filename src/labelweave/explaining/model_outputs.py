"""The probabilities of a model for many changed rows, and the names of its labels and columns."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from labelweave.exceptions import InputError, LabelweaveWarning
from labelweave.explaining.replaced_columns import Change, ColumnRows
from labelweave.metrics.evaluation import core_of
from labelweave.model_selection import label_probabilities
from labelweave.rows import row_chunks

__all__ = ["feature_names_of", "label_names_of", "predict_changed", "predict_rows"]

_MAX_ENTRIES = 4_000_000  # of one call, in features or probabilities
_MAX_ROWS = 8192


def label_names_of(model: Any, n_labels: int) -> list[str]:
    """Return the names of the labels of a model; numbered ones for a model of another library."""
    names = getattr(core_of(model), "label_names_", None)
    return [f"label_{j}" for j in range(n_labels)] if names is None else [str(n) for n in names]


def feature_names_of(
    model: Any, own: Sequence[str] | None, given: Sequence[str] | None, n_columns: int
) -> list[str]:
    """Return the names of the columns: the given ones, those of the rows or those of the model."""
    names = given if given is not None else own
    if names is None:
        names = getattr(model, "feature_names_in_", None)
    if names is None:
        return [f"x{j}" for j in range(n_columns)]
    if len(names) != n_columns:
        raise InputError(f"there are {len(names)} names for {n_columns} columns")
    return [str(name) for name in names]


def predict_rows(model: Any, X: Any) -> np.ndarray:
    """Return the probabilities of rows as they are; one column per label."""
    return _two_dimensional(label_probabilities(model, X))


def predict_changed(
    model: Any, rows: ColumnRows, changes: Sequence[Change], n_labels: int
) -> Iterator[np.ndarray]:
    """Yield the probabilities of each change; many changes are predicted in one call.

    What is special about the rows was said when they were predicted as they are.
    """
    width = max(rows.n_columns if rows.is_dense else 1, n_labels)
    most = max(1, min(_MAX_ROWS, _MAX_ENTRIES // width))
    waiting: list[Change] = []
    for k, change in enumerate(changes):
        waiting.append(change)
        n_waiting = sum(len(one.rows) for one in waiting)
        if n_waiting >= most or k == len(changes) - 1:
            yield from _predict_together(model, rows, waiting, most, n_labels)
            waiting = []


def _predict_together(
    model: Any, table: ColumnRows, changes: Sequence[Change], most: int, n_labels: int
) -> list[np.ndarray]:
    lengths = [len(change.rows) for change in changes]
    rows, sources = (np.concatenate([change[k] for change in changes]) for k in (0, 2))
    columns = np.repeat([change.column for change in changes], lengths)
    parts = [np.empty((0, n_labels))]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LabelweaveWarning)
        for at in row_chunks(len(rows), 1, most):
            changed = table.replaced(rows[at], columns[at], sources[at])
            parts.append(predict_rows(model, changed))
    return np.split(np.concatenate(parts), np.cumsum(lengths)[:-1])


def _two_dimensional(probabilities: np.ndarray) -> np.ndarray:
    return probabilities if probabilities.ndim == 2 else probabilities[:, None]
