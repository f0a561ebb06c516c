"""Threshold rules: they turn scores into label sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from scipy.special import expit
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from labelweave.exceptions import InputError
from labelweave.labels import LabelMatrix, as_labels
from labelweave.probabilities import log_odds
from labelweave.thresholds.sparse_scores import (
    best_of_rows,
    chosen_entries,
    dense_scores,
    tune_on_sparse,
)
from labelweave.thresholds.threshold_search import (
    at_least,
    candidate_thresholds,
    evaluate_at_thresholds,
    pick_threshold,
    threshold_between,
)

_EPS = 1e-12  # thresholds of 0 and 1 have no finite log odds


class Threshold(BaseEstimator):
    """Base class of the rules that turn scores into label sets.

    A subclass has a `kind` (its name in saved models), declares by `needs_validation` whether it
    has to be fitted, and implements `apply` and, if there is anything to fit, `_fit`. It is listed
    in `RULES` at the end of this module.
    """

    kind: ClassVar[str]
    needs_validation: ClassVar[bool] = False
    takes_sparse_scores: ClassVar[bool] = False
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {}

    @property
    def needs_labels(self) -> bool:
        """Whether `fit` uses the labels."""
        return self.needs_validation

    @property
    def applied_threshold(self) -> Any:
        """The threshold of all labels, or an array of one per label; None for other rules."""
        return None

    def fit(self, Y_true: Any, Y_score: Any) -> Self:
        """Fit the rule to validation rows.

        Parameters
        ----------
        Y_true : labels of shape (n, L)
            1 / 0 / NaN (unknown), in any form that :func:`~labelweave.labels.as_labels` reads.
        Y_score : array-like or SciPy sparse of shape (n, L)
            A sparse matrix holds the best labels of each row.
        """
        from labelweave.metrics._inputs import check_score

        self._validate_params()
        labels, scores = check_score(as_labels(Y_true), Y_score, sparse=self.takes_sparse_scores)
        self._fit(labels, scores)
        return self

    def _fit(self, Y: LabelMatrix, scores: np.ndarray) -> None:
        """Nothing to fit."""

    def apply(self, Y_score: Any) -> Any:
        """Return the label sets, as an (n, L) int8 array of 0 and 1; sparse if the scores are."""
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """Return the rule as values that JSON can hold."""
        fitted = {name: v for name, v in vars(self).items() if name.endswith("_")}
        return {
            "kind": self.kind,
            "parameters": {n: _plain(v) for n, v in self.get_params(deep=False).items()},
            "fitted": {name: _plain(value) for name, value in fitted.items()},
        }

    @staticmethod
    def from_dict(stored: Mapping[str, Any]) -> Threshold:
        """Return the rule that `to_dict` described.

        >>> Threshold.from_dict(FixedThreshold(0.3).to_dict())
        FixedThreshold(value=0.3)
        """
        rule_class = RULES.get(stored["kind"])
        if rule_class is None:
            raise InputError(
                f"there is no threshold of kind {stored['kind']!r}: it is one of {', '.join(RULES)}"
            )
        rule = rule_class(**stored["parameters"])
        for name, value in stored["fitted"].items():
            setattr(rule, name, np.asarray(value) if isinstance(value, list) else value)
        return rule


class FixedThreshold(Threshold):
    """A threshold for all labels that the caller sets.

    >>> FixedThreshold(0.4).apply([[0.3, 0.4], [0.5, 0.1]])
    array([[0, 1],
           [1, 0]], dtype=int8)
    """

    kind = "fixed"
    _parameter_constraints: ClassVar = {"value": [Interval(Real, 0, 1, closed="both")]}

    def __init__(self, value: float = 0.5) -> None:
        self.value = value

    @property
    def applied_threshold(self) -> float:
        return self.value

    def apply(self, Y_score: Any) -> Any:
        return at_least(Y_score, self.value)


class TopK(Threshold):
    """The `k` best labels of each row; of equal scores the label that comes first.

    >>> TopK(1).apply([[0.3, 0.4], [0.5, 0.5]])
    array([[0, 1],
           [1, 0]], dtype=int8)
    """

    kind = "top-k"
    _parameter_constraints: ClassVar = {"k": [Interval(Integral, 1, None, closed="left")]}

    def __init__(self, k: int = 1) -> None:
        self.k = k

    def apply(self, Y_score: Any) -> Any:
        if sp.issparse(Y_score):
            return chosen_entries(Y_score, best_of_rows(Y_score, self.k))
        scores = np.asarray(Y_score)
        best = np.argsort(-scores, axis=1, kind="stable")[:, : self.k]
        chosen = np.zeros(scores.shape, dtype=np.int8)
        np.put_along_axis(chosen, best, 1, axis=1)
        return chosen


class LargestDrop(Threshold):
    """The labels of each row whose scores lie above the largest drop between two ranked scores.

    A row gets at least one label, unless all its scores are equal, and never all of them. The rule
    suits methods whose scores can be compared only within a row. With a single label the threshold
    is 0.5.

    >>> LargestDrop().apply([[0.3, 0.2, 0.9, 0.8], [0.1, 0.5, 0.1, 0.0], [0.2, 0.2, 0.2, 0.2]])
    array([[0, 0, 1, 1],
           [0, 1, 0, 0],
           [0, 0, 0, 0]], dtype=int8)
    """

    kind = "largest-drop"

    def apply(self, Y_score: Any) -> np.ndarray:
        scores = dense_scores(Y_score, self.kind)
        if scores.shape[1] == 1:
            return at_least(scores, 0.5)
        order = np.argsort(-scores, axis=1, kind="stable")
        drops = -np.diff(np.take_along_axis(scores, order, axis=1), axis=1)
        last = drops.argmax(axis=1)[:, None]
        ahead = (np.arange(scores.shape[1]) <= last) & (drops.max(axis=1) > 0)[:, None]
        chosen = np.zeros(scores.shape, dtype=np.int8)
        np.put_along_axis(chosen, order, ahead.astype(np.int8), axis=1)
        return chosen


class _FittedThreshold(Threshold):
    """Base class of rules with one fitted threshold for all labels, ``value_``."""

    needs_validation = True
    takes_sparse_scores = True
    value_: float

    @property
    def applied_threshold(self) -> float:
        return self.value_

    def apply(self, Y_score: Any) -> Any:
        check_is_fitted(self)
        return at_least(Y_score, self.value_)


class TunedThreshold(_FittedThreshold):
    """The one threshold for all labels that is best on the validation rows.

    Parameters
    ----------
    metric : str, default="f1_example"
        A metric of label sets by its name in :data:`labelweave.metrics.METRICS`.
    grid : sequence of float, optional
        The thresholds to choose among, such as :data:`labelweave.thresholds.PAPER_GRID`. By
        default they lie just below the scores of the positive entries, at up to 400 quantiles of
        them. The best F1 is reached at one of these, since any threshold between two of them only
        adds wrong labels.
    n_resamples : int, default=0
        With a number above 0, the threshold is the median of those that are best on this many
        samples of the rows, drawn with replacement. With a few hundred rows it carries over to
        other rows better than the best one on all rows.

    Attributes
    ----------
    value_ : float
        The threshold; among equally good ones that nearest to 0.5.
    score_ : float
        The metric at that threshold, on the validation rows.

    Examples
    --------
    >>> Y, scores = [[1, 0], [0, 1], [1, 1]], [[0.4, 0.1], [0.2, 0.5], [0.3, 0.6]]
    >>> rule = TunedThreshold().fit(Y, scores)
    >>> rule.value_, rule.score_
    (0.25, 1.0)
    """

    kind = "tuned"
    _parameter_constraints: ClassVar = {
        "metric": [str],
        "grid": ["array-like", None],
        "n_resamples": [Interval(Integral, 0, None, closed="left")],
    }

    def __init__(
        self,
        metric: str = "f1_example",
        grid: Sequence[float] | None = None,
        n_resamples: int = 0,
    ) -> None:
        self.metric = metric
        self.grid = grid
        self.n_resamples = n_resamples

    def _fit(self, Y: LabelMatrix, scores: Any) -> None:
        if sp.issparse(scores):
            if self.n_resamples or self.grid is not None:
                raise InputError(
                    "with many labels a threshold is tuned without grid and n_resamples"
                )
            self.value_, self.score_ = tune_on_sparse(self.metric, Y, scores)
            return
        candidates = candidate_thresholds(Y, scores, self.grid)
        if self.n_resamples:
            random = np.random.RandomState(0)
            best_of = []
            for _ in range(self.n_resamples):
                rows = random.randint(len(Y), size=len(Y))
                values, sign = evaluate_at_thresholds(
                    self.metric, Y[rows], scores[rows], candidates
                )
                best_of.append(pick_threshold(candidates, sign * values)[0])
            candidates = np.quantile(best_of, [0.5], method="closest_observation")
        values, sign = evaluate_at_thresholds(self.metric, Y, scores, candidates)
        self.value_, best = pick_threshold(candidates, sign * values)
        self.score_ = sign * best


class PerLabelThreshold(Threshold):
    """One threshold per label, with the best F1 on the validation rows, shrunk for rare labels.

    The threshold that is best for a label with three positives on the validation rows carries over
    poorly to other rows. Therefore the threshold of a label with n positives is a mean
    of its own best threshold and of the common one, which has the best macro F1, on the scale of
    log odds::

        logit(threshold) = (n logit(own) + strength logit(common)) / (n + strength)

    A label without positives gets the common threshold, and a frequent label almost its own. On
    rows held out of the training parts of seven data sets, the macro F1 of a network is .4825 with
    `strength` 0 and .5024 with 10; strengths from 5 to 80 lie within .0015 of that.

    Parameters
    ----------
    strength : float, default=10.0
        Weight of the common threshold, in positives. 0 tunes each label alone.
    grid : sequence of float, optional
        As in :class:`TunedThreshold`.

    Attributes
    ----------
    values_ : ndarray of shape (n_labels,)
        The thresholds.
    common_ : float
        The threshold with the best macro F1 of the labels that have a positive.

    Examples
    --------
    >>> Y = [[1, 0], [1, 1], [0, 1], [0, 1]]
    >>> scores = [[0.9, 0.1], [0.8, 0.3], [0.4, 0.4], [0.1, 0.5]]
    >>> PerLabelThreshold(strength=0).fit(Y, scores).values_
    array([0.45, 0.2 ])
    """

    kind = "per-label"
    needs_validation = True
    _parameter_constraints: ClassVar = {
        "strength": [Interval(Real, 0, None, closed="left")],
        "grid": ["array-like", None],
    }

    def __init__(self, strength: float = 10.0, grid: Sequence[float] | None = None) -> None:
        self.strength = strength
        self.grid = grid

    def _fit(self, Y: LabelMatrix, scores: np.ndarray) -> None:
        from labelweave.metrics import sweep_f1

        if scores.min() < 0 or scores.max() > 1:
            raise InputError("thresholds per label need probabilities, from 0 to 1")
        candidates = candidate_thresholds(Y, scores, self.grid)
        f1 = sweep_f1(Y, scores, candidates, average="label")
        positives, _ = Y.counts()
        occurs = positives > 0
        macro_f1 = f1[occurs].mean(axis=0) if occurs.any() else f1.mean(axis=0)
        self.common_, _ = pick_threshold(candidates, macro_f1)
        own, _ = pick_threshold(candidates, f1)
        weight = np.where(occurs, positives, 1) / (np.where(occurs, positives, 1) + self.strength)
        pooled = weight * log_odds(own, _EPS) + (1 - weight) * log_odds(self.common_, _EPS)
        self.values_ = np.where(occurs, expit(pooled), self.common_)

    @property
    def applied_threshold(self) -> np.ndarray:
        return self.values_

    def apply(self, Y_score: Any) -> np.ndarray:
        check_is_fitted(self)
        scores = dense_scores(Y_score, self.kind)
        if scores.ndim != 2 or scores.shape[1] != len(self.values_):
            raise InputError(
                f"the scores have shape {scores.shape}, but there are thresholds for "
                f"{len(self.values_)} labels"
            )
        return at_least(scores, self.values_)


class CardinalityThreshold(_FittedThreshold):
    """The one threshold at which the mean number of predicted labels per row is the expected one.

    It needs no complete labels. Use it if positives are missing from the annotation, where every
    tuned F1 is biased.

    Parameters
    ----------
    cardinality : float or {"model", "labels"}, default="model"
        The expected number of labels per row: a number; ``"model"``, the mean over the rows of
        the sum of the probabilities (right if these are calibrated; no label is used); or
        ``"labels"``, the sum over the labels of the share of positives among their known entries
        (right if the known entries are a random sample).

    Attributes
    ----------
    value_ : float
        The threshold.
    expected_ : float
        The expected number of labels per row.

    References
    ----------
    .. [1] J. Read, B. Pfahringer, G. Holmes and E. Frank. Classifier chains for multi-label
       classification. Machine Learning 85, 2011, pages 333-359 (section 5.1, with the
       cardinality of the training labels).

    Examples
    --------
    >>> rule = CardinalityThreshold(1.0).fit([[1, 0], [0, 0]], [[0.9, 0.75], [0.2, 0.25]])
    >>> rule.value_, rule.apply([[0.5, 0.4]])
    (0.5, array([[1, 0]], dtype=int8))
    """

    kind = "cardinality"
    _parameter_constraints: ClassVar = {
        "cardinality": [Interval(Real, 0, None, closed="left"), StrOptions({"model", "labels"})]
    }

    def __init__(self, cardinality: float | str = "model") -> None:
        self.cardinality = cardinality

    @property
    def needs_labels(self) -> bool:
        return self.cardinality == "labels"

    def _fit(self, Y: LabelMatrix, scores: np.ndarray) -> None:
        if self.cardinality == "model":
            if scores.min() < 0 or scores.max() > 1:
                raise InputError(
                    "the scores are not probabilities, so the number of labels to expect is not "
                    "known: use 'cardinality:labels' or 'cardinality:<labels per row>'"
                )
            self.expected_ = float(scores.sum(axis=1, dtype=np.float64).mean())
        elif self.cardinality == "labels":
            positives, known = Y.counts()
            self.expected_ = float(np.sum(positives / np.maximum(known, 1)))
        else:
            self.expected_ = float(self.cardinality)
        stored = scores.data if sp.issparse(scores) else scores
        flat = np.sort(stored, axis=None)[::-1]
        n_chosen = min(round(self.expected_ * scores.shape[0]), flat.size)
        # Half way between the last score that is chosen and the first that is not.
        last = flat[n_chosen - 1] if n_chosen else np.nextafter(flat[0], np.inf)
        following = flat[n_chosen] if n_chosen < flat.size else last
        self.value_ = threshold_between(following, last)


_RULES = (
    FixedThreshold,
    TopK,
    LargestDrop,
    TunedThreshold,
    PerLabelThreshold,
    CardinalityThreshold,
)
RULES: dict[str, type[Threshold]] = {rule.kind: rule for rule in _RULES}
"""The rules by their `kind`."""


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    return list(value) if isinstance(value, tuple) else value
