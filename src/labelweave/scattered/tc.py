"""TC: a student of the teachers' mean, weighted by trust where a few labels are known."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval

from labelweave.scattered.amalgamator import Amalgamator
from labelweave.scattered.integration import integrate
from labelweave.scattered.lesson import Lesson
from labelweave.scattered.teacher import Teacher

__all__ = ["TC"]


class TC(Amalgamator):
    """Teacher coordinator: the student learns the weighted mean of the teachers' log odds.

    Without labels the weights are equal, the form in which ANT is compared with it. Given labels
    of a few rows (`y` of `fit`) a small network learns from the features how far to trust each
    teacher on a row: a softmax over those that know a label.

    Parameters
    ----------
    teachers : sequence of Teacher
    trust_hidden : int, default=16
        Units of the network that gives the weights; 0 makes it linear.
    trust_steps : int, default=300
        Steps of its training, on all labelled rows at once.
    **options
        The other parameters of :class:`labelweave.scattered.amalgamator.Amalgamator`.

    Notes
    -----
    Adapted: the original is for one class a row and sequences, with a softmax over classes;
    here each label has a sigmoid. Rows of texts or of a DataFrame that is not all numbers get
    one weight a teacher, the same for all rows.

    References
    ----------
    .. [1] J. Thadajarassiri, T. Hartvigsen, X. Kong and E. Rundensteiner. Semi-Supervised
       Knowledge Amalgamation for Sequence Classification. AAAI 2021.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Amalgamator._parameter_constraints,
        "trust_hidden": [Interval(Integral, 0, None, closed="left")],
        "trust_steps": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        teachers: Sequence[Teacher] = (),
        *,
        trust_hidden: int = 16,
        trust_steps: int = 300,
        **options: Any,
    ) -> None:
        super().__init__(teachers, **options)
        self.trust_hidden = trust_hidden
        self.trust_steps = trust_steps

    def _targets(self, lesson: Lesson) -> np.ndarray:
        logits = lesson.opinions.heard()
        self.notes_ = {}
        if lesson.truth is None:
            return integrate(logits, "mean-logit")
        from labelweave.scattered.trust import trust_weights

        weights = trust_weights(
            lesson.X,
            logits,
            lesson.truth,
            hidden=self.trust_hidden,
            steps=self.trust_steps,
            seed=lesson.seed,
        )
        names = lesson.opinions.names
        self.notes_["trust"] = dict(zip(names, weights.mean(axis=1).tolist(), strict=True))
        return integrate(logits, "reliability", weights[:, :, None])
