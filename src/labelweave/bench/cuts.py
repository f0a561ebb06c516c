"""Metrics of label sets at many cuts at once, from one count of the scores.

Every cell tunes a cut for each metric, and on many labels a metric computed anew at each of
400 cuts would take longer than some fits.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from labelweave.labels import LabelMatrix
from labelweave.metrics import get_metric, sweep_counts, sweep_f1
from labelweave.thresholds.cuts import best_cut, candidate_cuts, sweep_metric

__all__ = ["choose_cut", "metric_at_cuts"]


def choose_cut(
    name: str, Y: LabelMatrix, scores: np.ndarray, grid: Any = None, **options: Any
) -> tuple[float, float]:
    """The cut where a metric is best on these rows, and the metric there.

    Parameters
    ----------
    name : str
        A metric of label sets.
    Y, scores
        Rows to choose on.
    grid : sequence of float, optional
        The cuts to choose among; by default just below the scores of positive entries.
    **options
        Of :func:`metric_at_cuts`.

    Examples
    --------
    >>> from labelweave.labels import as_labels
    >>> choose_cut("f1_micro", as_labels([[1, 0], [0, 1]]), np.array([[0.4, 0.1], [0.2, 0.5]]))
    (0.30000000000000004, 1.0)
    """
    cuts = candidate_cuts(Y, scores, grid)
    sign = get_metric(name).sign
    cut, best = best_cut(cuts, sign * metric_at_cuts(name, Y, scores, cuts, **options))
    return float(cut), float(sign * best)


def metric_at_cuts(
    name: str, Y: LabelMatrix, scores: np.ndarray, cuts: np.ndarray, *, zero_division: float = 0.0
) -> np.ndarray:
    """A metric of label sets at each cut.

    Parameters
    ----------
    name : str
    Y : LabelMatrix
    scores : ndarray of shape (n, L)
    cuts : ndarray
    zero_division : float, default=0.0
        What F1 of a row or label without positives and predictions is; nan leaves it out.
    """
    kind, _, average = name.partition("_")
    if kind == "f1":
        return sweep_f1(Y, scores, cuts, average=average, zero_division=zero_division)
    if name == "of1":
        return sweep_f1(Y, scores, cuts, average="micro", zero_division=zero_division)
    if name in ("hamming_loss", "hamming_accuracy"):
        counts = sweep_counts(Y, scores, cuts)
        wrong = (counts.predicted + counts.positive - 2 * counts.hits).sum(axis=0)
        loss = wrong / counts.known.sum()
        return loss if name == "hamming_loss" else 1 - loss
    if name == "cf1":
        return _class_f1(Y, scores, cuts)
    if name in ("zero_one_loss", "subset_accuracy"):
        right = _share_of_right_rows(Y, scores, cuts)
        return right if name == "subset_accuracy" else 1 - right
    return sweep_metric(name, Y, scores, cuts)[0]


def _class_f1(Y: LabelMatrix, scores: np.ndarray, cuts: np.ndarray) -> np.ndarray:
    """Harmonic mean of macro precision and macro recall."""
    counts = sweep_counts(Y, scores, cuts)
    known = counts.known[:, 0] > 0
    hits, predicted, positive = (part[known] for part in counts[:3])
    positive = np.broadcast_to(positive, hits.shape)
    precision, recall = (
        np.divide(hits, of, out=np.zeros_like(hits), where=of > 0).mean(axis=0)
        for of in (predicted, positive)
    )
    total = precision + recall
    return np.divide(2 * precision * recall, total, out=np.zeros_like(total), where=total > 0)


def _share_of_right_rows(Y: LabelMatrix, scores: np.ndarray, cuts: np.ndarray) -> np.ndarray:
    """A row is right if all its positives reach the cut and no negative does."""
    values = Y.to_numpy()
    cuts = np.asarray(cuts, dtype=scores.dtype)
    lowest = np.where(values == 1, scores, np.inf).min(axis=1)
    highest = np.where(values == 0, scores, -np.inf).max(axis=1)
    known = ~np.isnan(values).all(axis=1)
    ever = known & (highest < lowest)  # right for cuts above `highest` and up to `lowest`
    begun = np.searchsorted(np.sort(highest[ever]), cuts, side="left")
    ended = np.searchsorted(np.sort(lowest[ever]), cuts, side="left")
    return (begun - ended) / max(known.sum(), 1)
