"""FKA: a student whose layers can replace the layers of its teachers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import torch
from torch import Tensor

from labelweave.nn.batches import Batch
from labelweave.nn.losses import bce, mean_loss
from labelweave.scattered._amalgamation.layerwise import (
    LayerwiseMethod,
    LayerwiseTask,
    linear_maps,
)
from labelweave.scattered._amalgamation.student import published_student

__all__ = ["FKA", "FKATask"]


class FKATask(LayerwiseTask):
    """Distillation, and unchanged predictions of teachers with a layer of the student."""

    def add_maps(self, widths: Sequence[int]) -> None:
        self.adapt: Any = linear_maps(widths, self.teachers)
        with torch.no_grad():
            self.predictions = [
                torch.sigmoid(teacher.network.head(teacher.hidden[-1])) for teacher in self.teachers
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
    student, augment, aliases, match, calibration, verbose, on_disagreement, threshold,
    validation_fraction, random_state
        As in :class:`labelweave.scattered._amalgamation.student_method.StudentMethod`; the
        student is a network of the same depth.

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

    _task = FKATask

    @classmethod
    def published(cls, dataset: str | None = None) -> Self:
        """FKA with the student of the ANT paper's tables; `dataset` is a name of the catalog."""
        return cls(student=published_student(dataset))
