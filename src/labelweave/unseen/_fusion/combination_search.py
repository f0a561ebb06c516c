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

__all__ = [
    "MOST_LABELS",
    "Fusion",
    "best_combinations",
    "greedy_combinations",
    "top_labels",
    "members",
]

_FEW_SCORES = 1 << 21  # combinations x labels that are quicker computed than bounded
_POOL = 64  # labels that are tried greedily to learn how good the k best are
_STEP = 4  # labels that are searched between two looks at the mark


class Fusion(NamedTuple):
    """Scores of labels and the combinations that reach them.

    Attributes
    ----------
    labels : ndarray of int
        Rows of the labels, the best first; of equal scores the lower row first.
    scores : ndarray of float64
    masks : ndarray of int64
        Bit i is set where predicted label i belongs to the combination; 0 without any.
    """

    labels: np.ndarray
    scores: np.ndarray
    masks: np.ndarray


def members(mask: int) -> list[int]:
    """The predicted labels of a combination.

    >>> members(0b101)
    [0, 2]
    """
    return [i for i in range(int(mask).bit_length()) if mask >> i & 1]


def best_combinations(B: np.ndarray, G: np.ndarray) -> Fusion:
    """The score of every label, in the order of the rows of B.

    Parameters
    ----------
    B : ndarray of shape (U, n)
        Inner products of the unseen labels with the weighted vectors of the predicted ones.
    G : ndarray of shape (n, n)
        Inner products of the weighted vectors.
    """
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
    """The k best labels, with the same scores and in the same order as by Algorithm 1.

    Parameters
    ----------
    B : ndarray of shape (U, n)
        Inner products of the unseen labels with the weighted vectors; single precision will do.
    G : ndarray of shape (n, n)
        Inner products of the weighted vectors, in double precision.
    k : int
    products : function of label rows, optional
        Their rows of B in double precision, where B is not.

    Notes
    -----
    1. The cosine of a label with the span of the vectors bounds its score from above.
    2. Single flips give the most promising labels lower bounds; the k-th best of these is the
       mark that a label has to reach.
    3. Labels that may reach it get the tighter bound by the cone of the vectors.
    4. The rest is searched in full, the highest bound first, until the next bound is below the
       mark, which rises on the way.
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
    mark = _kth_best(flip_search(exact(pool), G, n_starts=1)[0], k)
    rows = np.flatnonzero(upper >= mark)
    upper = np.minimum(upper[rows], cone_bound(B[rows], G))
    if table.some_cancel:  # these score 0, which no bound of directions knows
        upper = np.maximum(upper, 0)
    order = np.argsort(-upper, kind="stable")
    rows, upper = rows[order], upper[order]
    scores, masks = np.full(len(rows), -np.inf), np.zeros(len(rows), dtype=np.int64)
    hopeful = slice(max(_POOL, 2 * k))
    lower = scores.copy()
    lower[hopeful] = flip_search(exact(rows[hopeful]), G, n_starts=1)[0]
    mark = max(mark, _kth_best(lower, k))
    done = 0
    while done < len(rows) and upper[done] >= mark:
        part = slice(done, done + _STEP)
        scores[part], masks[part] = table.best(exact(rows[part]), mark=mark)
        lower[part] = np.maximum(lower[part], scores[part])
        mark = max(mark, _kth_best(lower, k))
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
    """The k-th largest value, a hair lower so that ties are kept."""
    if len(values) < k:
        return -np.inf
    return float(-np.partition(-values, k - 1)[k - 1]) - 1e-12


def greedy_combinations(B: np.ndarray, G: np.ndarray) -> Fusion:
    """Approximate scores of all labels, in the order of the rows of B.

    Single flips, from the best label alone, from all labels, and from those with a positive
    product. The scores are those of the combinations found, so they are never too high.
    """
    rows = np.arange(len(B))
    if B.shape[1] == 0:
        return Fusion(rows, np.zeros(len(B)), np.zeros(len(B), dtype=np.int64))
    return Fusion(rows, *flip_search(B.astype(np.float64), G, n_starts=3))
