"""FKA: a student whose layers can take the places of its teachers' layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from labelweave.nn.batches import Batch
from labelweave.nn.losses import bce, mean_loss
from labelweave.scattered.layered import (
    LayeredAmalgamator,
    LayeredTask,
    TeacherLayers,
    linear_maps,
)

__all__ = ["FKA", "FKATask"]


class FKATask(LayeredTask):
    """Distillation, and the same answers of teachers in which a layer is the student's."""

    def __init__(
        self,
        network: nn.Module,
        teachers: Sequence[TeacherLayers],
        n_train: int,
        plan: dict[str, Any],
        *,
        student_widths: Sequence[int],
    ) -> None:
        super().__init__(network, teachers, n_train, plan)
        self.adapt: Any = linear_maps(student_widths, teachers)
        with torch.no_grad():
            self.answers = [
                torch.sigmoid(teacher.network.head(teacher.hidden[-1])) for teacher in teachers
            ]

    def layer_losses(self, batch: Batch, hidden: list[Tensor], rows: Tensor) -> dict[str, Tensor]:
        total = hidden[0].new_zeros(())
        for teacher, adapters, answers in zip(self.teachers, self.adapt, self.answers, strict=True):
            wanted = answers[rows].to(batch.x.device)
            for depth, (adapt, h) in enumerate(zip(adapters, hidden, strict=True)):
                replaced = teacher.network.resume(depth, adapt(h))
                total = total + mean_loss(bce(replaced, wanted))
        return {"replace": total / len(self.teachers)}


class FKA(LayeredAmalgamator):
    """Filtered knowledge amalgamation.

    Each hidden layer of the student, through a linear adaptor, takes the place of the
    corresponding layer of each teacher, which shall then still give its own answers.

    Parameters
    ----------
    teachers : sequence of Teacher
        Networks with equally many hidden layers: OFCC or MLP.
    **options
        The other parameters of :class:`labelweave.scattered.amalgamator.Amalgamator`; the
        student is a network of the same depth.

    Notes
    -----
    Adapted: there is no public code for vectors. The original trains the layers one after the
    other and takes the last one from the teachers; here all are trained together, and the
    student's own outputs learn the mean of the teachers' log odds, since its last layer would
    learn nothing otherwise. The hidden layer of a chain is its state after the first step, and
    its answers are those of that step.

    References
    ----------
    .. [1] J. Ye, X. Wang, Y. Ji, K. Ou and M. Song. Amalgamating Filtered Knowledge: Learning
       Task-customized Student from Multi-task Teachers. IJCAI 2019.
    """

    def _make_task(
        self,
        network: nn.Module,
        teachers: Sequence[TeacherLayers],
        n_train: int,
        plan: dict[str, Any],
    ) -> LayeredTask:
        return FKATask(
            network, teachers, n_train, plan, student_widths=self._student_widths(network)
        )
