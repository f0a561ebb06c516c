"""Networks that choose labels, or rows, for each other: one engine for all such strategies.

A strategy acts on the targets of a mini-batch before the task of each network computes its
losses: what is not to be learnt from becomes unknown (NaN), what is corrected becomes 1. Every
task of the library knows unknown entries, so a strategy works around any of them, and every term
of its objective (a KL term, a contrast) sees the same labels. Targets between 0 and 1 are for
losses that know such.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from scipy.special import expit
from torch import Tensor, nn

from labelweave.nn.batches import Batch
from labelweave.nn.shares import current_share, gather_rows
from labelweave.nn.task import (
    OptimizerPlan,
    StepInfo,
    SupervisedTask,
    Task,
    TwoStepTask,
    make_plan,
)
from labelweave.partial._selection.label_evidence import LabelEvidence
from labelweave.partial._selection.loss_ranks import drop_share, extreme, rows_to_drop
from labelweave.partial._selection.partial_losses import plain_targets
from labelweave.partial._selection.strategies import Strategy

__all__ = ["PeerNetwork", "PeerTask", "peers_of"]


class PeerNetwork(nn.Module):
    """The mean of the probabilities of several networks, as logits.

    `shift` is added to them; it is 0 unless :meth:`move` has said otherwise.

    >>> half = PeerNetwork([nn.Identity(), nn.Identity()])
    >>> half(torch.tensor([[0.0, 2.0]]))
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

    def move(self, by: float) -> None:
        """Add to the logits from now on; how they rank stays as it is."""
        self.shift += by


def peers_of(network: nn.Module) -> list[nn.Module]:
    """The networks of a :class:`PeerNetwork`; any other network is its own only one."""
    return list(network.peers) if isinstance(network, PeerNetwork) else [network]


class PeerTask(Task):
    """Several networks, each with a task of its own, trained together under a strategy.

    Targets are coded as in :mod:`labelweave.unannotated`.

    Parameters
    ----------
    network : nn.Module
        What predicts: a :class:`PeerNetwork`, or the only network.
    tasks : sequence of Task
        One a network.
    strategy : Strategy
    tau_h : float or None
        Share of the unannotated entries (or of the rows) of highest loss to drop or correct;
        None lets `estimate` say.
    tau_l : float, default=0.0
        Share of the unannotated entries of lowest loss to drop of those that are left.
    ramp : float, default=10
        Epochs over which both shares rise to these values.
    negative_weight : float, default=1.0
        Weight of an unannotated entry in the tasks' losses of entries.
    estimate : function without arguments, optional
        The rate that stands for `tau_h` where that is None; it is asked after each epoch of the
        ramp.
    missing : boolean csr_array of shape (n_rows, n_labels), optional
        The unannotated entries that are really positive, where that is known. Only counted.
    aside : ndarray of shape (n_rows,), optional
        The number of the network that does not learn a row; -1 where all do.
    n_rows, n_labels : int
        Of the training rows, where corrections are for good.
    evidence : LabelEvidence, optional
        What the other labels of a row say of its entries, where labels are chosen; `estimate`
        weighs it.
    one_optimizer : bool, default=False
        Whether one optimiser may move networks that are alike: the same steps in less time, unless
        gradients are clipped, which looks at all that an optimiser moves.
    """

    tasks: Any  # a ModuleList of Task
    tau: Tensor
    epochs_done: Tensor
    corrected: Tensor

    def __init__(
        self,
        network: nn.Module,
        tasks: Sequence[Task],
        strategy: Strategy,
        *,
        tau_h: float | None,
        tau_l: float = 0.0,
        ramp: float = 10,
        negative_weight: float = 1.0,
        estimate: Callable[[], float] | None = None,
        missing: sp.csr_array | None = None,
        aside: np.ndarray | None = None,
        n_rows: int = 0,
        n_labels: int = 0,
        evidence: LabelEvidence | None = None,
        one_optimizer: bool = False,
    ) -> None:
        super().__init__(network)
        self.tasks = nn.ModuleList(tasks)
        self.strategy = strategy
        self.tau_l = tau_l
        self.ramp = ramp
        self.negative_weight = negative_weight
        self.estimate = estimate if tau_h is None else None
        self.missing = missing
        self.aside = aside
        self.evidence = evidence
        self.one_optimizer = one_optimizer
        self.counts = np.zeros(3)  # of the epoch: removed, missing ones among them, of low loss
        # Everything else that a checkpoint has to hold.
        self.register_buffer("tau", torch.tensor(tau_h or 0.0, dtype=torch.float64))
        self.register_buffer("epochs_done", torch.zeros((), dtype=torch.long))
        if strategy.correct == "for good":
            self.register_buffer("corrected", torch.zeros(n_rows, n_labels, dtype=torch.bool))

    # -- the objective -----------------------------------------------------------------

    def losses(self, batch: Batch, info: StepInfo) -> dict[str, Tensor]:
        if not self.training:
            plain = batch._replace(y=plain_targets(batch.y)[0])
            return _summed([task.losses(plain, info) for task in self.tasks])
        outputs = [_outputs(task, batch) for task in self.tasks]
        learnt = self.strategy.agreement > 0
        logits = [
            _logits(task, out, batch, learnt) for task, out in zip(self.tasks, outputs, strict=True)
        ]
        views = self.choose([gather_rows(one.detach()) for one in logits], batch, info)
        weight = 1 - self.strategy.agreement
        terms = []
        for task, out, view, weights in zip(
            self.tasks, outputs, views, self._weights(batch.y, views), strict=True
        ):
            own = batch._replace(y=view, weight=weights)
            found = task.losses(own, info) if out is None else task.terms(out, own, info)
            terms.append(found if weight == 1 else {k: weight * t for k, t in found.items()})
        if self.strategy.agreement > 0:
            left_out = torch.isnan(views[0]) | torch.isnan(views[1])
            apart = torch.where(left_out, 0.0, divergence(logits[0], logits[1]))
            terms.append({"agreement": self.strategy.agreement * apart.mean()})
        return _summed(terms)

    def _weights(self, codes: Tensor, views: Sequence[Tensor]) -> list[Tensor | None]:
        """Weights of the entries for each network: less for those assumed to be negative.

        A network that learns with such weights w says ``p = a / (a + w (1 - a))`` where the chance
        is a. To teach p is then to teach a positive of weight 1 with chance a, a negative of
        weight w otherwise: a weight of ``a + w (1 - a) = w / (1 - (1 - w) p)``, w at 0 and 1 at 1.
        """
        w = self.negative_weight
        if w == 1:
            return [None] * len(views)
        plain = torch.where(codes == 0, w, 1.0)
        if self.strategy.correct == "no":
            return [plain] * len(views)
        likely = [torch.mul(view, w - 1).add_(1).reciprocal_().mul_(w) for view in views]
        return [torch.where(v > 0, own, plain) for v, own in zip(views, likely, strict=True)]

    def choose(self, logits: Sequence[Tensor], batch: Batch, info: StepInfo) -> list[Tensor]:
        """The targets that each network learns from, by the logits of the whole batch."""
        codes, rows = gather_rows(batch.y).cpu().numpy(), gather_rows(batch.rows).cpu().numpy()
        is_open, known_negative = codes == 0, codes < 0
        targets = codes
        if known_negative.any():
            targets = np.where(known_negative, 0.0, codes).astype(codes.dtype)
        if self.strategy.correct == "for good":
            corrected = self.corrected[rows].cpu().numpy() & is_open
            targets = targets + corrected
            is_open &= ~corrected
        scores = [one.float().cpu().numpy() for one in logits]
        choose = self._choose_labels if self.strategy.unit == "labels" else self._choose_rows
        found = choose(scores, targets, is_open, rows, info.epoch)
        if self.aside is not None:
            kept_from = self.aside[rows]
            for k, view in enumerate(found):
                view[kept_from == k] = np.nan
        views = [torch.from_numpy(view).to(batch.y.device) for view in found]
        held = current_share()
        return views if held is None else [view[held.start : held.stop] for view in views]

    def _choose_labels(
        self,
        logits: Sequence[np.ndarray],
        targets: np.ndarray,
        is_open: np.ndarray,
        rows: np.ndarray,
        epoch: int,
    ) -> list[np.ndarray]:
        # The loss of a negative rises with its logit, so logits rank as losses do.
        share_high = drop_share(epoch, float(self.tau), self.ramp)
        share_low = drop_share(epoch, self.tau_l, self.ramp)
        evidence = None if self.evidence is None else self.evidence.of(rows)
        views = []
        for k, own in enumerate(logits):
            learnt = self._learnt(is_open, rows, k)
            n_open = np.count_nonzero(learnt)
            n_high = round(share_high * n_open)
            n_low = round(share_low * (n_open - n_high))
            # Eq. 1 and 2: the peer says what looks like a missing positive.
            judge = self._judge(logits, k)
            if evidence is not None:
                judge = judge + evidence
            high = extreme(judge, learnt, n_high)
            view = targets.copy()
            entries = view.reshape(-1)
            if n_low:
                # Eq. 3 and 4: the network itself says what it has nothing to learn from.
                rest = learnt.flatten()
                rest[high] = False
                entries[extreme(own.reshape(-1), rest, n_low, largest=False)] = np.nan
            entries[high] = self._instead(judge.reshape(-1)[high])
            views.append(view)
            if self.strategy.correct == "for good":
                number, label = np.unravel_index(high, is_open.shape)
                self.corrected[torch.from_numpy(rows[number]), torch.from_numpy(label)] = True
            self._count(high, rows, n_low)
        return views

    def _instead(self, logits: np.ndarray) -> np.ndarray | float:
        """What entries of high loss are taught as, by the logits that chose them."""
        if self.strategy.correct == "soft":
            return expit(logits)
        return np.nan if self.strategy.correct == "no" else 1.0

    def _learnt(self, is_open: np.ndarray, rows: np.ndarray, k: int) -> np.ndarray:
        """The open entries of the rows that network k learns."""
        return is_open if self.aside is None else is_open & (self.aside[rows] != k)[:, None]

    def _choose_rows(
        self,
        logits: Sequence[np.ndarray],
        targets: np.ndarray,
        is_open: np.ndarray,
        rows: np.ndarray,
        epoch: int,
    ) -> list[np.ndarray]:
        share, weight = drop_share(epoch, float(self.tau), self.ramp), self.strategy.agreement
        known = ~np.isnan(targets)
        f, *other = logits
        # Cross-entropy of an entry: log(1 + e^z) - y z.
        losses = [
            np.sum(np.logaddexp(0, one) - targets * one, axis=1, where=known) for one in logits
        ]
        if weight > 0:
            apart = np.sum((expit(f) - expit(other[0])) * (f - other[0]), axis=1, where=known)
            losses = [(1 - weight) * own + weight * apart / 2 for own in losses]
        among = None
        if self.strategy.disagreement != "no":
            among = ((f > 0) != (other[0] > 0)).any(axis=1)
            if self.strategy.disagreement == "or all" and not among.any():
                among = None
        views = []
        for k in range(len(losses)):
            dropped = rows_to_drop(self._judge(losses, k), share, among)
            if among is not None:
                dropped |= ~among
            removed = dropped[:, None] & self._learnt(is_open, rows, k)
            self._count(np.flatnonzero(removed), rows)
            view = targets.copy()
            view[dropped] = np.nan
            views.append(view)
        return views

    def _judge(self, losses: Sequence[np.ndarray], k: int) -> np.ndarray:
        """The losses by which something is chosen for network k."""
        if self.strategy.by == "both":
            return losses[0] + losses[1]
        return losses[1 - k if self.strategy.by == "peer" else k]

    def optimizers(self, n_steps: int) -> list[OptimizerPlan]:
        alike = all(type(task).optimizers is SupervisedTask.optimizers for task in self.tasks)
        if self.one_optimizer and alike:
            return [make_plan(self.network.parameters(), n_steps=n_steps, **self.tasks[0].plan)]
        return [plan for task in self.tasks for plan in task.optimizers(n_steps)]

    def after_step(self, batch: Batch, info: StepInfo) -> None:
        waiting = [task for task in self.tasks if type(task).after_step is not Task.after_step]
        if waiting:
            plain = batch._replace(y=plain_targets(batch.y)[0])
            for task in waiting:
                task.after_step(plain, info)

    # -- the history -------------------------------------------------------------------

    def _count(self, removed: np.ndarray, rows: np.ndarray, n_low: int = 0) -> None:
        hits = 0
        if self.missing is not None:
            hits = int(np.count_nonzero(self.missing[rows].toarray().ravel()[removed]))
        # In place: a module looks twice at whatever is assigned to its attributes.
        self.counts[:] += np.array((len(removed), hits, n_low)) / len(self.tasks)

    def get_extra_state(self) -> Tensor:
        """The counts of the epoch so far: a checkpoint may fall within one."""
        return torch.from_numpy(self.counts.copy())

    def set_extra_state(self, state: Tensor) -> None:
        """Put back what :meth:`get_extra_state` gave."""
        self.counts = state.cpu().numpy().copy()

    def epoch_metrics(self) -> dict[str, float]:
        """Entries removed (or corrected) in the epoch, by the average network, and the rate."""
        found = {name: v for task in self.tasks for name, v in task.epoch_metrics().items()}
        found["removed"] = float(self.counts[0])
        if self.missing is not None:
            found["removed_missing"] = float(self.counts[1])
        if self.tau_l > 0:
            found["removed_low"] = float(self.counts[2])
        if self.estimate is not None:
            found["tau_h"] = float(self.tau)
        self.counts[:] = 0
        self.epochs_done += 1
        if self.estimate is not None and int(self.epochs_done) <= self.ramp:
            self.tau.fill_(self.estimate())
        return found


def divergence(one: Tensor, other: Tensor) -> Tensor:
    """Both Kullback-Leibler divergences between the probabilities of two logits, summed.

    >>> divergence(torch.tensor([0.0, 1.0]), torch.tensor([0.0, -1.0]))
    tensor([0.0000, 0.9242])
    """
    # (p - q) (logit p - logit q): the two sums written out, the entropies cancel.
    return (torch.sigmoid(one) - torch.sigmoid(other)) * (one - other)


def _outputs(task: Any, batch: Batch) -> Any:
    return task.outputs(batch) if isinstance(task, TwoStepTask) else None


def _logits(task: Any, outputs: Any, batch: Batch, learnt: bool) -> Tensor:
    """The logits of a network; of a task without outputs by a pass more, for gradients or not."""
    if outputs is not None:
        return task.logits_of(outputs)
    if learnt:
        return task.network(batch.x)
    with torch.no_grad():
        task.network.eval()
        logits = task.network(batch.x)
        task.network.train()
    return logits


def _summed(terms: Sequence[dict[str, Tensor]]) -> dict[str, Tensor]:
    total: dict[str, Tensor] = {}
    for found in terms:
        for name, term in found.items():
            total[name] = total[name] + term if name in total else term
    return total
