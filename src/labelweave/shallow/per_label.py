"""Methods built on one scikit-learn classifier per label."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
import scipy.sparse as sp
from joblib import Parallel, delayed
from scipy.special import expit, logit
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.linear_model import LogisticRegression
from sklearn.linear_model._base import LinearClassifierMixin
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

from labelweave.base import MultiLabelClassifier, Pair, WeightedClassifier
from labelweave.capabilities import capabilities
from labelweave.class_weights import class_weights
from labelweave.exceptions import InputError
from labelweave.labels import LabelMatrix


class PerLabelClassifier(WeightedClassifier):
    """Base class of methods that fit one scikit-learn classifier to each label.

    A method implements ``_template()``, which returns the classifier that is cloned for each label,
    and has the parameters `class_weight`, `n_jobs` and `verbose`. The classifier of a label is
    fitted to the rows in which the label is known; a constant label gets Laplace's estimate of its
    probability.
    """

    @abstractmethod
    def _template(self) -> Any:
        """Return the unfitted classifier that is cloned for each label."""

    def _fit(
        self,
        X: Any,
        y: LabelMatrix,
        validation: Pair | None,
        sample_weight: np.ndarray | None = None,
    ) -> None:
        sample_weight, label_weight = weights_by_class(self, y, sample_weight)
        template = self._template()
        self.constant_probabilities_ = constant_label_probabilities(y)
        X = with_int32_indices(X)
        # Column by column: a sparse matrix is never made dense as a whole.
        columns = sp.csc_array(y.values) if y.is_sparse else y.values
        learnt = np.flatnonzero(np.isnan(self.constant_probabilities_)).tolist()
        clones = seeded_clones(self, template, len(learnt))

        def of_label(j: int) -> tuple[np.ndarray, np.ndarray | None, np.ndarray | None]:
            target, rows = known_rows(columns, j, y.absent)
            weight = sample_weight
            if weight is not None and rows is not None:
                weight = weight[rows]
            return target, rows, with_label_weight(weight, label_weight, j, target)

        fitted = Parallel(n_jobs=self.n_jobs, verbose=self.verbose)(
            delayed(_fit_label)(estimator, X, *of_label(j))
            for j, estimator in zip(learnt, clones, strict=True)
        )
        self._keep(learnt, fitted, X)

    def _keep(self, learnt: list[int], fitted: list[Any], X: Any) -> None:
        self.coef_: np.ndarray | None = None
        self.intercept_: np.ndarray | None = None
        self.estimators_: list[Any] = []
        if all(is_linear(estimator) for estimator in fitted):
            dtype = fitted[0].coef_.dtype if fitted else X.dtype
            self.coef_ = np.zeros((self.n_labels_, X.shape[1]), dtype=dtype)
            self.intercept_ = logit(self.constant_probabilities_).astype(dtype)
            for j, estimator in zip(learnt, fitted, strict=True):
                self.coef_[j] = estimator.coef_.ravel()
                self.intercept_[j] = np.ravel(estimator.intercept_)[0]
        else:
            self.estimators_ = [None] * self.n_labels_
            for j, estimator in zip(learnt, fitted, strict=True):
                self.estimators_[j] = estimator

    def _predict_proba(self, X: Any) -> np.ndarray:
        if self.coef_ is not None:
            return expit(X @ self.coef_.T + self.intercept_)
        X = with_int32_indices(X)
        result = np.tile(self.constant_probabilities_, (X.shape[0], 1))
        learnt = [j for j, estimator in enumerate(self.estimators_) if estimator is not None]
        predicted = Parallel(n_jobs=self.n_jobs, prefer="threads")(
            delayed(probability)(self.estimators_[j], X) for j in learnt
        )
        for j, column in zip(learnt, predicted, strict=True):
            result[:, j] = column
        return result


class InnerClassifierMixin(MultiLabelClassifier):
    """Mixin of methods with a parameter `estimator`, a scikit-learn classifier that is cloned."""

    def default_part(self, parameter: str) -> Any:
        """Return the classifier that None stands for."""
        return LogisticRegression(max_iter=10_000) if parameter == "estimator" else None

    def _template(self) -> Any:
        """Return the parameter `estimator`, or the default classifier."""
        template = self.default_part("estimator") if self.estimator is None else self.estimator
        check_classifier(template)
        return template

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if isinstance(self.estimator, BaseEstimator):
            tags.input_tags.sparse = get_tags(self.estimator).input_tags.sparse
            if not has_fit_parameter(self.estimator, "sample_weight"):
                tags.capabilities.sample_weight = False
        return tags


def weights_by_class(
    model: Any, Y: LabelMatrix, sample_weight: np.ndarray | None
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Weights of rows and of labels by the model's parameter `class_weight`.

    They are those of :func:`labelweave.class_weights.class_weights`.
    """
    if model.class_weight is not None and not capabilities(model).sample_weight:
        raise InputError(
            f"class_weight needs an estimator whose fit takes sample_weight, which "
            f"{type(model.estimator).__name__} does not"
        )
    classes = model.classes_ if model._single_label else None
    return class_weights(model.class_weight, Y, sample_weight, classes)


def with_label_weight(
    weight: np.ndarray | None, label_weight: np.ndarray | None, label: int, target: np.ndarray
) -> np.ndarray | None:
    """Weights of the rows of one label, whose 0 and 1 are `target`."""
    if label_weight is None:
        return weight
    return label_weight[label][target] * (1.0 if weight is None else weight)


def check_classifier(estimator: Any) -> None:
    """Raise unless this is a classifier object that computes scores."""
    if isinstance(estimator, type) or not is_classifier(estimator):
        raise InputError(f"estimator must be a classifier object, not {estimator!r}")
    if not hasattr(estimator, "predict_proba") and not hasattr(estimator, "decision_function"):
        raise InputError(
            f"{type(estimator).__name__} has neither predict_proba nor decision_function, so it "
            "computes no probabilities"
        )


def seeded_clones(model: MultiLabelClassifier, template: Any, number: int) -> list[Any]:
    """Clone a classifier, each clone with a seed of its own if the classifier has one.

    Seeds are drawn from the model's `random_state`; without one, a seed that is set on the
    classifier is kept.
    """
    names = [
        name
        for name, value in template.get_params().items()
        if (name == "random_state" or name.endswith("__random_state"))
        and (value is None or model.random_state is not None)
    ]
    clones = [clone(template) for _ in range(number)]
    if names:  # a seed of None would use NumPy's global generator
        random = model._generator()
        seeds = random.randint(np.iinfo(np.int32).max, size=(number, len(names)))
        for estimator, row in zip(clones, seeds.tolist(), strict=True):
            estimator.set_params(**dict(zip(names, row, strict=True)))
    return clones


def constant_label_probabilities(Y: LabelMatrix) -> np.ndarray:
    """Return (positives + 1) / (known + 2) for labels with one state only, NaN for the others.

    >>> from labelweave.labels import as_labels
    >>> constant_label_probabilities(as_labels([[0, 1], [0, 0]]))
    array([0.25,  nan])
    """
    positives, known = Y.counts()
    constant = (positives == 0) | (positives == known)
    return np.where(constant, (positives + 1) / (known + 2), np.nan)


def with_int32_indices(X: Any) -> Any:
    """Return sparse features with 32-bit indices if possible: many classifiers need them."""
    if not sp.issparse(X) or X.indices.dtype == np.int32:
        return X
    if max(X.nnz, *X.shape) > np.iinfo(np.int32).max:
        return X
    indices, indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return type(X)((X.data, indices, indptr), shape=X.shape)


def known_rows(columns: Any, j: int, absent: float) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the known entries of a label and their rows (None: all rows)."""
    if sp.issparse(columns):
        stored = slice(columns.indptr[j], columns.indptr[j + 1])
        values = np.full(columns.shape[0], absent, dtype=np.float32)
        values[columns.indices[stored]] = columns.data[stored]
    else:
        values = columns[:, j]
    known = ~np.isnan(values)
    rows = None if known.all() else np.flatnonzero(known)
    return values[known].astype(np.int8), rows


def _fit_label(
    estimator: Any,
    X: Any,
    target: np.ndarray,
    rows: np.ndarray | None,
    weight: np.ndarray | None,
) -> Any:
    return fit_with_weights(estimator, X if rows is None else X[rows], target, weight)


def fit_with_weights(estimator: Any, X: Any, target: np.ndarray, weight: np.ndarray | None) -> Any:
    """Fit a classifier, with the weights of the rows where there are any."""
    return estimator.fit(X, target, **({} if weight is None else {"sample_weight": weight}))


def is_linear(estimator: Any) -> bool:
    """Whether the classifier's probability is the sigmoid of its linear decision value."""
    if type(estimator) is LogisticRegression:
        return True
    return isinstance(estimator, LinearClassifierMixin) and not hasattr(estimator, "predict_proba")


def probability(estimator: Any, X: Any) -> np.ndarray:
    """Return P(1 | x) of a fitted binary classifier, or the sigmoid of its decision value."""
    if hasattr(estimator, "predict_proba"):
        return estimator.predict_proba(X)[:, 1]
    return expit(estimator.decision_function(X))
