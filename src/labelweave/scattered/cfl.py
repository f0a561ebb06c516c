"""CFL: a student whose last features are distributed as those of its teachers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from typing import Any, ClassVar

import torch
from sklearn.utils._param_validation import Interval
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 (torch's own way)

from labelweave.nn.batches import Batch
from labelweave.nn.process_rows import gather_rows
from labelweave.scattered._amalgamation.agreement import Disagreement
from labelweave.scattered._amalgamation.layerwise import (
    LayerwiseMethod,
    LayerwiseTask,
    TeacherLayers,
)
from labelweave.scattered.teacher import Teacher

__all__ = ["CFL", "CFLTask", "mmd"]

SIGMAS = (0.001, 0.01, 0.05, 0.1, 0.2, 1.0, 2.0)


def mmd(a: Tensor, b: Tensor, sigmas: Sequence[float] = SIGMAS) -> Tensor:
    """Squared maximum mean discrepancy of two sets of rows, with a sum of Gaussian kernels.

    >>> x = torch.tensor([[0.0, 1.0], [1.0, 0.0]])
    >>> round(mmd(x, x).item(), 6), mmd(x, x + 1).item() > 0.1
    (0.0, True)
    """

    def kernel(x: Tensor, y: Tensor) -> Tensor:
        squares = torch.cdist(x, y).square()
        widths = squares.new_tensor(sigmas).view(-1, 1, 1)
        return torch.exp(-squares / (2 * widths**2)).sum(dim=0).mean()

    return kernel(a, a) + kernel(b, b) - 2 * kernel(a, b)


class CFLTask(LayerwiseTask):
    """Distillation, similarity in a common space, reconstruction of the teachers' features."""

    def __init__(
        self,
        network: nn.Module,
        teachers: Sequence[TeacherLayers],
        n_train: int,
        optimizer_options: dict[str, Any],
        *,
        student_width: int,
        weights: tuple[float, float],
    ) -> None:
        super().__init__(network, teachers, n_train, optimizer_options)
        width = max(student_width // 4, 1)
        self.weights = weights
        self.align = nn.Sequential(nn.Linear(student_width, width), nn.ReLU())
        self.align_teacher = nn.ModuleList(
            nn.Sequential(nn.Linear(teacher.widths[-1], width), nn.ReLU()) for teacher in teachers
        )
        self.extract = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width))
        self.decode = nn.ModuleList(nn.Linear(width, teacher.widths[-1]) for teacher in teachers)

    def layer_losses(self, batch: Batch, hidden: list[Tensor], rows: Tensor) -> dict[str, Tensor]:
        ours = _unit(self.extract(self.align(hidden[-1])))
        discrepancy = reconstruction = ours.new_zeros(())
        modules = zip(self.teachers, self.align_teacher, self.decode, strict=True)
        for teacher, align, decode in modules:
            features = teacher.hidden[-1][rows].to(ours.device)
            common = self.extract(align(features))
            discrepancy = discrepancy + mmd(gather_rows(ours), gather_rows(_unit(common)))
            reconstruction = reconstruction + F.mse_loss(decode(common), features)
        return {"mmd": self.weights[0] * discrepancy, "decode": self.weights[1] * reconstruction}


def _unit(rows: Tensor) -> Tensor:
    return F.normalize(rows, dim=1, eps=1e-6)


class CFL(LayerwiseMethod):
    """Common feature learning [1]_.

    The last hidden features of each teacher and of the student are mapped into a common space (one
    separate layer each, then two shared ones), in which the student's features should be
    distributed as the teachers' are; a decoder reconstructs each teacher's features from the
    common space. In addition the student learns the mean of the teachers' logits.

    Parameters
    ----------
    teachers : sequence of Teacher
        Networks with hidden layers: OFCC or MLP.
    mmd_weight : float, default=1.0
        Weight of the maximum mean discrepancy, with Gaussian kernels of widths .001 to 2.
    decode_weight : float, default=1.0
        Weight of the mean squared error of the reconstruction.
    student, augment, aliases, match, calibration, batch_rows, verbose, on_disagreement
        As in :class:`labelweave.scattered._amalgamation.student_method.StudentMethod`; the
        student is an OFCC or an MLP.
    threshold, validation_fraction, random_state
        As in :class:`labelweave.scattered._amalgamation.student_method.StudentMethod`.

    Notes
    -----
    Adapted: the original is for images with one class each, and a softmax. Here each label has a
    sigmoid, shared labels are averaged, and the common space is a quarter as wide as the
    student's last layer. The hidden features of a chain are its state after the first step.

    References
    ----------
    .. [1] S. Luo, X. Wang, G. Fang, Y. Hu, D. Tao and M. Song. Knowledge Amalgamation from
       Heterogeneous Networks by Common Feature Learning. IJCAI 2019.
    """

    _same_depth = False
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **LayerwiseMethod._parameter_constraints,
        "mmd_weight": [Interval(Real, 0, None, closed="left")],
        "decode_weight": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        teachers: Sequence[Teacher] = (),
        *,
        mmd_weight: float = 1.0,
        decode_weight: float = 1.0,
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
        self.mmd_weight = mmd_weight
        self.decode_weight = decode_weight

    def _make_task(
        self,
        network: nn.Module,
        teachers: Sequence[TeacherLayers],
        n_train: int,
        optimizer_options: dict[str, Any],
    ) -> LayerwiseTask:
        return CFLTask(
            network,
            teachers,
            n_train,
            optimizer_options,
            student_width=self._student_widths(network)[-1],
            weights=(self.mmd_weight, self.decode_weight),
        )
