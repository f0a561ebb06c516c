"""Label fusion: the combination of predicted labels that points best to an unseen one.

For a document with n predicted labels, v_i = p_i e_i (probability times embedding) and an unseen
label with unit embedding u, the score of a combination S is cos(sum of v_i over S, u), and the
score of the label is the best over all 2^n - 1 combinations. With G = V V^T and b = V u that is

    f(u) = max over S of b(S) / sqrt(s^T G s),      b(S) = sum of b_i over S,

so the search touches no embedding. Three exact searches and one that is not:

:func:`fuse_plainly`
    Algorithm 1 of the paper as it is written, for tests and benchmarks.
:func:`fuse_all`
    The score of every label, by products of the 2^n x n matrix of combinations with B.
:func:`fuse_top`
    The k best labels alone. Upper bounds leave most labels out unseen; see its notes.
:func:`fuse_greedily`
    Approximate: single flips from three starts, all labels at a time.

A combination whose vectors cancel out, to less than a ten-thousandth of their total length, has
no direction: its score is 0 in all of them. So is every score of a document without predicted
labels.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import NamedTuple

import numpy as np

from labelweave.unseen.combinations import CANCELLED, MOST_LABELS, Combinations
from labelweave.unseen.fusion_bounds import cone_bound, flip_search, span_bound

__all__ = [
    "MOST_LABELS",
    "Fusion",
    "fuse_all",
    "fuse_greedily",
    "fuse_plainly",
    "fuse_top",
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


def fuse_plainly(probabilities: np.ndarray, embeddings: np.ndarray, unseen: np.ndarray) -> Fusion:
    """Algorithm 1, line by line: every combination, then every label.

    Parameters
    ----------
    probabilities : ndarray of shape (n,)
    embeddings : ndarray of shape (n, d)
        Of the predicted labels.
    unseen : ndarray of shape (U, d)
        Unit embeddings of the unseen labels.

    Examples
    --------
    >>> convolution, network = [1.0, 0.0], [0.0, 1.0]
    >>> found = fuse_plainly(np.array([0.9, 0.9]), np.array([convolution, network]),
    ...                      np.array([[0.6, 0.8], [0.0, -1.0]]))
    >>> found.scores.round(2), found.masks
    (array([0.99, 0.  ]), array([3, 1]))
    """
    n = len(probabilities)
    vectors = probabilities[:, None].astype(np.float64) * embeddings.astype(np.float64)
    lengths = np.linalg.norm(vectors, axis=1)
    combined, masks = [], []
    for size in range(1, n + 1):
        for chosen in combinations(range(n), size):
            total = np.zeros(vectors.shape[1])
            for i in chosen:
                total += vectors[i]
            length = np.linalg.norm(total)
            is_void = length**2 <= CANCELLED * sum(lengths[i] for i in chosen) ** 2
            combined.append(total * 0 if is_void else total / length)
            masks.append(sum(1 << i for i in chosen))
    scores, best = np.zeros(len(unseen)), np.zeros(len(unseen), dtype=np.int64)
    if n:
        for row, label in enumerate(unseen.astype(np.float64)):
            cosines = [float(vector @ label) for vector in combined]
            winner = int(np.argmax(cosines))
            scores[row], best[row] = cosines[winner], masks[winner]
    order = np.lexsort((np.arange(len(unseen)), -scores))
    return Fusion(order, scores[order], best[order])


def fuse_all(B: np.ndarray, G: np.ndarray) -> Fusion:
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
    return Fusion(rows, *Combinations(G).best(B.astype(np.float64)))


def fuse_top(
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
        every = fuse_all(exact(np.arange(n_labels)), G)
        order = _best_first(every.labels, every.scores)[:k]
        return Fusion(*(part[order] for part in every))
    table = Combinations(G)
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


def fuse_greedily(B: np.ndarray, G: np.ndarray) -> Fusion:
    """Approximate scores of all labels, in the order of the rows of B.

    Single flips, from the best label alone, from all labels, and from those with a positive
    product. The scores are those of the combinations found, so they are never too high.
    """
    rows = np.arange(len(B))
    if B.shape[1] == 0:
        return Fusion(rows, np.zeros(len(B)), np.zeros(len(B), dtype=np.int64))
    return Fusion(rows, *flip_search(B.astype(np.float64), G, n_starts=3))
