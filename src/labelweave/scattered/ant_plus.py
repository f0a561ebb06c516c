"""ANT+: ANT with synthetic rows, and with the label prevalence that the teachers know.

A student of few rows predicts some labels too often and others too rarely. Teachers that know the
prevalence of their labels say how often each should be positive, and their mean probability says
how many of the student's positive predictions are likely to be right.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit
from sklearn.utils._param_validation import Interval, StrOptions

from labelweave.probabilities import log_odds
from labelweave.scattered._amalgamation.agreement import Disagreement
from labelweave.scattered._amalgamation.integration import INTEGRATION_RULES
from labelweave.scattered._amalgamation.prevalence import prevalence_shift, shift_to_count
from labelweave.scattered._amalgamation.student_method import StudentMethod
from labelweave.scattered._amalgamation.training_set import TrainingSet
from labelweave.scattered.ant import ant_targets
from labelweave.scattered.teacher import Teacher, take_rows

__all__ = ["ANTPlus", "count_positives", "mean_probability", "prevalence_correction"]

_EPS = 1e-12  # keeps the order of very small probabilities


def prevalence_correction(
    student_logits: np.ndarray,
    teacher_logits: np.ndarray,
    offsets: np.ndarray,
    prevalence: np.ndarray,
    *,
    weight: float,
    min_precision: float,
) -> np.ndarray:
    """What is added to the student's logits of each label.

    1. For each label, the shift with which its mean probability is its prevalence, times `weight`.
    2. For all labels, one common shift, after which :func:`count_positives` of them are positive.

    The logits of the teachers (teachers, rows, labels), less the `offsets` of their thresholds
    (teachers, labels), are NaN where a label is not one of the teacher's. Step 1 leaves labels out
    whose prevalence is NaN, unknown.
    """
    shift = weight * prevalence_shift(student_logits, prevalence)
    shifted = student_logits + shift
    consensus = mean_probability(teacher_logits, offsets, prevalence, weight)
    n_positive = count_positives(shifted, consensus, min_precision)
    return shift - shift_to_count(shifted, n_positive)


def mean_probability(
    logits: np.ndarray, offsets: np.ndarray, prevalence: np.ndarray, weight: float
) -> np.ndarray:
    """The mean of the teachers' probabilities, each teacher shifted towards the prevalence.

    The logits (teachers, rows, labels) are relative to the thresholds, whose logits are the
    `offsets` (teachers, labels), and so are the probabilities: from one half on, a teacher predicts
    the label. A `weight` of 0 leaves the logits as they are.
    """
    known = ~np.isnan(logits)
    shifted = [
        expit(teacher + weight * prevalence_shift(teacher + offset, prevalence))
        for teacher, offset in zip(logits.astype(np.float64), offsets, strict=True)
    ]
    return np.where(known, shifted, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)


def count_positives(logits: np.ndarray, consensus: np.ndarray, min_precision: float) -> int:
    """The number of entries that should be positive, those with the highest logits first.

    It is the sum of their probabilities, or less: the largest number of entries with a mean
    `consensus` of at least `min_precision`.

    >>> logits = np.array([[2.0, 1.0], [0.5, -1.0]])
    >>> consensus = np.array([[0.9, 0.5], [0.2, 0.1]])
    >>> count_positives(logits, consensus, 0.5), count_positives(logits, consensus, 0.6)
    (3, 2)
    """
    ranked = np.argsort(-logits, axis=None, kind="stable")
    precision = np.cumsum(consensus.ravel()[ranked]) / np.arange(1, logits.size + 1)
    precise = np.flatnonzero(precision >= min_precision)
    n_expected = round(float(expit(logits).sum()))
    return min(n_expected, int(precise[-1]) + 1 if len(precise) else 0)


class ANTPlus(StudentMethod):
    """ANT [1]_, with synthetic rows for the student and a shift to the label prevalence.

    The targets are those of :class:`labelweave.scattered.ant.ANT`. The student learns them on
    synthetic rows too, and its logits are then shifted, so that each label is predicted as often
    as in the training rows of the teachers, and no more labels than the teachers support.

    Parameters
    ----------
    teachers : sequence of Teacher
    prevalence_weight : float from 0 to 1, default=1.0
        How far the student's logits are shifted towards the label prevalence; 0 leaves them as
        they are.
    min_precision : float from 0 to 1, default=0.6
        The predicted labels of the rows of `fit` have at least this mean probability according to
        the teachers, relative to their thresholds; fewer labels are predicted where it would be
        lower.
    augment : float or "auto", default="auto"
        Number of synthetic rows per row.
    integrate, max_rounds
        As in :class:`labelweave.scattered.ant.ANT`.
    keep_original : bool or "several", default=True
        As in :class:`labelweave.scattered.ant.ANT`.
    student, aliases, match, calibration, verbose, on_disagreement, threshold,
    validation_fraction, random_state
        As in :class:`labelweave.scattered._amalgamation.student_method.StudentMethod`.

    Attributes
    ----------
    shift_ : ndarray
        What is added to the student's logits of each label.
    notes_ : dict
        As in :class:`labelweave.scattered.ant.ANT`.

    References
    ----------
    .. [1] J. Thadajarassiri, T. Hartvigsen, W. Gerych, X. Kong and E. Rundensteiner. Knowledge
       Amalgamation for Multi-Label Classification via Label Dependency Transfer. AAAI 2023.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **StudentMethod._parameter_constraints,
        "prevalence_weight": [Interval(Real, 0, 1, closed="both")],
        "min_precision": [Interval(Real, 0, 1, closed="both")],
        "integrate": [StrOptions(set(INTEGRATION_RULES))],
        "max_rounds": [Interval(Integral, 0, None, closed="left")],
        "keep_original": ["boolean", StrOptions({"several"})],
    }

    def __init__(
        self,
        teachers: Sequence[Teacher] = (),
        *,
        prevalence_weight: float = 1.0,
        min_precision: float = 0.6,
        integrate: str = "positive",
        max_rounds: int = 10,
        keep_original: bool | str = True,
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
        self.teachers = teachers
        self.prevalence_weight = prevalence_weight
        self.min_precision = min_precision
        self.integrate = integrate
        self.max_rounds = max_rounds
        self.keep_original = keep_original
        self.student = student
        self.augment = augment
        self.aliases = aliases
        self.match = match
        self.calibration = calibration
        self.verbose = verbose
        self.on_disagreement = on_disagreement
        self.threshold = threshold
        self.validation_fraction = validation_fraction
        self.random_state = random_state

    def _targets(self, training_set: TrainingSet) -> np.ndarray:
        targets, self.notes_ = ant_targets(
            training_set,
            rule=self.integrate,
            max_rounds=self.max_rounds,
            keep_original=self.keep_original,
        )
        return targets

    def _train_student(self, student: Any, training_set: TrainingSet, targets: np.ndarray) -> Any:
        fitted = super()._train_student(student, training_set, targets)
        self.shift_ = np.zeros(self.n_labels_)
        if self.prevalence_weight > 0 and not np.isnan(self.label_prevalence_).all():
            rows = training_set.real_rows()
            p = fitted.predict_proba(self._student_rows(take_rows(training_set.X, rows)))
            self.shift_ = prevalence_correction(
                log_odds(p.astype(np.float64), _EPS),
                training_set.predictions.logits[:, rows],
                training_set.predictions.offsets,
                self.label_prevalence_,
                weight=self.prevalence_weight,
                min_precision=self.min_precision,
            )
        return fitted

    def _predict_proba(self, X: Any) -> np.ndarray:
        p = super()._predict_proba(X)
        if not self.shift_.any():
            return p
        return expit(log_odds(p.astype(np.float64), _EPS) + self.shift_)

    def _state(self) -> dict[str, Any]:
        return {**super()._state(), "shift": self.shift_}

    def _set_state(self, state: Mapping[str, Any]) -> None:
        super()._set_state(state)
        self.shift_ = state["shift"]
