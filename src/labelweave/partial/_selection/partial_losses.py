"""Tasks of the losses for partial labels; targets are coded as in `labelweave.unannotated`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from labelweave.nn.batches import Batch
from labelweave.nn.losses import bce, expected_positives, mean_loss, positive_bce
from labelweave.nn.shares import gather_rows
from labelweave.nn.task import OptimizerPlan, StepInfo, Task, make_plan

__all__ = [
    "ExpectedTask",
    "FreeLabelsTask",
    "PartialLossTask",
    "PseudoNegativesTask",
    "plain_targets",
]

_MOST_AT_ONCE = 2**22  # torch's quantiles take no more than four times this
EntryLoss = Callable[[Tensor, Tensor, StepInfo], Tensor]


def plain_targets(codes: Tensor) -> tuple[Tensor, Tensor]:
    """Plain targets (1, 0, NaN) of coded labels, and the mask of the unannotated entries.

    >>> plain_targets(torch.tensor([[1.0, -1.0, 0.0, torch.nan]]))
    (tensor([[1., 0., 0., nan]]), tensor([[False, False,  True, False]]))
    """
    return codes.clamp(min=0.0), codes == 0


class PartialLossTask(Task):
    """One network, and a loss of each entry that may change as training goes on.

    Known negatives always have cross-entropy: the loss is about what nobody annotated.

    Parameters
    ----------
    network : nn.Module
    loss : function of (logits, targets, info)
    plan : dict
        Arguments of :func:`labelweave.nn.task.make_plan`.
    name : str
        How the loss is called in the history.
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
        targets, is_open = plain_targets(batch.y)
        return {self.name: mean_loss(self._entries(logits, targets, is_open, batch, info))}

    def _entries(
        self, logits: Tensor, targets: Tensor, is_open: Tensor, batch: Batch, info: StepInfo
    ) -> Tensor:
        entries = self.loss(logits, targets, info)
        checked = (targets == 0) & ~is_open
        return torch.where(checked, bce(logits, targets), entries)

    def optimizers(self, n_steps: int) -> list[OptimizerPlan]:
        return [make_plan(self.network.parameters(), n_steps=n_steps, **self.plan)]


class ExpectedTask(PartialLossTask):
    """EPR: cross-entropy of the positives, and the expected number of positives a row.

    Parameters
    ----------
    k : float
        Positives to expect a row.
    weight : float, default=1.0
        Of the second term.
    """

    def __init__(
        self, network: nn.Module, plan: dict[str, Any], *, k: float, weight: float = 1.0
    ) -> None:
        super().__init__(network, lambda z, y, _: positive_bce(z, y), plan, name="positive_bce")
        self.k = k
        self.weight = weight

    def losses(self, batch: Batch, info: StepInfo) -> dict[str, Tensor]:
        logits = self.network(batch.x)
        targets, is_open = plain_targets(batch.y)
        entries = self._entries(logits, targets, is_open, batch, info)
        return {
            self.name: mean_loss(entries),
            "expected": self.weight * self._expected(torch.sigmoid(logits), targets),
        }

    def _expected(self, probabilities: Tensor, targets: Tensor) -> Tensor:
        taking_part = torch.where(torch.isnan(targets), 0.0, probabilities)
        return expected_positives(gather_rows(taking_part), self.k)


class FreeLabelsTask(ExpectedTask):
    """ROLE: the network and a matrix of free labels learn from each other.

    Cole et al., CVPR 2021, Eq. 8 to 10. The labels of the training rows are parameters (their
    logits), held at an annotated positive's value; the gradient of each half stops at the other.

    Parameters
    ----------
    observed : Tensor of shape (n_rows, L)
        Coded labels of the training rows.
    label_lr : float
        Learning rate of the free labels.
    """

    positive: Tensor

    def __init__(
        self,
        network: nn.Module,
        plan: dict[str, Any],
        observed: Tensor,
        *,
        k: float,
        weight: float,
        label_lr: float,
    ) -> None:
        super().__init__(network, plan, k=k, weight=weight)
        start = torch.logit(torch.empty(observed.shape).uniform_(0.4, 0.6))
        self.labels = nn.Parameter(start)
        self.label_lr = label_lr

    def losses(self, batch: Batch, info: StepInfo) -> dict[str, Tensor]:
        if not self.training:
            return super().losses(batch, info)
        logits = self.network(batch.x)
        targets, is_open = plain_targets(batch.y)
        free = self.labels[batch.rows]
        halves = []
        for one, other in ((logits, free), (free, logits)):
            estimate = torch.where(is_open, torch.sigmoid(other.detach()), targets)
            entries = bce(one, estimate) + positive_bce(one, targets)
            filled = torch.where(is_open, torch.sigmoid(one), targets)
            expected = self.weight * self._expected(filled, targets)
            halves.append((mean_loss(entries), expected))
        (of_network, expected), (of_labels, free_expected) = halves
        return {
            "network": of_network / 2,
            "labels": of_labels / 2,
            "expected": (expected + free_expected) / 2,
        }

    def optimizers(self, n_steps: int) -> list[OptimizerPlan]:
        own = {**self.plan, "lr": self.label_lr, "weight_decay": 0.0}
        return [
            *super().optimizers(n_steps),
            make_plan([self.labels], n_steps=n_steps, **own),
        ]


class PseudoNegativesTask(PartialLossTask):
    """EM with asymmetric pseudo-labels: in the end the surest of the rest are negatives.

    After `warmup` epochs a share of the unannotated entries of each label, those of lowest
    probability, are pseudo-labelled by the probability they had; the share rises by
    ``share / rise`` an epoch to `share`. Zhou et al., ECCV 2022, Eq. 5 to 7.

    Parameters
    ----------
    n_rows, n_labels : int
        Of the training labels.
    warmup, rise : int
    share, beta : float
        Largest share, and weight of the pseudo-labels' cross-entropy.
    soft : bool, default=True
        Pseudo-labels are probabilities, rather than 0.
    """

    seen: Tensor
    cuts: Tensor
    cuts_of: Tensor

    def __init__(
        self,
        network: nn.Module,
        loss: EntryLoss,
        plan: dict[str, Any],
        *,
        n_rows: int,
        n_labels: int,
        warmup: int,
        rise: int,
        share: float,
        beta: float,
        soft: bool = True,
    ) -> None:
        super().__init__(network, loss, plan, name="entropy")
        self.soft = soft
        self.warmup, self.rise, self.share, self.beta = warmup, rise, share, beta
        # The probability of each unannotated entry when its row was last seen; NaN for others.
        self.register_buffer("seen", torch.full((n_rows, n_labels), torch.nan))
        self.register_buffer("cuts", torch.full((n_labels,), -1.0))
        self.register_buffer("cuts_of", torch.tensor(-1))

    def _entries(
        self, logits: Tensor, targets: Tensor, is_open: Tensor, batch: Batch, info: StepInfo
    ) -> Tensor:
        entries = super()._entries(logits, targets, is_open, batch, info)
        if not self.training:
            return entries
        self._cut(info.epoch)
        before = self.seen[batch.rows]
        pseudo = is_open & (before <= self.cuts)
        labels = before if self.soft else torch.zeros_like(before)
        entries = torch.where(pseudo, self.beta * bce(logits, labels), entries)
        probabilities = torch.sigmoid(logits.detach()).masked_fill(~is_open, torch.nan)
        rows = gather_rows(batch.rows)
        self.seen[rows] = torch.where(
            gather_rows(pseudo.float()) > 0, self.seen[rows], gather_rows(probabilities)
        )
        return entries

    def _cut(self, epoch: int) -> None:
        """Below which probability an entry of each label is a pseudo-negative in this epoch."""
        if epoch < self.warmup or int(self.cuts_of) == epoch:
            return
        share = self.share * min((epoch - self.warmup + 1) / self.rise, 1.0)
        n_columns = max(_MOST_AT_ONCE // max(len(self.seen), 1), 1)
        parts = [torch.nanquantile(part, share, dim=0) for part in self.seen.split(n_columns, 1)]
        self.cuts.copy_(torch.cat(parts).nan_to_num(-1.0))
        self.cuts_of.fill_(epoch)
