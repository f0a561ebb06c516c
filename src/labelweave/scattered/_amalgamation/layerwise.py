"""Base of the methods that use the hidden layers of their teachers: CFL, AKA and FKA."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from labelweave.capabilities import capabilities
from labelweave.exceptions import InputError
from labelweave.labels import LabelMatrix
from labelweave.nn.batches import Batch, as_tensor
from labelweave.nn.encoders import MLPEncoder
from labelweave.nn.estimator import NeuralClassifier
from labelweave.nn.session import TrainingSession
from labelweave.nn.task import OptimizerPlan, StepInfo, Task, make_plan
from labelweave.scattered._amalgamation.integration import integrate
from labelweave.scattered._amalgamation.student import fit_student
from labelweave.scattered._amalgamation.student_method import StudentMethod
from labelweave.scattered._amalgamation.training_set import TrainingSet
from labelweave.scattered.teacher import Teacher


class NetworkLayers:
    """A network as a sequence of hidden layers, and a head from the last of them to logits."""

    def __init__(
        self, layers: Sequence[Callable[[Tensor], Tensor]], head: Callable[[Tensor], Tensor]
    ) -> None:
        self.layers = list(layers)
        self.head = head

    @property
    def depth(self) -> int:
        return len(self.layers)

    def widths(self, n_features: int) -> list[int]:
        """Width of each hidden layer; the network must be in evaluation mode."""
        with torch.no_grad():
            return [layer.shape[1] for layer in self.hidden(torch.zeros((1, n_features)))]

    def hidden(self, x: Tensor) -> list[Tensor]:
        """The output of each hidden layer."""
        outputs = []
        for layer in self.layers:
            x = layer(x)
            outputs.append(x)
        return outputs

    def resume(self, depth: int, h: Tensor) -> Tensor:
        """Logits that follow from `h` as the output of hidden layer number `depth`."""
        for layer in self.layers[depth + 1 :]:
            h = layer(h)
        return self.head(h)


def layers_of(network: nn.Module | None) -> NetworkLayers | None:
    """The layers of a perceptron or of an order-free chain; None for any other network.

    The last hidden layer of a chain is its state after the first step, which its first logits
    are computed from: later steps predict other labels in each network.
    """
    if isinstance(getattr(network, "from_chain", None), nn.Linear):
        chain: Any = network
        return NetworkLayers([*_linear_blocks(chain.encoder), _first_state(chain)], chain.out)
    if isinstance(network, nn.Sequential) and len(network) == 2:
        encoder, head = network
        if isinstance(encoder, MLPEncoder) and isinstance(head, nn.Linear):
            return NetworkLayers(_linear_blocks(encoder), head)
    return None


def _linear_blocks(encoder: Any) -> list[Callable[[Tensor], Tensor]]:
    """Each linear layer of an encoder with everything that follows it up to the next one."""
    blocks: list[list[nn.Module]] = []
    before: list[nn.Module] = []
    for module in encoder:
        if isinstance(module, nn.Linear):
            blocks.append([*before, module])
            before = []
        elif blocks:
            blocks[-1].append(module)
        else:
            before.append(module)
    return [nn.Sequential(*block) for block in blocks]


def _first_state(chain: Any) -> Callable[[Tensor], Tensor]:
    """The state of an order-free chain after its first step (Eq. 6 to 8 of the ANT paper)."""

    def state(x: Tensor) -> Tensor:
        logits = chain.first(x)
        zeros = logits.new_zeros((len(x), logits.shape[1] + chain.hidden_size))
        gates = chain.from_features(x) + chain.from_chain(torch.cat([logits, zeros], dim=1))
        input_gate, _, cell_input, output_gate = gates.chunk(4, dim=1)
        c = torch.sigmoid(input_gate) * torch.tanh(cell_input)
        return torch.sigmoid(output_gate) * torch.tanh(c)

    return state


class TeacherLayers:
    """The outputs of a teacher's hidden layers on all rows, computed once.

    `columns` are those of its labels in the vocabulary; `hidden` has one tensor (rows, width)
    per layer.
    """

    def __init__(self, teacher: Teacher, columns: np.ndarray, X: Any) -> None:
        model = teacher.model
        layers = layers_of(model.network_)
        assert layers is not None
        self.network, self.columns = layers, columns
        outputs = model._in_batches(
            lambda x: torch.cat(layers.hidden(x), dim=1),
            model._checked_features(teacher.features(X), reset=False),
        )
        self.widths = layers.widths(model._n_columns)
        ends = np.cumsum(self.widths)[:-1]
        self.hidden = [as_tensor(part) for part in np.split(outputs, ends, axis=1)]


def linear_maps(widths: Sequence[int], teachers: Sequence[TeacherLayers]) -> nn.ModuleList:
    """For each teacher a linear map from each layer of the student to the teacher's layer."""
    return nn.ModuleList(
        nn.ModuleList(
            nn.Linear(ours, theirs) for ours, theirs in zip(widths, teacher.widths, strict=True)
        )
        for teacher in teachers
    )


class LayerwiseTask(Task):
    """Distillation of the teachers' mean, and further terms on hidden layers.

    The distillation is the student's own objective. The layers of the teachers are those on the
    training rows, then on the held-out rows.
    """

    def __init__(
        self, distillation: Task, teachers: Sequence[TeacherLayers], n_train: int, n_features: int
    ) -> None:
        network = distillation.network
        super().__init__(network, distillation.plan)
        self.distillation = distillation
        self.teachers = list(teachers)
        self.n_train = n_train
        layers = layers_of(network)
        if layers is None or layers.depth == 0:
            raise InputError(
                "the student has no hidden layers that can be compared with the teachers': "
                "use an OFCC or an MLP"
            )
        self.layers = layers
        was_training = network.training
        network.eval()  # one row is too few for batch norm
        widths = layers.widths(n_features)
        network.train(was_training)
        self.add_maps(widths)

    def add_maps(self, widths: Sequence[int]) -> None:
        """Add the learnt maps between hidden layers of these widths and the teachers'."""
        raise NotImplementedError

    def losses(self, batch: Batch, info: StepInfo) -> dict[str, Tensor]:
        # The training rows come first in the training set, the held-out rows after them.
        rows = batch.rows.cpu() if self.training else batch.rows.cpu() + self.n_train
        terms = self.distillation.losses(batch, info)
        return terms | self.layer_losses(batch, self.layers.hidden(batch.x), rows)

    def layer_losses(self, batch: Batch, hidden: list[Tensor], rows: Tensor) -> dict[str, Tensor]:
        """Further terms, from the outputs of the student's hidden layers."""
        raise NotImplementedError

    def optimizers(self, n_steps: int) -> list[OptimizerPlan]:
        return [make_plan(self, n_steps=n_steps, **self.plan)]


class LayerwiseMethod(StudentMethod):
    """Base of CFL, AKA and FKA: teachers and student are networks with hidden layers.

    `_task` is the objective of the student. `_same_depth` says whether teachers and student must
    have the same number of hidden layers.
    """

    _task: ClassVar[type[LayerwiseTask]]
    _same_depth: ClassVar[bool] = True

    def _check_teachers(self, teachers: Sequence[Teacher]) -> None:
        name, depths = type(self).__name__, []
        for teacher in teachers:
            layers = layers_of(getattr(teacher.model, "network_", None))
            if layers is None or layers.depth == 0:
                raise InputError(
                    f"{name} uses the hidden layers of its teachers, and teacher {teacher.name!r} "
                    "has none that it can use: pass an OFCC or an MLP, or use ant, tc or bl, which "
                    "accept any teacher"
                )
            depths.append(layers.depth)
        if self._same_depth and len(set(depths)) > 1:
            other = next(k for k, depth in enumerate(depths) if depth != depths[0])
            raise InputError(
                f"{name} compares layer by layer, but teacher {teachers[0].name!r} has {depths[0]} "
                f"hidden layers and teacher {teachers[other].name!r} has {depths[other]}"
            )

    def _check_rows(self, X: Any) -> None:
        super()._check_rows(X)
        student = self._student_for(X)
        is_neural = isinstance(student, NeuralClassifier)
        if not (is_neural and capabilities(student).soft_targets):
            raise InputError(
                f"a student of {type(self).__name__} is an OFCC or an MLP with cross-entropy, not "
                f"{type(student).__name__}",
                parameter="student",
            )

    def _targets(self, training_set: TrainingSet) -> np.ndarray:
        return integrate(training_set.predictions.without_abstentions(), "mean-logit")

    def _train_student(self, student: Any, training_set: TrainingSet, targets: np.ndarray) -> Any:
        teachers = self._teacher_layers(training_set)
        labels = LabelMatrix(targets, tuple(self.label_names_))
        return self._train_on_layers(student, training_set, labels, teachers)

    def _teacher_layers(self, training_set: TrainingSet) -> list[TeacherLayers]:
        predictions, rows = training_set.predictions, self._student_rows(training_set.X)
        return [
            TeacherLayers(teacher, columns, rows)
            for teacher, columns in zip(
                predictions.teachers, predictions.vocabulary.columns, strict=True
            )
        ]

    def _train_on_layers(
        self,
        student: Any,
        training_set: TrainingSet,
        targets: LabelMatrix,
        teachers: list[TeacherLayers],
    ) -> Any:
        """Train a student on these targets and on the layers of these teachers."""
        name = type(self).__name__

        def build_task(network: nn.Module, session: TrainingSession) -> Task:
            layers = layers_of(network)
            depth = 0 if layers is None else layers.depth
            needed = teachers[0].network.depth
            if self._same_depth and depth != needed:
                raise InputError(
                    f"{name} compares layer by layer, but the teachers have {needed} hidden layers "
                    f"and the student has {depth}",
                    parameter="student",
                )
            distillation = session.spec.build_task(network, session)
            n_train, n_features = training_set.n_train, session.X.shape[1]
            return self._task(distillation, teachers, n_train, n_features)

        rows = self._student_rows(training_set.X)
        return fit_student(student, rows, targets, training_set.n_train, build_task=build_task)
