"""The scores of a cell: every metric, each at the threshold that the protocol chooses.

Metrics of label sets are computed at all candidate thresholds at once, from one count of the
scores. Every cell tunes one threshold per metric, and on data with many labels a separate
computation at each of 400 thresholds would take longer than many fits.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from labelweave.bench.evaluation_protocol import PANEL, EvaluationProtocol
from labelweave.labels import LabelMatrix
from labelweave.metrics import get_metric, sweep_counts, sweep_f1
from labelweave.metrics._inputs import chunks
from labelweave.thresholds import PAPER_GRID, make_threshold
from labelweave.thresholds.threshold_search import (
    at_least,
    candidate_thresholds,
    evaluate_at_thresholds,
    pick_threshold,
)

# Metrics that are best at the same threshold by definition.
_SAME_THRESHOLD = {"hamming_accuracy": "hamming_loss", "subset_accuracy": "zero_one_loss"}

Scores = dict[str, float | None]


def score_test_rows(
    protocol: EvaluationProtocol,
    validation: tuple[LabelMatrix, np.ndarray],
    test: tuple[LabelMatrix, np.ndarray],
    metrics: Iterable[str] = PANEL,
    *,
    train_labels: LabelMatrix | None = None,
) -> tuple[Scores, dict[str, float]]:
    """Score the test rows once.

    * `protocol`: Decides how thresholds are chosen.
    * `validation`, `test`: The labels of `validation` may be partial, as in training; those of
      `test` are true.
    * `train_labels`: The source of the label propensities, for metrics that need them.

    Returns the scores, None where a metric is undefined (P@5 of three labels), and the threshold of
    each metric of label sets.
    """
    Y, test_scores = test
    scores: Scores = {}
    thresholds: dict[str, float] = {}
    for name in metrics:
        metric = get_metric(name)
        if metric.parameters.get("k", 1) > Y.n_labels:
            scores[name] = None
        elif metric.needs == "score":
            extra = _propensities(train_labels) if metric.needs_propensities else {}
            scores[name] = _finite(metric(Y, Y_score=test_scores, **extra))
        elif protocol.threshold == "test":
            # The papers ignore rows in the example F1 whose truth and prediction are both empty.
            zero_division = np.nan if name == "f1_example" else 0.0
            thresholds[name], value = best_threshold(
                name, Y, test_scores, PAPER_GRID, zero_division=zero_division
            )
            scores[name] = _finite(value)
        else:
            chosen_by = _SAME_THRESHOLD.get(name, name)
            if chosen_by in thresholds:
                thresholds[name] = thresholds[chosen_by]
            else:
                thresholds[name] = _honest_threshold(protocol, chosen_by, *validation)
            scores[name] = _finite(metric(Y, Y_pred=at_least(test_scores, thresholds[name])))
    return scores, thresholds


def _honest_threshold(
    protocol: EvaluationProtocol, name: str, Y: LabelMatrix, scores: np.ndarray
) -> float:
    """Choose a threshold without the test rows."""
    if protocol.threshold == "validation":
        return best_threshold(name, Y, scores)[0]
    if protocol.threshold == "cardinality":
        return float(make_threshold("cardinality").fit(Y, scores).value_)
    return float(protocol.threshold)


def _propensities(train_labels: LabelMatrix | None) -> dict[str, Any]:
    from labelweave.metrics import propensities

    return {} if train_labels is None else {"propensities": propensities(train_labels)}


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def best_threshold(
    name: str, Y: LabelMatrix, scores: np.ndarray, grid: Any = None, **options: Any
) -> tuple[float, float]:
    """Find the threshold at which a metric is best, and the value of the metric there.

    * `name`: A metric of label sets.
    * `Y`, `scores`: The rows on which the threshold is chosen.
    * `grid`: The candidate thresholds; by default just below the scores of positive entries.
    * `**options`: Options of :func:`metric_at_thresholds`.

    >>> from labelweave.labels import as_labels
    >>> Y, scores = as_labels([[1, 0], [0, 1]]), np.array([[0.4, 0.1], [0.2, 0.5]])
    >>> best_threshold("f1_micro", Y, scores)
    (0.30000000000000004, 1.0)
    """
    candidates = candidate_thresholds(Y, scores, grid)
    sign = get_metric(name).sign
    values = metric_at_thresholds(name, Y, scores, candidates, **options)
    threshold, best = pick_threshold(candidates, sign * values)
    return float(threshold), float(sign * best)


def metric_at_thresholds(
    name: str,
    Y: LabelMatrix,
    scores: np.ndarray,
    thresholds: np.ndarray,
    *,
    zero_division: float = 0.0,
) -> np.ndarray:
    """Compute a metric of label sets at each threshold.

    * `zero_division`: The F1 of a row or label with neither positives nor predictions; NaN ignores
      it.
    """
    kind, _, average = name.partition("_")
    if kind == "f1":
        return sweep_f1(Y, scores, thresholds, average=average, zero_division=zero_division)
    if name == "of1":
        return sweep_f1(Y, scores, thresholds, average="micro", zero_division=zero_division)
    if name in ("hamming_loss", "hamming_accuracy"):
        counts = sweep_counts(Y, scores, thresholds)
        wrong = (counts.predicted + counts.positive - 2 * counts.hits).sum(axis=0)
        loss = wrong / counts.known.sum()
        return loss if name == "hamming_loss" else 1 - loss
    if name == "cf1":
        return _class_f1(Y, scores, thresholds)
    if name in ("zero_one_loss", "subset_accuracy"):
        correct = _share_of_correct_rows(Y, scores, thresholds)
        return correct if name == "subset_accuracy" else 1 - correct
    return evaluate_at_thresholds(name, Y, scores, thresholds)[0]


def _class_f1(Y: LabelMatrix, scores: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
    """Harmonic mean of macro precision and macro recall."""
    counts = sweep_counts(Y, scores, thresholds)
    known = counts.known[:, 0] > 0
    hits, predicted, positive = (part[known] for part in counts[:3])
    positive = np.broadcast_to(positive, hits.shape)
    precision, recall = (
        np.divide(hits, of, out=np.zeros_like(hits), where=of > 0).mean(axis=0)
        for of in (predicted, positive)
    )
    total = precision + recall
    return np.divide(2 * precision * recall, total, out=np.zeros_like(total), where=total > 0)


def _share_of_correct_rows(
    Y: LabelMatrix, scores: np.ndarray, thresholds: np.ndarray
) -> np.ndarray:
    """A row is correct if all its positives reach the threshold and no negative does."""
    thresholds = np.asarray(thresholds, dtype=scores.dtype)  # rounded as when they are applied
    correct, n_known = np.zeros(len(thresholds)), 0
    for rows in chunks(*Y.shape):
        values = Y[rows].to_numpy()
        lowest = np.where(values == 1, scores[rows], np.inf).min(axis=1)
        highest = np.where(values == 0, scores[rows], -np.inf).max(axis=1)
        known = ~np.isnan(values).all(axis=1)
        separable = known & (highest < lowest)  # correct above `highest` and up to `lowest`
        correct += np.searchsorted(np.sort(highest[separable]), thresholds, side="left")
        correct -= np.searchsorted(np.sort(lowest[separable]), thresholds, side="left")
        n_known += known.sum()
    return correct / max(n_known, 1)
