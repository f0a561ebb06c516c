"""What speaks for a label without examples: document, predicted labels, words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from labelweave.unseen.fusion import Fusion, fuse_all, fuse_greedily

__all__ = ["FEATURES", "Evidence", "choose_predicted", "cosines", "fuse_documents", "shared_ranks"]

FEATURES = (
    "similarity",
    "conse",
    "fusion",
    "fusion_strength",
    "similarity_rank",
    "conse_rank",
    "fusion_rank",
    "words",
    "words_rank",
    "surplus",
)
_FIRST_RANKS = 5  # ranks count as 1 / (5 + rank)


class Evidence(NamedTuple):
    """Scores of documents (rows) and labels (columns).

    Attributes
    ----------
    similarity : ndarray or None
        Cosine of document and label; None where documents are no texts.
    conse, fusion : ndarray or None
        Cosine of the label with all predicted labels together, and with the best combination.
    strength : ndarray of shape (n,)
        Mean probability of the predicted labels.
    words : ndarray or None
        Cosine of the TF-IDF weights of document and label text.
    usual : ndarray of shape (U,) or None
        Mean similarity of the label with training documents.
    """

    similarity: np.ndarray | None
    conse: np.ndarray | None
    fusion: np.ndarray | None
    strength: np.ndarray
    words: np.ndarray | None
    usual: np.ndarray | None

    def feature(self, name: str) -> np.ndarray:
        """One feature of the combination, of shape (n, U)."""
        if name.endswith("_rank"):
            return 1 / (_FIRST_RANKS + shared_ranks(self.feature(name.removesuffix("_rank"))))
        if name == "fusion_strength":
            assert self.fusion is not None
            return self.fusion * self.strength[:, None] ** 0.25
        if name == "surplus":
            assert self.similarity is not None
            assert self.usual is not None
            return self.similarity - self.usual
        found = getattr(self, name)
        assert found is not None, name
        return found

    def features(self, names: Sequence[str]) -> np.ndarray:
        """Features of shape (n, U, len(names))."""
        return np.stack([self.feature(name) for name in names], axis=-1).astype(np.float32)


def shared_ranks(scores: np.ndarray) -> np.ndarray:
    """The rank of each label in its row, the best having rank 1; ties share the best.

    >>> shared_ranks(np.array([[0.3, 0.9, 0.3, 0.1]]))
    array([[2, 1, 2, 4]])
    """
    order = np.argsort(-scores, axis=1, kind="stable")
    by_rank = np.take_along_axis(scores, order, axis=1)
    is_new = np.ones(scores.shape, dtype=bool)
    is_new[:, 1:] = by_rank[:, 1:] != by_rank[:, :-1]
    places = np.where(is_new, np.arange(1, scores.shape[1] + 1), 0)
    ranks = np.empty(scores.shape, dtype=np.int64)
    np.put_along_axis(ranks, order, np.maximum.accumulate(places, axis=1), axis=1)
    return ranks


def cosines(left: Any, right: Any) -> np.ndarray:
    """Products of all rows of two sets of unit vectors, dense or sparse, as a dense array."""
    found = left @ right.T
    return found.toarray() if sp.issparse(found) else np.asarray(found)


def choose_predicted(P: np.ndarray, least: float, most: int) -> list[np.ndarray]:
    """For each document the columns above the threshold, at most so many, the likeliest first.

    >>> choose_predicted(np.array([[0.9, 0.2, 0.4], [0.1, 0.1, 0.1]]), 0.3, 2)
    [array([0, 2]), array([], dtype=int64)]
    """
    likeliest = np.argsort(-P, axis=1, kind="stable")[:, :most]
    above = np.take_along_axis(P, likeliest, axis=1) > least
    return [row[keep] for row, keep in zip(likeliest, above, strict=True)]


def fuse_documents(
    P: np.ndarray,
    chosen: Sequence[np.ndarray],
    seen: Any,
    unseen: Any,
    *,
    exact: bool = True,
    n_jobs: int | None = None,
) -> tuple[np.ndarray, np.ndarray, list[Fusion]]:
    """Scores by all predicted labels together and by their best combination.

    Parameters
    ----------
    P : ndarray of shape (n, S)
        Probabilities of the seen labels.
    chosen : sequence of arrays
        Columns of P that count as predicted, for each document.
    seen, unseen : ndarray or csr_array of shape (S, d) and (U, d)
        Unit vectors.
    exact : bool, default=True
        False takes the greedy search.
    n_jobs : int, optional
        Documents at a time, by threads.

    Returns
    -------
    conse, fusion : ndarray of shape (n, U)
    found : list of Fusion
        With the combinations, the best of each label.
    """
    from joblib import Parallel, delayed

    used = np.unique(np.concatenate([*chosen, np.empty(0, dtype=np.int64)])).astype(np.int64)
    place = np.full(P.shape[1], -1)
    place[used] = np.arange(len(used))
    vectors = seen[used].astype(np.float64)
    across = cosines(vectors, unseen.astype(np.float64))
    among = cosines(vectors, vectors)
    search = fuse_all if exact else fuse_greedily

    def one(p: np.ndarray, columns: np.ndarray) -> tuple[np.ndarray, Fusion]:
        weights, rows = p[columns].astype(np.float64), place[columns]
        B = across[rows].T * weights
        G = among[np.ix_(rows, rows)] * np.outer(weights, weights)
        length = np.sqrt(max(G.sum(), 0))
        together = B.sum(axis=1) / length if length > 0 else np.zeros(len(B))
        return together, search(B, G)

    tasks = (delayed(one)(p, columns) for p, columns in zip(P, chosen, strict=True))
    parts = Parallel(n_jobs=n_jobs, prefer="threads")(tasks)
    conse = np.array([part[0] for part in parts]).reshape(len(P), -1)
    fusion = np.array([part[1].scores for part in parts]).reshape(len(P), -1)
    return conse, fusion, [part[1] for part in parts]
