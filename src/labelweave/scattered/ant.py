"""ANT: a student of teachers that first exchange their knowledge."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from labelweave.scattered._amalgamation.agreement import Disagreement
from labelweave.scattered._amalgamation.integration import (
    INTEGRATION_RULES,
    integrate,
    teacher_reliability,
)
from labelweave.scattered._amalgamation.student import published_student
from labelweave.scattered._amalgamation.student_method import StudentMethod
from labelweave.scattered._amalgamation.training_set import TrainingSet
from labelweave.scattered.ant_transfer import exchange_knowledge
from labelweave.scattered.teacher import Teacher

__all__ = ["ANT", "ant_targets"]


def ant_targets(
    training_set: TrainingSet, *, rule: str, max_rounds: int, keep_original: bool | str
) -> tuple[np.ndarray, dict[str, Any]]:
    """P(y_j | x), the targets of the student (Eq. 1 to 5), and figures of the transfer.

    Parameters
    ----------
    training_set : TrainingSet
    rule : {"positive", "mean-logit", "vote", "reliability"}
        The paper's Prediction Integrator is ``"positive"``.
    max_rounds, keep_original
        As in :func:`labelweave.scattered.ant_transfer.exchange_knowledge`.

    Returns
    -------
    targets : array of shape (rows, labels)
    notes : dict
        See the attribute `notes_` of :class:`ANT`.
    """
    predictions = training_set.predictions
    transfer = exchange_knowledge(
        predictions, training_set.X, max_rounds=max_rounds, keep_original=keep_original
    )
    revised = predictions._replace(logits=transfer.logits)
    weights = None
    notes: dict[str, Any] = {
        "transfers": transfer.n_transfers,
        "revised": transfer.n_revised,
        "rounds": transfer.n_rounds,
        "cannot_revise": [
            name
            for name, teacher in zip(predictions.names, predictions.teachers, strict=True)
            if not teacher.can_revise
        ],
    }
    if rule == "reliability":
        notes["reliability"] = teacher_reliability(predictions, training_set.known_labels)
        weights = np.array(list(notes["reliability"].values()), np.float32)
    targets = integrate(revised.without_abstentions(), rule, weights)
    without_transfer = integrate(predictions.without_abstentions(), rule, weights)
    notes["targets"] = int(np.count_nonzero(~np.isnan(targets)))
    notes["changed_targets"] = int(np.count_nonzero((targets > 0.5) != (without_transfer > 0.5)))
    return targets, notes


class ANT(StudentMethod):
    """Adaptive knowledge transfer: one student for the labels of all teachers [1]_.

    Where one teacher predicts a label positive and another predicts it negative, the first is the
    transferor and the second the transferee (Transfer Indicator). The transferee revises its
    predictions of its other labels, given the transferor's prediction (Knowledge Transfer
    Module). The most confident prediction of each label, positive ones first, is the target
    of the student (Prediction Integrator). No labelled row is needed. The three components are pure
    functions in :mod:`labelweave.scattered.ant_transfer`.

    This is the method of the paper. :class:`labelweave.scattered.ant_plus.ANTPlus` adds synthetic
    rows and the label prevalence.

    Parameters
    ----------
    teachers : sequence of Teacher
        The paper's teachers are order-free chains (:class:`labelweave.dependent.ofcc.OFCC`).
    integrate : {"positive", "mean-logit", "vote", "reliability"}, default="positive"
        How the predictions of the teachers are combined. ``"positive"`` is the paper's rule (Eq.
        5): the highest probability if any is above one half, else the lowest. ``"mean-logit"`` is
        the mean of the logits, ``"vote"`` the majority vote, ``"reliability"`` a mean weighted by
        the reliability of each teacher, which is estimated from their agreement.
    max_rounds : int, default=10
        Largest number of rounds of knowledge transfer; with 0 there is none.
    keep_original : bool or "several", default="several"
        Whether the prediction that a transferee made before its revision stays a candidate of
        Eq. 4. With False the revised prediction replaces it (Eq. 3), with True it stays. By
        default, as in the authors' program, it is replaced, except in rows in which several
        teachers are transferees: there one teacher is revised at a time, and all results are
        integrated.
    student : estimator or id of a method, optional
        By default the paper's order-free chain with its settings (`published`).
    augment, aliases, match, calibration, verbose, on_disagreement, threshold,
    validation_fraction, random_state
        As in :class:`labelweave.scattered._amalgamation.student_method.StudentMethod`.

    Attributes
    ----------
    notes_ : dict
        `transfers` (number of predictions that were transferred, each to one transferee),
        `revised` (number of entries that became positive by a revision), `rounds`,
        `targets` (number of entries that the student learns), `changed_targets` (number of those
        that the transfer moved to the other side of one half), and `cannot_revise` (names of the
        teachers that are not chains).

    Notes
    -----
    Only a teacher that is a chain can revise its predictions (it has `chain_logits`, as
    :class:`labelweave.dependent.ofcc.OFCC`). Any other teacher can be a transferor, but not a
    transferee: without chains among the teachers ANT consists of the integrator and the student.

    Where the text and the authors' program differ, the default is the program, which made the
    published figures; ``ANT.published(dataset, source="text")`` is the text. They differ in which
    labels a chain chooses and in its loss (:meth:`labelweave.dependent.ofcc.OFCC.published`), and
    in `keep_original`.

    Choices where the paper is silent or leaves two readings:

    * Among several transferors of a label the most confident one is chosen.
    * A transferee runs again from the final logits of its first prediction, as in the authors'
      program; the text only says that the initial probability of y_c is set. It runs once for
      each label of a row that it receives, and of several revisions the most confident counts.
    * A teacher can be the transferor of one label of a row and the transferee of another. Its
      revised prediction then replaces that of all its labels, the transferred one included.
    * Labels that become positive by a revision are transferred in the next round.
    * The logits of teachers are bounded at 9.2 on either side (probabilities of 1e-4).
    * The loss is averaged over steps, labels and rows, not summed: with Adam this changes nothing
      but the influence of its epsilon. The student standardises its features.
    * The held-out rows (`validation_fraction`) are not learnt, although the paper's student, which
      does not stop early, needs none: `fidelity_` and a tuned threshold use them. With
      ``validation_fraction=0`` the student learns all rows.
    * The targets are computed once, before the student is trained, since they do not depend on it.
    * A student that predicts the same for every row is trained again with a lower learning rate.

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
    >>> student = ANT(teachers, student=OFCC(16, epochs=10), random_state=0).fit(X[400:])
    >>> student.label_names_.tolist(), student.predict(X[:2]).shape
    (['a', 'b', 'c', 'd', 'e'], (2, 5))
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **StudentMethod._parameter_constraints,
        "integrate": [StrOptions(set(INTEGRATION_RULES))],
        "max_rounds": [Interval(Integral, 0, None, closed="left")],
        "keep_original": ["boolean", StrOptions({"several"})],
    }

    def __init__(
        self,
        teachers: Sequence[Teacher] = (),
        *,
        integrate: str = "positive",
        max_rounds: int = 10,
        keep_original: bool | str = "several",
        student: Any = None,
        augment: float | str = 0.0,
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
        self.integrate = integrate
        self.max_rounds = max_rounds
        self.keep_original = keep_original

    @classmethod
    def published(cls, dataset: str | None = None, *, source: str = "program") -> Self:
        """ANT with the settings of the paper's Tables 2 to 4.

        Parameters
        ----------
        dataset : str, optional
            Name of a data set in the catalog.
        source : {"program", "text"}, default="program"
            The authors' program, which made the published figures, or the text of the paper. In the
            text a revised prediction replaces the original one in all rows, and the student is
            the text's chain (:meth:`labelweave.dependent.ofcc.OFCC.published`).
        """
        return cls(
            keep_original=False if source == "text" else "several",
            student=published_student(dataset, source=source),
        )

    def _default_chain(self) -> Any:
        return published_student()

    def _targets(self, training_set: TrainingSet) -> np.ndarray:
        targets, self.notes_ = ant_targets(
            training_set,
            rule=self.integrate,
            max_rounds=self.max_rounds,
            keep_original=self.keep_original,
        )
        return targets
