"""Curves of probabilities against the truth: reliability, precision and recall, thresholds."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from labelweave.labels import LabelMatrix
from labelweave.metrics import sweep_counts, sweep_f1
from labelweave.metrics._curves import ranked_together
from labelweave.metrics._inputs import chunks
from labelweave.metrics.calibration import calibration_bins

__all__ = [
    "PrecisionRecall",
    "Reliability",
    "ThresholdEffect",
    "precision_recall",
    "reliability",
    "threshold_effect",
]


class Reliability(NamedTuple):
    """What probabilities promise and what comes true, by bins of equal width.

    Arrays with one number a bin: `edges` (one more), `entries`, mean `promised` probability and
    share of positives `happened`, the last two nan in an empty bin.
    """

    edges: np.ndarray
    entries: np.ndarray
    promised: np.ndarray
    happened: np.ndarray


def reliability(Y: LabelMatrix, scores: np.ndarray, n_bins: int = 15) -> Reliability:
    """The bins of :func:`labelweave.metrics.ece`, all labels together.

    >>> from labelweave.labels import as_labels
    >>> bins = reliability(as_labels([[1, 0], [1, 1]]), np.array([[0.9, 0.2], [0.8, 0.9]]), 2)
    >>> bins.entries, bins.promised.round(3), bins.happened
    (array([1., 3.]), array([0.2  , 0.867]), array([0., 1.]))
    """
    mass, promised, positive = (part.sum(axis=0) for part in calibration_bins(Y, scores, n_bins))
    empty = np.full(n_bins, np.nan)
    return Reliability(
        np.linspace(0, 1, n_bins + 1),
        mass,
        np.divide(promised, mass, out=empty.copy(), where=mass > 0),
        np.divide(positive, mass, out=empty, where=mass > 0),
    )


class PrecisionRecall(NamedTuple):
    """Precision at each recall, from the highest score down, and their mean at the positives."""

    recall: np.ndarray
    precision: np.ndarray
    average_precision: float


def precision_recall(
    Y: LabelMatrix, scores: np.ndarray, *, most_points: int = 200
) -> PrecisionRecall | None:
    """The curve of all known entries in one ranking; None where no entry is positive.

    Entries of equal score are one point. Of a long curve `most_points` points are kept, spread
    evenly over the recall, the two ends among them; the average precision is that of the whole
    curve.

    >>> from labelweave.labels import as_labels
    >>> curve = precision_recall(as_labels([[1], [0], [1]]), np.array([[0.9], [0.8], [0.7]]))
    >>> curve.recall, curve.precision.round(2)
    (array([0.5, 0.5, 1. ]), array([1.  , 0.5 , 0.67]))
    """
    ranked = ranked_together(Y, scores)
    if not ranked.positive[0] > 0:
        return None
    seen = ranked.new_known > 0  # a score of unknown entries only is no point
    recall = ranked.hits[seen] / ranked.positive[0]
    precision = ranked.hits[seen] / ranked.known[seen]
    if len(recall) > most_points:
        places = np.linspace(recall[0], 1.0, most_points - 1)
        kept = np.unique(np.append(np.searchsorted(recall, places), len(recall) - 1))
        recall, precision = recall[kept], precision[kept]
    return PrecisionRecall(recall, precision, float(ranked.average_precision()[0]))


class ThresholdEffect(NamedTuple):
    """Metrics of label sets at each cut, and how many labels a row it predicts."""

    cuts: np.ndarray
    metrics: dict[str, np.ndarray]
    labels_a_row: np.ndarray
    true_labels_a_row: float


def threshold_effect(Y: LabelMatrix, scores: np.ndarray, cuts: Any = None) -> ThresholdEffect:
    """What one cut for all labels does, for each of these cuts.

    >>> from labelweave.labels import as_labels
    >>> Y, scores = as_labels([[1, 0], [1, 1]]), np.array([[0.9, 0.2], [0.4, 0.7]])
    >>> effect = threshold_effect(Y, scores, [0.3, 0.8])
    >>> effect.metrics["subset_accuracy"], effect.labels_a_row
    (array([1. , 0.5]), array([1.5, 0.5]))
    """
    cuts = np.linspace(0.01, 0.99, 99) if cuts is None else np.asarray(cuts, dtype=np.float64)
    metrics = {
        f"f1_{average}": sweep_f1(Y, scores, cuts, average=average)
        for average in ("example", "micro", "macro")
    }
    metrics["subset_accuracy"] = _subset_accuracy(Y, scores, cuts)
    counts = sweep_counts(Y, scores, cuts)
    return ThresholdEffect(
        cuts,
        metrics,
        counts.predicted.sum(axis=0) / Y.n_rows,
        float(counts.positive.sum() / Y.n_rows),
    )


def _subset_accuracy(Y: LabelMatrix, scores: np.ndarray, cuts: np.ndarray) -> np.ndarray:
    """A row is right at the cuts above its best negative and not above its worst positive."""
    lowest, highest, known = [], [], []
    for rows in chunks(*Y.shape):
        values, block = Y[rows].to_numpy(), scores[rows]
        lowest.append(np.where(values == 1, block, np.inf).min(axis=1))
        highest.append(np.where(values == 0, block, -np.inf).max(axis=1))
        known.append(~np.isnan(values).all(axis=1))
    worst, best = np.concatenate(lowest), np.concatenate(highest)
    judged = np.concatenate(known)
    at = cuts.astype(scores.dtype)[:, None]  # as the cut is applied
    return ((best < at) & (at <= worst))[:, judged].mean(axis=1)
