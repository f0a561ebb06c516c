"""A linear layer on a pretrained encoder: trained alone, or both with rates of their own."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from labelweave.nn.batches import Batch
from labelweave.nn.losses import bce, mean_loss
from labelweave.nn.task import OptimizerPlan, StepInfo, TwoStepTask, make_plan

__all__ = ["FineTuningTask", "encoder_and_head"]


class FineTuningTask(TwoStepTask):
    """Binary cross-entropy of a linear layer on an encoder, with a learning rate for each.

    Parameters
    ----------
    network : nn.Module
        With the parts `encoder` and `head`.
    backbone_lr : float or None
        Learning rate of the encoder; None leaves it as it is, without dropout.
    plan : dict
        Arguments of :func:`labelweave.nn.task.make_plan`; its `lr` is that of the head.
    """

    weighs_entries: ClassVar[bool] = True

    def __init__(
        self, network: nn.Module, *, backbone_lr: float | None, plan: dict[str, Any]
    ) -> None:
        super().__init__(network)
        self.backbone_lr = backbone_lr
        self.plan = plan

    def outputs(self, batch: Batch) -> Tensor:
        if self.backbone_lr is not None:
            return self.network(batch.x)
        encoder, head = encoder_and_head(self.network)
        with torch.no_grad():
            representation = encoder.eval()(batch.x)
        return head(representation)

    def terms(self, outputs: Tensor, batch: Batch, info: StepInfo) -> dict[str, Tensor]:
        return {"bce": mean_loss(bce(outputs, batch.y), batch.weight)}

    def optimizers(self, n_steps: int) -> list[OptimizerPlan]:
        encoder, head = encoder_and_head(self.network)
        groups: list[dict[str, Any]] = [{"params": list(head.parameters())}]
        if self.backbone_lr is not None:
            groups.append({"params": list(encoder.parameters()), "lr": self.backbone_lr})
        return [make_plan(groups, n_steps=n_steps, **self.plan)]


def encoder_and_head(network: nn.Module) -> tuple[nn.Module, nn.Module]:
    """The encoder and the linear layer of a network."""
    return network.get_submodule("encoder"), network.get_submodule("head")
