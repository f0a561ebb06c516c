"""The search for a threshold: the candidates, the metric at each of them, and the best."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelweave.exceptions import InputError
from labelweave.labels import LabelMatrix
from labelweave.thresholds.sparse_scores import chosen_entries

_MAX_CANDIDATES = 400


def candidate_thresholds(
    Y: LabelMatrix, scores: np.ndarray, grid: Sequence[float] | None
) -> np.ndarray:
    """Return the thresholds to try, in ascending order.

    Without a grid they lie just below the scores of the positive entries, or at quantiles of these
    if there are many: the best F1 is reached at such a threshold.
    """
    if grid is not None:
        candidates = np.unique(np.asarray(grid, dtype=np.float64))
        if not len(candidates) or not np.isfinite(candidates).all():
            raise InputError("grid must hold at least one number, and only numbers")
        return candidates
    positive = Y.positive()
    at_positive = scores[positive.nonzero() if Y.is_sparse else positive]
    ordered = np.unique(scores)
    chosen = np.unique(np.append(at_positive, ordered[-1:]))
    if len(chosen) > _MAX_CANDIDATES:
        places = np.linspace(0, 1, _MAX_CANDIDATES)
        chosen = np.unique(np.quantile(at_positive, places, method="closest_observation"))
    below = ordered[np.maximum(np.searchsorted(ordered, chosen) - 1, 0)]
    return threshold_between(below, chosen)


def threshold_between(below: Any, above: Any) -> Any:
    """Return a threshold that `above` reaches and a smaller `below` does not, as float64."""
    below, above = np.asarray(below), np.asarray(above)
    middle = (below + above) / 2
    threshold = np.where(middle > below, middle, above).astype(np.float64)
    return threshold if threshold.ndim else float(threshold)


def evaluate_at_thresholds(
    name: str, Y: LabelMatrix, scores: np.ndarray, thresholds: np.ndarray
) -> tuple[np.ndarray, int]:
    """Compute the metric at each threshold; also return 1 if greater is better, else -1."""
    from labelweave.metrics import sweep_f1

    metric = label_set_metric(name)
    kind, _, average = metric.name.partition("_")
    if kind == "f1":
        values = sweep_f1(Y, scores, thresholds, average=average)
    else:
        values = np.array([metric(Y, Y_pred=at_least(scores, value)) for value in thresholds])
    return values, metric.sign


def pick_threshold(thresholds: np.ndarray, values: np.ndarray) -> Any:
    """Return the threshold with the greatest value along the last axis, and that value.

    A value of nan never wins; among equal values the threshold nearest to 0.5 does.
    """
    order = np.argsort(np.abs(thresholds - 0.5), kind="stable")
    values = np.where(np.isnan(values), -np.inf, values)[..., order]
    best = values.argmax(axis=-1)
    threshold = thresholds[order][best]
    value = np.take_along_axis(values, np.expand_dims(best, -1), -1)[..., 0]
    return (threshold, value) if values.ndim > 1 else (float(threshold), float(value))


def label_set_metric(name: str) -> Any:
    """Return the metric of this name, which must be computed from label sets, not from scores."""
    from labelweave.metrics import get_metric

    metric = get_metric(name)
    if metric.needs != "pred":
        raise InputError(f"{name} is computed from scores: no threshold can be tuned for it")
    return metric


def at_least(scores: Any, thresholds: Any) -> Any:
    """Return 1 where a score reaches its threshold, else 0; a sparse matrix if the scores are."""
    if sp.issparse(scores):
        return chosen_entries(scores, np.flatnonzero(at_least(scores.data, thresholds)))
    scores = np.asarray(scores)
    # In the precision of the scores, or a float32 score could miss a threshold that equals it.
    dtype = scores.dtype if scores.dtype.kind == "f" else np.float64
    return (scores >= np.asarray(thresholds, dtype=dtype)).astype(np.int8)
