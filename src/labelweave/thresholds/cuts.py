"""Where to cut scores: the cuts worth trying, their worth, and the best of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from labelweave.exceptions import InputError
from labelweave.labels import LabelMatrix

__all__ = ["at_least", "best_cut", "between", "candidate_cuts", "metric_of_sets", "sweep_metric"]

_MAX_CUTS = 400


def candidate_cuts(Y: LabelMatrix, scores: np.ndarray, grid: Sequence[float] | None) -> np.ndarray:
    """Cuts to try, ascending."""
    if grid is not None:
        cuts = np.unique(np.asarray(grid, dtype=np.float64))
        if not len(cuts) or not np.isfinite(cuts).all():
            raise InputError("grid must hold at least one number, and only numbers")
        return cuts
    positive = Y.positive()
    at_positive = scores[positive.nonzero() if Y.is_sparse else positive]
    ordered = np.unique(scores)
    chosen = np.unique(np.append(at_positive, ordered[-1:]))
    if len(chosen) > _MAX_CUTS:
        places = np.linspace(0, 1, _MAX_CUTS)
        chosen = np.unique(np.quantile(at_positive, places, method="closest_observation"))
    below = ordered[np.maximum(np.searchsorted(ordered, chosen) - 1, 0)]
    return between(below, chosen)


def between(below: Any, above: Any) -> Any:
    """A cut that takes `above` and, where it is smaller, not `below`, as float64."""
    below, above = np.asarray(below), np.asarray(above)
    middle = (below + above) / 2
    cut = np.where(middle > below, middle, above).astype(np.float64)
    return cut if cut.ndim else float(cut)


def sweep_metric(
    name: str, Y: LabelMatrix, scores: np.ndarray, cuts: np.ndarray
) -> tuple[np.ndarray, int]:
    """The metric at each cut, and 1 where greater is better, else -1."""
    from labelweave.metrics import sweep_f1

    metric = metric_of_sets(name)
    kind, _, average = metric.name.partition("_")
    if kind == "f1":
        values = sweep_f1(Y, scores, cuts, average=average)
    else:
        values = np.array([metric(Y, Y_pred=at_least(scores, cut)) for cut in cuts])
    return values, metric.sign


def best_cut(cuts: np.ndarray, values: np.ndarray) -> Any:
    """The cut with the greatest value and that value, along the last axis; nan never wins.

    Of equally good cuts that nearest to 0.5.
    """
    order = np.argsort(np.abs(cuts - 0.5), kind="stable")
    values = np.where(np.isnan(values), -np.inf, values)[..., order]
    best = values.argmax(axis=-1)
    cut = cuts[order][best]
    value = np.take_along_axis(values, np.expand_dims(best, -1), -1)[..., 0]
    return (cut, value) if values.ndim > 1 else (float(cut), float(value))


def metric_of_sets(name: str) -> Any:
    """The metric of this name, which must be one of label sets, not of scores."""
    from labelweave.metrics import get_metric

    metric = get_metric(name)
    if metric.needs != "pred":
        raise InputError(f"{name} is computed from scores: no threshold can be tuned for it")
    return metric


def at_least(scores: Any, cuts: Any) -> np.ndarray:
    """1 where a score reaches its cut, else 0."""
    scores = np.asarray(scores)
    # In the precision of the scores, or a float32 score could miss a cut that equals it.
    cuts = np.asarray(cuts, dtype=scores.dtype if scores.dtype.kind == "f" else np.float64)
    return (scores >= cuts).astype(np.int8)
