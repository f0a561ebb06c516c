"""The teachers themselves, joined: no student, nothing learnt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import StrOptions

from labelweave.exceptions import InputError
from labelweave.rows import count_rows
from labelweave.scattered.amalgamator import Amalgamator
from labelweave.scattered.integration import RULES
from labelweave.scattered.lesson import Lesson
from labelweave.scattered.opinions import ask_teachers, join_teachers
from labelweave.scattered.rules import integrated
from labelweave.scattered.teacher import Teacher
from labelweave.scattered.transfer import transfer

__all__ = ["TeacherUnion"]


class TeacherUnion(Amalgamator):
    """All teachers kept and asked about each row; their opinions are joined by a rule.

    What a student is measured against: it costs all teachers at each prediction and can learn
    nothing from their sum.

    Parameters
    ----------
    teachers : sequence of Teacher
    integrate : {"mean-logit", "positive", "vote", "reliability"}, default="mean-logit"
        As in :class:`labelweave.scattered.ant.ANT`.
    revise : bool, default=False
        Whether teachers that are chains tell one another what they find, as in ANT.
    aliases, match, calibration, batch_rows, verbose
        As in :class:`labelweave.scattered.amalgamator.Amalgamator`.
    threshold, validation_fraction, random_state
        As there. A union has neither `student` nor `augment`: nothing is trained.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        name: kinds
        for name, kinds in Amalgamator._parameter_constraints.items()
        if name not in ("student", "augment")
    } | {
        "integrate": [StrOptions(set(RULES))],
        "revise": ["boolean"],
    }

    def __init__(
        self,
        teachers: Sequence[Teacher] = (),
        *,
        integrate: str = "mean-logit",
        revise: bool = False,
        aliases: Mapping[str, str] | None = None,
        match: str = "ignore-case",
        calibration: str | None = None,
        batch_rows: int = 4096,
        verbose: int = 0,
        threshold: Any = 0.5,
        validation_fraction: float = 0.2,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            teachers,
            aliases=aliases,
            match=match,
            calibration=calibration,
            batch_rows=batch_rows,
            verbose=verbose,
            threshold=threshold,
            validation_fraction=validation_fraction,
            random_state=random_state,
        )
        self.integrate = integrate
        self.revise = revise

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.capabilities.randomized = False
        return tags

    def _targets(self, lesson: Lesson) -> np.ndarray:
        self.notes_ = {}
        self.asked_ = lesson.opinions.teachers  # calibrated, where that was asked for
        return self._joined(lesson)

    def _joined(self, lesson: Lesson) -> np.ndarray:
        opinions = lesson.opinions
        if self.revise:
            opinions = opinions._replace(logits=transfer(opinions, lesson.X).logits)
        if self.integrate == "reliability" and "reliability" in self.notes_:
            from labelweave.scattered.integration import integrate

            weights = [self.notes_["reliability"][name] for name in opinions.names]
            return integrate(opinions.heard(), "reliability", np.array(weights, np.float32))
        return integrated(opinions.heard(), self.integrate, lesson, self.notes_)

    def _train(self, student: Any, lesson: Lesson, targets: np.ndarray) -> Any:
        return None

    def _predict_proba(self, X: Any) -> np.ndarray:
        vocabulary = join_teachers(self.asked_, aliases=self.aliases, match=self.match)
        opinions = ask_teachers(self.asked_, vocabulary, X, batch_rows=self.batch_rows)
        found = self._joined(Lesson(X, opinions, None, np.arange(count_rows(X)), 0, 0))
        # Where all teachers abstain nothing speaks for the label.
        return np.nan_to_num(found, nan=0.0)

    def _checked_features(self, X: Any, *, reset: bool) -> Any:
        checked = super()._checked_features(X, reset=reset)
        return X if hasattr(X, "iloc") else checked  # teachers may know columns by their names

    def _own_rows(self, X: Any) -> Any:
        return X

    def _state(self) -> dict[str, Any]:
        raise InputError(
            "a union of teachers cannot be saved, since it is made of them: save each teacher, or "
            "train a student (ant, tc)"
        )
