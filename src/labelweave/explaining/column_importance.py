"""Importance of columns or words, measured on held-out rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
from labelweave.explaining.replaced_columns import ColumnRows, changed_rows, column_rows
from labelweave.explaining.results import FeatureImportance
from labelweave.input_checks import is_texts
from labelweave.metrics._inputs import aligned_columns
from labelweave.metrics.evaluation import labels_of
from labelweave.metrics.labelwise import ap_of_labels, auc_of_labels
from labelweave.rows import count_rows

__all__ = ["METRICS", "feature_importance"]

METRICS: dict[str, tuple[str, Callable[..., np.ndarray]]] = {
    "ap": ("average precision", ap_of_labels),
    "auc": ("AUC", auc_of_labels),
}
# Rows on which columns are compared to choose those that are measured: at most this many, and
# fewer for tables of very many columns, so that about this many predictions are enough.
_N_SCREENED, _SCREENING_PREDICTIONS = 20, 20_000


def feature_importance(
    model: Any,
    X: Any,
    Y: Any,
    *,
    metric: str = "ap",
    n_repeats: int = 5,
    labels: Sequence[str] | None = None,
    max_rows: int | None = 1000,
    max_columns: int | None = 200,
    feature_names: Sequence[str] | None = None,
    random_state: Any = None,
) -> FeatureImportance:
    """Measure how much worse each label is predicted without the information of a column.

    The values of a column are permuted among the rows (L. Breiman, Random forests, Machine
    Learning 45, 2001), and the importance is how much the score of a label drops. The columns are
    those of X: a category or a date is permuted as a whole, whatever features the model makes of
    it. Of texts, each word is left out of the texts that have it.

    Parameters
    ----------
    model : fitted estimator
        Any model with `predict_proba`, a pipeline included.
    X : array, SciPy sparse, DataFrame, Table or list of texts
        Rows that the model was not trained on: on training rows the importance shows what the
        model remembers, not what it has learnt.
    Y : labels of these rows
        Unknown entries are ignored.
    metric : {"ap", "auc"}, default="ap"
        The score of each label: average precision, or area under the ROC curve.
    n_repeats : int, default=5
        Number of permutations of each column. Words are left out once.
    labels : sequence of str, optional
        Only these labels.
    max_rows : int or None, default=1000
        With more rows, this many are drawn at random.
    max_columns : int or None, default=200
        With more columns, those are measured that change the predictions of a few rows most, or,
        of words and sparse columns, those that vary most. The others are `not_measured`.
    feature_names : sequence of str, optional
        Names of the columns, where neither X nor the model has them.
    random_state : int, RandomState instance or None, default=None

    Returns
    -------
    FeatureImportance

    Notes
    -----
    Of two columns that say the same, each seems unimportant while the model can use the other.

    Examples
    --------
    >>> import numpy as np
    >>> import labelweave as lw
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> Y = lw.as_labels(X[:, :2] > 0, names=["a", "b"])
    >>> model = lw.BinaryRelevance().fit(X[:100], Y[:100])
    >>> importance = feature_importance(model, X[100:], Y[100:], random_state=0)
    >>> [features[0][0] for features in importance.top(1).values()]
    ['x0', 'x1']
    """
    _check(metric, n_repeats, max_rows, max_columns)
    random = np.random.RandomState() if random_state is None else check_random_state(random_state)
    truth = labels_of(model, Y, tuple(label_names_of(model, 0)) or None)
    if count_rows(X) != len(truth):
        raise InputError(f"X has {count_rows(X)} rows, but Y has {len(truth)}")
    if max_rows is not None and len(truth) > max_rows:
        chosen = np.sort(random.permutation(len(truth))[:max_rows])
        X, truth = _safe_indexing(X, chosen), truth[chosen]
    table = column_rows(X)
    names = feature_names_of(model, table.names, feature_names, table.n_columns)
    before = predict_rows(model, X)
    if labels is not None:
        truth = truth.select(labels)
    order = aligned_columns(truth.names, label_names_of(model, before.shape[1]), "the model")
    every = slice(None) if order is None else np.asarray(order, dtype=int)
    columns = _columns_to_measure(model, table, before, max_columns, random)
    if is_texts(X):
        n_repeats = 1
    what, score = METRICS[metric]
    scores = score(truth, before[:, every])
    drops = np.empty((n_repeats, len(columns), truth.n_labels))
    rows = np.arange(len(truth))
    changes = [
        changed_rows(table, rows, int(j), random.permutation(len(rows)))
        for _ in range(n_repeats)
        for j in columns
    ]
    predictions = predict_changed(model, table, changes, before.shape[1])
    for k, (change, after) in enumerate(zip(changes, predictions, strict=True)):
        drop = np.zeros(truth.n_labels) + 0 * scores
        if len(change.rows):
            changed = before.copy()
            changed[change.rows] = after
            drop = scores - score(truth, changed[:, every])
        drops[divmod(k, len(columns))] = drop
    is_measured = np.zeros(table.n_columns, dtype=bool)
    is_measured[columns] = True
    how = "the word is left out" if is_texts(X) else "the column is permuted"
    return FeatureImportance(
        f"drop in {what} when {how}",
        list(truth.names),
        [names[j] for j in columns],
        drops.mean(axis=0).T,
        spread=drops.std(axis=0).T if n_repeats > 1 else None,
        scores=scores,
        n_rows=len(truth),
        not_measured=[names[j] for j in np.flatnonzero(~is_measured)],
    )


def _check(metric: str, n_repeats: int, max_rows: int | None, max_columns: int | None) -> None:
    if metric not in METRICS:
        raise InputError(f"metric must be one of {', '.join(METRICS)}, not {metric!r}")
    limits = {"n_repeats": n_repeats, "max_rows": max_rows, "max_columns": max_columns}
    for name, value in limits.items():
        if value is not None and value < 1:
            raise InputError(f"{name} must be at least 1, not {value}")


def _columns_to_measure(
    model: Any,
    table: ColumnRows,
    before: np.ndarray,
    max_columns: int | None,
    random: np.random.RandomState,
) -> np.ndarray:
    """Numbers of the columns that are measured, in their order."""
    if max_columns is None or table.n_columns <= max_columns:
        return np.arange(table.n_columns)
    variation = table.variation()
    if variation is None:
        n_few = int(np.clip(_SCREENING_PREDICTIONS // table.n_columns, 2, _N_SCREENED))
        few = random.permutation(len(before))[:n_few]
        sources = few[random.permutation(len(few))]
        changes = [changed_rows(table, few, j, sources) for j in range(table.n_columns)]
        predictions = predict_changed(model, table, changes, before.shape[1])
        variation = np.array(
            [
                np.abs(after - before[change.rows]).sum()
                for change, after in zip(changes, predictions, strict=True)
            ]
        )
    return np.sort(np.argsort(-variation, kind="stable")[:max_columns])
