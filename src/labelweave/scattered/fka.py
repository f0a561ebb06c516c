"""FKA: a student whose layers can replace the layers of its teachers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from labelweave.nn.batches import Batch
from labelweave.nn.losses import bce, mean_loss
from labelweave.scattered._amalgamation.layerwise import (
    LayerwiseMethod,
    LayerwiseTask,
    TeacherLayers,
    linear_maps,
)

__all__ = ["FKA", "FKATask"]


class FKATask(LayerwiseTask):
    """Distillation, and unchanged predictions of teachers with a layer of the student."""

    def __init__(
        self,
        network: nn.Module,
        teachers: Sequence[TeacherLayers],
        n_train: int,
        optimizer_options: dict[str, Any],
        *,
        student_widths: Sequence[int],
    ) -> None:
        super().__init__(network, teachers, n_train, optimizer_options)
        self.adapt: Any = linear_maps(student_widths, teachers)
        with torch.no_grad():
            self.predictions = [
                torch.sigmoid(teacher.network.head(teacher.hidden[-1])) for teacher in teachers
            ]

    def layer_losses(self, batch: Batch, hidden: list[Tensor], rows: Tensor) -> dict[str, Tensor]:
        total = hidden[0].new_zeros(())
        for teacher, adapters, predictions in zip(
            self.teachers, self.adapt, self.predictions, strict=True
        ):
            targets = predictions[rows].to(batch.x.device)
            for depth, (adapt, h) in enumerate(zip(adapters, hidden, strict=True)):
                replaced = teacher.network.resume(depth, adapt(h))
                total = total + mean_loss(bce(replaced, targets))
        return {"replace": total / len(self.teachers)}


class FKA(LayerwiseMethod):
    """Filtered knowledge amalgamation [1]_.

    Each hidden layer of the student replaces, through a linear adaptor, the corresponding layer of
    each teacher, whose predictions should not change by that.

    Parameters
    ----------
    teachers : sequence of Teacher
        Networks with the same number of hidden layers: OFCC or MLP.
    student, augment, aliases, match, calibration, batch_rows, verbose, on_disagreement
        As in :class:`labelweave.scattered._amalgamation.student_method.StudentMethod`; the
        student is a network of the same depth.
    threshold, validation_fraction, random_state
        As in :class:`labelweave.scattered._amalgamation.student_method.StudentMethod`.

    Notes
    -----
    Adapted: there is no public code for vectors. The original trains the layers one after the
    other and takes the last one from the teachers; here all are trained together, and the
    student's outputs learn the mean of the teachers' logits, since its last layer would not be
    trained otherwise. The hidden layer of a chain is its state after the first step, and its
    predictions are those of that step.

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
        optimizer_options: dict[str, Any],
    ) -> LayerwiseTask:
        return FKATask(
            network,
            teachers,
            n_train,
            optimizer_options,
            student_widths=self._student_widths(network),
        )
