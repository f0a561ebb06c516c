"""A network with a loss for partial labels; targets are coded as in `labelweave.unannotated`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from labelweave.nn.batches import Batch
from labelweave.nn.losses import bce, mean_loss
from labelweave.nn.task import OptimizerPlan, StepInfo, Task, make_plan

EntryLoss = Callable[[Tensor, Tensor, StepInfo], Tensor]


def plain_targets(codes: Tensor) -> tuple[Tensor, Tensor]:
    """Plain targets (1, 0, NaN) of coded labels, and the mask of the unannotated entries.

    >>> plain_targets(torch.tensor([[1.0, -1.0, 0.0, torch.nan]]))
    (tensor([[1., 0., 0., nan]]), tensor([[False, False,  True, False]]))
    """
    return codes.clamp(min=0.0), codes == 0


class PartialLossTask(Task):
    """One network, and a loss of each entry that may change during training.

    The loss is meant for unannotated entries: known negatives always have cross-entropy.

    Parameters
    ----------
    network : nn.Module
    loss : function of (logits, targets, info)
    plan : dict
        Arguments of :func:`labelweave.nn.task.make_plan`.
    name : str
        Name of the loss in the history.
    """

    def __init__(
        self, network: nn.Module, loss: EntryLoss, plan: dict[str, Any], *, name: str
    ) -> None:
        super().__init__(network)
        self.loss = loss
        self.plan = plan
        self.name = name

    def losses(self, batch: Batch, info: StepInfo) -> dict[str, Tensor]:
        logits = self.network(batch.x)
        targets, unannotated = plain_targets(batch.y)
        return {self.name: mean_loss(self._entry_losses(logits, targets, unannotated, batch, info))}

    def _entry_losses(
        self, logits: Tensor, targets: Tensor, unannotated: Tensor, batch: Batch, info: StepInfo
    ) -> Tensor:
        losses = self.loss(logits, targets, info)
        known_negative = (targets == 0) & ~unannotated
        return torch.where(known_negative, bce(logits, targets), losses)

    def optimizers(self, n_steps: int) -> list[OptimizerPlan]:
        return [make_plan(self.network, n_steps=n_steps, **self.plan)]
