"""Peer networks: several networks that are trained together and select labels for each other.

A selection rule acts on the targets of a mini-batch before the task of each network computes its
losses: an entry that is not to be learned becomes NaN (unknown), a corrected one becomes 1. All
tasks of the library ignore unknown entries, so a rule works with every task, and all terms of its
objective (a KL term, a contrastive term) see the same labels. Targets between 0 and 1 are only for
losses that support soft targets.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor, nn

from labelweave.nn.batches import Batch
from labelweave.nn.process_rows import current_share, gather_rows
from labelweave.nn.task import (
    OptimizerPlan,
    StepInfo,
    SupervisedTask,
    Task,
    TwoStepTask,
    make_plan,
)
from labelweave.partial._selection.loss_ranks import drop_share
from labelweave.partial._selection.partial_losses import plain_targets
from labelweave.partial._selection.selection_rules import MiniBatch, SelectionRule


class PeerNetwork(nn.Module):
    """The mean of the probabilities of several networks, as logits.

    `shift` is added to the logits; it is 0 until :meth:`shift_logits` changes it.

    >>> network = PeerNetwork([nn.Identity(), nn.Identity()])
    >>> network(torch.tensor([[0.0, 2.0]]))
    tensor([[0.0000, 2.0000]])
    """

    shift: Tensor

    def __init__(self, peers: Sequence[nn.Module]) -> None:
        super().__init__()
        self.peers = nn.ModuleList(peers)
        self.register_buffer("shift", torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        probabilities = torch.stack([torch.sigmoid(peer(x)) for peer in self.peers])
        return torch.logit(probabilities.mean(dim=0), eps=1e-7) + self.shift

    def shift_logits(self, by: float) -> None:
        """Add a constant to all logits; their order does not change."""
        self.shift += by


def peers_of(network: nn.Module) -> list[nn.Module]:
    """The networks of a :class:`PeerNetwork`; for any other network a list of itself."""
    return list(network.peers) if isinstance(network, PeerNetwork) else [network]


class PeerTask(Task):
    """One or several networks, each with its own task, trained together under a selection rule.

    Targets are coded as in :mod:`labelweave.unannotated`.

    Parameters
    ----------
    network : nn.Module
        The network that predicts: a :class:`PeerNetwork`, or the only network.
    tasks : sequence of Task
        One per network.
    rule : SelectionRule
    tau_h : float or None
        Share of the unannotated entries (or rows) of highest loss to remove or correct. None:
        `estimate` computes it.
    tau_l : float, default=0.0
        Share of the remaining unannotated entries of lowest loss to remove.
    ramp : float, default=10
        Number of epochs over which both shares rise to these values.
    negative_weight : float, default=1.0
        Weight of an unannotated entry in the losses of the tasks.
    loss_scale : float, default=1.0
        Factor of the losses of the tasks. The number of labels makes a mean over labels a sum.
    estimate : function without arguments, optional
        Estimates the share if `tau_h` is None. It is called after each epoch of the ramp.
    missing : boolean csr_array of shape (n_rows, n_labels), optional
        The unannotated entries that are really positive, if known. They are only counted.
    held_out_by : ndarray of shape (n_rows,), optional
        Index of the network that does not learn from a row; -1 where all networks do.
    one_optimizer : bool, default=False
        Whether one optimiser may update all networks. The steps are the same and faster, unless
        gradients are clipped: the norm is over all parameters of an optimiser.
    """

    tasks: Any  # a ModuleList of Task
    rule: Any  # a SelectionRule
    tau: Tensor

    def __init__(
        self,
        network: nn.Module,
        tasks: Sequence[Task],
        rule: SelectionRule,
        *,
        tau_h: float | None,
        tau_l: float = 0.0,
        ramp: float = 10,
        negative_weight: float = 1.0,
        loss_scale: float = 1.0,
        estimate: Callable[[], float] | None = None,
        missing: sp.csr_array | None = None,
        held_out_by: np.ndarray | None = None,
        one_optimizer: bool = False,
    ) -> None:
        super().__init__(network)
        self.tasks = nn.ModuleList(tasks)
        self.rule = rule
        self.tau_l = tau_l
        self.ramp = ramp
        self.negative_weight = negative_weight
        self.loss_scale = loss_scale
        self.estimate = estimate if tau_h is None else None
        self.missing = missing
        self.held_out_by = held_out_by
        self.one_optimizer = one_optimizer
        # Counts of the epoch: removed entries, missing positives among them, and entries of low
        # loss. Checkpoints save them through `get_extra_state`.
        self.counts = np.zeros(3)
        self.history_row: dict[str, float] = {}
        self.register_buffer("tau", torch.tensor(tau_h or 0.0, dtype=torch.float64))

    # -- the objective -----------------------------------------------------------------

    def losses(self, batch: Batch, info: StepInfo) -> dict[str, Tensor]:
        if not self.training:
            plain = batch._replace(y=plain_targets(batch.y)[0])
            return _sum_terms([task.losses(plain, info) for task in self.tasks])
        agreement = self.rule.agreement
        outputs = [
            task.outputs(batch) if isinstance(task, TwoStepTask) else None for task in self.tasks
        ]
        logits = [
            _logits(task, output, batch, with_gradients=agreement > 0)
            for task, output in zip(self.tasks, outputs, strict=True)
        ]
        targets = self.select([gather_rows(z.detach()) for z in logits], batch, info)
        terms = []
        for task, output, y, weight in zip(
            self.tasks, outputs, targets, self._entry_weights(batch.y, targets), strict=True
        ):
            selected = batch._replace(y=y, weight=weight)
            if output is None:
                task_terms = task.losses(selected, info)
            else:
                task_terms = task.terms(output, selected, info)
            scale = self.loss_scale * (1 - agreement)
            terms.append({name: scale * term for name, term in task_terms.items()})
        if agreement > 0:
            ignored = torch.isnan(targets[0]) | torch.isnan(targets[1])
            apart = torch.where(ignored, 0.0, divergence(logits[0], logits[1]))
            terms.append({"agreement": agreement * apart.mean()})
        return _sum_terms(terms)

    def _entry_weights(self, codes: Tensor, targets: Sequence[Tensor]) -> list[Tensor | None]:
        """Weights of the entries per network: `negative_weight` for assumed negatives.

        A network that is trained with the weight w predicts ``p = a / (a + w (1 - a))`` where the
        probability is a. A soft target p therefore stands for a positive of weight 1 with
        probability a and a negative of weight w otherwise. Its weight is
        ``a + w (1 - a) = w / (1 - (1 - w) p)``, that is w for p = 0 and 1 for p = 1.
        """
        w = self.negative_weight
        if w == 1:
            return [None] * len(targets)
        plain = torch.where(codes == 0, w, 1.0)
        if not self.rule.corrects:
            return [plain] * len(targets)
        soft = [torch.mul(y, w - 1).add_(1).reciprocal_().mul_(w) for y in targets]
        return [torch.where(y > 0, own, plain) for y, own in zip(targets, soft, strict=True)]

    def select(self, logits: Sequence[Tensor], batch: Batch, info: StepInfo) -> list[Tensor]:
        """The targets that each network learns from, given its logits for the whole batch."""
        # NumPy selects about ten times as fast as torch on a CPU, and the logits of a mini-batch
        # are quickly copied from an accelerator.
        codes, rows = gather_rows(batch.y).cpu().numpy(), gather_rows(batch.rows).cpu().numpy()
        targets, unannotated, known_negative = codes, codes == 0, codes < 0
        if known_negative.any():
            targets = np.where(known_negative, 0.0, codes).astype(codes.dtype)
        candidates = [unannotated] * len(logits)
        if self.held_out_by is not None:
            held_out_by = self.held_out_by[rows]
            candidates = [unannotated & (held_out_by != k)[:, None] for k in range(len(logits))]
        selections = self.rule.select(
            MiniBatch(
                logits=[z.float().cpu().numpy() for z in logits],
                targets=targets,
                candidates=candidates,
                rows=rows,
                drop_high=drop_share(info.epoch, float(self.tau), self.ramp),
                drop_low=drop_share(info.epoch, self.tau_l, self.ramp),
            )
        )
        selected = []
        for k, selection in enumerate(selections):
            if self.held_out_by is not None:
                selection.targets[held_out_by == k] = np.nan
            self._count(selection.removed, rows, selection.n_low)
            selected.append(torch.from_numpy(selection.targets).to(batch.y.device))
        share = current_share()
        return selected if share is None else [y[share.start : share.stop] for y in selected]

    def optimizers(self, n_steps: int) -> list[OptimizerPlan]:
        alike = all(type(task).optimizers is SupervisedTask.optimizers for task in self.tasks)
        if self.one_optimizer and alike:
            return [make_plan(self.network, n_steps=n_steps, **self.tasks[0].plan)]
        return [plan for task in self.tasks for plan in task.optimizers(n_steps)]

    def after_step(self, batch: Batch, info: StepInfo) -> None:
        plain = batch._replace(y=plain_targets(batch.y)[0])
        for task in self.tasks:
            task.after_step(plain, info)

    # -- the history -------------------------------------------------------------------

    def _count(self, removed: np.ndarray, rows: np.ndarray, n_low: int) -> None:
        n_missing = 0
        if self.missing is not None:
            n_missing = int(np.count_nonzero(self.missing[rows].toarray().ravel()[removed]))
        # In place: assigning to an attribute of a module is slow.
        self.counts[:] += np.array((len(removed), n_missing, n_low)) / len(self.tasks)

    def get_extra_state(self) -> Tensor:
        """The counts of the epoch so far; a checkpoint may be written within an epoch."""
        return torch.from_numpy(self.counts.copy())

    def set_extra_state(self, state: Tensor) -> None:
        """Restore what :meth:`get_extra_state` returned."""
        self.counts = state.cpu().numpy().copy()

    def end_epoch(self, epoch: int) -> None:
        """Write the row of the history and, during the ramp, estimate the share again."""
        for task in self.tasks:
            task.end_epoch(epoch)
        row = {name: v for task in self.tasks for name, v in task.epoch_metrics().items()}
        row["removed"] = float(self.counts[0])
        if self.missing is not None:
            row["removed_missing"] = float(self.counts[1])
        if self.tau_l > 0:
            row["removed_low"] = float(self.counts[2])
        if self.estimate is not None:
            row["tau_h"] = float(self.tau)
        self.history_row = row
        self.counts[:] = 0
        if self.estimate is not None and epoch + 1 <= self.ramp:
            self.tau.fill_(self.estimate())

    def epoch_metrics(self) -> dict[str, float]:
        """The entries removed in the epoch, averaged over the networks, and the share `tau_h`."""
        return self.history_row


def divergence(one: Tensor, other: Tensor) -> Tensor:
    """The sum of both Kullback-Leibler divergences between the probabilities of two logits.

    >>> divergence(torch.tensor([0.0, 1.0]), torch.tensor([0.0, -1.0]))
    tensor([0.0000, 0.9242])
    """
    # (p - q) (logit p - logit q): in the sum of the two divergences the entropies cancel.
    return (torch.sigmoid(one) - torch.sigmoid(other)) * (one - other)


def _logits(task: Any, outputs: Any, batch: Batch, *, with_gradients: bool) -> Tensor:
    """The logits of a network; a task without separate outputs needs one more pass."""
    if outputs is not None:
        return task.logits_of(outputs)
    if with_gradients:
        return task.network(batch.x)
    with torch.no_grad():
        task.network.eval()
        logits = task.network(batch.x)
        task.network.train()
    return logits


def _sum_terms(terms: Sequence[dict[str, Tensor]]) -> dict[str, Tensor]:
    total: dict[str, Tensor] = {}
    for task_terms in terms:
        for name, term in task_terms.items():
            total[name] = total[name] + term if name in total else term
    return total
