"""Search for the combination of predicted labels that is nearest to an unseen label.

For a document with n predicted labels, v_i = p_i e_i (probability times embedding) and an unseen
label with unit embedding u, the score of a combination S is cos(sum of v_i over S, u). The score of
the label is the maximum over all 2^n - 1 combinations. With G = V V^T and b = V u that is ::

    f(u) = max over S of b(S) / sqrt(s^T G s),      b(S) = sum of b_i over S,

so the search needs G and b, but no embeddings. There are three searches:

:func:`best_combinations`
    The exact score of every label.
:func:`top_labels`
    The exact k best labels. Upper bounds exclude most of the other labels from the search.
:func:`greedy_combinations`
    An approximation for all labels by hill climbing, which adds or removes one label per step.

A combination whose vectors cancel out (to less than a ten-thousandth of their total length) has no
direction, and its score is 0. The scores of a document without predicted labels are 0 as well.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from labelweave.unseen._fusion.combination_bounds import cone_bound, flip_search, span_bound
from labelweave.unseen._fusion.combination_table import MOST_LABELS, CombinationTable

_FEW_SCORES = 1 << 21  # up to this number of combinations x labels, no bounds are computed
_POOL = 64  # labels whose lower bounds are computed
_STEP = 4  # labels that are searched between two updates of the threshold


class Fusion(NamedTuple):
    """Scores of labels and the combinations that have them."""

    labels: np.ndarray  # rows of the labels, the best first; of equal scores the lower row first
    scores: np.ndarray
    # Bit i is set if predicted label i belongs to the combination; 0 without predicted labels
    masks: np.ndarray


def members(mask: int) -> list[int]:
    """Return the predicted labels of a combination.

    >>> members(0b101)
    [0, 2]
    """
    return [i for i in range(int(mask).bit_length()) if mask >> i & 1]


def best_combinations(B: np.ndarray, G: np.ndarray) -> Fusion:
    """Compute the exact score of every label, in the order of the rows of B (U, n)."""
    rows = np.arange(len(B))
    if B.shape[1] == 0:
        return Fusion(rows, np.zeros(len(B)), np.zeros(len(B), dtype=np.int64))
    return Fusion(rows, *CombinationTable(G).best(B.astype(np.float64)))


def top_labels(
    B: np.ndarray,
    G: np.ndarray,
    k: int,
    *,
    products: Callable[[np.ndarray], np.ndarray] | None = None,
) -> Fusion:
    """Find the k best labels, with the scores and the order of Algorithm 1.

    Single precision is enough for B (U, n) if `products` returns the rows of some labels in double
    precision.

    1. The cosine of a label with the span of the vectors bounds its score from above.
    2. Hill climbing computes lower bounds of the most promising labels; the k-th best of these is
       the threshold that a label has to reach.
    3. For labels that may reach it, the tighter bound by the cone of the vectors is computed.
    4. The remaining labels are searched in full, the highest bound first, until the next bound is
       below the threshold, which rises during the search.
    """
    n_labels, n = B.shape
    k = min(k, n_labels)
    exact = (lambda rows: B[rows].astype(np.float64)) if products is None else products
    if n == 0 or (n <= MOST_LABELS and n_labels << n <= _FEW_SCORES):
        every = best_combinations(exact(np.arange(n_labels)), G)
        order = _best_first(every.labels, every.scores)[:k]
        return Fusion(*(part[order] for part in every))
    table = CombinationTable(G)
    upper = span_bound(B, G)
    pool = _largest(upper, max(_POOL, 2 * k))
    threshold = _kth_best(flip_search(exact(pool), G, n_starts=1)[0], k)
    rows = np.flatnonzero(upper >= threshold)
    upper = np.minimum(upper[rows], cone_bound(B[rows], G))
    if table.some_cancel:  # their score is 0, which the bounds do not cover
        upper = np.maximum(upper, 0)
    order = np.argsort(-upper, kind="stable")
    rows, upper = rows[order], upper[order]
    scores, masks = np.full(len(rows), -np.inf), np.zeros(len(rows), dtype=np.int64)
    promising = slice(max(_POOL, 2 * k))
    lower = scores.copy()
    lower[promising] = flip_search(exact(rows[promising]), G, n_starts=1)[0]
    threshold = max(threshold, _kth_best(lower, k))
    done = 0
    while done < len(rows) and upper[done] >= threshold:
        part = slice(done, done + _STEP)
        scores[part], masks[part] = table.best(exact(rows[part]), threshold=threshold)
        lower[part] = np.maximum(lower[part], scores[part])
        threshold = max(threshold, _kth_best(lower, k))
        done += _STEP
    order = _best_first(rows, scores)[:k]
    return Fusion(rows[order], scores[order], masks[order])


def _best_first(rows: np.ndarray, scores: np.ndarray) -> np.ndarray:
    return np.lexsort((rows, -scores))


def _largest(values: np.ndarray, k: int) -> np.ndarray:
    if k >= len(values):
        return np.arange(len(values))
    return np.argpartition(-values, k)[:k]


def _kth_best(values: np.ndarray, k: int) -> float:
    """The k-th largest value, minus a small number so that ties are kept."""
    if len(values) < k:
        return -np.inf
    return float(-np.partition(-values, k - 1)[k - 1]) - 1e-12


def greedy_combinations(B: np.ndarray, G: np.ndarray) -> Fusion:
    """Approximate the scores of all labels, in the order of the rows of B.

    Hill climbing starts from the best single label, from all labels, and from the labels with a
    positive product. The scores are those of real combinations, so they are never too high.
    """
    rows = np.arange(len(B))
    if B.shape[1] == 0:
        return Fusion(rows, np.zeros(len(B)), np.zeros(len(B), dtype=np.int64))
    return Fusion(rows, *flip_search(B.astype(np.float64), G, n_starts=3))
