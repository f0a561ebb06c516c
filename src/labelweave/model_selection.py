"""Cross-validation for labels that may be unknown: splitters, scorers, out-of-fold scores.

They fit into scikit-learn's own tools (`GridSearchCV`, `cross_validate`, `learning_curve`)::

    search = GridSearchCV(model, grid, cv=MultiLabelKFold(5), scoring=make_scorer("f1_example"))
    search.fit(X, Y)

where `Y` is an array with NaN for unknown, a SciPy sparse matrix, a DataFrame or a
:class:`~labelweave.labels.LabelMatrix`. Two of scikit-learn's defaults cannot be used with
unknown labels: ``cv=5`` and scorers by name (``scoring="f1_micro"``) reject NaN in `Y`, and
`cross_val_predict` breaks on it; :class:`MultiLabelKFold`, :func:`make_scorer` and
:func:`cross_val_predict_proba` replace them. Pass lists of label names through
:func:`labelweave.labels.as_labels` first, so that all folds have the same labels, and sparse
labels too for `cross_validate`, which does not accept a SciPy matrix as `y`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import scipy.sparse as sp
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.model_selection import BaseCrossValidator
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_consistent_length

from labelweave.data.splits import (
    as_generator,
    rows_to_keep,
    stratified_folds,
    stratified_holdout,
)
from labelweave.exceptions import InputError
from labelweave.labels import LabelMatrix, as_labels, is_named
from labelweave.tables.table import rows_for

if TYPE_CHECKING:
    from labelweave.metrics import Metric

__all__ = [
    "MultiLabelKFold",
    "MultiLabelScorer",
    "MultiLabelShuffleSplit",
    "cross_val_predict_proba",
    "label_probabilities",
    "make_scorer",
]

Split = tuple[np.ndarray, np.ndarray]


class _StratifiedSplitter(BaseCrossValidator):
    """Base class of the two splitters: checks `y` and requests groups."""

    # For scikit-learn's metadata routing: groups are used if they are passed.
    __metadata_request__split: ClassVar[dict[str, bool]] = {"groups": True}

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[Split]:
        """Yield the row numbers of the training and test part of each split.

        Parameters
        ----------
        X : features with one row per sample
            Rows that are equal are never in both parts.
        y : labels of the rows
            Unknown entries are ignored.
        groups : sequence, optional
            Rows of one group are never in both parts.
        """
        if y is None:
            raise InputError(f"{type(self).__name__} splits by the labels: pass y")
        labels = as_labels(y)
        check_consistent_length(X, labels, groups)
        together = rows_to_keep(X, groups, len(labels), n_parts=self._n_parts())
        return self._splits(labels, together, as_generator(self.random_state))

    def _n_parts(self) -> int:
        """Number of parts that the rows are divided into at a time."""
        return 2

    def _splits(
        self, labels: LabelMatrix, groups: Any, rng: np.random.Generator
    ) -> Iterator[Split]:
        raise NotImplementedError


class MultiLabelKFold(_StratifiedSplitter):
    """K folds with the same share of every label, once or repeatedly.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds.
    n_repeats : int, default=1
        How often the rows are divided into new folds.
    balance : {"positives", "known"}, default="positives"
        See :func:`labelweave.data.splits.stratified_folds`.
    random_state : None, int, RandomState or Generator

    Examples
    --------
    >>> import numpy as np
    >>> X, Y = np.arange(4), np.array([[1, 0], [1, np.nan], [0, 1], [0, 1]])
    >>> for train, test in MultiLabelKFold(2, random_state=0).split(X, Y):
    ...     print(np.nansum(Y[test], axis=0))
    [1. 1.]
    [1. 1.]
    """

    def __init__(
        self,
        n_splits: int = 5,
        *,
        n_repeats: int = 1,
        balance: str = "positives",
        random_state: Any = None,
    ) -> None:
        self.n_splits = n_splits
        self.n_repeats = n_repeats
        self.balance = balance
        self.random_state = random_state

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Number of splits that `split` yields."""
        return self.n_splits * self.n_repeats

    def _n_parts(self) -> int:
        return self.n_splits

    def _splits(
        self, labels: LabelMatrix, groups: Any, rng: np.random.Generator
    ) -> Iterator[Split]:
        for _ in range(self.n_repeats):
            fold = stratified_folds(
                labels, self.n_splits, groups=groups, balance=self.balance, random_state=rng
            )
            for number in range(self.n_splits):
                yield np.flatnonzero(fold != number), np.flatnonzero(fold == number)


class MultiLabelShuffleSplit(_StratifiedSplitter):
    """Independent random splits into two parts with the same share of every label.

    Parameters
    ----------
    n_splits : int, default=10
    test_size : float in (0, 1) or int, default=0.2
        Share or number of rows of the test part.
    balance : {"positives", "known"}, default="positives"
        See :func:`labelweave.data.splits.stratified_folds`.
    random_state : None, int, RandomState or Generator

    Examples
    --------
    >>> import numpy as np
    >>> X, Y = np.arange(10), np.eye(2)[[0, 1] * 5]
    >>> splitter = MultiLabelShuffleSplit(3, test_size=0.4, random_state=0)
    >>> [Y[test].sum(axis=0).tolist() for train, test in splitter.split(X, Y)]
    [[2.0, 2.0], [2.0, 2.0], [2.0, 2.0]]
    """

    def __init__(
        self,
        n_splits: int = 10,
        *,
        test_size: float = 0.2,
        balance: str = "positives",
        random_state: Any = None,
    ) -> None:
        self.n_splits = n_splits
        self.test_size = test_size
        self.balance = balance
        self.random_state = random_state

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Number of splits that `split` yields."""
        return self.n_splits

    def _splits(
        self, labels: LabelMatrix, groups: Any, rng: np.random.Generator
    ) -> Iterator[Split]:
        for _ in range(self.n_splits):
            yield stratified_holdout(
                labels, self.test_size, groups=groups, balance=self.balance, random_state=rng
            )


class MultiLabelScorer:
    """A callable ``scorer(estimator, X, y)`` for scikit-learn; see :func:`make_scorer`."""

    def __init__(self, metrics: Sequence[Metric], *, single: bool) -> None:
        self.metrics = tuple(metrics)
        self.single = single

    def __call__(
        self, estimator: Any, X: Any, y: Any, sample_weight: Any = None
    ) -> float | dict[str, float]:
        labels = _labels_in_model_order(estimator, y)
        needs = {metric.needs for metric in self.metrics}
        predictions: dict[str, Any] = {}
        if "score" in needs:
            predictions["Y_score"] = label_probabilities(estimator, X)
        if "pred" in needs:
            predictions["Y_pred"] = estimator.predict(X)
        if sample_weight is not None:
            predictions["sample_weight"] = sample_weight
        scores = {_key(m): m.sign * m(labels, **predictions) for m in self.metrics}
        return next(iter(scores.values())) if self.single else scores

    def __repr__(self) -> str:
        return f"MultiLabelScorer({', '.join(_key(metric) for metric in self.metrics)})"


def make_scorer(metric: str | Sequence[str], **parameters: Any) -> MultiLabelScorer:
    """Make a scorer for `GridSearchCV`, `cross_validate` and the like that accepts unknown labels.

    Parameters
    ----------
    metric : str or sequence of str
        Names of metrics (see :data:`labelweave.metrics.METRICS`). With one name the scorer returns
        a number; with several it returns a number per metric, from one prediction.
    **parameters
        Passed to the metric functions.

    Returns
    -------
    MultiLabelScorer
        Greater is always better: a loss is negated and, among several, named ``neg_...``.

    Examples
    --------
    >>> make_scorer("f1_example")
    MultiLabelScorer(f1_example)
    >>> make_scorer(["map", "hamming_loss"])
    MultiLabelScorer(map, neg_hamming_loss)
    """
    from labelweave.metrics import get_metric

    names = [metric] if isinstance(metric, str) else list(metric)
    if not names:
        raise InputError("a scorer needs at least one metric")
    metrics = [get_metric(name, **parameters) for name in names]
    return MultiLabelScorer(metrics, single=isinstance(metric, str))


def _key(metric: Metric) -> str:
    return metric.name if metric.greater_is_better else f"neg_{metric.name}"


def _labels_in_model_order(estimator: Any, y: Any) -> LabelMatrix:
    """Return the labels in the order of the model's, if both have names."""
    names = getattr(estimator, "label_names_", None)
    if names is None:
        return as_labels(y)
    if not is_named(y):
        return as_labels(y, names=tuple(names))
    labels = as_labels(y)
    return labels if labels.names == tuple(names) else labels.select(names)


def label_probabilities(model: Any, X: Any) -> np.ndarray:
    """Return P(label | x) as one (n, L) array, whatever the shape that the model returns.

    Multi-output classifiers of scikit-learn return a list with an array of shape
    (n, n_classes) for each label, with a single column for a label that was always (or never)
    positive in training. Without `predict_proba` the model's `decision_function` is used.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> X, Y = np.array([[0.0], [1.0]]), np.array([[0, 1], [1, 1]])
    >>> label_probabilities(KNeighborsClassifier(1).fit(X, Y), X)
    array([[0., 1.],
           [1., 1.]])
    """
    X = rows_for(model, X)
    if hasattr(model, "predict_proba"):
        scores = model.predict_proba(X)
    elif hasattr(model, "decision_function"):
        scores = model.decision_function(X)
    else:
        raise InputError(
            f"{type(model).__name__} has neither predict_proba nor decision_function: "
            "it cannot rank labels"
        )
    if not isinstance(scores, list):
        return scores.toarray() if sp.issparse(scores) else np.asarray(scores)
    columns = [_probability_of_one(*pair) for pair in zip(model.classes_, scores, strict=True)]
    return np.column_stack(columns)


def _probability_of_one(classes: Any, probabilities: np.ndarray) -> np.ndarray:
    column = np.flatnonzero(np.asarray(classes) == 1)
    if len(column) == 0:
        return np.zeros(len(probabilities))
    return probabilities[:, column[0]]


def cross_val_predict_proba(
    model: Any,
    X: Any,
    Y: Any,
    *,
    cv: int | BaseCrossValidator | Iterable[Split] = 5,
    groups: Sequence[Any] | None = None,
    n_jobs: int | None = None,
    random_state: Any = 0,
    verbose: int = 0,
) -> np.ndarray:
    """Compute out-of-fold probabilities: each row's come from models not trained on it.

    Parameters
    ----------
    model : estimator with `predict_proba`
        Of this library, or of scikit-learn (then without unknown labels). It is cloned.
    X : array-like, SciPy sparse, DataFrame or sequence of texts
    Y : labels of the rows, in any form that the model accepts
    cv : int, splitter or iterable of (train, test) row numbers, default=5
        A number means :class:`MultiLabelKFold`. A row in several test parts gets the mean; a row
        in none raises an error.
    groups : sequence, optional
        Rows of one group are never in training and test together.
    n_jobs : int, optional
        Number of folds that joblib runs in parallel.
    random_state : None, int, RandomState or Generator, default=0
        Seed of the folds where `cv` is a number.
    verbose : int, default=0
        1 draws a progress bar.

    Returns
    -------
    ndarray of shape (n_rows, n_labels)

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> X = np.linspace(0, 1, 20)[:, None]
    >>> Y = np.hstack([X > 0.5, X < 0.5]).astype(int)
    >>> cross_val_predict_proba(KNeighborsClassifier(1), X, Y, cv=2)[[0, -1]]
    array([[0., 1.],
           [1., 0.]])
    """
    from labelweave.progress import track

    labels = as_labels(Y)
    if getattr(Y, "ndim", 0) != 2:  # lists of names: every fold must know all of them
        Y = labels
    check_consistent_length(X, labels, groups)
    splitter: Any = cv
    if isinstance(cv, Integral):
        splitter = MultiLabelKFold(int(cv), random_state=random_state)
    splits = list(splitter.split(X, labels, groups) if hasattr(splitter, "split") else splitter)
    n_tested = np.zeros(len(labels))
    for _, test in splits:
        np.add.at(n_tested, test, 1)
    if not n_tested.all():
        raise InputError(f"row {int(n_tested.argmin())} is in no test part: cv must test every row")
    total = np.zeros(labels.shape)
    folds = Parallel(n_jobs=n_jobs, return_as="generator")(
        delayed(_fit_and_predict)(clone(model), X, Y, train, test) for train, test in splits
    )
    for (_, test), probabilities in zip(
        track(splits, "cross-validation", verbose=verbose), folds, strict=True
    ):
        total[test] += probabilities
    return total / n_tested[:, None]


def _fit_and_predict(model: Any, X: Any, Y: Any, train: np.ndarray, test: np.ndarray) -> np.ndarray:
    X = rows_for(model, X)
    model.fit(_safe_indexing(X, train), _safe_indexing(Y, train))
    return label_probabilities(model, _safe_indexing(X, test))
