"""Base of the methods that look into the networks of their teachers."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from labelweave.exceptions import InputError
from labelweave.labels import LabelMatrix
from labelweave.nn.batches import Batch, as_tensor
from labelweave.nn.losses import bce, mean_loss
from labelweave.nn.task import OptimizerPlan, StepInfo, Task, make_plan
from labelweave.scattered.amalgamator import Amalgamator
from labelweave.scattered.integration import integrate
from labelweave.scattered.layers import LayeredNetwork, check_layers, layers_of
from labelweave.scattered.lesson import Lesson
from labelweave.scattered.student import fit_student, takes_probabilities
from labelweave.scattered.teacher import Teacher

__all__ = ["LayeredAmalgamator", "LayeredTask", "TeacherLayers", "linear_maps"]


class TeacherLayers:
    """What the hidden layers of one teacher make of all rows, computed once.

    Attributes
    ----------
    network : LayeredNetwork
    columns : ndarray
        Places of its labels in the vocabulary.
    hidden : list of Tensor
        One a layer, of shape (rows, width).
    """

    def __init__(self, teacher: Teacher, columns: np.ndarray, X: Any) -> None:
        model = teacher.model
        found = layers_of(model.network_)
        assert found is not None
        self.network, self.columns = found, columns
        layers = model._in_batches(
            lambda x: torch.cat(found.hidden(x), dim=1),
            model._checked_features(teacher.features(X), reset=False),
        )
        self.widths = found.widths(model.n_features_in_)
        ends = np.cumsum(self.widths)[:-1]
        self.hidden = [as_tensor(part) for part in np.split(layers, ends, axis=1)]


def linear_maps(widths: Sequence[int], teachers: Sequence[TeacherLayers]) -> nn.ModuleList:
    """For each teacher a linear map from each layer of the student to the teacher's own."""
    return nn.ModuleList(
        nn.ModuleList(
            nn.Linear(ours, theirs) for ours, theirs in zip(widths, teacher.widths, strict=True)
        )
        for teacher in teachers
    )


class LayeredTask(Task):
    """Distillation of the teachers' mean, and terms on hidden layers that a method writes.

    Parameters
    ----------
    network : nn.Module
        The student's.
    teachers : list of TeacherLayers
        For the rows to train on, then those held out.
    n_train : int
    plan : dict
        Arguments of :func:`labelweave.nn.task.make_plan`.
    """

    def __init__(
        self,
        network: nn.Module,
        teachers: Sequence[TeacherLayers],
        n_train: int,
        plan: dict[str, Any],
    ) -> None:
        super().__init__(network)
        self.teachers = list(teachers)
        self.n_train = n_train
        self.plan = plan
        found = layers_of(network)
        if found is None or found.depth == 0:
            raise InputError(
                "the student shows no hidden layers that could be compared with the teachers': "
                "let it be an OFCC or an MLP"
            )
        self.layers: LayeredNetwork = found

    def losses(self, batch: Batch, info: StepInfo) -> dict[str, Tensor]:
        # In training the rows are the first ones of the lesson, else those held out.
        rows = batch.rows.cpu() if self.training else batch.rows.cpu() + self.n_train
        terms = {"distil": mean_loss(bce(self.network(batch.x), batch.y))}
        return terms | self.layer_losses(batch, self.layers.hidden(batch.x), rows)

    def layer_losses(self, batch: Batch, hidden: list[Tensor], rows: Tensor) -> dict[str, Tensor]:
        """Further terms, from what the student's hidden layers make of the rows."""
        raise NotImplementedError

    def optimizers(self, n_steps: int) -> list[OptimizerPlan]:
        return [make_plan(self.parameters(), n_steps=n_steps, **self.plan)]


class LayeredAmalgamator(Amalgamator):
    """Base of CFL, AKA and FKA: teachers and student are networks with hidden layers.

    A subclass writes `_make_task`. `weight` and the like are its own; `_same_depth` says whether
    teachers and student must have equally many hidden layers.
    """

    _same_depth = True

    def _check_teachers(self, teachers: Sequence[Teacher]) -> None:
        name = type(self).__name__
        found = check_layers(teachers, name)
        depths = [layers.depth for layers in found]
        if self._same_depth and len(set(depths)) > 1:
            other = next(k for k, depth in enumerate(depths) if depth != depths[0])
            raise InputError(
                f"{name} compares layer by layer, but teacher {teachers[0].name!r} has {depths[0]} "
                f"hidden layers and teacher {teachers[other].name!r} has {depths[other]}"
            )

    def _targets(self, lesson: Lesson) -> np.ndarray:
        return integrate(lesson.opinions.heard(), "mean-logit")

    def _train(self, student: Any, lesson: Lesson, targets: np.ndarray) -> Any:
        return self._train_on(student, lesson, targets, self._teacher_layers(lesson))

    def _teacher_layers(self, lesson: Lesson) -> list[TeacherLayers]:
        opinions = lesson.opinions
        places = opinions.vocabulary.columns
        rows = self._own_rows(lesson.X)
        return [
            TeacherLayers(teacher, columns, rows)
            for teacher, columns in zip(opinions.teachers, places, strict=True)
        ]

    def _train_on(
        self,
        student: Any,
        lesson: Lesson,
        targets: np.ndarray,
        teachers: list[TeacherLayers],
        names: Sequence[str] | None = None,
    ) -> Any:
        """A student of these targets, for the labels of these names, and of teachers' layers."""
        if not takes_probabilities(student):
            raise InputError(
                f"a student of {type(self).__name__} is an OFCC or an MLP with cross-entropy, not "
                f"{type(student).__name__}"
            )

        def build(network: nn.Module, session: Any) -> Task:
            found = layers_of(network)
            depth = 0 if found is None else found.depth
            needed = teachers[0].network.depth
            if self._same_depth and depth != needed:
                raise InputError(
                    f"{type(self).__name__} compares layer by layer, but the teachers have "
                    f"{needed} hidden layers and the student has {depth}"
                )
            return self._make_task(network, teachers, lesson.n_train, student._optimizer_options())

        labels = LabelMatrix(targets, tuple(self.label_names_) if names is None else names)
        rows = self._own_rows(lesson.X)
        return fit_student(student, rows, labels, lesson.n_train, build_task=build)

    def _student_widths(self, network: nn.Module) -> list[int]:
        """Widths of the student's hidden layers."""
        found = layers_of(network)
        assert found is not None
        was_training = network.training
        network.eval()  # one row is too few for batch norm
        widths = found.widths(self.n_features_in_)
        network.train(was_training)
        return widths

    @abstractmethod
    def _make_task(
        self,
        network: nn.Module,
        teachers: Sequence[TeacherLayers],
        n_train: int,
        plan: dict[str, Any],
    ) -> LayeredTask:
        """The objective of a student."""
