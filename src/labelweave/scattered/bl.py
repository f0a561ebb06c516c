"""BL: a student of the teachers' votes."""

from __future__ import annotations

import numpy as np

from labelweave.scattered.amalgamator import Amalgamator
from labelweave.scattered.integration import integrate
from labelweave.scattered.lesson import Lesson

__all__ = ["BL"]


class BL(Amalgamator):
    """Baseline: the student learns the majority vote of the teachers, a tie counts as positive.

    Any teacher will do: only the side of one half that its probability is on matters.

    Parameters
    ----------
    teachers : sequence of Teacher
    **options
        The other parameters of :class:`labelweave.scattered.amalgamator.Amalgamator`.

    References
    ----------
    .. [1] J. Thadajarassiri, T. Hartvigsen, W. Gerych, X. Kong and E. Rundensteiner. Knowledge
       Amalgamation for Multi-Label Classification via Label Dependency Transfer. AAAI 2023.
    """

    def _targets(self, lesson: Lesson) -> np.ndarray:
        return integrate(lesson.opinions.heard(), "vote")
