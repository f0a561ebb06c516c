"""A classifier of seen labels, extended to unseen ones by what it predicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from labelweave.base import Pair
from labelweave.exceptions import InputError
from labelweave.input_checks import is_texts
from labelweave.labels import LabelMatrix, as_labels
from labelweave.text.tfidf import TfidfEmbedder
from labelweave.thresholds import make_threshold
from labelweave.unseen.base_classifier import (
    default_classifier,
    fit_classifier,
    names_of,
    probabilities_of,
)
from labelweave.unseen.combination import Combination
from labelweave.unseen.combinations import MOST_LABELS
from labelweave.unseen.evidence import Evidence, choose_predicted, cosines, fuse_documents
from labelweave.unseen.explanation import Predicted
from labelweave.unseen.finding import CANDIDATES, LabelFinder
from labelweave.unseen.growing_rows import GrowingRows
from labelweave.unseen.label_index import LabelIndex
from labelweave.unseen.zero_shot import ZeroShotClassifier, is_per_label

__all__ = ["LabelExtension"]

_DRAWS = 3  # of seen labels that are treated as unseen
_SHARE = 0.2  # of the seen labels in a draw
_MOST_DOCUMENTS = 1000  # to learn a combination from
_REFERENCE = 2000  # training documents that tell how similar a label usually is


class LabelExtension(LabelFinder):
    """Base of the methods over a classifier of the seen labels.

    Parameters
    ----------
    classifier : estimator, default=None
        Any classifier of texts with `predict_proba`; one linear classifier a label on TF-IDF
        weights by default. :meth:`from_fitted` takes a fitted one as it is.
    encoder : {"minilm", "fast", "tfidf"} or transformer of texts, default="minilm"
    min_probability : float, default=0.05
        Labels above it count as predicted (the paper's t). A lone label counts the same at any
        probability, so a low value lets unlikely labels speak.
    max_predicted : int, default=10
        At most so many of the likeliest labels count as predicted; 22 at most.
    finetune, finetune_steps
        As in :class:`~labelweave.unseen.zero_shot.ZeroShotClassifier`.
    fusion : {"exact", "greedy"}, default="exact"
    index_above : int, default=100000
        With more unseen labels than this an index (FAISS, the ``neighbors`` extra) finds the
        candidates, which are scored exactly; with fewer every label is.
    n_jobs : int, optional
        Documents that are fused at a time, by threads; -1 takes all cores.
    threshold, validation_fraction, random_state
        As in :class:`~labelweave.unseen.zero_shot.ZeroShotClassifier`.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **ZeroShotClassifier._parameter_constraints,
        "classifier": [HasMethods(["fit", "predict_proba"]), None],
        "min_probability": [Interval(Real, 0, 1, closed="left")],
        "max_predicted": [Interval(Integral, 1, MOST_LABELS, closed="both")],
        "fusion": [StrOptions({"exact", "greedy"})],
        "index_above": [Interval(Integral, 0, None, closed="left")],
        "n_jobs": [Integral, None],
    }
    _reads_documents: ClassVar[bool] = True  # whether the documents' own texts are used
    combine: str

    def __init__(
        self,
        classifier: Any = None,
        *,
        encoder: Any = "minilm",
        min_probability: float = 0.05,
        max_predicted: int = 10,
        finetune: str | None = None,
        finetune_steps: int | None = None,
        fusion: str = "exact",
        index_above: int = 100_000,
        n_jobs: int | None = None,
        threshold: Any = 0.5,
        validation_fraction: float = 0.2,
        random_state: Any = None,
    ) -> None:
        self.classifier = classifier
        self.encoder = encoder
        self.min_probability = min_probability
        self.max_predicted = max_predicted
        self.finetune = finetune
        self.finetune_steps = finetune_steps
        self.fusion = fusion
        self.index_above = index_above
        self.n_jobs = n_jobs
        self.threshold = threshold
        self.validation_fraction = validation_fraction
        self.random_state = random_state

    def _default_classifier(self) -> Any:
        return default_classifier()

    # -- what a method writes ----------------------------------------------------------

    def _uncalibrated(self) -> Combination:
        """The combination without documents to learn it from."""
        raise NotImplementedError

    def _fit_combination(self, draws: Sequence[tuple[Evidence, np.ndarray]]) -> Combination:
        raise NotImplementedError

    # -- fitting -----------------------------------------------------------------------

    def _needs_validation(self) -> bool:
        return True  # the combination is learnt on documents that the classifier has not seen

    def _fit(self, X: Any, Y: LabelMatrix, validation: Pair | None) -> None:
        self.classifier_ = fit_classifier(self.classifier, X, Y, self.random_state)
        self.n_columns_ = Y.n_labels
        self._start(X)
        # Labels to learn the combination with must be as new to the encoder as unseen ones are.
        draws = self._draw_labels(Y.n_labels)
        taught = np.arange(Y.n_labels)
        if self.finetune is not None and validation is not None:
            draws = draws[:1]
            taught = np.setdiff1d(taught, draws[0])
        self._fine_tune(X, Y, taught)
        self.combination_ = self._uncalibrated()
        if validation is not None:
            self._learn_combination(*validation, draws)

    def _draw_labels(self, n_labels: int) -> list[np.ndarray]:
        """Some draws of seen labels to treat as unseen."""
        random = self._generator()
        size = max(1, round(_SHARE * n_labels))
        return [np.sort(random.permutation(n_labels)[:size]) for _ in range(_DRAWS)]

    @classmethod
    def from_fitted(
        cls,
        classifier: Any,
        label_names: Sequence[str] | None = None,
        *,
        descriptions: Mapping[str, str] | None = None,
        X: Any = None,
        Y: Any = None,
        **parameters: Any,
    ) -> Self:
        """Extend a classifier that is fitted already; it is not trained again.

        Parameters
        ----------
        classifier : fitted estimator, or function of X
            Its `predict_proba`, or the function itself, gives one column a label.
        label_names : sequence of str, optional
            Names of the columns; a model of this library knows them.
        descriptions : mapping of str to str, optional
        X, Y : documents and their labels, optional
            Documents that the classifier was not trained on, to learn the combination of the
            scores from. Without them a plain sum is taken, and probabilities of unseen labels
            are no better than an order.
        **parameters
            Those of the constructor. Without `threshold` the classifier's own rule is kept.
        """
        names = names_of(classifier, label_names)
        model = cls(**parameters)
        model._validate_params()
        model._given_texts = {
            **dict(getattr(classifier, "label_descriptions_", {})),
            **(descriptions or {}),
        }
        model._checked_targets(as_labels(np.zeros((1, len(names)), dtype=np.float32), names=names))
        model.classifier_, model.n_columns_ = classifier, len(names)
        documents = None if X is None else model._checked_features(X, reset=True)
        model._start(documents)
        model.combination_ = model._uncalibrated()
        judged = None
        if documents is not None and Y is not None:
            judged = model._known_labels(Y)
            model._learn_combination(documents, judged, model._draw_labels(len(names)))
        old = getattr(classifier, "threshold_", None)
        if old is not None and "threshold" not in parameters and not is_per_label(old):
            model.threshold_ = old
            return model
        rule = make_threshold(model.threshold)
        if rule.needs_validation and judged is None:
            raise InputError(f"threshold={model.threshold!r} has to be tuned: pass X and Y")
        if rule.needs_validation:
            rule.fit(judged, model._probabilities(documents))
        model.threshold_ = rule
        return model

    def _start(self, X: Any) -> None:
        """Encoder, seen labels and what training documents tell about any label."""
        has_texts = X is not None and is_texts(X)
        documents = X.tolist() if has_texts else []
        self._start_table(documents, self.n_columns_)
        self.words_: Any = None
        self.reference_: Any = None
        self.index_: LabelIndex | None = None
        if not (has_texts and self._reads_documents):
            return
        texts = self._texts_of(self.label_names_)
        self.words_ = TfidfEmbedder(max_words=2, max_features=100_000).fit([*documents, *texts])
        self.label_words_ = GrowingRows(self.words_.transform(texts))
        order = self._generator().permutation(len(documents))[:_REFERENCE]
        self.reference_ = _mean(self._embed([documents[i] for i in order]))

    def _learn_combination(self, X: Any, Y: LabelMatrix, held_sets: list[np.ndarray]) -> None:
        """Treat some seen labels as unseen, on documents that the classifier has not seen."""
        random = self._generator()
        rows = random.permutation(len(Y))[:_MOST_DOCUMENTS]
        X, truth = X[rows], Y[rows].to_numpy()
        P = self._seen_probabilities(X)
        documents = self._document_vectors(X)
        candidates = np.flatnonzero((truth == 1).any(axis=0))
        draws = []
        for held in held_sets:
            if not np.isin(held, candidates).any():
                continue
            evidence, _ = self._evidence(X, held, P=P, documents=documents, masked=held)
            draws.append((evidence, truth[:, held]))
        if draws:
            self.combination_ = self._fit_combination(draws)

    # -- evidence ----------------------------------------------------------------------

    def _seen_probabilities(self, X: Any) -> np.ndarray:
        """One column a label that the classifier knows, removed ones included."""
        return probabilities_of(self.classifier_, X, self.n_columns_)

    def _document_vectors(self, X: Any) -> tuple[Any, Any] | None:
        """Vectors and word weights of the documents; None where they are no texts."""
        if not self._reads_documents or not is_texts(X):
            return None
        words = None if self.words_ is None else self.words_.transform(X.tolist())
        return self._embed_documents(X.tolist()), words

    def _evidence(
        self,
        X: Any,
        rows: np.ndarray,
        *,
        P: np.ndarray | None = None,
        documents: Any = None,
        masked: np.ndarray | None = None,
    ) -> tuple[Evidence, Predicted]:
        """Evidence for the labels of these rows of the table, and what was predicted.

        `masked` are rows of seen labels that are treated as unseen.
        """
        P = self._seen_probabilities(X) if P is None else P
        documents = self._document_vectors(X) if documents is None else documents
        seen = self.table_.seen_rows
        seen = seen if masked is None else np.setdiff1d(seen, masked)
        likely = P[:, self.table_.columns[seen]]
        chosen = choose_predicted(likely, self.min_probability, self.max_predicted)
        vectors = self.table_.vectors(rows)
        conse, fusion, found = fuse_documents(
            likely,
            chosen,
            self.table_.vectors(seen),
            vectors,
            exact=self.fusion == "exact",
            n_jobs=self.n_jobs,
        )
        strength = np.array(
            [row[c].mean() if len(c) else 0 for row, c in zip(likely, chosen, strict=True)]
        )
        similarity = words = usual = None
        if documents is not None:
            similarity = cosines(documents[0], vectors)
            if documents[1] is not None:
                words = cosines(documents[1], self.label_words_.take(rows))
                usual = cosines(vectors, self.reference_).ravel()
        evidence = Evidence(similarity, conse, fusion, strength, words, usual)
        return evidence, Predicted(likely, chosen, found)

    def _label_probabilities(self, X: Any, rows: np.ndarray) -> np.ndarray:
        P = self._seen_probabilities(X)
        columns = self.table_.columns[rows]
        found = np.zeros((len(P), len(rows)))
        found[:, columns >= 0] = P[:, columns[columns >= 0]]
        unseen = rows[columns < 0]
        if len(unseen) > self.index_above:
            for i, (near, probabilities, *_) in enumerate(self._near_labels(X, P, CANDIDATES)):
                found[i, np.searchsorted(rows, near)] = probabilities[0]
        elif len(unseen):
            evidence, _ = self._evidence(X, unseen, P=P)
            scores = self.combination_.scores(evidence)
            found[:, columns < 0] = self.combination_.probabilities(scores)
        return found

    # -- labels that come and go -------------------------------------------------------

    def _grown(self, rows: np.ndarray, texts: list[str]) -> None:
        if self.words_ is not None:
            self.label_words_.append(self.words_.transform(texts))
        if self.index_ is not None:
            self.index_.add(self.table_.vectors(rows), rows)

    def _shrunk(self, rows: np.ndarray) -> None:
        if self.index_ is not None:
            self.index_.remove(rows)

    def _changed(self, row: int, text: str) -> None:
        if self.words_ is not None:
            self.label_words_.replace(row, self.words_.transform([text]))
        if self.index_ is not None:
            rows = np.array([row])
            self.index_.remove(rows)
            if self.table_.columns[row] < 0:
                self.index_.add(self.table_.vectors(rows), rows)

    # -- persistence -------------------------------------------------------------------

    def _state(self) -> dict[str, Any]:
        state = super()._state()
        rows = self.table_.rows
        words = None if self.words_ is None else self.label_words_.take(rows)
        return {
            **state,
            "classifier": self.classifier_,
            "n_columns": self.n_columns_,
            "combination": self.combination_.to_dict(),
            "words": self.words_,
            "label_words": words,
            "reference": self.reference_,
            "index": self._index_bytes(),
        }

    def _set_state(self, state: Mapping[str, Any]) -> None:
        super()._set_state(state)
        self.classifier_ = state["classifier"]
        self.n_columns_ = state["n_columns"]
        self.combination_ = Combination.from_dict(state["combination"])
        self.words_, self.reference_ = state["words"], state["reference"]
        if self.words_ is not None:
            self.label_words_ = GrowingRows(state["label_words"])
        stored = state["index"]
        self.index_ = None if stored is None else LabelIndex.from_array(stored)


def _mean(vectors: Any) -> np.ndarray:
    return np.asarray(vectors.mean(axis=0), dtype=np.float32).reshape(1, -1)
