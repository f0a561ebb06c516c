"""ANT: a student of teachers that first tell one another what they are sure of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit
from sklearn.utils._param_validation import Interval, StrOptions

from labelweave.probabilities import log_odds
from labelweave.scattered.amalgamator import Amalgamator
from labelweave.scattered.integration import RULES
from labelweave.scattered.label_rates import judged, n_trusted, rate_shift, shift_to_count
from labelweave.scattered.lesson import Lesson
from labelweave.scattered.rules import integrated
from labelweave.scattered.teacher import Teacher, take_rows
from labelweave.scattered.transfer import transfer

__all__ = ["ANT"]

_EPS = 1e-12  # keeps the order of very small probabilities


class ANT(Amalgamator):
    """Adaptive knowledge transfer: one student for the labels of all teachers.

    Where one teacher finds a label positive and another that knows it does not, the first tells
    the second (transfer indicator), which revises what it thinks of its other labels (knowledge
    transfer). For each label the most confident opinion counts, positive ones first (prediction
    integrator), and the student learns that probability. No label of any row is needed.

    Where teachers tell how frequent labels were when they learnt, as models of this library do,
    the student's log odds are then shifted: for each label, until it is as frequent among the rows
    of `fit`; and for all together, until as many labels are above one half as are expected, or
    as many of them as the teachers, on average, hold for right with `precision`.

    Parameters
    ----------
    teachers : sequence of Teacher
    integrate : {"positive", "mean-logit", "vote", "reliability"}, default="positive"
        How the opinions become one. ``"positive"`` is the paper's rule (Eq. 5): the highest
        probability if any is above one half, else the lowest. ``"mean-logit"`` is the mean of
        the log odds, ``"vote"`` a vote, ``"reliability"`` a mean weighted by how far each
        teacher can be trusted, found from their agreement; see
        :func:`labelweave.scattered.reliability.reliability`.
    max_rounds : int, default=10
        Most rounds in which teachers tell one another what they found; 0 leaves the transfer
        out.
    rates : float from 0 to 1, default=1.0
        How far the student's log odds are shifted towards the teachers' label rates; 0 leaves
        them, and the number of labels, as they are.
    precision : float from 0 to 1, default=0.6
        Mean probability, at least, that the labels above one half have among the rows of `fit`
        in the eyes of the teachers (the mean of those that know a label, moved to the rates).
    augment : float or "auto", default="auto"
        As in the base, where the default is 0: the chain of few rows learns much from made-up
        ones.
    **options
        The other parameters of :class:`labelweave.scattered.amalgamator.Amalgamator`.

    Attributes
    ----------
    shift_ : ndarray
        What is added to the student's log odds of each label.
    notes_ : dict
        `told` (times that a teacher was told a label of a row), `turned` (entries that turned
        positive by that), `rounds`, and `deaf` (teachers that are no chains).

    Notes
    -----
    Only a teacher that is a chain can revise (it has `chain_logits`, as
    :class:`labelweave.dependent.ofcc.OFCC`). Any other has its say, may tell others, and is told
    nothing: with no chain among the teachers ANT is its integration rule and the student.

    Departures from the paper: targets are computed once, before the student is trained, since
    they do not depend on it; the student stops early on rows held out; with three teachers or
    more the most confident one tells; made-up rows, and what is done with the rates
    (``augment=0, rates=0`` leaves both out).

    References
    ----------
    .. [1] J. Thadajarassiri, T. Hartvigsen, W. Gerych, X. Kong and E. Rundensteiner. Knowledge
       Amalgamation for Multi-Label Classification via Label Dependency Transfer. AAAI 2023.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from labelweave.dependent.ofcc import OFCC
    >>> X, Y = make_multilabel_classification(600, n_classes=5, random_state=0)
    >>> cat = OFCC(16, epochs=10, random_state=0).fit(X[:200], Y[:200, :3])
    >>> dog = OFCC(16, epochs=10, random_state=0).fit(X[200:400], Y[200:400, 2:])
    >>> teachers = [Teacher(cat, ["a", "b", "c"]), Teacher(dog, ["c", "d", "e"])]
    >>> student = ANT(teachers, random_state=0).fit(X[400:])
    >>> student.label_names_.tolist(), student.predict(X[:2]).shape
    (['a', 'b', 'c', 'd', 'e'], (2, 5))
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Amalgamator._parameter_constraints,
        "integrate": [StrOptions(set(RULES))],
        "max_rounds": [Interval(Integral, 0, None, closed="left")],
        "rates": [Interval(Real, 0, 1, closed="both")],
        "precision": [Interval(Real, 0, 1, closed="both")],
    }

    def __init__(
        self,
        teachers: Sequence[Teacher] = (),
        *,
        integrate: str = "positive",
        max_rounds: int = 10,
        rates: float = 1.0,
        precision: float = 0.6,
        augment: float | str = "auto",
        **options: Any,
    ) -> None:
        super().__init__(teachers, augment=augment, **options)
        self.integrate = integrate
        self.max_rounds = max_rounds
        self.rates = rates
        self.precision = precision

    def _targets(self, lesson: Lesson) -> np.ndarray:
        found = transfer(lesson.opinions, lesson.X, max_rounds=self.max_rounds)
        self.notes_ = {
            "told": found.n_told,
            "turned": found.n_turned,
            "rounds": found.n_rounds,
            "deaf": [
                name
                for name, teacher in zip(
                    lesson.opinions.names, lesson.opinions.teachers, strict=True
                )
                if teacher.kind != "chain"
            ],
        }
        heard = lesson.opinions._replace(logits=found.logits).heard()
        return integrated(heard, self.integrate, lesson, self.notes_)

    def _train(self, student: Any, lesson: Lesson, targets: np.ndarray) -> Any:
        fitted = super()._train(student, lesson, targets)
        self.shift_ = np.zeros(self.n_labels_)
        if self.rates > 0 and not np.isnan(self.label_prevalence_).all():
            # All rows but those that were made up.
            rows = np.flatnonzero(
                (lesson.numbers >= 0) | (np.arange(len(targets)) >= lesson.n_train)
            )
            p = fitted.predict_proba(self._own_rows(take_rows(lesson.X, rows)))
            odds = log_odds(p.astype(np.float64), _EPS)
            self.shift_ = self.rates * rate_shift(odds, self.label_prevalence_)
            odds = odds + self.shift_
            judgement = judged(lesson.opinions.logits[:, rows], self.label_prevalence_, self.rates)
            n_positive = n_trusted(odds, judgement, self.precision)
            self.shift_ = self.shift_ - shift_to_count(odds, n_positive)
        return fitted

    def _predict_proba(self, X: Any) -> np.ndarray:
        found = super()._predict_proba(X)
        if not self.shift_.any():
            return found
        return expit(log_odds(found.astype(np.float64), _EPS) + self.shift_)

    def _state(self) -> dict[str, Any]:
        return {**super()._state(), "shift": self.shift_}

    def _set_state(self, state: Mapping[str, Any]) -> None:
        super()._set_state(state)
        self.shift_ = state["shift"] if "shift" in state else np.zeros(len(self.label_names_))
