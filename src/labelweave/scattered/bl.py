"""BL: a student of the teachers' majority vote."""

from __future__ import annotations

import numpy as np

from labelweave.scattered._amalgamation.integration import integrate
from labelweave.scattered._amalgamation.student_method import StudentMethod
from labelweave.scattered._amalgamation.training_set import TrainingSet

__all__ = ["BL"]


class BL(StudentMethod):
    """Baseline: the student learns the majority vote of the teachers; a tie is positive [1]_.

    Any teacher can be used: it only matters whether its probability is above one half.

    Parameters
    ----------
    teachers : sequence of Teacher
    student, augment, aliases, match, calibration, batch_rows, verbose, on_disagreement
        As in :class:`labelweave.scattered._amalgamation.student_method.StudentMethod`.
    threshold, validation_fraction, random_state
        As in :class:`labelweave.scattered._amalgamation.student_method.StudentMethod`.

    References
    ----------
    .. [1] J. Thadajarassiri, T. Hartvigsen, W. Gerych, X. Kong and E. Rundensteiner. Knowledge
       Amalgamation for Multi-Label Classification via Label Dependency Transfer. AAAI 2023.
    """

    def _targets(self, training_set: TrainingSet) -> np.ndarray:
        return integrate(training_set.predictions.without_abstentions(), "vote")
