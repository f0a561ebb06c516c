"""Ranking and explaining unseen labels, with candidate search if there are many of them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from labelweave.exceptions import InputError
from labelweave.predictor import inside
from labelweave.text.embedders import cosines, unit_rows
from labelweave.unseen._fusion.combination_search import Fusion, members, top_labels
from labelweave.unseen._fusion.label_index import LabelIndex
from labelweave.unseen._fusion.label_scores import LabelScores
from labelweave.unseen._fusion.score_combination import ScoreCombination
from labelweave.unseen._fusion.zero_shot import ZeroShotClassifier
from labelweave.unseen.xml0_algorithm import predicted_labels

CANDIDATES = 100  # candidates per query vector of a document
SCORE_ALL = 5_000  # up to this number of unseen labels, a ranking scores all of them


class Explanation(NamedTuple):
    """The scores behind an unseen label of a document."""

    label: str
    probability: float
    # Cosine of the label with the best combination of predicted labels; 0 if none is predicted
    fusion: float
    # Cosine of the label with the document; None if the text of the document is not used
    similarity: float | None
    # The seen labels of the best combination and their probabilities, the likeliest first
    because_of: list[tuple[str, float]]


class Documents(NamedTuple):
    """Vectors of documents and, for the methods that use them, their weights of words."""

    vectors: Any
    words: Any = None

    def one(self, i: int) -> Documents:
        return Documents(self.vectors[[i]], None if self.words is None else self.words[[i]])


class Predicted(NamedTuple):
    """The predicted labels of documents and their best combinations."""

    probabilities: np.ndarray  # (n, S), of the seen labels
    columns: Sequence[np.ndarray]  # of the predicted labels of each document
    fusions: Sequence[Fusion]


class LabelSearch(ZeroShotClassifier):
    """Base of the methods that rank and explain unseen labels by several scores.

    Up to 5,000 unseen labels, a ranking scores all of them. With more labels, it scores the best
    labels by fusion, by ConSE and by similarity, which exact searches find. With more than
    `index_above` labels, an index finds the labels near the document, near each of its predicted
    labels and near their combination.
    """

    combination_: ScoreCombination
    index_: LabelIndex | None
    index_above: int
    min_probability: float
    max_predicted: int

    @abstractmethod
    def _seen_probabilities(self, X: Any) -> np.ndarray:
        """Probabilities of all labels of the classifier, including removed labels."""

    @abstractmethod
    def _documents(self, X: Any) -> Documents | None:
        """Vectors of the documents; None if their texts are not used."""

    @abstractmethod
    def _label_scores(
        self, rows: np.ndarray, P: np.ndarray, documents: Documents | None
    ) -> tuple[LabelScores, Predicted]:
        """Scores of the labels in these rows of the table, and the predicted labels.

        P are the probabilities of all labels of the classifier.
        """

    def rank(self, X: Any, k: int = 10, *, among: str = "all") -> list[list[tuple[str, float]]]:
        """Return the k likeliest labels of each document with their probabilities.

        `among` is "all", "seen" or "unseen". With more than 5,000 unseen labels only candidates
        are ranked, see :class:`LabelSearch`.
        """
        check_is_fitted(self)
        if among == "seen" or not self._has_many():
            return super().rank(X, k, among=among)
        self._rows_of_group(among)
        X = self._checked_features(X, reset=False)
        P = self._seen_probabilities(X)
        seen = self.table_.seen_rows
        ranked = []
        for p, (near, unseen, *_) in zip(P, self._near_labels(X, P, CANDIDATES), strict=True):
            probabilities = unseen[0]
            if among == "all":
                near = np.append(seen, near)
                probabilities = np.append(p[self.table_.columns[seen]], probabilities)
            best = np.argsort(-probabilities, kind="stable")[:k]
            names = self._label_names.at(near[best])
            ranked.append(list(zip(map(str, names), probabilities[best].tolist(), strict=True)))
        return ranked

    def explain(self, X: Any, k: int = 5) -> list[list[Explanation]]:
        """Return the k likeliest unseen labels of each document with the scores behind them."""
        check_is_fitted(self)
        X = self._checked_features(X, reset=False)
        rows = self.table_.unseen_rows
        if not len(rows):
            return [[] for _ in range(len(X))]
        P = self._seen_probabilities(X)
        if self._has_many():
            return [
                self._explanations(0, k, near, probabilities, scores, predicted)
                for near, probabilities, scores, predicted in self._near_labels(X, P, CANDIDATES)
            ]
        scores, predicted = self._label_scores(rows, P, self._documents(X))
        probabilities = inside(self.combination_.probabilities(scores))
        return [
            self._explanations(i, k, rows, probabilities, scores, predicted) for i in range(len(X))
        ]

    def _explanations(
        self,
        i: int,
        k: int,
        rows: np.ndarray,
        probabilities: np.ndarray,
        scores: LabelScores,
        predicted: Predicted,
    ) -> list[Explanation]:
        """Explain the k likeliest labels of document i; `rows` are those of the columns."""
        names = self._label_names.at(rows)
        seen_names = self._label_names.at(self.table_.seen_rows)
        p, columns = predicted.probabilities[i], predicted.columns[i]
        fusion = predicted.fusions[i]
        similarity = scores.similarity
        return [
            Explanation(
                str(names[j]),
                float(probabilities[i, j]),
                float(fusion.scores[j]),
                None if similarity is None else float(similarity[i, j]),
                [(str(seen_names[c]), float(p[c])) for c in columns[members(fusion.masks[j])]],
            )
            for j in np.argsort(-probabilities[i], kind="stable")[:k]
        ]

    # -- many labels -------------------------------------------------------------------

    def _has_many(self) -> bool:
        """Whether only candidates are ranked."""
        return self.table_.n_unseen > min(self.index_above, SCORE_ALL)

    def _near_labels(
        self, X: Any, P: np.ndarray, k: int
    ) -> Iterator[tuple[np.ndarray, np.ndarray, LabelScores, Predicted]]:
        """For each document: rows of candidates in the table, probabilities and scores."""
        documents = self._documents(X)
        seen = self.table_.seen_rows
        vectors = self.table_.vectors(seen)
        probabilities = P[:, self.table_.columns[seen]]
        predicted = predicted_labels(probabilities, self.min_probability, self.max_predicted)
        is_indexed = self.table_.n_unseen > self.index_above
        index = self._label_index() if is_indexed else None
        rows = np.empty(0, dtype=np.int64) if is_indexed else self.table_.unseen_rows
        unseen = None if is_indexed else self.table_.vectors(rows)
        for i, columns in enumerate(predicted):
            document = None if documents is None else documents.one(i)
            vector = None if document is None else document.vectors
            weighted = _weighted(vectors[columns], probabilities[i, columns])
            if index is None:
                near = rows[_candidates(unseen, weighted, vector, k)]
            else:
                queries = [weighted.sum(axis=0, keepdims=True), weighted]
                queries += [] if vector is None else [vector]
                near = np.unique(index.search(unit_rows(np.concatenate(queries)), k))
                near = near[near >= 0]
            scores, fused = self._label_scores(near, P[i : i + 1], document)
            yield near, self.combination_.probabilities(scores), scores, fused

    def _label_index(self) -> LabelIndex:
        """The index of the unseen labels, which is built when it is needed first."""
        if self.index_ is None:
            rows = self.table_.unseen_rows
            vectors = self.table_.vectors(rows)
            if sp.issparse(vectors):
                raise InputError(
                    f"{len(rows):,} labels need an encoder of dense vectors: 'minilm' or 'fast'"
                )
            self.index_ = LabelIndex(vectors, rows)
        return self.index_

    def _index_arrays(self) -> dict[str, np.ndarray] | None:
        """The index for saving; its ids are the rows without removed labels."""
        if self.index_ is None:
            return None
        if not self.table_.alive.all():
            rows = np.arange(len(self.table_.rows))
            unseen = self.table_.columns[self.table_.rows] < 0
            vectors = self.table_.vectors(self.table_.unseen_rows)
            return LabelIndex(vectors, rows[unseen]).to_arrays()
        return self.index_.to_arrays()


def _weighted(vectors: Any, weights: np.ndarray) -> Any:
    """Multiply each row by its weight; sparse rows stay sparse."""
    if sp.issparse(vectors):
        return sp.csr_array(vectors.multiply(weights[:, None]))
    return vectors * weights[:, None].astype(vectors.dtype)


def _candidates(unseen: Any, weighted: Any, document: Any, k: int) -> np.ndarray:
    """Labels that are among the k best by fusion, by ConSE or by similarity."""
    double = weighted.astype(np.float64)
    B = cosines(unseen, weighted)
    by_fusion = top_labels(
        B,
        cosines(double, double),
        k,
        products=lambda rows: cosines(unseen[rows].astype(np.float64), double),
    ).labels
    best = [by_fusion, _largest(B.sum(axis=1), k)]
    if document is not None:
        best.append(_largest(cosines(document, unseen)[0], k))
    return np.unique(np.concatenate(best))


def _largest(values: np.ndarray, k: int) -> np.ndarray:
    return np.argpartition(-values, min(k, len(values)) - 1)[:k]
