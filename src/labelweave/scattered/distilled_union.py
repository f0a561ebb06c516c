"""A student of the smoothed union, on many mixed rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import expit

from labelweave.capabilities import capabilities
from labelweave.exceptions import InputError
from labelweave.input_checks import is_texts
from labelweave.labels import LabelMatrix
from labelweave.methods import make
from labelweave.probabilities import log_odds
from labelweave.rows import count_rows
from labelweave.scattered._amalgamation.agreement import Disagreement
from labelweave.scattered._amalgamation.logit_ridge import LogitRidge
from labelweave.scattered._amalgamation.prevalence import shift_to_count
from labelweave.scattered._amalgamation.student_method import StudentMethod
from labelweave.scattered._amalgamation.training_set import (
    TrainingSet,
    can_be_mixed,
    is_numeric,
)
from labelweave.scattered.smoothed_union import SmoothedUnion
from labelweave.scattered.teacher import Teacher, take_rows
from labelweave.thresholds import FixedThreshold, PerLabelThreshold, Threshold

__all__ = ["DistilledUnion"]

_EPS = 1e-12  # keeps the order of very small probabilities
_SYNTHETIC_PER_ROW, _MAX_SYNTHETIC, _MAX_TEXTS = 20.0, 6000, 24_000
_NETWORK = {
    "dropout": 0.2,
    "lr": 1e-3,
    "weight_decay": 0.01,
    "epochs": 30,
    "schedule": "cosine",
    "patience": None,
}
_LINEAR_WEIGHT, _PENALTY = 0.25, 1.0


class DistilledUnion(StudentMethod):
    """One student for the predictions of a smoothed union, on many mixed rows.

    1. The teachers are combined by :class:`labelweave.scattered.smoothed_union.SmoothedUnion`,
       fitted to the rows of `fit`.
    2. Up to twenty mixed rows per row, 6,000 at most, are made of two rows each: each feature of
       one of the two. A mixed text (24,000 at most) has some of the words of a text, and words
       drawn from all texts. The union labels them all [1]_ [2]_.
    3. A student learns these probabilities: by default an MLP and a linear model of the logits
       (:class:`labelweave.scattered._amalgamation.logit_ridge.LogitRidge`), of whose logits three
       quarters and one quarter are added up; of texts the linear model alone, on TF-IDF weights.
       Values beyond the range that a feature has in the rows it learns from are set to the end of
       that range: a network is far off where it extrapolates.
    4. Its logits are shifted by one number, so that it predicts as many labels on the rows of `fit`
       as the union.

    The probabilities are those of the teachers, not relative to their thresholds. The student has
    thresholds of its own, one per label: the mean of those of the teachers that know the label, as
    logits.

    Parameters
    ----------
    teachers : sequence of Teacher
    student : estimator or id of a method, optional
        In place of the default of step 3.
    augment : float or "auto", default="auto"
        Number of mixed rows per row. ``"auto"``: twenty, at most 6,000 altogether, or 24,000 texts;
        none for images, for tables with columns that are not numbers, and for teachers that are
        stored predictions.
    threshold : float, str or Threshold, default=0.5
        As in :class:`labelweave.scattered._amalgamation.student_method.StudentMethod`; a number is
        relative to the thresholds of the teachers: 0.5 is theirs.
    aliases, match, calibration, verbose, on_disagreement, validation_fraction, random_state
        As in :class:`labelweave.scattered._amalgamation.student_method.StudentMethod`.

    Attributes
    ----------
    shift_ : float
        What is added to the logits of the student in step 4.
    threshold_logits_ : ndarray of shape (n_labels,)
        Mean logit of the teachers' thresholds of each label.
    linear_ : LogitRidge or None
        The linear model beside an MLP.
    range_ : ndarray of shape (2, n_features), or None
        Smallest and largest value of each feature in step 3; None where the rows are sparse, or not
        numbers.

    References
    ----------
    .. [1] R. Fakoor, J. W. Mueller, N. Erickson, P. Chaudhari and A. J. Smola. Fast, accurate, and
       simple models for tabular data via augmented distillation. NeurIPS 2020 (there rows are
       drawn by Gibbs sampling).
    .. [2] L. Beyer, X. Zhai, A. Royer, L. Markeeva, R. Anil and A. Kolesnikov. Knowledge
       distillation: a good teacher is patient and consistent. CVPR 2022.
    """

    def __init__(
        self,
        teachers: Sequence[Teacher] = (),
        *,
        student: Any = None,
        augment: float | str = "auto",
        aliases: Mapping[str, str] | None = None,
        match: str = "ignore-case",
        calibration: str | None = None,
        verbose: int = 0,
        on_disagreement: Callable[[Disagreement], None] | None = None,
        threshold: Any = 0.5,
        validation_fraction: float = 0.2,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            teachers,
            student=student,
            augment=augment,
            aliases=aliases,
            match=match,
            calibration=calibration,
            verbose=verbose,
            on_disagreement=on_disagreement,
            threshold=threshold,
            validation_fraction=validation_fraction,
            random_state=random_state,
        )

    def _default_chain(self) -> Any:
        return make("mlp", **_NETWORK)

    def _student_for(self, X: Any) -> Any:
        if self.student is None and is_texts(X):
            from labelweave.text import TextClassifier

            return TextClassifier(LogitRidge(), max_features=None)
        return super()._student_for(X)

    def _auto_augmentation(self, X: Any) -> float:
        if not can_be_mixed(X):
            return 0.0
        most = _MAX_TEXTS if is_texts(X) else _MAX_SYNTHETIC
        return min(_SYNTHETIC_PER_ROW, most / max(count_rows(X), 1))

    def _targets(self, training_set: TrainingSet) -> np.ndarray:
        rows, known = training_set.real_rows(), training_set.known_labels
        union = SmoothedUnion(
            training_set.predictions.teachers,
            aliases=self.aliases,
            match=self.match,
            random_state=training_set.seed,
        )
        union.fit(take_rows(training_set.X, rows), None if known is None else known[rows])
        targets = union.predict_proba(training_set.X)
        abstained = np.isnan(training_set.predictions.without_abstentions()).all(axis=0)
        return np.where(abstained, np.nan, targets)

    def _train_student(self, student: Any, training_set: TrainingSet, targets: np.ndarray) -> Any:
        self._set_range(take_rows(training_set.X, np.arange(training_set.n_train)))
        offsets = training_set.predictions.offsets.astype(np.float64)
        self.threshold_logits_ = np.nanmean(offsets, axis=0)
        fitted = super()._train_student(student, training_set, targets)
        self.linear_ = None
        if self.student is None and is_numeric(training_set.X):
            rows = self._student_rows(training_set.X)
            self.linear_ = LogitRidge(_PENALTY).fit(rows, self._student_labels(student, targets))
        real = training_set.real_rows()
        logits = self._logits(fitted, self._student_rows(take_rows(training_set.X, real)))
        n_predicted = int(np.count_nonzero(targets[real] > 0.5))
        self.shift_ = -shift_to_count(logits - self.threshold_logits_, n_predicted)
        return fitted

    def _student_labels(self, student: Any, targets: np.ndarray) -> LabelMatrix:
        """Targets on the scale of the teachers' probabilities, if the student learns these."""
        if capabilities(student).soft_targets:
            relative = log_odds(targets.astype(np.float64), _EPS)
            targets = expit(relative + self.threshold_logits_).astype(np.float32)
        return super()._student_labels(student, targets)

    def _logits(self, student: Any, rows: Any) -> np.ndarray:
        """The logits of the student, averaged with those of the linear one if there is one."""
        logits = log_odds(student.predict_proba(rows).astype(np.float64), _EPS)
        if not capabilities(student).soft_targets:  # it has learnt what is above the thresholds
            return logits + self.threshold_logits_
        if self.linear_ is None:
            return logits
        linear = log_odds(self.linear_.predict_proba(rows).astype(np.float64), _EPS)
        return (1 - _LINEAR_WEIGHT) * logits + _LINEAR_WEIGHT * linear

    def _set_range(self, X: Any) -> None:
        """Store the range of each feature; None for rows that are not an array of numbers."""
        self.range_: np.ndarray | None = None
        if is_numeric(X) and not sp.issparse(X):
            values = np.asarray(X, dtype=np.float64)
            self.range_ = np.stack([values.min(axis=0), values.max(axis=0)])

    def _student_rows(self, X: Any) -> Any:
        rows = super()._student_rows(X)
        return rows if self.range_ is None else np.clip(rows, *self.range_)

    def _predict_proba(self, X: Any) -> np.ndarray:
        return expit(self._logits(self.student_, self._student_rows(X)) + self.shift_)

    def _relative_to_thresholds(self, probabilities: np.ndarray) -> np.ndarray:
        logits = log_odds(probabilities.astype(np.float64), _EPS)
        return expit(logits - self.threshold_logits_)

    def _rule_for_probabilities(self, rule: Threshold) -> Threshold:
        if not isinstance(rule, FixedThreshold) or not self.threshold_logits_.any():
            return rule
        logits = self.threshold_logits_ + log_odds(np.float64(rule.value), _EPS)
        own = PerLabelThreshold()
        own.values_, own.common_ = expit(logits), float(expit(logits.mean()))
        same = bool(np.ptp(logits) == 0)
        return FixedThreshold(own.common_) if same else own

    def _state(self) -> dict[str, Any]:
        fitted = {"shift": self.shift_, "range": self.range_, "linear": self.linear_}
        return {**super()._state(), **fitted, "threshold_logits": self.threshold_logits_}

    def _set_state(self, state: Mapping[str, Any]) -> None:
        super()._set_state(state)
        self.shift_, self.range_ = float(state["shift"]), state["range"]
        self.linear_ = state["linear"]
        self.threshold_logits_ = state["threshold_logits"]
        if np.shape(self.threshold_logits_) != (self.n_labels_,):
            raise InputError("a distilled union has one threshold per label")
        if self.range_ is not None and self.range_.shape != (2, self.n_features_in_):
            raise InputError("a distilled union has a smallest and a largest value per feature")
