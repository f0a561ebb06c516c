"""Scores of documents and unseen labels, from which a method computes probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from labelweave.text.embedders import cosines
from labelweave.unseen._fusion.combination_search import (
    Fusion,
    best_combinations,
    greedy_combinations,
)
from labelweave.unseen.xml0_algorithm import conse_similarity, label_fusion

_RRF = 60  # the customary constant of reciprocal rank fusion


@dataclass(frozen=True)
class LabelScores:
    """Scores of documents (rows) and labels (columns): cosines with the vector of the label."""

    similarity: np.ndarray | None  # of the document; None if the documents are not texts
    conse: np.ndarray | None = None  # of the combination of all predicted labels
    fusion: np.ndarray | None = None  # of the best combination of predicted labels

    def feature(self, name: str) -> np.ndarray:
        """Return the scores of this name, or "rrf", the reciprocal rank fusion of two of them."""
        if name == "rrf":
            both = (self.feature("similarity"), self.feature("fusion"))
            return np.sum([1 / (_RRF + shared_ranks(scores)) for scores in both], axis=0)
        named = {"similarity": self.similarity, "conse": self.conse, "fusion": self.fusion}
        scores = named[name]
        assert scores is not None, name
        return scores


def shared_ranks(scores: np.ndarray) -> np.ndarray:
    """Rank the labels of each row, the best label first with rank 1; equal scores share a rank.

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


def fuse_documents(
    O: np.ndarray,  # noqa: E741
    predicted: Sequence[np.ndarray],
    seen: Any,
    unseen: Any,
    *,
    exact: bool = True,
    n_jobs: int | None = None,
) -> tuple[np.ndarray, list[Fusion]]:
    """Apply ConSE and label fusion to several documents.

    O (n, S) are the probabilities of the seen labels, `predicted` the columns of the predicted
    labels of each document, `seen` (S, d) and `unseen` (U, d) unit vectors of the labels. The
    search for the best combination is exact or greedy; each thread processes one document at a
    time. Returns the scores of ConSE (n, U), and the scores and best combinations per document.
    """
    from joblib import Parallel, delayed

    used = np.unique(np.concatenate([*predicted, np.empty(0, dtype=np.int64)])).astype(np.int64)
    row_of = np.full(O.shape[1], -1)
    row_of[used] = np.arange(len(used))
    vectors = seen[used].astype(np.float64)
    seen_unseen = cosines(vectors, unseen.astype(np.float64))
    seen_seen = cosines(vectors, vectors)
    search = best_combinations if exact else greedy_combinations

    def fuse(probabilities: np.ndarray, columns: np.ndarray) -> tuple[np.ndarray, Fusion]:
        prob, rows = probabilities[columns].astype(np.float64), row_of[columns]
        cos_PU, cos_PP = seen_unseen[rows], seen_seen[np.ix_(rows, rows)]
        return conse_similarity(prob, cos_PU, cos_PP), label_fusion(prob, cos_PU, cos_PP, search)

    tasks = (delayed(fuse)(*document) for document in zip(O, predicted, strict=True))
    results = Parallel(n_jobs=n_jobs, prefer="threads")(tasks)
    conse = np.array([similarity for similarity, _ in results]).reshape(len(O), -1)
    return conse, [fusion for _, fusion in results]
