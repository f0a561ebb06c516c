"""The algorithm of XML0 as pure functions, in the symbols of the paper (Ostapuk et al., 2024).

For a document d, the classifier X estimates O, one probability prob_i per seen label l_i; E(l) is
the embedding of a label's text. All embeddings have length one (or zero), so a cosine is an inner
product.

===========================================  ==============================
Label fusion, Section III-A and Algorithm 1
  lines 1 and 2: the predicted labels P      :func:`predicted_labels`
  lines 3 to 14: the best combination        :func:`label_fusion`
  the whole of it, line by line              :func:`label_fusion_reference`
ConSE as compared, Section IV-A              :func:`conse_similarity`
Semantic similarity, Section III-B           :func:`semantic_similarity`
===========================================  ==============================

The final score (Figure 1) combines the two. The paper does not say how, so what is offered here is
not part of it: :func:`labelweave.unseen._fusion.score_combination.weighted_sum`, whose weight is
learnt by :func:`labelweave.unseen.xml0.learn_weight`, and reciprocal rank fusion.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np

from labelweave.text.embedders import cosines
from labelweave.unseen._fusion.combination_search import Fusion, best_combinations
from labelweave.unseen._fusion.combination_table import CANCELLED

__all__ = [
    "conse_similarity",
    "label_fusion",
    "label_fusion_reference",
    "predicted_labels",
    "semantic_similarity",
]


def predicted_labels(O: np.ndarray, t: float, max_predicted: int) -> list[np.ndarray]:  # noqa: E741
    """Select the predicted labels P of each document: those with ``prob_i > t`` (lines 1 and 2).

    The cap is not in the paper: of more than `max_predicted` labels the likeliest are kept, because
    n labels have 2^n - 1 combinations.

    Parameters
    ----------
    O : ndarray of shape (n_documents, S)
        Probabilities of the seen labels.
    t : float
        Threshold.
    max_predicted : int

    Returns
    -------
    list of ndarray
        Columns of the predicted labels of each document, the likeliest first.

    Examples
    --------
    >>> predicted_labels(np.array([[0.9, 0.2, 0.4], [0.1, 0.1, 0.1]]), 0.3, 2)
    [array([0, 2]), array([], dtype=int64)]
    """
    likeliest = np.argsort(-O, axis=1, kind="stable")[:, :max_predicted]
    is_above = np.take_along_axis(O, likeliest, axis=1) > t
    return [row[keep] for row, keep in zip(likeliest, is_above, strict=True)]


def label_fusion(
    prob: np.ndarray,
    cos_PU: np.ndarray,
    cos_PP: np.ndarray,
    search: Callable[[np.ndarray, np.ndarray], Fusion] = best_combinations,
) -> Fusion:
    """Score unseen labels by the best combination of predicted labels (lines 3 to 14).

    With ``repr(c_j)`` the sum of ``prob_i E(l_i)`` over the labels of combination c_j, the score of
    the unseen label u is the maximum over all 2^n - 1 combinations of ::

        cos_sim(repr(c_j), E(u)) = sum of prob_i E(l_i) E(u) / length of repr(c_j)

    Both parts need inner products of embeddings only, so this function takes those.

    Parameters
    ----------
    prob : ndarray of shape (n,)
        Probabilities of the predicted labels P of one document.
    cos_PU : ndarray of shape (n, U)
        Inner products of the embeddings of P and of the unseen labels.
    cos_PP : ndarray of shape (n, n)
        Inner products of the embeddings of P.
    search : function, default=best_combinations
        The search for the maximum. The default is exact;
        :func:`~labelweave.unseen._fusion.combination_search.greedy_combinations` approximates it.

    Returns
    -------
    Fusion
        The score and the combination of each unseen label, in the order of the columns.

    Examples
    --------
    The paper's example: convolution and neural network point to the label between them.

    >>> P, U = np.eye(2), np.array([[0.6, 0.8], [0.0, -1.0]])
    >>> scored = label_fusion(np.array([0.96, 0.81]), P @ U.T, P @ P.T)
    >>> scored.scores.round(2), scored.masks
    (array([0.97, 0.  ]), array([3, 1]))
    """
    return search(*_weighted_products(prob, cos_PU, cos_PP))


def conse_similarity(prob: np.ndarray, cos_PU: np.ndarray, cos_PP: np.ndarray) -> np.ndarray:
    """Cosine of each unseen label with one combination, that of all predicted labels (ConSE)."""
    B, G = _weighted_products(prob, cos_PU, cos_PP)
    length = np.sqrt(max(G.sum(), 0))
    return B.sum(axis=1) / length if length > 0 else np.zeros(len(B))


def _weighted_products(
    prob: np.ndarray, cos_PU: np.ndarray, cos_PP: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Inner products of the vectors prob_i E(l_i) with the unseen labels and with each other."""
    return cos_PU.T * prob, cos_PP * np.outer(prob, prob)


def semantic_similarity(documents: Any, labels: Any) -> np.ndarray:
    """Cosines of the embeddings of documents and labels (Section III-B).

    Parameters
    ----------
    documents, labels : ndarray or csr_array of shape (n_documents, d) and (U, d)

    Returns
    -------
    ndarray of shape (n_documents, U)
    """
    return cosines(documents, labels)


def label_fusion_reference(prob: np.ndarray, E_P: np.ndarray, E_U: np.ndarray) -> Fusion:
    """Algorithm 1 line by line, as the reference implementation for tests and benchmarks.

    It enumerates all combinations for every document, which is slow; :func:`label_fusion` returns
    the same scores.

    Parameters
    ----------
    prob : ndarray of shape (n,)
        Probabilities of the predicted labels.
    E_P, E_U : ndarray of shape (n, d) and (U, d)
        Embeddings of the predicted and of the unseen labels.

    Returns
    -------
    Fusion
        The unseen labels, the best first.

    Examples
    --------
    >>> ranked = label_fusion_reference(np.array([0.96, 0.81]), np.eye(2),
    ...                                 np.array([[0.0, -1.0], [0.6, 0.8]]))
    >>> ranked.labels, ranked.scores.round(2), ranked.masks
    (array([1, 0]), array([0.97, 0.  ]), array([3, 1]))
    """
    n = len(prob)
    C_emb, masks = [], []  # line 4
    for k in range(1, n + 1):  # lines 3 and 5
        for c_j in combinations(range(n), k):
            c_emb = np.zeros(E_P.shape[1])  # line 6
            total_length = 0.0
            for i in c_j:  # lines 7 to 9
                c_emb += float(prob[i]) * E_P[i].astype(np.float64)
                total_length += float(prob[i] * np.linalg.norm(E_P[i].astype(np.float64)))
            length = np.linalg.norm(c_emb)
            has_direction = length**2 > CANCELLED * total_length**2
            C_emb.append(c_emb / length if has_direction else np.zeros_like(c_emb))  # line 10
            masks.append(sum(1 << i for i in c_j))
    rank, best = np.zeros(len(E_U)), np.zeros(len(E_U), dtype=np.int64)
    for u, label in enumerate(E_U.astype(np.float64)):  # lines 12 to 14
        cos_sim = [float(c_emb @ label) for c_emb in C_emb]
        if cos_sim:
            winner = int(np.argmax(cos_sim))
            rank[u], best[u] = cos_sim[winner], masks[winner]
    order = np.lexsort((np.arange(len(E_U)), -rank))  # line 15
    return Fusion(order, rank[order], best[order])
