"""The scores of a cell: every metric of the panel, each at the cut that the protocol chooses."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from labelweave.bench.cuts import choose_cut
from labelweave.bench.panel import PANEL
from labelweave.bench.protocols import Protocol
from labelweave.labels import LabelMatrix
from labelweave.metrics import get_metric
from labelweave.thresholds import PAPER_GRID, make_threshold
from labelweave.thresholds.cuts import at_least

__all__ = ["score_test_rows"]

# Metrics that are best at the same cut by definition.
_SAME_CUT = {"hamming_accuracy": "hamming_loss", "subset_accuracy": "zero_one_loss"}

Scores = dict[str, float | None]


def score_test_rows(
    protocol: Protocol,
    validation: tuple[LabelMatrix, np.ndarray],
    test: tuple[LabelMatrix, np.ndarray],
    metrics: Iterable[str] = PANEL,
    *,
    train_labels: LabelMatrix | None = None,
) -> tuple[Scores, dict[str, float]]:
    """Score the test rows once.

    Parameters
    ----------
    protocol : Protocol
        Says where the cuts come from.
    validation, test : (labels, scores)
        `validation` may be labelled in part, as it is in training; `test` holds the truth.
    metrics : names of metrics
    train_labels : LabelMatrix, optional
        Gives the propensities, for metrics that need them.

    Returns
    -------
    scores : dict
        None where a metric is undefined (P@5 of three labels).
    cuts : dict
        The cut of each metric of label sets.
    """
    Y, at_test = test
    scores: Scores = {}
    cuts: dict[str, float] = {}
    for name in metrics:
        metric = get_metric(name)
        if metric.parameters.get("k", 1) > Y.n_labels:
            scores[name] = None
        elif metric.needs == "score":
            extra = _propensities(train_labels) if metric.needs_propensities else {}
            scores[name] = _finite(metric(Y, Y_score=at_test, **extra))
        elif protocol.cut == "test":
            cuts[name], value = choose_cut(
                name, Y, at_test, PAPER_GRID, zero_division=_published_convention(name)
            )
            scores[name] = _finite(value)
        else:
            like = _SAME_CUT.get(name, name)
            cuts[name] = cuts[like] if like in cuts else _honest_cut(protocol, like, *validation)
            scores[name] = _finite(metric(Y, Y_pred=at_least(at_test, cuts[name])))
    return scores, cuts


def _honest_cut(protocol: Protocol, name: str, Y: LabelMatrix, scores: np.ndarray) -> float:
    """A cut that is found without a look at the test rows."""
    if protocol.cut == "validation":
        return choose_cut(name, Y, scores)[0]
    if protocol.cut == "cardinality":
        return float(make_threshold("cardinality").fit(Y, scores).value_)
    return float(protocol.cut)


def _published_convention(name: str) -> float:
    """The papers leave rows out of the example F1 whose truth and prediction are both empty."""
    return np.nan if name == "f1_example" else 0.0


def _propensities(train_labels: LabelMatrix | None) -> dict[str, Any]:
    from labelweave.metrics import propensities

    return {} if train_labels is None else {"propensities": propensities(train_labels)}


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
