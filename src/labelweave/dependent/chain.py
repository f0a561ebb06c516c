"""A classifier chain: each label is predicted from the features and the labels before it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from joblib import Parallel, delayed
from scipy.special import expit, logit
from sklearn.utils._param_validation import HasMethods, StrOptions

from labelweave.base import MultiLabelClassifier, Pair, WeightedClassifier
from labelweave.class_weights import CLASS_WEIGHT
from labelweave.exceptions import InputError
from labelweave.known_labels import KnownLabelsMixin
from labelweave.labels import LabelMatrix
from labelweave.shallow.per_label import (
    InnerClassifierMixin,
    constant_label_probabilities,
    fit_with_weights,
    is_linear,
    probability,
    seeded_clones,
    weights_by_class,
    with_int32_indices,
    with_label_weight,
)

__all__ = ["ClassifierChain"]


class ClassifierChain(KnownLabelsMixin, InnerClassifierMixin, WeightedClassifier):
    """One scikit-learn classifier per label, linked in a chain [1]_.

    The classifier of a label sees the features and the labels that come before it in the chain:
    the true ones in training, the predicted ones at prediction. ``predict_proba(X, known=Y)``
    uses known labels instead of predicted ones.

    Parameters
    ----------
    estimator : scikit-learn classifier, optional
        Cloned for each label; ``LogisticRegression(max_iter=10_000)`` by default. For a
        classifier without `predict_proba` the sigmoid of its decision value is used.
    order : {"given", "random"} or sequence of label names or positions, default="given"
        The order of the labels in the chain.
    pass_on : {"labels", "probabilities"}, default="labels"
        What later labels see of a prediction: 1 if the probability is at least 0.5 and
        otherwise 0, as in the paper, or the probability itself.
    class_weight : "balanced" or mapping of label to number, optional
        Weights of positives, as in :mod:`labelweave.class_weights`.
    n_jobs : int, optional
        Number of labels fitted in parallel by joblib; None means one. With unknown labels they
        are fitted one after the other.
    threshold, validation_fraction, random_state
        As for every estimator: see :class:`~labelweave.base.MultiLabelClassifier`. From
        `random_state` a separate seed is drawn for each label's classifier; without one, the
        seed of `estimator` is kept.

    Attributes
    ----------
    order_ : ndarray of shape (n_labels,)
        Positions of the labels in the order of the chain.
    coef_, label_coef_, intercept_ : ndarray, or None
        Weights of the features and of the earlier labels, (n_labels, n_features) and (n_labels,
        n_labels), if all classifiers are linear. Then only the weights are kept.
    estimators_ : list of classifiers
        The classifiers, if they are not linear (None for a constant label); otherwise empty.
    constant_probabilities_ : ndarray of shape (n_labels,)
        The probability of a label that was constant in training, NaN for all others.

    Notes
    -----
    Unknown entries, on which the paper is silent: a row whose entry for a label is unknown is left
    out when that label is fitted. As an input of later labels, the unknown entry is replaced by
    the prediction of the label's classifier, which has not seen that row (see `pass_on`).

    A known label changes the predictions of the labels after it in the chain, not of those before
    it; in an :class:`~labelweave.dependent.chain_ensemble.EnsembleOfChains` every label comes
    early in some of the chains.

    scikit-learn's ``ClassifierChain`` returns the same probabilities if all labels are known and
    none is constant; it accepts neither unknown entries nor known labels at prediction.

    References
    ----------
    .. [1] J. Read, B. Pfahringer, G. Holmes and E. Frank. Classifier chains for multi-label
       classification. Machine Learning 85(3), 2011, pages 333-359.

    Examples
    --------
    >>> import numpy as np
    >>> from labelweave.dependent.chain import ClassifierChain
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> first = (X[:, 0] > 0).astype(int)
    >>> model = ClassifierChain().fit(X, np.column_stack([first, first]))
    >>> model.predict_proba([[1.0, 0.0]]).round(1)
    array([[1., 1.]])
    >>> model.predict_proba([[1.0, 0.0]], known=[[0, np.nan]]).round(1)
    array([[0. , 0.7]])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **MultiLabelClassifier._parameter_constraints,
        "estimator": [HasMethods(["fit", "predict"]), None],
        "order": [StrOptions({"given", "random"}), "array-like"],
        "pass_on": [StrOptions({"labels", "probabilities"})],
        "class_weight": CLASS_WEIGHT,
        "n_jobs": [int, None],
    }

    tuning_space: ClassVar = {
        "estimator__C": ("log", 1e-3, 1e3),
        "pass_on": ("choice", ["labels", "probabilities"]),
    }

    def __init__(
        self,
        estimator: Any = None,
        order: str | Sequence[Any] = "given",
        pass_on: str = "labels",
        class_weight: Any = None,
        n_jobs: int | None = None,
        threshold: Any = 0.5,
        validation_fraction: float = 0.2,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.order = order
        self.pass_on = pass_on
        self.class_weight = class_weight
        self.n_jobs = n_jobs
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
        sample_weight, label_weight = weights_by_class(self, Y, sample_weight)
        template = self._template()
        self.order_ = self._checked_order()
        self.constant_probabilities_ = constant_label_probabilities(Y)
        X = with_int32_indices(X)
        labels = Y.to_numpy()
        clones = seeded_clones(self, template, self.n_labels_)
        places = [p for p, j in enumerate(self.order_) if np.isnan(self.constant_probabilities_[j])]
        if Y.has_unknown:
            fitted = self._fit_one_by_one(
                X, labels.copy(), clones, places, sample_weight, label_weight
            )
        else:
            fitted = Parallel(n_jobs=self.n_jobs)(
                delayed(_fit_link)(
                    clones[p], X, labels, self.order_[: p + 1], sample_weight, label_weight
                )
                for p in places
            )
        self._keep(dict(zip(self.order_[places].tolist(), fitted, strict=True)), X)

    def _checked_order(self) -> np.ndarray:
        n_labels = self.n_labels_
        if isinstance(self.order, str):
            random = self.order == "random"
            return self._generator().permutation(n_labels) if random else np.arange(n_labels)
        position = {name: j for j, name in enumerate(self.label_names_)}
        positions = [position.get(entry, entry) for entry in self.order]
        if sorted(map(str, positions)) != sorted(map(str, range(n_labels))):
            raise InputError(f"order must contain each of the {n_labels} labels once")
        return np.array(positions, dtype=np.intp)

    def _fit_one_by_one(
        self,
        X: Any,
        labels: np.ndarray,
        clones: Any,
        places: Any,
        weight: np.ndarray | None,
        label_weight: np.ndarray | None,
    ) -> list[Any]:
        """Fit the classifiers in the order of the chain and fill in unknown entries on the way."""
        fitted = {}
        for p, j in enumerate(self.order_):
            if p in places:
                order = self.order_[: p + 1]
                fitted[p] = _fit_link(clones[p], X, labels, order, weight, label_weight)
            unknown = np.isnan(labels[:, j])
            if not unknown.any():
                continue
            if p in places:
                inputs = _with_labels(X[unknown], labels[unknown][:, self.order_[:p]])
                labels[unknown, j] = self._passed_on(probability(fitted[p], inputs))
            else:
                labels[unknown, j] = self._passed_on(self.constant_probabilities_[j])
        return [fitted[p] for p in places]

    def _keep(self, fitted: dict[int, Any], X: Any) -> None:
        self.coef_: np.ndarray | None = None
        self.label_coef_: np.ndarray | None = None
        self.intercept_: np.ndarray | None = None
        self.estimators_: list[Any] = []
        if not all(map(is_linear, fitted.values())):
            self.estimators_ = [fitted.get(j) for j in range(self.n_labels_)]
            return
        width = X.shape[1]
        self.coef_ = np.zeros((self.n_labels_, width))
        self.label_coef_ = np.zeros((self.n_labels_, self.n_labels_))
        self.intercept_ = logit(self.constant_probabilities_)
        for p, j in enumerate(self.order_.tolist()):
            if j in fitted:
                weights = fitted[j].coef_.ravel()
                self.coef_[j] = weights[:width]
                self.label_coef_[j, self.order_[:p]] = weights[width:]
                self.intercept_[j] = np.ravel(fitted[j].intercept_)[0]

    def _passed_on(self, probabilities: Any) -> Any:
        """What later labels see of these probabilities."""
        return np.float32(probabilities >= 0.5) if self.pass_on == "labels" else probabilities

    def _predict_proba(self, X: Any, known: np.ndarray | None = None) -> np.ndarray:
        X = with_int32_indices(X)
        result = np.empty((X.shape[0], self.n_labels_))
        known = np.full(result.shape, np.nan) if known is None else known.astype(np.float64)
        inputs_from_labels = np.zeros(result.shape)
        from_features = None if self.coef_ is None else X @ self.coef_.T + self.intercept_
        for p, j in enumerate(self.order_):
            if from_features is not None and self.label_coef_ is not None:
                from_labels = inputs_from_labels @ self.label_coef_[j]
                result[:, j] = expit(from_features[:, j] + from_labels)
            elif self.estimators_[j] is None:
                result[:, j] = self.constant_probabilities_[j]
            else:
                inputs = _with_labels(X, inputs_from_labels[:, self.order_[:p]])
                result[:, j] = probability(self.estimators_[j], inputs)
            predicted = self._passed_on(result[:, j])
            inputs_from_labels[:, j] = np.where(np.isnan(known[:, j]), predicted, known[:, j])
        return result


def _fit_link(
    estimator: Any,
    X: Any,
    labels: np.ndarray,
    order: np.ndarray,
    weight: np.ndarray | None,
    label_weight: np.ndarray | None,
) -> Any:
    """Fit the classifier of the last label of `order` to the rows in which it is known."""
    *before, j = order.tolist()
    known = ~np.isnan(labels[:, j])
    rows = slice(None) if known.all() else np.flatnonzero(known)
    inputs = _with_labels(X[rows], labels[rows][:, before])
    target = labels[rows, j].astype(np.int8)
    weight = None if weight is None else weight[rows]
    weight = with_label_weight(weight, label_weight, j, target)
    return fit_with_weights(estimator, inputs, target, weight)


def _with_labels(X: Any, labels: np.ndarray) -> Any:
    """Append the earlier labels to the features as columns; sparse features stay sparse."""
    if sp.issparse(X):
        return with_int32_indices(sp.hstack([X, sp.csr_array(labels.astype(X.dtype))], "csr"))
    return np.hstack([X, labels.astype(X.dtype)])
