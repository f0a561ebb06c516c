"""AKA: one network per label with layers similar to the teachers', then one student."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 (torch's own way)

from labelweave.labels import LabelMatrix
from labelweave.nn.batches import Batch
from labelweave.progress import track
from labelweave.scattered._amalgamation.layerwise import (
    LayerwiseMethod,
    LayerwiseTask,
    linear_maps,
)
from labelweave.scattered._amalgamation.student import fit_student, published_student
from labelweave.scattered._amalgamation.training_set import TrainingSet

__all__ = ["AKA", "AKATask"]


class AKATask(LayerwiseTask):
    """Distillation, and a linear map from each hidden layer to each teacher's."""

    def add_maps(self, widths: Sequence[int]) -> None:
        self.bridge: Any = linear_maps(widths, self.teachers)

    def layer_losses(self, batch: Batch, hidden: list[Tensor], rows: Tensor) -> dict[str, Tensor]:
        total = hidden[0].new_zeros(())
        for teacher, bridges in zip(self.teachers, self.bridge, strict=True):
            for bridge, ours, theirs in zip(bridges, hidden, teacher.hidden, strict=True):
                total = total + F.mse_loss(bridge(ours), theirs[rows].to(ours.device))
        return {"bridge": total / len(self.teachers)}


class AKA(LayerwiseMethod):
    """Adaptive knowledge amalgamation: component students, one per label, then the student [1]_.

    The component student of a label learns the mean logits of the teachers that predict it, while
    its hidden layers are made similar to theirs through a linear transfer bridge. The student then
    learns the predictions of all component students.

    Parameters
    ----------
    teachers : sequence of Teacher
        Networks with the same number of hidden layers: OFCC or MLP.
    student, augment, aliases, match, calibration, verbose, on_disagreement, threshold,
    validation_fraction, random_state
        As in :class:`labelweave.scattered._amalgamation.student_method.StudentMethod`; the
        student is a network of the same depth. It is trained once per label, and once more.

    Notes
    -----
    Adapted: there is no public code for vectors. The original chooses one teacher for each label
    by the entropy of its predictions; here all teachers that predict the label are used. The
    bridge maps the student's layer to the teacher's, so that it cannot make both similar by making
    both zero. The hidden layer of a chain is its state after the first step.

    References
    ----------
    .. [1] C. Shen, M. Xue, X. Wang, J. Song, L. Sun and M. Song. Customizing Student Networks
       From Heterogeneous Teachers via Adaptive Knowledge Amalgamation. ICCV 2019.
    """

    _task = AKATask

    @classmethod
    def published(cls, dataset: str | None = None) -> Self:
        """AKA with the student of the ANT paper's tables; `dataset` is a name of the catalog."""
        return cls(student=published_student(dataset))

    def _train_student(self, student: Any, training_set: TrainingSet, targets: np.ndarray) -> Any:
        teachers = self._teacher_layers(training_set)
        rows = self._student_rows(training_set.X)
        names = tuple(self.label_names_)
        component_targets = np.empty_like(targets)
        for j, name in enumerate(track(names, "labels", verbose=self.verbose)):
            component = clone(student)
            if "verbose" in component.get_params(deep=False):
                component.set_params(verbose=0)
            labels = LabelMatrix(targets[:, [j]], (name,))
            of_label = [teacher for teacher in teachers if j in teacher.columns]
            fitted = self._train_on_layers(component, training_set, labels, of_label)
            component_targets[:, [j]] = fitted.predict_proba(rows)
        labels = LabelMatrix(component_targets, names)
        return fit_student(student, rows, labels, training_set.n_train)
