"""Binary relevance: one classifier a label, each on its own."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from joblib import Parallel, delayed
from scipy.special import expit, logit
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.linear_model import LogisticRegression
from sklearn.linear_model._base import LinearClassifierMixin
from sklearn.utils import get_tags
from sklearn.utils._param_validation import HasMethods

from labelweave.base import MultiLabelClassifier, Pair
from labelweave.exceptions import InputError
from labelweave.labels import LabelMatrix
from labelweave.registry import register

__all__ = ["BinaryRelevance"]


@register("br", summary="binary relevance: one scikit-learn classifier a label")
class BinaryRelevance(MultiLabelClassifier):
    """One classifier of scikit-learn for each label [1]_.

    Parameters
    ----------
    estimator : scikit-learn classifier, optional
        Cloned for each label; ``LogisticRegression(max_iter=10_000)`` by default (features of
        very different sizes need so many steps; scaled ones are quicker). One without
        `predict_proba` gives ``1 / (1 + exp(-d))`` of its decision value d: the cut 0.5 is its
        own decision, but the numbers in between are no calibrated probabilities
        (:class:`labelweave.calibration.CalibratedMultiLabel` makes them so).
    n_jobs : int, optional
        Labels fitted at a time, by joblib; None means one.
    verbose : int, default=0
        Above 0 joblib prints its progress.
    threshold, validation_fraction, random_state
        As for every estimator: see :class:`~labelweave.base.MultiLabelClassifier`. From
        `random_state` each label's classifier gets a seed of its own; without one, a seed that
        `estimator` has itself is kept.

    Attributes
    ----------
    coef_, intercept_ : ndarray of shape (n_labels, n_features) and (n_labels,), or None
        The weights, where all classifiers are linear: then they are all that is kept, and all
        labels are predicted by one matrix product.
    estimators_ : list of classifiers
        The classifiers otherwise (None in the place of a constant label), else empty.
    rates_ : ndarray of shape (n_labels,)
        The probability of a label that was constant in training, NaN for all others.

    Notes
    -----
    A row whose label is unknown takes no part in fitting that label, and only that one.

    A label whose known entries are all alike (never positive, or always) has nothing to learn
    from: its probability is Laplace's (positives + 1) / (known + 2) for every row.

    References
    ----------
    .. [1] M. R. Boutell, J. Luo, X. Shen and C. M. Brown. Learning multi-label scene
       classification. Pattern Recognition 37(9), 2004, pages 1757-1771.

    Examples
    --------
    >>> import numpy as np
    >>> from labelweave.dependent.br import BinaryRelevance
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [0.0, 0.0]] * 5)
    >>> model = BinaryRelevance().fit(X, X.astype(int))
    >>> model.predict([[1, 1], [0, 1]])
    array([[1, 1],
           [0, 1]])
    """

    _seed_matters = False  # the default classifier has one solution
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **MultiLabelClassifier._parameter_constraints,
        "estimator": [HasMethods(["fit", "predict"]), None],
        "n_jobs": [int, None],
        "verbose": ["verbose"],
    }

    tuning_space: ClassVar = {"estimator__C": ("log", 1e-3, 1e3)}

    def __init__(
        self,
        estimator: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        threshold: Any = 0.5,
        validation_fraction: float = 0.2,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.threshold = threshold
        self.validation_fraction = validation_fraction
        self.random_state = random_state

    @staticmethod
    def _default_estimator() -> LogisticRegression:
        return LogisticRegression(max_iter=10_000)

    def _fit(self, X: Any, y: LabelMatrix, validation: Pair | None) -> None:
        template = self._default_estimator() if self.estimator is None else self.estimator
        _check_estimator(template)
        positives, known = y.counts()
        constant = (positives == 0) | (positives == known)
        self.rates_ = np.where(constant, (positives + 1) / (known + 2), np.nan)
        X = _with_short_indices(X)
        # Columns one after the other: a sparse matrix is never made dense as a whole.
        columns = sp.csc_array(y.values) if y.is_sparse else y.values
        learnt = np.flatnonzero(~constant).tolist()
        fitted = Parallel(n_jobs=self.n_jobs, verbose=self.verbose)(
            delayed(_fit_label)(estimator, X, *_known_rows(columns, j, y.absent))
            for j, estimator in zip(learnt, self._seeded(template, len(learnt)), strict=True)
        )
        self._keep(learnt, fitted, X)

    def _seeded(self, template: Any, number: int) -> list[Any]:
        """Clones of the classifier, each with its own seed where it takes one."""
        names = [
            name
            for name, value in template.get_params().items()
            if (name == "random_state" or name.endswith("__random_state"))
            and (value is None or self.random_state is not None)
        ]
        clones = [clone(template) for _ in range(number)]
        if names:  # one left at None would draw from NumPy's global generator
            random = self._generator()
            seeds = random.randint(np.iinfo(np.int32).max, size=(number, len(names)))
            for estimator, row in zip(clones, seeds.tolist(), strict=True):
                estimator.set_params(**dict(zip(names, row, strict=True)))
        return clones

    def _keep(self, learnt: list[int], fitted: list[Any], X: Any) -> None:
        self.coef_: np.ndarray | None = None
        self.intercept_: np.ndarray | None = None
        self.estimators_: list[Any] = []
        if all(_is_linear(estimator) for estimator in fitted):
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
        X = _with_short_indices(X)
        result = np.tile(self.rates_, (X.shape[0], 1))
        learnt = [j for j, estimator in enumerate(self.estimators_) if estimator is not None]
        found = Parallel(n_jobs=self.n_jobs, prefer="threads")(
            delayed(_probability)(self.estimators_[j], X) for j in learnt
        )
        for j, probability in zip(learnt, found, strict=True):
            result[:, j] = probability
        return result

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if isinstance(self.estimator, BaseEstimator):
            tags.input_tags.sparse = get_tags(self.estimator).input_tags.sparse
        return tags


def _check_estimator(estimator: Any) -> None:
    if isinstance(estimator, type) or not is_classifier(estimator):
        raise InputError(f"estimator must be a classifier object, not {estimator!r}")
    if not hasattr(estimator, "predict_proba") and not hasattr(estimator, "decision_function"):
        raise InputError(
            f"{type(estimator).__name__} has neither predict_proba nor decision_function, so it "
            "gives no probabilities"
        )


def _with_short_indices(X: Any) -> Any:
    """Sparse features with 32-bit indices where they fit: many classifiers take no others."""
    if not sp.issparse(X) or X.indices.dtype == np.int32:
        return X
    if max(X.nnz, *X.shape) > np.iinfo(np.int32).max:
        return X
    indices, indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return type(X)((X.data, indices, indptr), shape=X.shape)


def _known_rows(columns: Any, j: int, absent: float) -> tuple[np.ndarray, np.ndarray | None]:
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


def _is_linear(estimator: Any) -> bool:
    """Whether the sigmoid of the linear decision value is what the classifier would give."""
    if type(estimator) is LogisticRegression:
        return True
    return isinstance(estimator, LinearClassifierMixin) and not hasattr(estimator, "predict_proba")


def _probability(estimator: Any, X: Any) -> np.ndarray:
    if hasattr(estimator, "predict_proba"):
        return estimator.predict_proba(X)[:, 1]
    return expit(estimator.decision_function(X))
