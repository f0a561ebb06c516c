"""Which members :class:`~labelweave.dependent.weave.Weave` keeps, and the table of all of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from labelweave.dependent.weave_plan import Plan
from labelweave.dependent.weave_stacking import (
    MAX_WEIGHT_ENTRIES,
    choose_members,
    mean_entropy,
    sample_rows,
    weights_of,
)
from labelweave.dependent.weave_trials import Trial
from labelweave.labels import LabelMatrix

__all__ = ["choose_trials", "table_of_members", "without_costly_members"]

_MATERIAL = 0.01  # relative rise of the cross-entropy that is worth a costly member


def choose_trials(
    plan: Plan,
    trials: list[Trial],
    Y: LabelMatrix,
    rows: np.ndarray,
    seed: int,
    limit: float,
    row_weight: np.ndarray | None = None,
) -> tuple[list[int], np.ndarray, np.ndarray]:
    """Numbers of the chosen members by descending weight, all weights, and their log-odds.

    `row_weight` has the weights of the rows whose numbers are `rows`.
    """
    targets = Y.to_numpy()[rows]
    running = [k for k, trial in enumerate(trials) if trial.n_models[0]]
    odds = np.stack([trials[k].odds(rows) for k in running])
    last = np.array([plan.refit_seconds[k] or 0.0 for k in running])
    among = choose_members(odds, targets, row_weight, seed=seed)
    among = without_costly_members(odds, targets, among, last, limit, row_weight, seed=seed)
    weights = np.zeros(len(trials))
    weights[running] = among
    order = [int(place) for place in np.argsort(-among, kind="stable") if among[place] > 0]
    return [running[place] for place in order], weights, odds[order]


def table_of_members(
    plan: Plan, trials: list[Trial], Y: LabelMatrix, rows: np.ndarray, weights: np.ndarray
) -> Any:
    """The table of members."""
    import pandas as pd

    table = [
        {
            "method": trial.member.name,
            "map": trial.mean_average_precision(Y, rows) if trial.n_models[0] else np.nan,
            "weight": weight,
            "seconds": trial.seconds,
            "predicted_seconds": np.nan
            if per_fit is None
            else per_fit * runs * plan.n_folds + (last or 0.0) * (weight > 0),
            "note": trial.note,
        }
        for trial, weight, per_fit, runs, last in zip(
            trials, weights, plan.seconds, plan.runs, plan.refit_seconds, strict=True
        )
    ]
    not_tried = {"map": np.nan, "weight": 0.0, "seconds": 0.0, "predicted_seconds": 0.0}
    table += [{"method": m.name, **not_tried, "note": note} for m, note in plan.left_out]
    return pd.DataFrame(table)


def without_costly_members(
    odds: np.ndarray,
    targets: np.ndarray,
    weights: np.ndarray,
    seconds: np.ndarray,
    limit: float,
    row_weight: np.ndarray | None = None,
    *,
    seed: int = 0,
) -> np.ndarray:
    """Weights without the members whose last fit costs much and brings little.

    While the last fits together take longer than `limit`, the member is removed without which
    cross-entropy rises least per second saved, unless it rises by more than 1 %.

    Parameters
    ----------
    odds, targets, row_weight, seed
        As in :func:`choose_members`.
    weights : ndarray of shape (members,)
        From :func:`choose_members`.
    seconds : ndarray of shape (members,)
        Predicted time of the last fit of each member.
    limit : float
        Seconds.

    Examples
    --------
    >>> targets = np.array([[1.0], [0.0], [1.0], [0.0]])
    >>> odds = np.stack([4 * targets - 2, 4 * targets - 2])
    >>> odds[0, 0] = odds[1, 3] = 0.0
    >>> weights, seconds = choose_members(odds, targets), np.array([1.0, 90.0])
    >>> bool((without_costly_members(odds, targets, weights, seconds, 100.0) == weights).all())
    True
    """
    rows = sample_rows(targets, MAX_WEIGHT_ENTRIES, seed)
    sampled, known, counted = odds[:, rows], targets[rows], weights_of(row_weight, rows)
    while (weights > 0).sum() > 1 and seconds[weights > 0].sum() > limit:
        entropy = mean_entropy(np.tensordot(weights, sampled, 1), known, counted)
        without = {}
        for member in np.flatnonzero((weights > 0) & (seconds > 0)):
            others = np.flatnonzero((weights > 0) & (np.arange(len(weights)) != member))
            fewer = np.zeros_like(weights)
            fewer[others] = choose_members(sampled[others], known, counted)
            rise = mean_entropy(np.tensordot(fewer, sampled, 1), known, counted) - entropy
            without[int(member)] = (rise / seconds[member], rise, fewer)
        if not without:
            return weights
        _, rise, fewer = min(without.values(), key=lambda option: option[0])
        if rise > _MATERIAL * entropy:
            return weights
        weights = fewer
    return weights
