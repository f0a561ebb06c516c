"""Finding labels: all of them, or candidates of an index where there are very many."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from labelweave.base import inside
from labelweave.exceptions import InputError
from labelweave.text.embedders import unit_rows
from labelweave.unseen.combination import Combination
from labelweave.unseen.evidence import Evidence, choose_predicted, cosines
from labelweave.unseen.explanation import Explanation, Predicted, explain_document
from labelweave.unseen.fusion import fuse_top
from labelweave.unseen.label_index import LabelIndex
from labelweave.unseen.zero_shot import ZeroShotClassifier

__all__ = ["CANDIDATES", "LabelFinder"]

CANDIDATES = 100  # labels near each vector of a document, where there are many
SCORE_ALL = 5_000  # unseen labels up to which a ranking scores every one


class LabelFinder(ZeroShotClassifier):
    """Ranks and explains unseen labels, whatever their number.

    A ranking of few labels scores every one. Of more than 5,000, those that are among the best
    by fusion, by ConSE or by similarity are scored, found by exact searches. Above `index_above`
    an index finds those near the document, near its predicted labels and near these together.
    """

    combination_: Combination
    index_: LabelIndex | None
    index_above: int
    min_probability: float
    max_predicted: int

    @abstractmethod
    def _seen_probabilities(self, X: Any) -> np.ndarray:
        """One column a label that the classifier knows, removed ones included."""

    @abstractmethod
    def _document_vectors(self, X: Any) -> tuple[Any, Any] | None:
        """Vectors and word weights of the documents; None where they are no texts."""

    @abstractmethod
    def _evidence(
        self, X: Any, rows: np.ndarray, *, P: np.ndarray | None = None, documents: Any = None
    ) -> tuple[Evidence, Predicted]:
        """Evidence for the labels of these rows of the table, and what was predicted."""

    def rank(self, X: Any, k: int = 10, *, among: str = "all") -> list[list[tuple[str, float]]]:
        """For each document the k likeliest labels with their probabilities.

        Above 5,000 unseen labels candidates compete, see :class:`LabelFinder`.

        Parameters
        ----------
        X : list of texts
        k : int, default=10
        among : {"all", "seen", "unseen"}, default="all"
            Which labels compete.
        """
        check_is_fitted(self)
        if among == "seen" or not self._has_many():
            return super().rank(X, k, among=among)
        self._rows_of_group(among)
        X = self._checked_features(X, reset=False)
        P = self._seen_probabilities(X)
        seen = self.table_.seen_rows
        ranked = []
        for p, (near, found, *_) in zip(P, self._near_labels(X, P, CANDIDATES), strict=True):
            scores = found[0]
            if among == "all":
                near = np.append(seen, near)
                scores = np.append(p[self.table_.columns[seen]], scores)
            best = np.argsort(-scores, kind="stable")[:k]
            names = self._label_names.at(near[best])
            ranked.append([(str(n), float(s)) for n, s in zip(names, scores[best], strict=True)])
        return ranked

    def explain(self, X: Any, k: int = 5) -> list[list[Explanation]]:
        """For each document its k likeliest unseen labels, and what pointed to them."""
        check_is_fitted(self)
        X = self._checked_features(X, reset=False)
        rows = self.table_.unseen_rows
        seen_names = self._label_names.at(self.table_.seen_rows)
        if not len(rows):
            return [[] for _ in range(len(X))]
        P = self._seen_probabilities(X)
        if self._has_many():
            return [
                explain_document(
                    0,
                    k,
                    p,
                    evidence,
                    made,
                    self._label_names.at(near),
                    seen_names,
                )
                for near, p, evidence, made in self._near_labels(X, P, CANDIDATES)
            ]
        evidence, made = self._evidence(X, rows, P=P)
        p = inside(self.combination_.probabilities(self.combination_.scores(evidence)))
        names = self._label_names.at(rows)
        return [explain_document(i, k, p, evidence, made, names, seen_names) for i in range(len(X))]

    # -- very many labels ---------------------------------------------------------------

    def _has_many(self) -> bool:
        """Whether a ranking looks at candidates instead of all labels."""
        return self.table_.n_unseen > min(self.index_above, SCORE_ALL)

    def _near_labels(
        self, X: Any, P: np.ndarray, k: int
    ) -> Iterator[tuple[np.ndarray, np.ndarray, Evidence, Predicted]]:
        """For each document: rows of candidates among many labels, and their scores."""
        documents = self._document_vectors(X)
        seen = self.table_.seen_rows
        vectors = self.table_.vectors(seen)
        likely = P[:, self.table_.columns[seen]]
        chosen = choose_predicted(likely, self.min_probability, self.max_predicted)
        is_indexed = self.table_.n_unseen > self.index_above
        index = self._label_index() if is_indexed else None
        rows = np.empty(0, dtype=np.int64) if is_indexed else self.table_.unseen_rows
        unseen = None if is_indexed else self.table_.vectors(rows)
        for i, columns in enumerate(chosen):
            one = vector = None
            if documents is not None:
                words = None if documents[1] is None else documents[1][[i]]
                vector = documents[0][[i]]
                one = (vector, words)
            predicted = _weighted(vectors[columns], likely[i, columns])
            if index is None:
                near = rows[_best_of_each(unseen, predicted, vector, k)]
            else:
                queries = [predicted.sum(axis=0, keepdims=True), predicted]
                queries += [] if vector is None else [vector]
                near = np.unique(index.search(unit_rows(np.concatenate(queries)), k))
                near = near[near >= 0]
            part = slice(i, i + 1)
            evidence, made = self._evidence(X[part], near, P=P[part], documents=one)
            scores = self.combination_.scores(evidence)
            yield near, self.combination_.probabilities(scores), evidence, made

    def _label_index(self) -> LabelIndex:
        """The index of the unseen labels, built when there are many for the first time."""
        if self.index_ is None:
            rows = self.table_.unseen_rows
            vectors = self.table_.vectors(rows)
            if sp.issparse(vectors):
                raise InputError(
                    f"{len(rows):,} labels need an encoder of dense vectors: 'minilm' or 'fast'"
                )
            self.index_ = LabelIndex(vectors, rows)
        return self.index_

    def _index_bytes(self) -> np.ndarray | None:
        """The index for saving, which numbers the rows anew."""
        if self.index_ is None:
            return None
        if not self.table_.alive.all():
            rows = np.arange(len(self.table_.rows))
            unseen = self.table_.columns[self.table_.rows] < 0
            return LabelIndex(self.table_.vectors(self.table_.unseen_rows), rows[unseen]).to_array()
        return self.index_.to_array()


def _weighted(vectors: Any, weights: np.ndarray) -> Any:
    """Rows times their weights, sparse if they are."""
    if sp.issparse(vectors):
        return sp.csr_array(vectors.multiply(weights[:, None]))
    return vectors * weights[:, None].astype(vectors.dtype)


def _best_of_each(unseen: Any, predicted: Any, document: Any, k: int) -> np.ndarray:
    """Labels that are among the k best by fusion, by ConSE or by similarity, without an index."""
    double = predicted.astype(np.float64)
    B = cosines(unseen, predicted)
    found = [
        fuse_top(
            B,
            cosines(double, double),
            k,
            products=lambda rows: cosines(unseen[rows].astype(np.float64), double),
        ).labels,
        _largest(B.sum(axis=1), k),
    ]
    if document is not None:
        found.append(_largest(cosines(document, unseen)[0], k))
    return np.unique(np.concatenate(found))


def _largest(values: np.ndarray, k: int) -> np.ndarray:
    return np.argpartition(-values, min(k, len(values)) - 1)[:k]
