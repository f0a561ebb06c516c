"""ZestXML: a sparse bilinear map from document features to label features."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from sklearn.utils._param_validation import Interval

from labelweave.base import Pair
from labelweave.exceptions import InputError
from labelweave.labels import LabelMatrix
from labelweave.shallow.per_label import with_int32_indices
from labelweave.text.tfidf import TfidfEmbedder
from labelweave.unseen._fusion.zero_shot import ZeroShotClassifier
from labelweave.unseen.zestxml_pairs import (
    bilinear_scores,
    pair_features,
    score_shortlist,
    shortlist,
    sparse_pattern,
)

__all__ = ["ZestXML"]

_MATCH = 0.1  # added to the initial map where document word and label word are equal
_DIRECT = 0.1  # weight of the direct match in the score


class ZestXML(ZeroShotClassifier):
    """Generalised zero-shot learning by a highly sparsified linear map [1]_.

    Documents and labels are represented by TF-IDF weights of words and pairs of words; a seen label
    has an additional indicator feature. The map W between the two has few entries: for each
    document feature and each label feature those with the strongest association in the positive
    pairs. Its values are fitted by one linear SVM over pairs of documents and shortlisted labels.

    Parameters
    ----------
    alpha : float, default=0.01
        Weight of frequent features in the score that selects the entries of W.
    pattern_size : int, default=40
        Number of entries of W per document feature, and per label feature.
    shortlist_size : int, default=100
        Number of candidate labels per document for the SVM.
    C : float, default=1.0
        Inverse strength of the SVM's penalty.
    max_features : int or None, default=50000
        Largest number of words and pairs of words.
    max_pairs : int or None, default=500000
        Largest number of pairs for the SVM; with more, a random sample of documents is used.
    threshold, validation_fraction, random_state
        As in :class:`~labelweave.base.MultiLabelClassifier`.

    Notes
    -----
    The score of a pair is ``0.9 exp(-max(0, 1 - (x W y + b))^2) + 0.1 x M y``; M maps each
    word to itself. The scores are returned as probabilities, but they are not calibrated.

    *Choices.* The positive labels of a document are pairs for the SVM even if they are not in its
    shortlist, so that a document with a poor shortlist does not lose its positives. At prediction
    all labels are scored, not a shortlist. The indicator feature of a seen label, valued at the
    largest IDF, is added to word weights of length one, and the row is scaled to length one again.
    The SVM has a squared hinge loss and is solved in the primal by at most 20 truncated Newton
    steps on sparse products of all pairs; the original runs 20 passes of dual coordinate descent.
    `max_features` and `max_pairs` limit the memory; the paper has no such limits.

    References
    ----------
    .. [1] N. Gupta, S. Bohra, Y. Prabhu, S. Purohit and M. Varma. Generalized zero-shot extreme
       multi-label learning. KDD 2021.

    Examples
    --------
    >>> texts = ["deep sea fish", "sea water fish", "dry desert sand", "hot desert sand"] * 5
    >>> labels = [["fish"], ["fish"], ["desert"], ["desert"]] * 5
    >>> model = ZestXML(random_state=0).fit(texts, labels, labels=["sea water", "hot sand"])
    >>> [row[0][0] for row in model.rank(["fish in water", "sand is hot"], 1, among="unseen")]
    ['sea water', 'hot sand']
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **{
            name: kinds
            for name, kinds in ZeroShotClassifier._parameter_constraints.items()
            if name != "encoder"
        },
        "alpha": [Interval(Real, 0, 1, closed="both")],
        "pattern_size": [Interval(Integral, 1, None, closed="left")],
        "shortlist_size": [Interval(Integral, 1, None, closed="left")],
        "C": [Interval(Real, 0, None, closed="neither")],
        "max_features": [Interval(Integral, 1, None, closed="left"), None],
        "max_pairs": [Interval(Integral, 1, None, closed="left"), None],
    }

    def __init__(
        self,
        *,
        alpha: float = 0.01,
        pattern_size: int = 40,
        shortlist_size: int = 100,
        C: float = 1.0,
        max_features: int | None = 50_000,
        max_pairs: int | None = 500_000,
        threshold: Any = 0.5,
        validation_fraction: float = 0.2,
        random_state: Any = None,
    ) -> None:
        self.alpha = alpha
        self.pattern_size = pattern_size
        self.shortlist_size = shortlist_size
        self.C = C
        self.max_features = max_features
        self.max_pairs = max_pairs
        self.threshold = threshold
        self.validation_fraction = validation_fraction
        self.random_state = random_state

    @classmethod
    def published(cls, dataset: str | None = None) -> Self:
        """Return an estimator with the paper's settings: all features and all pairs are used.

        `alpha` and `pattern_size` are those of its two larger data sets. The settings are the same
        for all data sets.
        """
        return cls(max_features=None, max_pairs=None)

    @property
    def encoder(self) -> Any:
        """The TF-IDF weights of documents and labels."""
        return TfidfEmbedder(max_features=self.max_features, max_words=2)

    def _fit(self, X: Any, Y: LabelMatrix, validation: Pair | None) -> None:
        self._start_table(X.tolist(), Y.n_labels)
        self.n_seen_ = Y.n_labels
        documents = sp.csr_array(self._embed(X.tolist()))
        labels = self._label_features(self.table_.rows)
        positive = sp.csr_array(Y.positive()).astype(np.float32)
        pattern = sparse_pattern(documents, labels, positive, self.alpha, self.pattern_size)
        self.match_ = _same_words(documents.shape[1], labels.shape[1])
        first = sp.csr_array(pattern + _MATCH * self.match_)
        most = len(Y)
        if self.max_pairs is not None:
            most = max(1, self.max_pairs // min(self.shortlist_size, Y.n_labels))
        if len(Y) > most:
            chosen = np.sort(self._generator().permutation(len(Y))[:most])
            documents, positive, Y = documents[chosen], positive[chosen], Y[chosen]
        rows, columns = shortlist(documents, first, labels, positive, self.shortlist_size)
        targets = Y.to_numpy()[rows, columns]
        kept = ~np.isnan(targets)
        pairs = pair_features(documents, labels, first, rows[kept], columns[kept])
        weights, self.bias_ = _squared_hinge(pairs, targets[kept] == 1, self.C)
        self.map_ = sp.csr_array((weights, first.indices, first.indptr), shape=first.shape)

    def _label_features(self, rows: np.ndarray) -> sp.csr_array:
        """Words of labels and, for seen labels, an indicator feature with the largest IDF."""
        words = sp.csr_array(self.table_.vectors(rows))
        columns = self.table_.columns[rows]
        seen = np.flatnonzero(columns >= 0)
        value = np.full(len(seen), float(self.encoder_.idf_.max()), dtype=np.float32)
        indicator = sp.csr_array((value, (seen, columns[seen])), shape=(len(rows), self.n_seen_))
        features = sp.csr_array(sp.hstack([words, indicator], format="csr"))
        lengths = np.sqrt(features.multiply(features).sum(axis=1))
        return sp.csr_array(features.multiply(1 / np.where(lengths > 0, lengths, 1)[:, None]))

    def _label_probabilities(self, X: Any, rows: np.ndarray) -> np.ndarray:
        documents = sp.csr_array(self._embed(X.tolist()))
        labels = self._label_features(rows)
        raw = bilinear_scores(documents, self.map_, labels) + self.bias_
        direct = bilinear_scores(documents, self.match_, labels)
        return score_shortlist(raw, direct, _DIRECT)

    def _state(self) -> dict[str, Any]:
        return {
            **super()._state(),
            "map": self.map_,
            "match": self.match_,
            "bias": float(self.bias_),
            "n_seen": self.n_seen_,
        }

    def _set_state(self, state: Mapping[str, Any]) -> None:
        super()._set_state(state)
        self.map_, self.match_ = state["map"], state["match"]
        self.bias_, self.n_seen_ = state["bias"], state["n_seen"]
        n_words = state["vectors"].shape[1]
        shapes = {(n_words, n_words + self.n_seen_), self.map_.shape, self.match_.shape}
        if len(shapes) > 1 or self.n_seen_ < 0:
            raise InputError("the maps from words to labels do not fit the words and labels")


def _same_words(n_words: int, n_label_features: int) -> sp.csr_array:
    """The map from each word of a document to the same word of a label."""
    diagonal = np.arange(n_words)
    return sp.csr_array(
        (np.ones(n_words, dtype=np.float32), (diagonal, diagonal)),
        shape=(n_words, n_label_features),
    )


def _squared_hinge(pairs: sp.csr_array, truth: np.ndarray, C: float) -> tuple[np.ndarray, float]:
    """Weights and bias of a linear SVM; zero if there is only one class."""
    import warnings

    from sklearn.exceptions import ConvergenceWarning
    from sklearn.svm import LinearSVC

    if truth.all() or not truth.any():
        return np.zeros(pairs.shape[1], dtype=np.float32), 0.0
    model = LinearSVC(loss="squared_hinge", C=C, dual=False, tol=0.01, max_iter=20)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the method stops early by design
        model.fit(with_int32_indices(pairs), truth)
    return model.coef_[0].astype(np.float32), float(model.intercept_[0])
