"""BL: a student of the teachers' majority vote."""

from __future__ import annotations

from typing import Self

import numpy as np

from labelweave.scattered._amalgamation.integration import integrate
from labelweave.scattered._amalgamation.student import published_student
from labelweave.scattered._amalgamation.student_method import StudentMethod
from labelweave.scattered._amalgamation.training_set import TrainingSet

__all__ = ["BL"]


class BL(StudentMethod):
    """Baseline: the student learns the majority vote of the teachers; a tie is positive [1]_.

    Any teacher can be used: it only matters whether its probability is above one half.

    Parameters
    ----------
    teachers : sequence of Teacher
    student, augment, aliases, match, calibration, verbose, on_disagreement, threshold,
    validation_fraction, random_state
        As in :class:`labelweave.scattered._amalgamation.student_method.StudentMethod`.

    References
    ----------
    .. [1] J. Thadajarassiri, T. Hartvigsen, W. Gerych, X. Kong and E. Rundensteiner. Knowledge
       Amalgamation for Multi-Label Classification via Label Dependency Transfer. AAAI 2023.
    """

    @classmethod
    def published(cls, dataset: str | None = None) -> Self:
        """BL with the student of the ANT paper's tables; `dataset` is a name of the catalog."""
        return cls(student=published_student(dataset))

    def _targets(self, training_set: TrainingSet) -> np.ndarray:
        return integrate(training_set.predictions.without_abstentions(), "vote")
