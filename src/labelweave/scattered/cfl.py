"""CFL: a student whose last features are distributed as those of its teachers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 (torch's own way)

from labelweave.nn.batches import Batch
from labelweave.nn.process_rows import gather_rows
from labelweave.scattered._amalgamation.layerwise import (
    LayerwiseMethod,
    LayerwiseTask,
)
from labelweave.scattered._amalgamation.student import published_student

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

    def add_maps(self, widths: Sequence[int]) -> None:
        width = max(widths[-1] // 4, 1)
        self.align = nn.Sequential(nn.Linear(widths[-1], width), nn.ReLU())
        self.align_teacher = nn.ModuleList(
            nn.Sequential(nn.Linear(teacher.widths[-1], width), nn.ReLU())
            for teacher in self.teachers
        )
        self.extract = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width))
        self.decode = nn.ModuleList(
            nn.Linear(width, teacher.widths[-1]) for teacher in self.teachers
        )

    def layer_losses(self, batch: Batch, hidden: list[Tensor], rows: Tensor) -> dict[str, Tensor]:
        ours = _unit(self.extract(self.align(hidden[-1])))
        discrepancy = reconstruction = ours.new_zeros(())
        modules = zip(self.teachers, self.align_teacher, self.decode, strict=True)
        for teacher, align, decode in modules:
            features = teacher.hidden[-1][rows].to(ours.device)
            common = self.extract(align(features))
            discrepancy = discrepancy + mmd(gather_rows(ours), gather_rows(_unit(common)))
            reconstruction = reconstruction + F.mse_loss(decode(common), features)
        return {"mmd": discrepancy, "decode": reconstruction}


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
    student, augment, aliases, match, calibration, verbose, on_disagreement, threshold,
    validation_fraction, random_state
        As in :class:`labelweave.scattered._amalgamation.student_method.StudentMethod`; the
        student is an OFCC or an MLP.

    Notes
    -----
    Adapted: the original is for images with one class each, and a softmax. Here each label has a
    sigmoid, shared labels are averaged, and the common space is a quarter as wide as the
    student's last layer. The hidden features of a chain are its state after the first step. With
    fewer than 8 hidden units the common space is a line, on which features of unit length have no
    gradient: the student then learns the mean of the logits only, as that of
    :class:`labelweave.scattered.tc.TC`.

    References
    ----------
    .. [1] S. Luo, X. Wang, G. Fang, Y. Hu, D. Tao and M. Song. Knowledge Amalgamation from
       Heterogeneous Networks by Common Feature Learning. IJCAI 2019.
    """

    _same_depth = False
    _task = CFLTask

    @classmethod
    def published(cls, dataset: str | None = None) -> Self:
        """CFL with the student of the ANT paper's tables; `dataset` is a name of the catalog."""
        return cls(student=published_student(dataset))
