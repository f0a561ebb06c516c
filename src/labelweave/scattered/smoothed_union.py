"""The teachers asked about copies of a row, and a belief about how many labels rows have."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from scipy.special import expit
from sklearn.utils._param_validation import Interval

from labelweave.probabilities import log_odds
from labelweave.rows import count_rows
from labelweave.scattered.label_counts import count_weights, reweighted, sharpened_counts
from labelweave.scattered.label_rates import rate_shift, shift_to_count
from labelweave.scattered.lesson import Lesson
from labelweave.scattered.opinions import ask_teachers
from labelweave.scattered.synthetic import is_numbers
from labelweave.scattered.teacher import LOGIT_EPS, Teacher
from labelweave.scattered.union import TeacherUnion

__all__ = ["SmoothedUnion"]


class SmoothedUnion(TeacherUnion):
    """All teachers kept; what rows without labels tell makes their union better.

    1. The teachers are asked about copies of a row that lack some of its features, the same ones
       for all rows, and the log odds of their union are averaged over the copies [1]_. For each
       label their mean and spread over the rows of `fit` are then made those of the plain union.
    2. Models of this library tell how frequent labels were where they learnt. The log odds of a
       label, of the plain union and of the averaged one, are moved towards the shift that would
       make it as frequent among the rows of `fit`.
    3. Each teacher knows its own labels only, so that none knows how many a row has
       altogether. How often rows have k labels is read off the plain union, each row surer of its
       number than independent labels make it; weights of the numbers of labels make the
       probabilities agree with that [2]_.
    4. A common shift of the log odds leaves as many labels above one half as the plain union has,
       and some of those more that its probabilities promise.

    Parameters
    ----------
    teachers : sequence of Teacher
    drop : float, default=0.2
        Share of the features that a copy lacks: they are 0 where X is sparse, else their mean.
        Texts and tables that are not all numbers are asked about as they are.
    copies : int, default=40
        How many copies are asked about.
    rates : float from 0 to 1, default=0.5
        How far log odds are moved in step 2; 0 leaves it out. Labels whose rate no teacher tells
        (`rates` of :class:`labelweave.scattered.teacher.Teacher`) are left as they are.
    sharpen : float, default=3.0
        How much surer a row is of its number of labels: its chances are raised to this power. 1
        leaves step 3 out.
    expected : float from 0 to 1, default=0.25
        How many labels are above one half after step 4: 0 as many as in the plain union, 1 as
        many as its probabilities sum up to.
    **options
        The other parameters of :class:`labelweave.scattered.union.TeacherUnion`.

    Attributes
    ----------
    counts_ : ndarray
        How often rows have 0, 1, 2, ... labels, as found in step 3.

    References
    ----------
    .. [1] T. K. Ho. The random subspace method for constructing decision forests. IEEE
       Transactions on Pattern Analysis and Machine Intelligence 20(8), 1998 (there a model is
       trained on each subset of the features).
    .. [2] D. Tarlow, K. Swersky, R. Zemel, R. Adams and B. Frey. Fast exact inference for recursive
       cardinality models. UAI 2012.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **TeacherUnion._parameter_constraints,
        "drop": [Interval(Real, 0, 1, closed="left")],
        "copies": [Interval(Integral, 1, None, closed="left")],
        "rates": [Interval(Real, 0, 1, closed="both")],
        "sharpen": [Interval(Real, 1, None, closed="left")],
        "expected": [Interval(Real, 0, 1, closed="both")],
    }

    def __init__(
        self,
        teachers: Sequence[Teacher] = (),
        *,
        drop: float = 0.2,
        copies: int = 40,
        rates: float = 0.5,
        sharpen: float = 3.0,
        expected: float = 0.25,
        **options: Any,
    ) -> None:
        super().__init__(teachers, **options)
        self.drop = drop
        self.copies = copies
        self.rates = rates
        self.sharpen = sharpen
        self.expected = expected

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.capabilities.randomized = True
        return tags

    def _targets(self, lesson: Lesson) -> np.ndarray:
        plain = super()._targets(lesson)
        self._vocabulary = lesson.opinions.vocabulary
        self._fit_copies(lesson)
        odds = log_odds(plain, LOGIT_EPS, np.float32).astype(np.float64)
        smooth = self._mean_odds(lesson.X)
        self._slope, offset = _moments_moved(smooth, odds)
        self._offset = offset + self._towards_rates(smooth * self._slope + offset)
        told = np.nan_to_num(expit(odds + self._towards_rates(odds)), nan=0.0)
        self.counts_ = sharpened_counts(told, self.sharpen)
        moved = self._moved(smooth)
        self._weights = None if self.sharpen == 1 else count_weights(moved, self.counts_)
        self._shift = 0.0
        counted = log_odds(self._counted(moved), LOGIT_EPS, np.float32)
        found = np.count_nonzero(told > 0.5)
        n_positive = round((1 - self.expected) * found + self.expected * told.sum())
        self._shift = shift_to_count(counted, n_positive)
        return np.where(np.isnan(plain), np.nan, self._final(smooth))

    def _predict_proba(self, X: Any) -> np.ndarray:
        return self._final(self._mean_odds(X))

    def _fit_copies(self, lesson: Lesson) -> None:
        """Which features each copy keeps, and what stands in the place of the others."""
        X = lesson.X
        self._kept: np.ndarray | None = None
        if self.drop > 0 and is_numbers(X):
            random = np.random.RandomState(lesson.seed)
            self._kept = random.uniform(size=(self.copies, X.shape[1])) >= self.drop
            self._fill = None if sp.issparse(X) else np.asarray(X, dtype=np.float64).mean(axis=0)
        self.notes_["copies"] = 0 if self._kept is None else self.copies

    def _mean_odds(self, X: Any) -> np.ndarray:
        """The log odds of the union, averaged over the copies; NaN where all abstain from all."""
        if self._kept is None:
            return self._union_odds(X)
        total = np.zeros((count_rows(X), self.n_labels_))
        heard = np.zeros_like(total)
        for kept in self._kept:
            odds = self._union_odds(_without(X, kept, self._fill))
            total += np.nan_to_num(odds, nan=0.0)
            heard += ~np.isnan(odds)
        return np.where(heard > 0, total / np.maximum(heard, 1), np.nan)

    def _union_odds(self, X: Any) -> np.ndarray:
        opinions = ask_teachers(self.asked_, self._vocabulary, X, batch_rows=self.batch_rows)
        rows = np.arange(count_rows(X))
        p = self._joined(Lesson(X, opinions, None, rows, 0, 0))
        return log_odds(p, LOGIT_EPS, np.float32)

    def _towards_rates(self, odds: np.ndarray) -> np.ndarray:
        """What is added to the log odds of each label in step 2."""
        return self.rates * rate_shift(odds, self.label_prevalence_)

    def _moved(self, smooth: np.ndarray) -> np.ndarray:
        """Probabilities after step 2; 0 where nothing speaks for the label."""
        return np.nan_to_num(expit(smooth * self._slope + self._offset), nan=0.0)

    def _counted(self, p: np.ndarray) -> np.ndarray:
        return p if self._weights is None else reweighted(p, self._weights)

    def _final(self, smooth: np.ndarray) -> np.ndarray:
        odds = log_odds(self._counted(self._moved(smooth)), LOGIT_EPS, np.float32)
        found = expit(odds.astype(np.float64) - self._shift)
        return np.where(np.isnan(smooth), 0.0, found).astype(np.float32)


def _without(X: Any, kept: np.ndarray, fill: np.ndarray | None) -> Any:
    if sp.issparse(X):
        copy = sp.csr_array(X @ sp.diags_array(kept.astype(X.dtype)))
        copy.eliminate_zeros()
        return copy
    assert fill is not None
    copy = np.where(kept, np.asarray(X, dtype=np.float64), fill)
    if hasattr(X, "iloc"):
        return type(X)(copy, columns=X.columns, index=X.index)
    return copy


def _moments_moved(odds: np.ndarray, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For each label the slope and offset that give odds the mean and spread of others."""
    known = ~(np.isnan(odds) | np.isnan(wanted))
    n = np.maximum(known.sum(axis=0), 1)
    means, spreads = [], []
    for values in (odds, wanted):
        values = np.where(known, values, 0.0)
        mean = values.sum(axis=0) / n
        means.append(mean)
        spreads.append(np.sqrt((np.where(known, values - mean, 0.0) ** 2).sum(axis=0) / n))
    still = spreads[0] < 1e-6
    slope = np.where(still, 1.0, spreads[1] / np.where(still, 1.0, spreads[0]))
    return slope, means[1] - slope * means[0]
