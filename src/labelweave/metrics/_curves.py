"""Sorted scores and the counts above each of them, from which all ranking metrics are computed.

A line is a row (ranking the labels of a sample) or a label (ranking the samples of a label).
Entries of a line with equal scores form one group: a curve has a point only at the end of
each group, so ties are never broken by position.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelweave.labels import LabelMatrix
from labelweave.metrics._inputs import chunks

__all__ = ["Ranked", "by_label", "by_row", "ranked_together", "score_chunks"]


@dataclass
class Ranked:
    """Counts above each distinct score, for the lines of a chunk one after the other."""

    # hits, known: Positives and known entries with at least the point's score
    hits: np.ndarray
    known: np.ndarray
    # new_hits, new_known: Those of exactly this score
    new_hits: np.ndarray
    new_known: np.ndarray
    first: np.ndarray  # Where the points of each line begin
    positive: np.ndarray
    negative: np.ndarray

    def total(self, values: np.ndarray) -> np.ndarray:
        """Sum over the points of each line."""
        return np.add.reduceat(values, self.first)

    def average_precision(self) -> np.ndarray:
        """Mean precision at the positives; nan for a line without one."""
        precision = np.divide(
            self.hits, self.known, out=np.zeros_like(self.hits), where=self.known > 0
        )
        return _ratio(self.total(self.new_hits * precision), self.positive)

    def auc(self) -> np.ndarray:
        """Share of the pairs (positive, negative) in the right order, ties counting half.

        nan for a line without a positive or without a negative.
        """
        new_misses = self.new_known - self.new_hits
        right = self.total(new_misses * (self.hits - 0.5 * self.new_hits))
        return _ratio(right, self.positive * self.negative)

    def wrong_pairs(self) -> np.ndarray:
        """Share of the pairs (positive, negative) in the wrong order, ties counting as wrong."""
        wrong = self.total(self.new_hits * (self.known - self.hits))
        return _ratio(wrong, self.positive * self.negative)


def by_row(
    Y_true: LabelMatrix, scores: np.ndarray, measure: Callable[[Ranked], np.ndarray]
) -> np.ndarray:
    """Compute a measure of each row's ranking of its known labels."""
    return np.concatenate([measure(_rank(*chunk)) for chunk in score_chunks(Y_true, scores)])


def score_chunks(
    Y_true: LabelMatrix, scores: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray | None]]:
    """Yield scores, positive and known entries per chunk of rows; known is None if all are."""
    for rows in chunks(*Y_true.shape):
        yield scores[rows], *_dense_states(Y_true[rows])


def by_label(
    Y_true: LabelMatrix,
    scores: np.ndarray,
    weight: np.ndarray | None,
    measure: Callable[[Ranked], np.ndarray],
) -> np.ndarray:
    """Compute a measure of each label's ranking of the rows in which it is known."""
    n_rows, n_labels = Y_true.shape
    columns_of = sp.csc_array(Y_true.values) if Y_true.is_sparse else Y_true.values
    parts = []
    for labels in chunks(n_labels, n_rows):
        chunk = LabelMatrix(columns_of[:, labels].T, Y_true.names[labels], absent=Y_true.absent)
        positive, known = _dense_states(chunk)
        lines = np.ascontiguousarray(scores[:, labels].T)
        parts.append(measure(_rank(lines, positive, known, weight)))
    return np.concatenate(parts)


def ranked_together(
    Y_true: LabelMatrix, scores: np.ndarray, weight: np.ndarray | None = None
) -> Ranked:
    """The one ranking of all known entries, as a single line."""
    positive, known = _dense_states(Y_true)
    weights = None if weight is None else np.repeat(weight, Y_true.n_labels)
    flat_known = None if known is None else known.reshape(1, -1)
    return _rank(scores.reshape(1, -1), positive.reshape(1, -1), flat_known, weights)


def _dense_states(labels: LabelMatrix) -> tuple[np.ndarray, np.ndarray | None]:
    """Positive and known entries as dense Boolean arrays; None if all are known."""
    values = labels.to_numpy()
    return values == 1, ~np.isnan(values) if labels.has_unknown else None


def _rank(
    scores: np.ndarray,
    positive: np.ndarray,
    known: np.ndarray | None,
    weight: np.ndarray | None = None,
) -> Ranked:
    """Sort each line from the highest score down; `weight` has one number per column."""
    n_lines, length = scores.shape
    order = np.argsort(-scores, axis=1)
    sorted_scores = np.take_along_axis(scores, order, axis=1)
    is_end = np.ones(scores.shape, dtype=bool)
    np.not_equal(sorted_scores[:, :-1], sorted_scores[:, 1:], out=is_end[:, :-1])
    ends = np.flatnonzero(is_end)
    points = is_end.sum(axis=1)
    first = np.concatenate([[0], np.cumsum(points)[:-1]])

    mass: Any = None if weight is None else weight[order]
    is_hit = np.take_along_axis(positive, order, axis=1)
    hits = np.cumsum(is_hit if mass is None else is_hit * mass, axis=1, dtype=np.float64)
    if known is not None:
        is_known = np.take_along_axis(known, order, axis=1)
        mass = is_known if mass is None else is_known * mass
    if mass is None:
        seen = (ends % length + 1).astype(np.float64)
        totals = np.full(n_lines, float(length))
    else:
        counted = np.cumsum(mass, axis=1, dtype=np.float64)
        seen, totals = counted.ravel()[ends], counted[:, -1]
    at_ends = hits.ravel()[ends]
    return Ranked(
        hits=at_ends,
        known=seen,
        new_hits=_steps(at_ends, first),
        new_known=_steps(seen, first),
        first=first,
        positive=hits[:, -1],
        negative=totals - hits[:, -1],
    )


def _steps(cumulated: np.ndarray, first: np.ndarray) -> np.ndarray:
    """The increase of each point over the one before it in its line."""
    steps = np.diff(cumulated, prepend=0.0)
    steps[first] = cumulated[first]
    return steps


def _ratio(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    return np.divide(above, below, out=np.full(below.shape, np.nan), where=below > 0)
