"""Objectives of the losses for partial labels; targets are coded as in `labelweave.unannotated`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from labelweave.nn.batches import Batch
from labelweave.nn.losses import bce, expected_positives, mean_loss, positive_bce
from labelweave.nn.process_rows import gather_rows
from labelweave.nn.task import OptimizerPlan, StepInfo, Task, make_plan

__all__ = [
    "EntryLoss",
    "ExpectedTask",
    "FreeLabelsTask",
    "PartialLossTask",
    "PseudoNegativesTask",
    "plain_targets",
]

_MAX_QUANTILE_ENTRIES = 2**22  # torch.nanquantile refuses more than four times this
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
        return [make_plan(self.network.parameters(), n_steps=n_steps, **self.plan)]


class ExpectedTask(PartialLossTask):
    """EPR: cross-entropy of the positives, and a penalty on the number of positives per row.

    Parameters
    ----------
    k : float
        Expected number of positives per row.
    weight : float, default=1.0
        Weight of the second term.
    """

    def __init__(
        self, network: nn.Module, plan: dict[str, Any], *, k: float, weight: float = 1.0
    ) -> None:
        super().__init__(network, lambda z, y, _: positive_bce(z, y), plan, name="positive_bce")
        self.k = k
        self.weight = weight

    def losses(self, batch: Batch, info: StepInfo) -> dict[str, Tensor]:
        logits = self.network(batch.x)
        targets, unannotated = plain_targets(batch.y)
        losses = self._entry_losses(logits, targets, unannotated, batch, info)
        return {
            self.name: mean_loss(losses),
            "expected": self.weight * self._penalty(torch.sigmoid(logits), targets),
        }

    def _penalty(self, probabilities: Tensor, targets: Tensor) -> Tensor:
        known = torch.where(torch.isnan(targets), 0.0, probabilities)
        return expected_positives(gather_rows(known), self.k)


class FreeLabelsTask(ExpectedTask):
    """ROLE: the network and a matrix of free labels learn from each other.

    Cole et al., CVPR 2021, Eq. 8 to 10. The logits of the training labels are parameters, those of
    annotated positives too. Known negatives, which the paper does not have, keep the target 0. The
    gradient of each half stops at the other half.

    Parameters
    ----------
    shape : (n_rows, n_labels)
        Shape of the training labels.
    label_lr : float
        Learning rate of the free labels.
    """

    def __init__(
        self,
        network: nn.Module,
        plan: dict[str, Any],
        shape: tuple[int, int],
        *,
        k: float,
        weight: float,
        label_lr: float,
    ) -> None:
        super().__init__(network, plan, k=k, weight=weight)
        self.labels = nn.Parameter(torch.logit(torch.empty(shape).uniform_(0.4, 0.6)))
        self.label_lr = label_lr

    def losses(self, batch: Batch, info: StepInfo) -> dict[str, Tensor]:
        if not self.training:
            return super().losses(batch, info)
        logits = self.network(batch.x)
        targets, _ = plain_targets(batch.y)
        known_negative, ignored = batch.y < 0, torch.isnan(batch.y)
        labels = self.labels[batch.rows]
        halves = []
        for one, other in ((logits, labels), (labels, logits)):
            estimate = torch.sigmoid(other.detach()).masked_fill(known_negative, 0.0)
            losses = bce(one, estimate.masked_fill(ignored, torch.nan)) + positive_bce(one, targets)
            penalty = self.weight * self._penalty(torch.sigmoid(one), targets)
            halves.append((mean_loss(losses), penalty))
        (network_loss, network_penalty), (label_loss, label_penalty) = halves
        return {
            "network": network_loss / 2,
            "labels": label_loss / 2,
            "expected": (network_penalty + label_penalty) / 2,
        }

    def optimizers(self, n_steps: int) -> list[OptimizerPlan]:
        label_plan = {**self.plan, "lr": self.label_lr, "weight_decay": 0.0}
        return [
            *super().optimizers(n_steps),
            make_plan([self.labels], n_steps=n_steps, **label_plan),
        ]


class PseudoNegativesTask(PartialLossTask):
    """Entropy maximisation with asymmetric pseudo-labels (EM + APL).

    After `warmup` epochs, a share of the unannotated entries of each label, those of lowest
    probability, get their current probability as a pseudo-label. The share rises by
    ``share / ramp`` per epoch up to `share`. Zhou et al., ECCV 2022, Eq. 5 to 7.

    Parameters
    ----------
    n_rows, n_labels : int
        Shape of the training labels.
    warmup, ramp : int
    share, beta : float
        Largest share, and weight of the cross-entropy of pseudo-labels.
    soft : bool, default=True
        Whether pseudo-labels are probabilities instead of 0.
    """

    probabilities: Tensor
    thresholds: Tensor
    thresholds_epoch: Tensor

    def __init__(
        self,
        network: nn.Module,
        loss: EntryLoss,
        plan: dict[str, Any],
        *,
        n_rows: int,
        n_labels: int,
        warmup: int,
        ramp: int,
        share: float,
        beta: float,
        soft: bool = True,
    ) -> None:
        super().__init__(network, loss, plan, name="entropy")
        self.soft = soft
        self.warmup, self.ramp, self.share, self.beta = warmup, ramp, share, beta
        # Probability of each unannotated entry at the last step with its row; NaN for all others.
        self.register_buffer("probabilities", torch.full((n_rows, n_labels), torch.nan))
        self.register_buffer("thresholds", torch.full((n_labels,), -1.0))
        self.register_buffer("thresholds_epoch", torch.tensor(-1))

    def _entry_losses(
        self, logits: Tensor, targets: Tensor, unannotated: Tensor, batch: Batch, info: StepInfo
    ) -> Tensor:
        losses = super()._entry_losses(logits, targets, unannotated, batch, info)
        if not self.training:
            return losses
        self._update_thresholds(info.epoch)
        previous = self.probabilities[batch.rows]
        pseudo = unannotated & (previous <= self.thresholds)
        labels = previous if self.soft else torch.zeros_like(previous)
        losses = torch.where(pseudo, self.beta * bce(logits, labels), losses)
        current = torch.sigmoid(logits.detach()).masked_fill(~unannotated, torch.nan)
        rows = gather_rows(batch.rows)
        self.probabilities[rows] = torch.where(
            gather_rows(pseudo.float()) > 0, self.probabilities[rows], gather_rows(current)
        )
        return losses

    def _update_thresholds(self, epoch: int) -> None:
        """Per label, the probability below which an entry is a pseudo-negative in this epoch."""
        if epoch < self.warmup or int(self.thresholds_epoch) == epoch:
            return
        share = self.share * min((epoch - self.warmup + 1) / self.ramp, 1.0)
        n_columns = max(_MAX_QUANTILE_ENTRIES // max(len(self.probabilities), 1), 1)
        quantiles = [
            torch.nanquantile(columns, share, dim=0)
            for columns in self.probabilities.split(n_columns, 1)
        ]
        self.thresholds.copy_(torch.cat(quantiles).nan_to_num(-1.0))
        self.thresholds_epoch.fill_(epoch)
