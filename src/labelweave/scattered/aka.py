"""AKA: one network per label with layers similar to the teachers', then one student."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
from labelweave.scattered._amalgamation.agreement import Disagreement
from labelweave.scattered._amalgamation.layerwise import (
    LayerwiseMethod,
    LayerwiseTask,
    TeacherLayers,
    linear_maps,
)
from labelweave.scattered._amalgamation.student import fit_student
from labelweave.scattered._amalgamation.training_set import TrainingSet
from labelweave.scattered.teacher import Teacher

__all__ = ["AKA", "AKATask"]


class AKATask(LayerwiseTask):
    """Distillation, and a linear map from each hidden layer to each teacher's."""

    def __init__(
        self,
        network: nn.Module,
        teachers: Sequence[TeacherLayers],
        n_train: int,
        optimizer_options: dict[str, Any],
        *,
        student_widths: Sequence[int],
        weight: float,
    ) -> None:
        super().__init__(network, teachers, n_train, optimizer_options)
        self.weight = weight
        self.bridge: Any = linear_maps(student_widths, teachers)

    def layer_losses(self, batch: Batch, hidden: list[Tensor], rows: Tensor) -> dict[str, Tensor]:
        total = hidden[0].new_zeros(())
        for teacher, bridges in zip(self.teachers, self.bridge, strict=True):
            for bridge, ours, theirs in zip(bridges, hidden, teacher.hidden, strict=True):
                total = total + F.mse_loss(bridge(ours), theirs[rows].to(ours.device))
        return {"bridge": self.weight * total / len(self.teachers)}


class AKA(LayerwiseMethod):
    """Adaptive knowledge amalgamation: component students, one per label, then the student [1]_.

    The component student of a label learns the mean logits of the teachers that predict it, while
    its hidden layers are made similar to theirs through a linear transfer bridge. The student then
    learns the predictions of all component students.

    Parameters
    ----------
    teachers : sequence of Teacher
        Networks with the same number of hidden layers: OFCC or MLP.
    bridge_weight : float, default=1.0
        Weight of the mean squared error of the bridges.
    student, augment, aliases, match, calibration, batch_rows, verbose, on_disagreement
        As in :class:`labelweave.scattered._amalgamation.student_method.StudentMethod`; the
        student is a network of the same depth. It is trained once per label, and once more.
    threshold, validation_fraction, random_state
        As in :class:`labelweave.scattered._amalgamation.student_method.StudentMethod`.

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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **LayerwiseMethod._parameter_constraints,
        "bridge_weight": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        teachers: Sequence[Teacher] = (),
        *,
        bridge_weight: float = 1.0,
        student: Any = None,
        augment: float | str = 0.0,
        aliases: Mapping[str, str] | None = None,
        match: str = "ignore-case",
        calibration: str | None = None,
        batch_rows: int = 4096,
        verbose: int = 0,
        on_disagreement: Callable[[Disagreement], None] | None = None,
        threshold: Any = 0.5,
        validation_fraction: float = 0.2,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            teachers,
            student=student,
            augment=augment,
            aliases=aliases,
            match=match,
            calibration=calibration,
            batch_rows=batch_rows,
            verbose=verbose,
            on_disagreement=on_disagreement,
            threshold=threshold,
            validation_fraction=validation_fraction,
            random_state=random_state,
        )
        self.bridge_weight = bridge_weight

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

    def _make_task(
        self,
        network: nn.Module,
        teachers: Sequence[TeacherLayers],
        n_train: int,
        optimizer_options: dict[str, Any],
    ) -> LayerwiseTask:
        return AKATask(
            network,
            teachers,
            n_train,
            optimizer_options,
            student_widths=self._student_widths(network),
            weight=self.bridge_weight,
        )
