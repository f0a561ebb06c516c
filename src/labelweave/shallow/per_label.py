"""One classifier of scikit-learn a label: what methods built on them share."""

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

from labelweave.base import MultiLabelClassifier, Pair
from labelweave.exceptions import InputError
from labelweave.labels import LabelMatrix

__all__ = [
    "NestsClassifier",
    "OnePerLabel",
    "check_classifier",
    "constant_rates",
    "is_linear",
    "known_rows",
    "probability",
    "seeded_clones",
    "with_short_indices",
]


class OnePerLabel(MultiLabelClassifier):
    """Base of methods that fit one classifier of scikit-learn to each label by itself.

    A method writes ``_template()``, the classifier that is cloned for each label, and has the
    parameters `n_jobs` and `verbose`. A row whose label is unknown takes no part in fitting that
    label; a constant label gets Laplace's rate.
    """

    @abstractmethod
    def _template(self) -> Any:
        """The unfitted classifier of a label."""

    def _fit(self, X: Any, y: LabelMatrix, validation: Pair | None) -> None:
        template = self._template()
        self.rates_ = constant_rates(y)
        X = with_short_indices(X)
        # Columns one after the other: a sparse matrix is never made dense as a whole.
        columns = sp.csc_array(y.values) if y.is_sparse else y.values
        learnt = np.flatnonzero(np.isnan(self.rates_)).tolist()
        clones = seeded_clones(self, template, len(learnt))
        fitted = Parallel(n_jobs=self.n_jobs, verbose=self.verbose)(
            delayed(_fit_label)(estimator, X, *known_rows(columns, j, y.absent))
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
            self.intercept_ = logit(self.rates_).astype(dtype)
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
        X = with_short_indices(X)
        result = np.tile(self.rates_, (X.shape[0], 1))
        learnt = [j for j, estimator in enumerate(self.estimators_) if estimator is not None]
        found = Parallel(n_jobs=self.n_jobs, prefer="threads")(
            delayed(probability)(self.estimators_[j], X) for j in learnt
        )
        for j, column in zip(learnt, found, strict=True):
            result[:, j] = column
        return result


class NestsClassifier(MultiLabelClassifier):
    """Mixin of methods with a parameter `estimator`, a classifier of scikit-learn to be cloned."""

    @staticmethod
    def _default_estimator() -> LogisticRegression:
        return LogisticRegression(max_iter=10_000)

    def _template(self) -> Any:
        """The classifier asked for, or the default one."""
        template = self._default_estimator() if self.estimator is None else self.estimator
        check_classifier(template)
        return template

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if isinstance(self.estimator, BaseEstimator):
            tags.input_tags.sparse = get_tags(self.estimator).input_tags.sparse
        return tags


def check_classifier(estimator: Any) -> None:
    """Refuse what is no classifier object, or one that gives no scores."""
    if isinstance(estimator, type) or not is_classifier(estimator):
        raise InputError(f"estimator must be a classifier object, not {estimator!r}")
    if not hasattr(estimator, "predict_proba") and not hasattr(estimator, "decision_function"):
        raise InputError(
            f"{type(estimator).__name__} has neither predict_proba nor decision_function, so it "
            "gives no probabilities"
        )


def seeded_clones(model: MultiLabelClassifier, template: Any, number: int) -> list[Any]:
    """Clones of a classifier, each with a seed of its own where it takes one.

    The seeds come from the model's `random_state`; without one, a seed that the classifier has
    itself is kept.
    """
    names = [
        name
        for name, value in template.get_params().items()
        if (name == "random_state" or name.endswith("__random_state"))
        and (value is None or model.random_state is not None)
    ]
    clones = [clone(template) for _ in range(number)]
    if names:  # one left at None would draw from NumPy's global generator
        random = model._generator()
        seeds = random.randint(np.iinfo(np.int32).max, size=(number, len(names)))
        for estimator, row in zip(clones, seeds.tolist(), strict=True):
            estimator.set_params(**dict(zip(names, row, strict=True)))
    return clones


def constant_rates(Y: LabelMatrix) -> np.ndarray:
    """Laplace's (positives + 1) / (known + 2) of labels with one state only, NaN of the others.

    >>> from labelweave.labels import as_labels
    >>> constant_rates(as_labels([[0, 1], [0, 0]]))
    array([0.25,  nan])
    """
    positives, known = Y.counts()
    constant = (positives == 0) | (positives == known)
    return np.where(constant, (positives + 1) / (known + 2), np.nan)


def with_short_indices(X: Any) -> Any:
    """Sparse features with 32-bit indices where they fit: many classifiers take no others."""
    if not sp.issparse(X) or X.indices.dtype == np.int32:
        return X
    if max(X.nnz, *X.shape) > np.iinfo(np.int32).max:
        return X
    indices, indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return type(X)((X.data, indices, indptr), shape=X.shape)


def known_rows(columns: Any, j: int, absent: float) -> tuple[np.ndarray, np.ndarray | None]:
    """The known entries of a label and the rows that they stand in (None: all rows)."""
    if sp.issparse(columns):
        stored = slice(columns.indptr[j], columns.indptr[j + 1])
        values = np.full(columns.shape[0], absent, dtype=np.float32)
        values[columns.indices[stored]] = columns.data[stored]
    else:
        values = columns[:, j]
    known = ~np.isnan(values)
    rows = None if known.all() else np.flatnonzero(known)
    return values[known].astype(np.int8), rows


def _fit_label(estimator: Any, X: Any, target: np.ndarray, rows: np.ndarray | None) -> Any:
    return estimator.fit(X if rows is None else X[rows], target)


def is_linear(estimator: Any) -> bool:
    """Whether the sigmoid of the linear decision value is what the classifier would give."""
    if type(estimator) is LogisticRegression:
        return True
    return isinstance(estimator, LinearClassifierMixin) and not hasattr(estimator, "predict_proba")


def probability(estimator: Any, X: Any) -> np.ndarray:
    """P(1 | x) of a fitted binary classifier, or the sigmoid of its decision value."""
    if hasattr(estimator, "predict_proba"):
        return estimator.predict_proba(X)[:, 1]
    return expit(estimator.decision_function(X))
