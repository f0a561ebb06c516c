"""ANT: a student of teachers that first exchange their knowledge."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit
from sklearn.utils._param_validation import Interval, StrOptions

from labelweave.probabilities import log_odds
from labelweave.scattered._amalgamation.agreement import Disagreement
from labelweave.scattered._amalgamation.integration import (
    INTEGRATION_RULES,
    integrate,
    teacher_reliability,
)
from labelweave.scattered._amalgamation.student_method import StudentMethod
from labelweave.scattered._amalgamation.training_set import TrainingSet
from labelweave.scattered.ant_prevalence import prevalence_correction
from labelweave.scattered.ant_transfer import exchange_knowledge
from labelweave.scattered.teacher import Teacher, take_rows

__all__ = ["ANT"]

_EPS = 1e-12  # keeps the order of very small probabilities


class ANT(StudentMethod):
    """Adaptive knowledge transfer: one student for the labels of all teachers [1]_.

    Where one teacher predicts a label positive and another predicts it negative, the first is the
    transferor and the second the transferee (Transfer Indicator). The transferee revises its
    predictions of its other labels, given the transferor's prediction (Knowledge Transfer
    Module). The most confident prediction of each label, positive ones first, is the target
    of the student (Prediction Integrator). No labelled row is needed. The three components are pure
    functions in :mod:`labelweave.scattered.ant_transfer`.

    Beyond the paper, the student also learns from synthetic rows (`augment`), and its logits are
    shifted to the label prevalence that the teachers know
    (:mod:`labelweave.scattered.ant_prevalence`). ``augment=0, prevalence_weight=0`` leaves both
    out.

    Parameters
    ----------
    teachers : sequence of Teacher
    integrate : {"positive", "mean-logit", "vote", "reliability"}, default="positive"
        How the predictions of the teachers are combined. ``"positive"`` is the paper's rule (Eq.
        5): the highest probability if any is above one half, else the lowest. ``"mean-logit"`` is
        the mean of the logits, ``"vote"`` the majority vote, ``"reliability"`` a mean weighted by
        the reliability of each teacher, which is estimated from their agreement.
    max_rounds : int, default=10
        Largest number of rounds of knowledge transfer; with 0 there is none.
    prevalence_weight : float from 0 to 1, default=1.0
        How far the student's logits are shifted towards the label prevalence; 0 leaves them as
        they are.
    min_precision : float from 0 to 1, default=0.6
        The predicted labels of the rows of `fit` have at least this mean probability according to
        the teachers; fewer labels are predicted where it would be lower.
    augment : float or "auto", default="auto"
        Number of synthetic rows per row, as in
        :class:`labelweave.scattered._amalgamation.student_method.StudentMethod`.
    student, aliases, match, calibration, batch_rows, verbose, on_disagreement
        As in :class:`labelweave.scattered._amalgamation.student_method.StudentMethod`.
    threshold, validation_fraction, random_state
        As in :class:`labelweave.scattered._amalgamation.student_method.StudentMethod`.

    Attributes
    ----------
    shift_ : ndarray
        What is added to the student's logits of each label.
    notes_ : dict
        `transfers` (number of predictions that were transferred, each to one transferee),
        `revised` (number of entries that became positive by a revision), `rounds`, and
        `cannot_revise` (names of the teachers that are not chains).

    Notes
    -----
    Only a teacher that is a chain can revise its predictions (it has `chain_logits`, as
    :class:`labelweave.dependent.ofcc.OFCC`). Any other teacher can be a transferor, but not a
    transferee: without chains among the teachers ANT consists of the integrator and the student.

    Choices: the targets are computed once, before the student is trained, since they do not depend
    on it; the student stops early on held-out rows; among several transferors the most confident
    one is chosen.

    References
    ----------
    .. [1] J. Thadajarassiri, T. Hartvigsen, W. Gerych, X. Kong and E. Rundensteiner. Knowledge
       Amalgamation for Multi-Label Classification via Label Dependency Transfer. AAAI 2023.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from labelweave.dependent.ofcc import OFCC
    >>> X, Y = make_multilabel_classification(600, n_classes=5, random_state=0)
    >>> first = OFCC(16, epochs=10, random_state=0).fit(X[:200], Y[:200, :3])
    >>> second = OFCC(16, epochs=10, random_state=0).fit(X[200:400], Y[200:400, 2:])
    >>> teachers = [Teacher(first, ["a", "b", "c"]), Teacher(second, ["c", "d", "e"])]
    >>> student = ANT(teachers, random_state=0).fit(X[400:])
    >>> student.label_names_.tolist(), student.predict(X[:2]).shape
    (['a', 'b', 'c', 'd', 'e'], (2, 5))
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **StudentMethod._parameter_constraints,
        "integrate": [StrOptions(set(INTEGRATION_RULES))],
        "max_rounds": [Interval(Integral, 0, None, closed="left")],
        "prevalence_weight": [Interval(Real, 0, 1, closed="both")],
        "min_precision": [Interval(Real, 0, 1, closed="both")],
    }

    def __init__(
        self,
        teachers: Sequence[Teacher] = (),
        *,
        integrate: str = "positive",
        max_rounds: int = 10,
        prevalence_weight: float = 1.0,
        min_precision: float = 0.6,
        student: Any = None,
        augment: float | str = "auto",
        aliases: Mapping[str, str] | None = None,
        match: str = "ignore-case",
        calibration: str | None = None,
        batch_rows: int = 4096,
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
            batch_rows=batch_rows,
            verbose=verbose,
            on_disagreement=on_disagreement,
            threshold=threshold,
            validation_fraction=validation_fraction,
            random_state=random_state,
        )
        self.integrate = integrate
        self.max_rounds = max_rounds
        self.prevalence_weight = prevalence_weight
        self.min_precision = min_precision

    def _targets(self, training_set: TrainingSet) -> np.ndarray:
        predictions = training_set.predictions
        transfer = exchange_knowledge(predictions, training_set.X, max_rounds=self.max_rounds)
        self.notes_ = {
            "transfers": transfer.n_transfers,
            "revised": transfer.n_revised,
            "rounds": transfer.n_rounds,
            "cannot_revise": [
                name
                for name, teacher in zip(predictions.names, predictions.teachers, strict=True)
                if not teacher.can_revise
            ],
        }
        revised = predictions._replace(logits=transfer.logits).without_abstentions()
        if self.integrate != "reliability":
            return integrate(revised, self.integrate)
        weights = teacher_reliability(predictions, training_set.known_labels)
        self.notes_["reliability"] = weights
        return integrate(revised, "reliability", np.array(list(weights.values()), np.float32))

    # -- beyond the paper: label prevalence --------------------------------------------

    def _train_student(self, student: Any, training_set: TrainingSet, targets: np.ndarray) -> Any:
        fitted = super()._train_student(student, training_set, targets)
        self.shift_ = np.zeros(self.n_labels_)
        if self.prevalence_weight > 0 and not np.isnan(self.label_prevalence_).all():
            rows = training_set.real_rows()
            p = fitted.predict_proba(self._student_rows(take_rows(training_set.X, rows)))
            self.shift_ = prevalence_correction(
                log_odds(p.astype(np.float64), _EPS),
                training_set.predictions.logits[:, rows],
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
