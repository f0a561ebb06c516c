"""Base of the methods that extend a classifier of seen labels to unseen labels."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from labelweave.base import Pair
from labelweave.capabilities import capabilities
from labelweave.exceptions import InputError, LabelweaveWarning
from labelweave.input_checks import is_texts
from labelweave.labels import LabelMatrix, as_labels
from labelweave.thresholds import FixedThreshold, make_threshold
from labelweave.unseen._fusion.combination_table import MOST_LABELS
from labelweave.unseen._fusion.label_index import LabelIndex
from labelweave.unseen._fusion.label_scores import LabelScores, fuse_documents
from labelweave.unseen._fusion.label_search import CANDIDATES, Documents, LabelSearch, Predicted
from labelweave.unseen._fusion.score_combination import Draws, ScoreCombination, calibrated
from labelweave.unseen._fusion.seen_classifier import (
    fit_classifier,
    make_classifier,
    names_of,
    probabilities_of,
)
from labelweave.unseen._fusion.zero_shot import ZeroShotClassifier, is_per_label
from labelweave.unseen.xml0_algorithm import predicted_labels, semantic_similarity

_N_DRAWS = 3  # draws of seen labels that are treated as unseen
_DRAWN_SHARE = 0.2  # share of the seen labels in a draw
_MAX_DOCUMENTS = 1000  # documents to fit the combination of scores on


class LabelExtension(LabelSearch):
    """Base of the methods that use the predictions of a classifier of the seen labels.

    Parameters
    ----------
    classifier : estimator or str, default=None
        Any classifier of texts with `predict_proba`, or the id of a method ("attentionxml"); by
        default one linear classifier per label on TF-IDF weights. :meth:`from_fitted` extends a
        classifier that is already fitted.
    encoder : {"minilm", "fast", "tfidf"} or transformer of texts, default="minilm"
    min_probability : float, default=0.05
        Labels with a larger probability count as predicted (the paper's t). The score of a
        single label does not depend on its probability, so with a low value unlikely labels can
        determine the result.
    max_predicted : int, default=10
        The largest number of predicted labels per document, the likeliest first; at most 22.
    finetune, finetune_steps
        As in :class:`~labelweave.unseen._fusion.zero_shot.ZeroShotClassifier`.
    fusion : {"exact", "greedy"}, default="exact"
    index_above : int, default=100000
        With more unseen labels than this, an index (FAISS, the ``neighbors`` extra) finds
        candidates and only these are scored. Otherwise every label is scored.
    n_jobs : int, optional
        Number of threads for label fusion; -1 uses all cores.
    threshold, validation_fraction, random_state
        As in :class:`~labelweave.unseen._fusion.zero_shot.ZeroShotClassifier`.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **ZeroShotClassifier._parameter_constraints,
        "classifier": [HasMethods(["fit", "predict_proba"]), str, None],
        "min_probability": [Interval(Real, 0, 1, closed="left")],
        "max_predicted": [Interval(Integral, 1, MOST_LABELS, closed="both")],
        "fusion": [StrOptions({"exact", "greedy"})],
        "index_above": [Interval(Integral, 0, None, closed="left")],
        "n_jobs": [Integral, None],
    }

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

    def default_part(self, parameter: str) -> Any:
        """Return the classifier that None or the id of a method stands for."""
        return make_classifier(self.classifier) if parameter == "classifier" else None

    # -- what a method writes ----------------------------------------------------------

    @abstractmethod
    def _default_combination(self) -> ScoreCombination:
        """The combination of scores that is used without documents to fit it on."""

    @abstractmethod
    def _fit_combination(self, draws: Draws) -> ScoreCombination:
        """Fit the combination of scores on seen labels that are treated as unseen."""

    # -- fitting -----------------------------------------------------------------------

    def _needs_validation(self) -> bool:
        return True  # the combination is fitted on documents that the classifier has not seen

    def _fit(self, X: Any, Y: LabelMatrix, validation: Pair | None) -> None:
        self.classifier_ = fit_classifier(self.classifier, X, Y, self.random_state)
        self.n_columns_ = Y.n_labels
        self._start(X)
        # The encoder must not be fine-tuned on the labels that are treated as unseen.
        draws = self._draw_labels(Y.n_labels)
        columns = np.arange(Y.n_labels)
        if self.finetune is not None and validation is not None:
            draws = draws[:1]
            columns = np.setdiff1d(columns, draws[0])
        self._fine_tune(X, Y, columns)
        self.combination_ = self._default_combination()
        if validation is not None:
            self._learn_combination(*validation, draws)

    def _draw_labels(self, n_labels: int) -> list[np.ndarray]:
        """Draw sets of seen labels, each of which is treated as unseen once."""
        random = self._generator()
        size = max(1, round(_DRAWN_SHARE * n_labels))
        return [np.sort(random.permutation(n_labels)[:size]) for _ in range(_N_DRAWS)]

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
        """Extend a classifier that is already fitted, without training it again.

        Parameters
        ----------
        classifier : fitted estimator, or function of X
            Its `predict_proba`, or the function itself, returns one column per label.
        label_names : sequence of str, optional
            Names of the columns. A model of this library has them already.
        descriptions : mapping of str to str, optional
        X, Y : documents and their labels, optional
            Documents that the classifier was not trained on, to fit the combination of the
            scores on. Without them the scores are added with fixed weights. XML0+ then compares
            the sum with that of seen labels in the same document, and expects an unseen label as
            often as a seen one; other methods do not calibrate the probabilities of unseen labels.
        **parameters
            Parameters of the constructor. Without `threshold` the model keeps the threshold of
            the classifier; if that has one per label, the common one, with a warning.
        """
        names = names_of(classifier, label_names)
        model = cls(**parameters)
        model._validate_params()
        model._descriptions = {
            **dict(getattr(classifier, "label_descriptions_", {})),
            **(descriptions or {}),
        }
        model._checked_targets(as_labels(np.zeros((1, len(names)), dtype=np.float32), names=names))
        model.classifier_, model.n_columns_ = classifier, len(names)
        documents = None if X is None else model._checked_features(X, reset=True)
        model._start(documents)
        model.combination_ = model._default_combination()
        labels = None
        if documents is not None and Y is not None:
            labels = model._known_labels(Y)
            model._learn_combination(documents, labels, model._draw_labels(len(names)))
        fitted_rule = getattr(classifier, "threshold_", None)
        sets_rule = "threshold" in parameters
        if fitted_rule is not None and not sets_rule:
            model.threshold_ = fitted_rule
            if is_per_label(fitted_rule):
                model.threshold_ = FixedThreshold(float(fitted_rule.common_))
                warnings.warn(
                    "the classifier has one threshold per label, which unseen labels lack: all "
                    f"labels get the common one, {fitted_rule.common_:.3g} (threshold= sets "
                    "another)",
                    LabelweaveWarning,
                    stacklevel=2,
                )
            return model
        rule = make_threshold(model.threshold)
        if rule.needs_validation:
            if labels is None:
                raise InputError(f"threshold={model.threshold!r} has to be tuned: pass X and Y")
            rule.fit(labels, model._probabilities(documents))
        model.threshold_ = rule
        return model

    def _start(self, X: Any) -> None:
        """Fit the encoder and fill the label table; X is None if there are no documents."""
        documents = X.tolist() if X is not None and is_texts(X) else []
        self._start_table(documents, self.n_columns_)
        self.index_: LabelIndex | None = None

    def _learn_combination(self, X: Any, Y: LabelMatrix, held_sets: list[np.ndarray]) -> None:
        """Fit the combination on seen labels treated as unseen and on held-out documents."""
        random = self._generator()
        rows = random.permutation(len(Y))[:_MAX_DOCUMENTS]
        X, truth = X[rows], Y[rows].to_numpy()
        P = self._seen_probabilities(X)
        documents = self._documents(X)
        candidates = np.flatnonzero((truth == 1).any(axis=0))
        draws = []
        for held in held_sets:
            if not np.isin(held, candidates).any():
                continue
            scores, _ = self._label_scores(held, P, documents, masked=held)
            draws.append((scores, truth[:, held]))
        if draws:
            self.combination_ = self._fit_combination(draws)

    # -- scores ------------------------------------------------------------------------

    def _seen_probabilities(self, X: Any) -> np.ndarray:
        """Probabilities of all labels of the classifier, including removed labels."""
        return probabilities_of(self.classifier_, X, self.n_columns_)

    def _documents(self, X: Any) -> Documents | None:
        """Vectors of the documents; None if their texts are not used."""
        if capabilities(self).vectors or not is_texts(X):
            return None
        return Documents(self._embed_documents(X.tolist()))

    def _label_scores(
        self,
        rows: np.ndarray,
        P: np.ndarray,
        documents: Documents | None,
        *,
        masked: np.ndarray | None = None,
    ) -> tuple[LabelScores, Predicted]:
        """Scores of the labels in these rows of the table, and the predicted labels.

        P are the probabilities of all labels of the classifier. `masked` are rows of seen labels
        that are treated as unseen.
        """
        seen = self.table_.seen_rows
        seen = seen if masked is None else np.setdiff1d(seen, masked)
        probabilities = P[:, self.table_.columns[seen]]
        predicted = predicted_labels(probabilities, self.min_probability, self.max_predicted)
        vectors = self.table_.vectors(rows)
        conse, fusions = fuse_documents(
            probabilities,
            predicted,
            self.table_.vectors(seen),
            vectors,
            exact=self.fusion == "exact",
            n_jobs=self.n_jobs,
        )
        fusion = np.array([fused.scores for fused in fusions]).reshape(len(P), -1)
        similarity = None
        if documents is not None:
            similarity = semantic_similarity(documents.vectors, vectors)
        scores = LabelScores(similarity, conse, fusion)
        return scores, Predicted(probabilities, predicted, fusions)

    def _label_probabilities(self, X: Any, rows: np.ndarray) -> np.ndarray:
        P = self._seen_probabilities(X)
        columns = self.table_.columns[rows]
        result = np.zeros((len(P), len(rows)))
        result[:, columns >= 0] = P[:, columns[columns >= 0]]
        unseen = rows[columns < 0]
        if len(unseen) > self.index_above:
            for i, (near, probabilities, *_) in enumerate(self._near_labels(X, P, CANDIDATES)):
                result[i, np.searchsorted(rows, near)] = probabilities[0]
        elif len(unseen):
            scores, _ = self._label_scores(unseen, P, self._documents(X))
            result[:, columns < 0] = self.combination_.probabilities(scores)
        return result

    # -- changes of the label set ------------------------------------------------------

    def _labels_added(self, rows: np.ndarray, texts: list[str]) -> None:
        if self.index_ is not None:
            self.index_.add(self.table_.vectors(rows), rows)

    def _labels_removed(self, rows: np.ndarray) -> None:
        if self.index_ is not None:
            self.index_.remove(rows)

    def _label_renamed(self, row: int, text: str) -> None:
        if self.index_ is not None:
            rows = np.array([row])
            self.index_.remove(rows)
            if self.table_.columns[row] < 0:
                self.index_.add(self.table_.vectors(rows), rows)

    # -- persistence -------------------------------------------------------------------

    def _state(self) -> dict[str, Any]:
        return {
            **super()._state(),
            "classifier": self.classifier_,
            "n_columns": self.n_columns_,
            "combination": self.combination_.to_dict(),
            "index": self._index_arrays(),
        }

    def _set_state(self, state: Mapping[str, Any]) -> None:
        super()._set_state(state)
        self.classifier_ = state["classifier"]
        self.n_columns_ = state["n_columns"]
        self.combination_ = ScoreCombination.from_dict(state["combination"])
        stored = state["index"]
        # An earlier version stored bytes of FAISS: that index is built again when it is needed.
        self.index_ = None
        if isinstance(stored, dict):
            self.index_ = LabelIndex.from_arrays(stored, len(self.table_.rows))

    @classmethod
    def _test_params(cls) -> dict[str, Any]:
        return {"encoder": "tfidf"}


class SingleScoreExtension(LabelExtension):
    """Base of the methods whose probability depends on one score of :class:`LabelScores`.

    They do not use the texts of the documents, so the documents may be features.
    """

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.capabilities.vectors = True
        return tags

    @classmethod
    def published(cls, dataset: str | None = None) -> Self:
        """Return an estimator with the settings of Table II of the XML0 paper.

        The classifier is AttentionXML with its published settings and the encoder is MiniLM
        without fine-tuning, which the paper describes for the semantic similarity only. The
        settings are the same for all data sets.
        """
        from labelweave.unseen.attentionxml import AttentionXML

        return cls(AttentionXML.published(dataset))

    def _fit_combination(self, draws: Draws) -> ScoreCombination:
        return calibrated(self._default_combination(), draws, self._generator())
