"""Which columns or words speak for and against the labels of one row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing, check_random_state

from labelweave.exceptions import InputError
from labelweave.explaining.model_outputs import (
    feature_names_of,
    label_names_of,
    predict_changed,
    predict_rows,
)
from labelweave.explaining.replaced_columns import Change, changed_rows, column_rows
from labelweave.explaining.results import RowExplanation, label_positions
from labelweave.input_checks import is_texts
from labelweave.labels import is_frame
from labelweave.metrics.evaluation import core_of
from labelweave.probabilities import log_odds
from labelweave.rows import concatenate_features, count_rows
from labelweave.tables.table import Table
from labelweave.thresholds import Threshold

__all__ = ["explain_row"]

_EPS = 1e-12  # probabilities of 0 and 1 have no finite log odds


def explain_row(
    model: Any,
    x: Any,
    background: Any = None,
    *,
    labels: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    scale: str = "probability",
    max_background: int = 100,
    max_columns: int | None = 1000,
    feature_names: Sequence[str] | None = None,
    random_state: Any = 0,
) -> RowExplanation:
    """Compute how much each column, or each word, of one row changes its probabilities.

    One column at a time is replaced by its values in the `background` rows, and the change is the
    probability of the row minus the mean of the probabilities with these values. Of a text, one
    word at a time is left out.

    Parameters
    ----------
    model : fitted estimator
        Any model with `predict_proba`, a pipeline included.
    x : one row
        A row of the kind that the model predicts from: an array of one or two dimensions, a sparse
        matrix, DataFrame or Table of one row, or a text.
    background : rows of the same kind, optional
        Rows whose values take the place of those of `x`: held-out rows, or
        :func:`reference_rows`. Not needed for a text.
    labels : sequence of str, optional
        Only these labels.
    columns : sequence of str, optional
        Only these columns or words.
    scale : {"probability", "logit"}, default="probability"
        ``"logit"`` measures the change of the log odds. For a linear model these are the SHAP
        values of independent features, ``coef * (x - mean)``.
    max_background : int, default=100
        With more background rows, this many are drawn at random.
    max_columns : int or None, default=1000
        Number of columns, of those that the background changes, or words that are measured. The
        others are `not_measured`.
    feature_names : sequence of str, optional
        Names of the columns, where neither the rows nor the model have them.
    random_state : int, RandomState instance or None, default=0

    Returns
    -------
    RowExplanation

    Notes
    -----
    Changes are measured one column at a time and need not add up. Where two columns say the same,
    replacing one of them can make a row that does not occur.

    Examples
    --------
    >>> import numpy as np
    >>> import labelweave as lw
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> model = lw.BinaryRelevance().fit(X, lw.as_labels(X[:, :2] > 0, names=["a", "b"]))
    >>> explanation = explain_row(model, [2.0, -1.0, 0.0], X[:50])
    >>> [(name, value, change > 0) for name, value, change in explanation.strongest("b", 1)]
    [('x1', -1.0, False)]
    """
    if scale not in ("probability", "logit"):
        raise InputError(f"scale must be 'probability' or 'logit', not {scale!r}")
    if max_background < 1:
        raise InputError(f"max_background must be at least 1, not {max_background}")
    row = _one_row(x)
    probabilities = predict_rows(model, row)
    if is_texts(row):
        rows = row
        n_background = 1
    else:
        rows, n_background = _with_background(row, background, max_background, random_state)
    table = column_rows(rows)
    names = feature_names_of(model, table.names, feature_names, table.n_columns)
    first = np.zeros(n_background, dtype=int)
    sources = np.arange(n_background) + (0 if is_texts(row) else 1)
    changes = [changed_rows(table, first, j, sources) for j in _positions(names, columns)]
    changes, left_out = _first_changes(changes, max_columns)
    chosen = [change.column for change in changes]
    before = probabilities[0]
    scaled = _as_is if scale == "probability" else _logit
    falls = np.zeros((len(chosen), len(before)))
    predictions = predict_changed(model, table, changes, len(before))
    for k, after in enumerate(predictions):
        # where the background has the same value nothing changes
        falls[k] = (scaled(before) - scaled(after)).sum(axis=0) / n_background
    every = label_names_of(model, len(before))
    wanted = np.arange(len(every)) if labels is None else label_positions(every, list(labels))
    sets = _label_sets(model, probabilities)
    values = table.values(0)
    return RowExplanation(
        [every[j] for j in wanted],
        [names[j] for j in chosen],
        [values[j] for j in chosen],
        before[wanted],
        None if sets is None else sets[0][wanted],
        falls.T[wanted],
        scale,
        [names[j] for j in left_out],
    )


def _one_row(x: Any) -> Any:
    if isinstance(x, str):
        return [x]
    if not is_texts(x) and not hasattr(x, "ndim") and not is_frame(x) and not isinstance(x, Table):
        x = np.asarray(x)
    if hasattr(x, "to_frame") and not is_frame(x):  # a row of a DataFrame
        x = x.to_frame().T.infer_objects()
    elif getattr(x, "ndim", 2) == 1 and isinstance(x, np.ndarray):
        x = x[None, :]
    if count_rows(x) != 1:
        raise InputError(f"one row is explained at a time, but x has {count_rows(x)} rows")
    return x


def _with_background(
    row: Any, background: Any, max_background: int, random_state: Any
) -> tuple[Any, int]:
    """The row, and after it the background rows, with their number."""
    if background is None or not count_rows(background):
        raise InputError(
            "background is missing: pass some rows, such as held-out ones, whose values take the "
            "place of those of the row"
        )
    n_background = count_rows(background)
    if n_background > max_background:
        random = check_random_state(random_state)
        drawn = np.sort(random.permutation(n_background)[:max_background])
        background, n_background = _safe_indexing(background, drawn), max_background
    if isinstance(row, Table):
        frame = background.frame if isinstance(background, Table) else background
        background = Table(frame)
    if isinstance(row, Table) or is_frame(row):
        own, other = (list(getattr(part, "frame", part).columns) for part in (row, background))
        if own != other:
            raise InputError("the background rows do not have the columns of the row")
    elif row.shape[1] != background.shape[1]:
        raise InputError(
            f"the row has {row.shape[1]} columns, but the background has {background.shape[1]}"
        )
    return concatenate_features([row, background]), n_background


def _positions(names: list[str], columns: Sequence[str] | None) -> list[int]:
    """The numbers of the columns of these names, or of all."""
    if columns is None:
        return list(range(len(names)))
    position = {name: j for j, name in enumerate(names)}
    if unknown := [name for name in columns if name not in position]:
        raise InputError(f"there is no column or word {unknown[0][:80]!r} in the row")
    return [position[name] for name in dict.fromkeys(columns)]


def _first_changes(
    changes: Sequence[Change], max_columns: int | None
) -> tuple[list[Change], list[int]]:
    """The changes that are measured, and the columns that are not because there are too many."""
    effective = [change.column for change in changes if len(change.rows)]
    left_out = [] if max_columns is None else effective[max_columns:]
    skipped = set(left_out)
    return [change for change in changes if change.column not in skipped], left_out


def _label_sets(model: Any, probabilities: np.ndarray) -> np.ndarray | None:
    core = core_of(model)
    if getattr(core, "_single_label", False):  # one class per row
        return probabilities == probabilities.max(axis=1, keepdims=True)
    rule = getattr(core, "threshold_", None)
    return rule.apply(probabilities).astype(bool) if isinstance(rule, Threshold) else None


def _as_is(probabilities: np.ndarray) -> np.ndarray:
    return probabilities


def _logit(probabilities: np.ndarray) -> np.ndarray:
    return log_odds(np.asarray(probabilities, dtype=np.float64), _EPS)
