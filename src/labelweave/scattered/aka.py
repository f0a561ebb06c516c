"""AKA: a student for each label, whose layers are like the teachers', then one for all."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone
from sklearn.utils._param_validation import Interval
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 (torch's own way)

from labelweave.labels import LabelMatrix
from labelweave.nn.batches import Batch
from labelweave.progress import track
from labelweave.scattered.layered import (
    LayeredAmalgamator,
    LayeredTask,
    TeacherLayers,
    linear_maps,
)
from labelweave.scattered.lesson import Lesson
from labelweave.scattered.student import fit_student
from labelweave.scattered.teacher import Teacher

__all__ = ["AKA", "AKATask"]


class AKATask(LayeredTask):
    """Distillation, and hidden layers from which those of the teachers can be told."""

    def __init__(
        self,
        network: nn.Module,
        teachers: Sequence[TeacherLayers],
        n_train: int,
        plan: dict[str, Any],
        *,
        student_widths: Sequence[int],
        weight: float,
    ) -> None:
        super().__init__(network, teachers, n_train, plan)
        self.weight = weight
        self.bridge: Any = linear_maps(student_widths, teachers)

    def layer_losses(self, batch: Batch, hidden: list[Tensor], rows: Tensor) -> dict[str, Tensor]:
        total = hidden[0].new_zeros(())
        for teacher, bridges in zip(self.teachers, self.bridge, strict=True):
            for bridge, ours, theirs in zip(bridges, hidden, teacher.hidden, strict=True):
                total = total + F.mse_loss(bridge(ours), theirs[rows].to(ours.device))
        return {"bridge": self.weight * total / len(self.teachers)}


class AKA(LayeredAmalgamator):
    """Adaptive knowledge amalgamation: component students, one a label, then the student.

    The network of a label learns the mean log odds of the teachers that know it while its hidden
    layers, through a linear transfer bridge, shall be like theirs. The student then learns what
    the networks of all labels say.

    Parameters
    ----------
    teachers : sequence of Teacher
        Networks with equally many hidden layers: OFCC or MLP.
    bridge_weight : float, default=1.0
        Of the mean squared error of the bridges.
    **options
        The other parameters of :class:`labelweave.scattered.amalgamator.Amalgamator`; the
        student is a network of the same depth. It is trained once for each label, and once more.

    Notes
    -----
    Adapted: there is no public code for vectors. The original chooses one teacher for each label
    by the entropy of its answers; here all that know the label take part. The bridge leads from
    the student's layer to the teacher's, so that it cannot make both alike by making both
    nothing. The hidden layer of a chain is its state after the first step.

    References
    ----------
    .. [1] C. Shen, M. Xue, X. Wang, J. Song, L. Sun and M. Song. Customizing Student Networks
       From Heterogeneous Teachers via Adaptive Knowledge Amalgamation. ICCV 2019.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **LayeredAmalgamator._parameter_constraints,
        "bridge_weight": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self, teachers: Sequence[Teacher] = (), *, bridge_weight: float = 1.0, **options: Any
    ) -> None:
        super().__init__(teachers, **options)
        self.bridge_weight = bridge_weight

    def _train(self, student: Any, lesson: Lesson, targets: np.ndarray) -> Any:
        teachers = self._teacher_layers(lesson)
        rows = self._own_rows(lesson.X)
        names = tuple(self.label_names_)
        said = np.empty_like(targets)
        for j, name in enumerate(track(names, "labels", verbose=self.verbose)):
            component = clone(student)
            if "verbose" in component.get_params(deep=False):
                component.set_params(verbose=0)
            knowing = [teacher for teacher in teachers if j in teacher.columns]
            fitted = self._train_on(component, lesson, targets[:, [j]], knowing, names=(name,))
            said[:, [j]] = fitted.predict_proba(rows)
        return fit_student(student, rows, LabelMatrix(said, names), lesson.n_train)

    def _make_task(
        self,
        network: nn.Module,
        teachers: Sequence[TeacherLayers],
        n_train: int,
        plan: dict[str, Any],
    ) -> LayeredTask:
        return AKATask(
            network,
            teachers,
            n_train,
            plan,
            student_widths=self._student_widths(network),
            weight=self.bridge_weight,
        )
