"""A threshold that keeps a promise: at least so much recall or precision on new rows.

A threshold tuned on validation rows is best there; how it does on new rows is a matter of luck. A
promise is a statement about new rows, tested on the validation rows: a threshold is taken only if
rows like these would be very improbable were the promise broken there (risk control: Bates et al.,
2021; Angelopoulos et al., "Learn then test", 2021). The validation rows must be like the new ones,
and the model must not have learnt from them.
"""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from scipy.stats import binom
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from labelweave.exceptions import InputError
from labelweave.labels import LabelMatrix, as_labels
from labelweave.thresholds.threshold_rules import RULES, Threshold
from labelweave.thresholds.threshold_search import at_least, threshold_between

__all__ = ["PromisedThreshold"]

_STARTS = 8  # places at which a search for precision begins
_MAX_CANDIDATES = 200


class PromisedThreshold(Threshold):
    """The most useful threshold at which recall, precision or false discoveries keep a bound.

    * recall: the mean over rows of the share of true labels that are predicted; rows without a
      true label are left out. The highest such threshold is taken.
    * precision: the mean over rows of the share of predicted labels that are true; rows without
      a predicted label are left out. The lowest such threshold is taken.
    * fdr, the false discovery rate: the same from the other side, ``fdr<=0.1`` is
      ``precision>=0.9``.

    With `per_label` each label has a threshold and a promise of its own, over the rows that have
    it (recall) or for which it is predicted (precision, fdr).

    Parameters
    ----------
    measure : {"recall", "precision", "fdr"}
    bound : float
        Between 0 and 1: the least recall or precision, or the greatest false discovery rate.
    confidence : float, default=0.9
        In at least this share of all draws of validation rows the promise holds. With `per_label`
        it is the confidence for each label.
    per_label : bool, default=False

    Attributes
    ----------
    value_ : float
        The threshold of all labels; with `per_label`, `values_` is an array of one per label.
    n_rows_ : int or list of int
        The number of validation rows that bear on the promise, per label with `per_label`.

    Notes
    -----
    Unknown entries are ignored. The promise is then about all entries if those that are known were
    chosen at random. Where only positives were annotated, recall is promised for labels like the
    annotated ones, and no entry is known to be negative, so that precision cannot be promised.

    Examples
    --------
    >>> import numpy as np
    >>> random = np.random.RandomState(0)
    >>> Y = (random.rand(500, 4) < 0.3).astype(float)
    >>> scores = np.clip(0.5 * Y + 0.6 * random.rand(500, 4), 0, 1)
    >>> rule = PromisedThreshold("recall", 0.9).fit(Y, scores)
    >>> predicted = rule.apply(scores)
    >>> bool((predicted * Y).sum() / Y.sum() > 0.9)
    True
    """

    kind = "promised"
    needs_validation = True
    _parameter_constraints: ClassVar = {
        "measure": [StrOptions({"recall", "precision", "fdr"})],
        "bound": [Interval(Real, 0, 1, closed="neither")],
        "confidence": [Interval(Real, 0, 1, closed="neither")],
        "per_label": ["boolean"],
    }

    def __init__(
        self, measure: str, bound: float, confidence: float = 0.9, per_label: bool = False
    ) -> None:
        self.measure = measure
        self.bound = bound
        self.confidence = confidence
        self.per_label = per_label

    value_: float
    values_: np.ndarray
    n_rows_: int | list[int]

    @property
    def applied_threshold(self) -> Any:
        return self.values_ if self.per_label else self.value_

    @property
    def most_loss(self) -> float:
        """The greatest mean share of missed or wrong labels."""
        return self.bound if self.measure == "fdr" else 1 - self.bound

    def describe(self) -> str:
        """Return the promise as a text."""
        sign = "at most" if self.measure == "fdr" else "at least"
        each = "of each label " if self.per_label else ""
        return f"{self.measure} {each}{sign} {self.bound:g} with confidence {self.confidence:g}"

    def apply(self, Y_score: Any) -> np.ndarray:
        check_is_fitted(self)
        return at_least(Y_score, self.applied_threshold)

    def kept(self, Y_true: Any, Y_score: Any) -> Any:
        """Return the recall, precision or false discovery rate of other rows, as it is promised.

        With `per_label` an array of one per label; NaN where no row bears on it.
        """
        truth = as_labels(Y_true).to_numpy()
        predicted = (self.apply(Y_score) == 1) & ~np.isnan(truth)
        if self.per_label:
            columns = np.arange(truth.shape[1])[:, None]
            return np.array([self._mean(truth[:, j], predicted[:, j]) for j in columns])
        return self._mean(truth, predicted)

    def _mean(self, truth: np.ndarray, predicted: np.ndarray) -> float:
        losses = self._losses(truth, predicted)
        if not len(losses):
            return float("nan")
        return float(losses.mean() if self.measure == "fdr" else 1 - losses.mean())

    def _fit(self, Y: LabelMatrix, scores: np.ndarray) -> None:
        truth = Y.to_numpy()
        if self.measure != "recall" and not (truth == 0).any():
            raise InputError(
                f"{self.describe()} cannot be promised: no entry of the validation rows is known "
                "to be negative, so that no wrong label can be counted"
            )
        if not self.per_label:
            self.value_, self.n_rows_ = self._common(truth, scores)
            return
        fitted = [self._of_label(truth[:, j], scores[:, j]) for j in range(truth.shape[1])]
        short = [Y.names[j] for j, (value, _) in enumerate(fitted) if value is None]
        if short:
            names = ", ".join(map(repr, short[:3]))
            names += f" and {len(short) - 3:,} more" if len(short) > 3 else ""
            raise InputError(
                f"{self.describe()} cannot be promised for {names}: "
                f"{self._advice(min(n for value, n in fitted if value is None))}"
            )
        self.values_ = np.array([value for value, _ in fitted])
        self.n_rows_ = [n for _, n in fitted]

    def _common(self, truth: np.ndarray, scores: np.ndarray) -> tuple[float, int]:
        """Return the threshold of all labels, and the number of rows that bear on it."""
        known = ~np.isnan(truth)
        levels = np.unique(scores[known])
        if len(levels) > _MAX_CANDIDATES:
            places = np.linspace(0, 1, _MAX_CANDIDATES)
            levels = np.unique(np.quantile(levels, places, method="closest_observation"))
        ordered = levels if self.measure == "recall" else levels[::-1]  # the safest first
        starts = np.array([0])
        if self.measure != "recall":
            # The stricter, the fewer rows have a prediction, and the less can be shown: searches
            # begin at several places and share the permitted probability of an error.
            starts = np.linspace(0, len(ordered) - 1, _STARTS).astype(int)
        all_losses = [self._losses(truth, (scores >= level) & known) for level in ordered]
        failure = self._failure / len(starts)
        passes = [_shows_less(losses, self.most_loss, failure) for losses in all_losses]
        last = _furthest(np.array(passes), starts)
        if last < 0:
            n_rows = max(map(len, all_losses))
            raise InputError(f"{self.describe()} cannot be promised: {self._advice(n_rows)}")
        return float(ordered[last]), len(all_losses[last])

    @property
    def _failure(self) -> float:
        return 1 - self.confidence

    def _losses(self, truth: np.ndarray, predicted: np.ndarray) -> np.ndarray:
        """Return the share of missed or of wrong labels of each row that has such a share."""
        if self.measure == "recall":
            relevant, lost = truth == 1, (truth == 1) & ~predicted
        else:
            relevant, lost = predicted, (truth == 0) & predicted
        n_relevant, n_lost = relevant.sum(axis=1), lost.sum(axis=1)
        has_some = n_relevant > 0
        shares = np.divide(n_lost, n_relevant, out=np.zeros(len(truth)), where=has_some)
        return shares[has_some]

    def _of_label(self, truth: np.ndarray, scores: np.ndarray) -> tuple[float | None, int]:
        """Return the threshold of one label, None if nothing can be promised, and its rows.

        Each row is right or wrong, so that the binomial distribution is exact.
        """
        if self.measure == "recall":
            ordered = np.sort(scores[truth == 1])
            n = len(ordered)
            n_missed = int(np.sum(binom.cdf(np.arange(n), n, self.most_loss) <= self._failure)) - 1
            return (None, n) if n_missed < 0 else (float(ordered[n_missed]), n)
        known = ~np.isnan(truth)
        order = np.argsort(-scores[known], kind="stable")
        ordered, wrong = scores[known][order], np.cumsum(truth[known][order] == 0)
        places = np.flatnonzero(np.append(ordered[1:] < ordered[:-1], True))  # equal scores: last
        counts = places + 1
        passes = binom.cdf(wrong[places], counts, self.most_loss) <= self._failure / _STARTS
        starts = np.searchsorted(counts, np.maximum(1, len(ordered) >> np.arange(_STARTS)))
        last = _furthest(passes, starts)
        if last < 0:
            return None, len(ordered)
        best = places[last]
        following = ordered[best + 1] if best + 1 < len(ordered) else ordered[best]
        return threshold_between(following, ordered[best]), best + 1

    def _advice(self, n_rows: int) -> str:
        least = int(np.ceil(np.log(self._failure) / np.log(1 - self.most_loss)))
        what = "that have a label" if self.measure == "recall" else "with a predicted label"
        if n_rows < least:
            return (
                f"it needs at least {least:,} validation rows {what}, and there are {n_rows:,}; "
                "give more rows, a weaker bound or less confidence"
            )
        return (
            f"no threshold reaches it on the validation rows ({n_rows:,} {what}); give a weaker "
            "bound, more rows or a better model"
        )


def _furthest(passes: np.ndarray, starts: np.ndarray) -> int:
    """Return the last place that a search reaches before its first failure; -1 if none does."""
    failures = np.append(np.flatnonzero(~passes), len(passes))
    reached = failures[np.searchsorted(failures, starts)] - 1
    return int(reached[reached >= starts].max(initial=-1))


def _shows_less(losses: np.ndarray, most: float, failure: float) -> bool:
    """Whether losses between 0 and 1 show that their expectation is at most `most`.

    The test of Hoeffding and Bentkus: the probability of a mean this small, were the expectation
    greater, is at most `failure`.
    """
    n = len(losses)
    if n == 0:
        return False
    mean = float(losses.mean())
    if mean >= most:
        return False
    with np.errstate(divide="ignore", invalid="ignore"):
        first = mean * np.log(mean / most) if mean > 0 else 0.0
        divergence = first + (1 - mean) * np.log((1 - mean) / (1 - most))
    hoeffding = np.exp(-n * divergence)
    bentkus = np.e * binom.cdf(np.ceil(n * mean - 1e-9), n, most)
    return bool(min(hoeffding, bentkus) <= failure)


RULES[PromisedThreshold.kind] = PromisedThreshold
