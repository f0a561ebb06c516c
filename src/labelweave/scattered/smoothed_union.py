"""A union of teachers made better by unlabelled rows: feature dropout, prevalence, label counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from scipy.special import expit
from sklearn.utils._param_validation import Interval

from labelweave.exceptions import InputError
from labelweave.input_checks import is_texts
from labelweave.probabilities import log_odds
from labelweave.rows import count_rows
from labelweave.scattered._amalgamation.agreement import Disagreement
from labelweave.scattered._amalgamation.prevalence import prevalence_shift, shift_to_count
from labelweave.scattered._amalgamation.training_set import TrainingSet, is_numeric
from labelweave.scattered.smoothed_union_counts import (
    count_weights,
    reweight_by_count,
    sharpened_counts,
)
from labelweave.scattered.teacher import LOGIT_EPS, Teacher
from labelweave.scattered.union import TeacherUnion

__all__ = ["SmoothedUnion"]

# What `fit` computes beside the attributes of the union, each under its name after an underscore
_FITTED = ("thresholds", "kept", "means", "slope", "offset", "weights", "common_shift")


class SmoothedUnion(TeacherUnion):
    """All teachers are kept, and unlabelled rows make their union better.

    1. The teachers predict copies of a row in which some features are left out, the same ones for
       all rows, and the logits of their union are averaged over the copies [1]_. The mean and
       standard deviation of each label over the rows of `fit` are then set to those of the plain
       union.
    2. Models of this library know the prevalence of their labels. The logits of a label, of the
       plain union and of the averaged one, are shifted towards that prevalence among the rows of
       `fit`.
    3. Each teacher predicts its own labels only, so that none knows how many labels a row has
       altogether. The distribution of the number of labels is estimated from the plain union,
       sharpened for each row, and the probabilities are reweighted to agree with it [2]_. This
       step is left out for texts, where it made the ranking of rare labels worse.
    4. One common shift of the logits leaves as many labels above one half as the plain union
       predicts, or more of those that its probabilities lead one to expect.

    Parameters
    ----------
    teachers : sequence of Teacher
    drop : float, default=0.2
        Share of the features that a copy lacks: they are 0 where X is sparse, else their mean.
        Texts, and tables with columns that are not numbers, are predicted as they are.
    copies : int, default=40
        Number of copies.
    prevalence_weight : float from 0 to 1, default=0.5
        How far the logits are shifted in step 2; 0 leaves it out. Labels of unknown prevalence
        are not shifted.
    sharpen : float, default=3.0
        Power to which the probabilities of the number of labels of a row are raised. 1 leaves
        step 3 out.
    cardinality_weight : float from 0 to 1, default=0.25
        The number of labels above one half after step 4: with 0 that of the plain union, with 1
        the sum of its probabilities.
    integrate, revise
        As in :class:`labelweave.scattered.union.TeacherUnion`.
    aliases, match, calibration, verbose, on_disagreement, threshold, validation_fraction,
    random_state
        As in :class:`labelweave.scattered._amalgamation.teacher_method.TeacherMethod`.

    Attributes
    ----------
    counts_ : ndarray
        Share of the rows with 0, 1, 2, ... labels, as estimated in step 3.

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
        "prevalence_weight": [Interval(Real, 0, 1, closed="both")],
        "sharpen": [Interval(Real, 1, None, closed="left")],
        "cardinality_weight": [Interval(Real, 0, 1, closed="both")],
    }

    def __init__(
        self,
        teachers: Sequence[Teacher] = (),
        *,
        drop: float = 0.2,
        copies: int = 40,
        prevalence_weight: float = 0.5,
        sharpen: float = 3.0,
        cardinality_weight: float = 0.25,
        integrate: str = "mean-logit",
        revise: bool = False,
        aliases: Mapping[str, str] | None = None,
        match: str = "ignore-case",
        calibration: str | None = None,
        verbose: int = 0,
        on_disagreement: Callable[[Disagreement], None] | None = None,
        threshold: Any = 0.5,
        validation_fraction: float = 0.2,
        random_state: Any = None,
    ) -> None:
        self.teachers = teachers
        self.drop = drop
        self.copies = copies
        self.prevalence_weight = prevalence_weight
        self.sharpen = sharpen
        self.cardinality_weight = cardinality_weight
        self.integrate = integrate
        self.revise = revise
        self.aliases = aliases
        self.match = match
        self.calibration = calibration
        self.verbose = verbose
        self.on_disagreement = on_disagreement
        self.threshold = threshold
        self.validation_fraction = validation_fraction
        self.random_state = random_state

    def _targets(self, training_set: TrainingSet) -> np.ndarray:
        plain = super()._targets(training_set)
        self._thresholds = np.nanmean(training_set.predictions.offsets, axis=0)
        self._draw_features(training_set)
        plain_logits = _logits(plain).astype(np.float64)
        averaged = self._averaged_logits(training_set.X)
        self._slope, offset = _matching_moments(averaged, plain_logits)
        self._offset = offset + self._prevalence_shift(averaged * self._slope + offset)
        shifted_logits = plain_logits + self._prevalence_shift(plain_logits)
        shifted = np.nan_to_num(expit(shifted_logits + self._thresholds), nan=0.0)
        self.counts_ = sharpened_counts(shifted, self.sharpen)
        p = self._shifted(averaged)
        skipped = self.sharpen == 1 or is_texts(training_set.X)
        self._weights = None if skipped else count_weights(p, self.counts_)
        n_predicted = np.count_nonzero(shifted_logits > 0)  # False for NaN
        weight = self.cardinality_weight
        n_positive = round((1 - weight) * n_predicted + weight * shifted.sum())
        self._common_shift = shift_to_count(self._relative_logits(p), n_positive)
        return np.where(np.isnan(plain), np.nan, self._smoothed(averaged))

    def _predict_proba(self, X: Any) -> np.ndarray:
        return self._smoothed(self._averaged_logits(X))

    def _draw_features(self, training_set: TrainingSet) -> None:
        """Draw the features that each copy keeps; the others are replaced by their means."""
        X = training_set.X
        self._kept: np.ndarray | None = None
        self._means: np.ndarray | None = None
        if self.drop > 0 and is_numeric(X) and self._teachers_predict_new_rows:
            generator = np.random.RandomState(training_set.seed)
            self._kept = generator.uniform(size=(self.copies, X.shape[1])) >= self.drop
            if not sp.issparse(X):
                self._means = np.asarray(X, dtype=np.float64).mean(axis=0)
        self.notes_["copies"] = 0 if self._kept is None else self.copies

    def _averaged_logits(self, X: Any) -> np.ndarray:
        """Step 1: logits of the union, averaged over the copies; NaN where all always abstain."""
        if self._kept is None:
            return _logits(self._union(X))
        total = np.zeros((count_rows(X), self.n_labels_))
        n_copies = np.zeros_like(total)
        for kept in self._kept:
            logits = _logits(self._union(_without_features(X, kept, self._means)))
            total += np.nan_to_num(logits, nan=0.0)
            n_copies += ~np.isnan(logits)
        return np.where(n_copies > 0, total / np.maximum(n_copies, 1), np.nan)

    def _prevalence_shift(self, logits: np.ndarray) -> np.ndarray:
        """What is added to the logits of each label in step 2."""
        shift = prevalence_shift(logits + self._thresholds, self.label_prevalence_)
        return self.prevalence_weight * shift

    def _shifted(self, averaged: np.ndarray) -> np.ndarray:
        """Probabilities after step 2; 0 where all teachers abstain."""
        logits = averaged * self._slope + self._offset + self._thresholds
        return np.nan_to_num(expit(logits), nan=0.0)

    def _relative_logits(self, p: np.ndarray) -> np.ndarray:
        """Logits after step 3, less those of the thresholds, from probabilities after step 2."""
        reweighted = p if self._weights is None else reweight_by_count(p, self._weights)
        return _logits(reweighted).astype(np.float64) - self._thresholds

    def _smoothed(self, averaged: np.ndarray) -> np.ndarray:
        """Probabilities after step 4."""
        p = expit(self._relative_logits(self._shifted(averaged)) - self._common_shift)
        return np.where(np.isnan(averaged), 0.0, p).astype(np.float32)

    def _state(self) -> dict[str, Any]:
        fitted = {name: getattr(self, f"_{name}") for name in _FITTED}
        return {**super()._state(), "counts": self.counts_, **fitted}

    def _set_state(self, state: Mapping[str, Any]) -> None:
        super()._set_state(state)
        for name in _FITTED:
            setattr(self, f"_{name}", state[name])
        self.counts_ = state["counts"]
        n_labels = (self.n_labels_,)
        per_label = (self._slope, self._offset, self._thresholds)
        if not all(np.shape(values) == n_labels for values in per_label):
            raise InputError("a smoothed union has one slope, offset and threshold per label")
        if self._kept is not None:
            width = self.n_features_in_
            is_mask = self._kept.dtype == bool and self._kept.shape[1:] == (width,)
            if not is_mask or not (self._means is None or np.shape(self._means) == (width,)):
                raise InputError("the copies of a smoothed union do not have its features")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.capabilities.randomized = True
        return tags


def _logits(p: np.ndarray) -> np.ndarray:
    return log_odds(p, LOGIT_EPS, np.float32)


def _without_features(X: Any, kept: np.ndarray, means: np.ndarray | None) -> Any:
    """A copy of X in which the features that are not kept are 0, or their means."""
    if sp.issparse(X):
        copy = sp.csr_array(X @ sp.diags_array(kept.astype(X.dtype)))
        copy.eliminate_zeros()
        return copy
    assert means is not None
    copy = np.where(kept, np.asarray(X, dtype=np.float64), means)
    if hasattr(X, "iloc"):
        return type(X)(copy, columns=X.columns, index=X.index)
    return copy


def _matching_moments(logits: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Slope and offset per label that give logits the mean and standard deviation of others."""
    known = ~(np.isnan(logits) | np.isnan(target))
    n = np.maximum(known.sum(axis=0), 1)
    means, deviations = [], []
    for values in (logits, target):
        values = np.where(known, values, 0.0)
        mean = values.sum(axis=0) / n
        means.append(mean)
        deviations.append(np.sqrt((np.where(known, values - mean, 0.0) ** 2).sum(axis=0) / n))
    constant = deviations[0] < 1e-6
    slope = np.where(constant, 1.0, deviations[1] / np.where(constant, 1.0, deviations[0]))
    return slope, means[1] - slope * means[0]
