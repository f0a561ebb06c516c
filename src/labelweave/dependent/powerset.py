"""Label powerset: one classifier whose classes are the label sets of the training rows."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from scipy.special import expit, softmax
from sklearn.utils._param_validation import HasMethods, Interval

from labelweave.base import MultiLabelClassifier, Pair, WeightedClassifier
from labelweave.dependent._label_sets import label_set_codes
from labelweave.dependent.br import BinaryRelevance
from labelweave.known_labels import KnownLabelsMixin
from labelweave.labels import LabelMatrix, as_labels
from labelweave.shallow.per_label import (
    InnerClassifierMixin,
    fit_with_weights,
    seeded_clones,
    with_int32_indices,
)

__all__ = ["LabelPowerset", "completed", "fit_label_sets", "label_probabilities"]


class LabelPowerset(KnownLabelsMixin, InnerClassifierMixin, WeightedClassifier):
    """One multi-class scikit-learn classifier over label sets [1]_.

    Every label set of the training rows is a class; the probability of a label is the sum of the
    probabilities of the sets that contain it. ``predict_proba(X, known=Y)`` sums only over the
    sets that agree with the known labels (over all sets if none agrees).

    Parameters
    ----------
    estimator : scikit-learn classifier, optional
        ``LogisticRegression(max_iter=10_000)`` by default. For a classifier without
        `predict_proba` the softmax of its decision values is used.
    max_sets : int, default=1000
        Largest number of classes; only the most frequent label sets are classes. A row with
        another set is assigned to the class that differs in the fewest labels, of equal ones to
        the most frequent.
    threshold, validation_fraction, random_state
        As for every estimator: see :class:`~labelweave.base.MultiLabelClassifier`. Without a
        `random_state`, the seed of `estimator` is kept.

    Attributes
    ----------
    estimator_ : classifier, or None
        None if all training rows have the same label set.
    sets_ : csr_array of shape (n_sets, n_labels)
        The label sets, most frequent first.

    Notes
    -----
    Departures: rare label sets beyond `max_sets` are merged into others. Pruned sets [2]_ do so
    too, by another rule.

    Unknown entries: only complete label sets can be classes. An unknown entry is filled in by
    binary relevance with `estimator`, fitted to the rows in which the label is known: 1 if the
    probability is at least 0.5, and otherwise 0.

    References
    ----------
    .. [1] G. Tsoumakas and I. Katakis. Multi-label classification: an overview. International
       Journal of Data Warehousing and Mining 3(3), 2007, pages 1-13.
    .. [2] J. Read, B. Pfahringer and G. Holmes. Multi-label classification using ensembles of
       pruned sets. ICDM 2008.

    Examples
    --------
    >>> import numpy as np
    >>> from labelweave.dependent.powerset import LabelPowerset
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [0.0, 0.0]] * 5)
    >>> model = LabelPowerset().fit(X, X.astype(int))
    >>> model.predict([[1, 1], [0, 1]])
    array([[1, 1],
           [0, 1]])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **MultiLabelClassifier._parameter_constraints,
        "estimator": [HasMethods(["fit", "predict"]), None],
        "max_sets": [Interval(Integral, 1, None, closed="left")],
    }

    tuning_space: ClassVar = {"estimator__C": ("log", 1e-3, 1e3)}

    def __init__(
        self,
        estimator: Any = None,
        max_sets: int = 1000,
        threshold: Any = 0.5,
        validation_fraction: float = 0.2,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.max_sets = max_sets
        self.threshold = threshold
        self.validation_fraction = validation_fraction
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.capabilities.randomized = False  # the default classifier has one solution
        return tags

    def _fit(
        self,
        X: Any,
        Y: LabelMatrix,
        validation: Pair | None,
        sample_weight: np.ndarray | None = None,
    ) -> None:
        template = self._template()
        X = with_int32_indices(X)
        (estimator,) = seeded_clones(self, template, 1)
        Y = completed(X, Y, template, self.random_state, sample_weight)
        self.estimator_, self.sets_ = fit_label_sets(estimator, X, Y, self.max_sets, sample_weight)

    def _predict_proba(self, X: Any, known: np.ndarray | None = None) -> np.ndarray:
        return label_probabilities(self.estimator_, self.sets_, with_int32_indices(X), known)


def completed(
    X: Any, Y: LabelMatrix, template: Any, random_state: Any, weight: np.ndarray | None
) -> LabelMatrix:
    """The labels with every unknown entry filled in by binary relevance."""
    if not Y.has_unknown:
        return Y
    model = BinaryRelevance(template, random_state=random_state)
    model.fit(X, Y, sample_weight=weight)
    values = Y.to_numpy()
    filled = np.where(np.isnan(values), model.predict_proba(X) >= 0.5, values)
    return as_labels(filled, names=Y.names)


def fit_label_sets(
    estimator: Any, X: Any, Y: LabelMatrix, max_sets: int, weight: np.ndarray | None
) -> tuple[Any, sp.csr_array]:
    """The classifier of label sets (None for a single set) and the sets, one row per class."""
    codes = label_set_codes(Y)
    order = np.argsort(-np.bincount(codes, weight), kind="stable")
    classes = np.argsort(order)[codes]  # 0 is the most frequent set
    _, first = np.unique(classes, return_index=True)
    sets = sp.csr_array(Y[first].positive()).astype(np.float32)
    if len(first) > max_sets:
        kept, rare = sets[:max_sets], sets[max_sets:]
        shared = (rare @ kept.T).toarray()
        # The number of differing labels, up to a constant per row.
        nearest = (kept.sum(axis=1) - 2 * shared).argmin(axis=1)
        classes = np.concatenate([np.arange(max_sets), nearest])[classes]
        sets = kept
    if sets.shape[0] == 1:
        return None, sets
    return fit_with_weights(estimator, X, classes, weight), sets


def label_probabilities(
    estimator: Any, sets: sp.csr_array, X: Any, known: np.ndarray | None = None
) -> np.ndarray:
    """P(label) as the sum over the label sets that do not contradict `known`."""
    if estimator is None:
        return np.repeat(sets.toarray(), X.shape[0], axis=0)
    of_sets = _class_probabilities(estimator, X)
    if known is not None:
        members = sets.toarray()
        n_wrong = (known == 1) @ (1 - members).T + (known == 0) @ members.T
        agreeing = np.where(n_wrong > 0, 0, of_sets)
        total = agreeing.sum(axis=1, keepdims=True)
        of_sets = np.where(total > 0, agreeing / np.where(total > 0, total, 1), of_sets)
    return of_sets @ sets


def _class_probabilities(estimator: Any, X: Any) -> np.ndarray:
    if hasattr(estimator, "predict_proba"):
        return estimator.predict_proba(X)
    decision = estimator.decision_function(X)
    if decision.ndim == 1:
        return np.column_stack([expit(-decision), expit(decision)])
    return softmax(decision, axis=1)
