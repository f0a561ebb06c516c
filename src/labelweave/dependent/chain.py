"""A classifier chain: each label is predicted from the features and the labels before it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from joblib import Parallel, delayed
from scipy.special import expit, logit
from sklearn.utils._param_validation import HasMethods, StrOptions

from labelweave.base import MultiLabelClassifier, Pair
from labelweave.exceptions import InputError
from labelweave.known_labels import KnownLabelsMixin
from labelweave.labels import LabelMatrix
from labelweave.shallow.per_label import (
    InnerClassifierMixin,
    constant_label_probabilities,
    is_linear,
    probability,
    seeded_clones,
    with_int32_indices,
)

__all__ = ["ClassifierChain"]


class ClassifierChain(KnownLabelsMixin, InnerClassifierMixin):
    """One classifier of scikit-learn a label, in a chain [1]_.

    The classifier of a label is given the features and the labels that come before it in the
    chain: the true ones in training, the predicted ones after it. ``predict_proba(X, known=Y)``
    puts labels that are known in the place of predicted ones.

    Parameters
    ----------
    estimator : scikit-learn classifier, optional
        Cloned for each label; ``LogisticRegression(max_iter=10_000)`` by default. One without
        `predict_proba` gives the sigmoid of its decision value.
    order : {"given", "random"} or sequence of label names or positions, default="given"
        The order of the labels in the chain.
    pass_on : {"labels", "probabilities"}, default="labels"
        What a prediction hands on to later labels: 1 where the probability is 0.5 or more and
        else 0, as in the paper, or the probability itself.
    n_jobs : int, optional
        Labels fitted at a time, by joblib; None means one. With unknown labels they are fitted
        one after the other.
    threshold, validation_fraction, random_state
        As for every estimator: see :class:`~labelweave.base.MultiLabelClassifier`. From
        `random_state` each label's classifier gets a seed of its own; without one, a seed that
        `estimator` has itself is kept.

    Attributes
    ----------
    order_ : ndarray of shape (n_labels,)
        Positions of the labels, first of the chain first.
    coef_, label_coef_, intercept_ : ndarray, or None
        Weights of the features and of the earlier labels, (n_labels, n_features) and (n_labels,
        n_labels), where all classifiers are linear: then they are all that is kept.
    estimators_ : list of classifiers
        The classifiers otherwise (None in the place of a constant label), else empty.
    constant_probabilities_ : ndarray of shape (n_labels,)
        The probability of a label that was constant in training, NaN for all others.

    Notes
    -----
    Unknown entries, on which the paper is silent: a row whose label is unknown takes no part in
    fitting that label. As an input of later labels an unknown entry is what the label's own
    classifier, which has not seen that row, predicts for it (handed on as by `pass_on`).

    A known label speaks for the labels after it in the chain, not for those before it; in an
    :class:`~labelweave.dependent.chain_ensemble.EnsembleOfChains` it comes early in some chains.

    scikit-learn's own ``ClassifierChain`` gives the same where all labels are known and none is
    constant; it takes neither unknown entries nor known labels at prediction.

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
        n_jobs: int | None = None,
        threshold: Any = 0.5,
        validation_fraction: float = 0.2,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.order = order
        self.pass_on = pass_on
        self.n_jobs = n_jobs
        self.threshold = threshold
        self.validation_fraction = validation_fraction
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.capabilities.randomized = False  # the default classifier has one solution
        return tags

    def _fit(self, X: Any, Y: LabelMatrix, validation: Pair | None) -> None:
        template = self._template()
        self.order_ = self._checked_order()
        self.constant_probabilities_ = constant_label_probabilities(Y)
        X = with_int32_indices(X)
        labels = Y.to_numpy()
        clones = seeded_clones(self, template, self.n_labels_)
        places = [p for p, j in enumerate(self.order_) if np.isnan(self.constant_probabilities_[j])]
        if Y.has_unknown:
            fitted = self._fit_one_by_one(X, labels.copy(), clones, places)
        else:
            fitted = Parallel(n_jobs=self.n_jobs)(
                delayed(_fit_link)(clones[p], X, labels, self.order_[: p + 1]) for p in places
            )
        self._keep(dict(zip(self.order_[places].tolist(), fitted, strict=True)), X)

    def _checked_order(self) -> np.ndarray:
        n_labels = self.n_labels_
        if isinstance(self.order, str):
            random = self.order == "random"
            return self._generator().permutation(n_labels) if random else np.arange(n_labels)
        position = {name: j for j, name in enumerate(self.label_names_)}
        found = [position.get(entry, entry) for entry in self.order]
        if sorted(map(str, found)) != sorted(map(str, range(n_labels))):
            raise InputError(f"order must hold each of the {n_labels} labels once")
        return np.array(found, dtype=np.intp)

    def _fit_one_by_one(self, X: Any, labels: np.ndarray, clones: Any, places: Any) -> list[Any]:
        """Links in the order of the chain; what is unknown is filled in behind them."""
        fitted = {}
        for p, j in enumerate(self.order_):
            if p in places:
                fitted[p] = _fit_link(clones[p], X, labels, self.order_[: p + 1])
            blank = np.isnan(labels[:, j])
            if not blank.any():
                continue
            if p in places:
                inputs = _with_labels(X[blank], labels[blank][:, self.order_[:p]])
                labels[blank, j] = self._handed_on(probability(fitted[p], inputs))
            else:
                labels[blank, j] = self._handed_on(self.constant_probabilities_[j])
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

    def _handed_on(self, found: Any) -> Any:
        return np.float32(found >= 0.5) if self.pass_on == "labels" else found

    def _predict_proba(self, X: Any, known: np.ndarray | None = None) -> np.ndarray:
        X = with_int32_indices(X)
        result = np.empty((X.shape[0], self.n_labels_))
        given = np.full(result.shape, np.nan) if known is None else known.astype(np.float64)
        passed = np.zeros(result.shape)
        alone = None if self.coef_ is None else X @ self.coef_.T + self.intercept_
        for p, j in enumerate(self.order_):
            if alone is not None and self.label_coef_ is not None:
                result[:, j] = expit(alone[:, j] + passed @ self.label_coef_[j])
            elif self.estimators_[j] is None:
                result[:, j] = self.constant_probabilities_[j]
            else:
                inputs = _with_labels(X, passed[:, self.order_[:p]])
                result[:, j] = probability(self.estimators_[j], inputs)
            found = self._handed_on(result[:, j])
            passed[:, j] = np.where(np.isnan(given[:, j]), found, given[:, j])
        return result


def _fit_link(estimator: Any, X: Any, labels: np.ndarray, order: np.ndarray) -> Any:
    """The classifier of the last label of `order`, on the rows in which that one is known."""
    *before, j = order.tolist()
    known = ~np.isnan(labels[:, j])
    rows = slice(None) if known.all() else np.flatnonzero(known)
    inputs = _with_labels(X[rows], labels[rows][:, before])
    return estimator.fit(inputs, labels[rows, j].astype(np.int8))


def _with_labels(X: Any, labels: np.ndarray) -> Any:
    """Features with columns for the earlier labels at their end; sparse stays sparse."""
    if sp.issparse(X):
        return with_int32_indices(sp.hstack([X, sp.csr_array(labels.astype(X.dtype))], "csr"))
    return np.hstack([X, labels.astype(X.dtype)])
