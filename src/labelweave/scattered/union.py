"""The union of teachers: all of them are kept and combined, nothing is trained."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import StrOptions

from labelweave.scattered._amalgamation.agreement import Disagreement
from labelweave.scattered._amalgamation.integration import (
    INTEGRATION_RULES,
    integrate,
    teacher_reliability,
)
from labelweave.scattered._amalgamation.saved_teachers import (
    loaded_teachers,
    loaded_vocabulary,
    saved_teachers,
)
from labelweave.scattered._amalgamation.teacher_method import TeacherMethod
from labelweave.scattered._amalgamation.teacher_predictions import (
    TeacherPredictions,
    teacher_logits,
)
from labelweave.scattered._amalgamation.training_set import TrainingSet
from labelweave.scattered.ant_transfer import exchange_knowledge
from labelweave.scattered.teacher import Teacher

__all__ = ["TeacherUnion"]


class TeacherUnion(TeacherMethod):
    """All teachers are kept, predict each row, and are combined by a rule.

    A student is compared with it. A prediction costs the predictions of all teachers, and nothing
    is trained. A saved union contains its teachers, and the addresses of those that are reached by
    HTTP (never their keys); teachers that are functions cannot be saved.

    Parameters
    ----------
    teachers : sequence of Teacher
    integrate : {"mean-logit", "positive", "vote", "reliability"}, default="mean-logit"
        As in :class:`labelweave.scattered.ant.ANT`.
    revise : bool, default=False
        Whether teachers that are chains exchange their knowledge, as in ANT.
    aliases, match, calibration, verbose, on_disagreement, threshold, validation_fraction,
    random_state
        As in :class:`labelweave.scattered._amalgamation.teacher_method.TeacherMethod`.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **TeacherMethod._parameter_constraints,
        "integrate": [StrOptions(set(INTEGRATION_RULES))],
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
        verbose: int = 0,
        on_disagreement: Callable[[Disagreement], None] | None = None,
        threshold: Any = 0.5,
        validation_fraction: float = 0.2,
        random_state: Any = None,
    ) -> None:
        self.teachers = teachers
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
        predictions = training_set.predictions
        self._calibrated_teachers = predictions.teachers
        self._vocabulary = predictions.vocabulary
        if self.integrate == "reliability":
            weights = teacher_reliability(predictions, training_set.known_labels)
            self.notes_["reliability"] = weights
        return self._combined(predictions, training_set.X)

    def _combined(self, predictions: TeacherPredictions, X: Any) -> np.ndarray:
        """P(label | x) of all teachers together; NaN where all of them abstain."""
        if self.revise:
            predictions = predictions._replace(logits=exchange_knowledge(predictions, X).logits)
        weights = None
        if self.integrate == "reliability":
            weights = np.array(list(self.notes_["reliability"].values()), np.float32)
        return integrate(predictions.without_abstentions(), self.integrate, weights)

    def _union(self, X: Any) -> np.ndarray:
        logits = teacher_logits(self._calibrated_teachers, self._vocabulary, X)
        return self._combined(
            TeacherPredictions(self._calibrated_teachers, self._vocabulary, logits), X
        )

    def _predict_proba(self, X: Any) -> np.ndarray:
        return np.nan_to_num(self._union(X), nan=0.0)  # negative where all teachers abstain

    def _state(self) -> dict[str, Any]:
        return {
            **super()._state(),
            "kept_teachers": saved_teachers(self._calibrated_teachers),
            "columns": [part.astype(np.int64) for part in self._vocabulary.columns],
        }

    def _set_state(self, state: Mapping[str, Any]) -> None:
        super()._set_state(state)
        self._calibrated_teachers = loaded_teachers(state["kept_teachers"])
        self._vocabulary = loaded_vocabulary(
            self.label_names_, self._calibrated_teachers, state["columns"]
        )
        self.teachers = self._calibrated_teachers

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.capabilities.randomized = False
        return tags
