"""What a method passes to the training loop: networks, loss terms, optimisers, scores."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import torch
from torch import Tensor, nn

from labelweave.exceptions import InputError
from labelweave.nn.batches import Batch
from labelweave.nn.image_network import ImageBackbone
from labelweave.nn.losses import Loss, mean_loss

__all__ = [
    "OPTIMIZERS",
    "SCHEDULES",
    "SCHEDULE_PARAMETERS",
    "OptimizerPlan",
    "StepInfo",
    "SupervisedTask",
    "Task",
    "TwoStepTask",
    "make_plan",
]

OPTIMIZERS = ("adamw", "adam", "sgd")
SCHEDULES = ("constant", "cosine", "linear", "plateau", "cosine-restarts")
SCHEDULE_PARAMETERS = ("warmup", "cycle", "cycle_growth", "min_lr", "plateau_patience")


class StepInfo(NamedTuple):
    """The position of the run: epochs and steps from 0, and the progress from 0 to 1."""

    epoch: int
    step: int
    progress: float


@dataclass
class OptimizerPlan:
    """An optimiser and the schedule of its learning rate.

    `every` is when the scheduler steps: after each training step, after each epoch, or after
    each epoch with the monitored value (``ReduceLROnPlateau``; the value is negated if greater
    is better, so its mode is always "min").
    """

    optimizer: torch.optim.Optimizer
    scheduler: Any = None
    every: Literal["step", "epoch", "plateau"] = "epoch"


class Task(nn.Module):
    """The networks and the objective of a method, in one module, for the training loop.

    Everything that training changes must be a parameter or a buffer of this module (queues,
    a momentum encoder, estimated labels), or be returned by `get_extra_state`: only then is it
    part of the checkpoints.

    Parameters
    ----------
    network : nn.Module
        The network that predicts: maps features to one logit per label.
    plan : dict, optional
        Arguments of :func:`make_plan`, for the optimiser of the network.

    Attributes
    ----------
    weighs_entries : bool
        Whether the objective uses the weights of entries that a batch may carry.
    weighs_rows : bool
        Whether it uses the weights of rows that a batch may carry.
    """

    weighs_entries: ClassVar[bool] = False
    weighs_rows: ClassVar[bool] = False

    def __init__(self, network: nn.Module, plan: dict[str, Any] | None = None) -> None:
        super().__init__()
        self.network = network
        self.plan = plan or {}

    def losses(self, batch: Batch, info: StepInfo) -> dict[str, Tensor]:
        """The named terms of the objective, already weighted: their sum is minimised.

        Each is a mean over the rows of the batch (or does not depend on them). With weights of
        rows it is the mean of the weighted values: they are not divided by the weights of the
        batch, because their mean over all rows is 1. A term that
        compares rows calls :func:`~labelweave.nn.process_rows.gather_rows` first.
        """
        raise NotImplementedError

    def forward(self, batch: Batch, info: StepInfo) -> dict[str, Tensor]:
        """The loss terms; torch's wrappers for several processes call this method."""
        return self.losses(batch, info)

    def optimizers(self, n_steps: int) -> list[OptimizerPlan]:
        """The optimisers, made once; `n_steps` is the number of steps of the run.

        By default there is one, of the network's parameters.
        """
        return [make_plan(self.network, n_steps=n_steps, **self.plan)]

    def after_step(self, batch: Batch, info: StepInfo) -> None:
        """Called after the optimisers have stepped (momentum update, queue)."""

    def scores(self, x: Tensor) -> Tensor:
        """P(label | x), shape (n, L)."""
        return torch.sigmoid(self.network(x))

    def end_epoch(self, epoch: int) -> None:
        """Called after the last step of each epoch (from 0) and before its history is written.

        A method that estimates something once per epoch, such as a rate, does so here.
        """

    def epoch_metrics(self) -> dict[str, float]:
        """Further numbers for the history of the epoch, read after `end_epoch`."""
        return {}


class TwoStepTask(Task):
    """A task in two steps: a pass through the network, then the loss terms of its outputs.

    The pass needs no labels. A method that selects labels by the outputs of the networks can use
    them between the two steps; with any other task it needs one more pass.
    """

    def outputs(self, batch: Batch) -> Any:
        """The outputs that the loss terms are computed from, with gradients."""
        raise NotImplementedError

    def logits_of(self, outputs: Any) -> Tensor:
        """The logits of the labels, shape (n, L), among the outputs."""
        return outputs

    def terms(self, outputs: Any, batch: Batch, info: StepInfo) -> dict[str, Tensor]:
        """The loss terms, as `losses` returns them."""
        raise NotImplementedError

    def losses(self, batch: Batch, info: StepInfo) -> dict[str, Tensor]:
        return self.terms(self.outputs(batch), batch, info)


class SupervisedTask(TwoStepTask):
    """One network, one loss, one optimiser.

    Parameters
    ----------
    network : nn.Module
    loss : function of (logits, targets)
    plan : dict
        Arguments of :func:`make_plan`.
    name : str
        Name of the loss in the history.
    """

    weighs_entries: ClassVar[bool] = True
    weighs_rows: ClassVar[bool] = True

    def __init__(
        self, network: nn.Module, loss: Loss, plan: dict[str, Any], *, name: str = "loss"
    ) -> None:
        super().__init__(network, plan)
        self.loss = loss
        self.name = name

    def outputs(self, batch: Batch) -> Tensor:
        return self.network(batch.x)

    def terms(self, outputs: Tensor, batch: Batch, info: StepInfo) -> dict[str, Tensor]:
        loss = self.loss(outputs, batch.y)
        return {self.name: mean_loss(loss, batch.weight, batch.row_weight)}


def make_plan(
    parameters: nn.Module | Iterable[Any],
    *,
    n_steps: int,
    lr: float = 1e-3,
    weight_decay: float = 0.0,
    optimizer: str = "adamw",
    schedule: str = "constant",
    warmup: float = 0.05,
    cycle: int = 50,
    cycle_growth: int = 2,
    min_lr: float = 1e-4,
    plateau_patience: int = 3,
) -> OptimizerPlan:
    """An optimiser with a learning-rate schedule.

    Parameters
    ----------
    parameters : network, or iterable of parameters or of parameter groups
        Of a network, the part that reads images may have a learning rate of its own.
    n_steps : int
        Number of steps of the run.
    lr, weight_decay : float
    optimizer : {"adamw", "adam", "sgd"}, default="adamw"
        "adam" adds the weight decay to the gradients; "sgd" has a momentum of 0.9.
    schedule : str, default="constant"
        One of :data:`SCHEDULES`. "cosine" and "linear" fall to zero at the end of the run,
        after a warm-up; "plateau" divides the rate by ten when the monitored value has not
        improved for some epochs; "cosine-restarts" falls along half a cosine and starts
        again at `lr`, in cycles of epochs that grow longer.
    warmup : float, default=0.05
        Share of the run over which the rate of "cosine" and "linear" rises.
    cycle : int, default=50
        Epochs in the first cycle of "cosine-restarts".
    cycle_growth : int, default=2
        How many times as long each cycle is as the one before it.
    min_lr : float, default=1e-4
        The rate at the end of a cycle; a rate that starts below it stays as it is.
    plateau_patience : int, default=3
        Epochs without improvement before "plateau" lowers the rate.
    """
    if schedule not in SCHEDULES:
        raise InputError(f"there is no schedule {schedule!r}: choose one of {', '.join(SCHEDULES)}")
    if isinstance(parameters, nn.Module):
        parameters = _parameter_groups(parameters)
    chosen = _make_optimizer(optimizer, parameters, lr=lr, weight_decay=weight_decay)
    if schedule == "constant":
        return OptimizerPlan(chosen)
    if schedule == "plateau":
        scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(
            chosen, factor=0.1, patience=plateau_patience, threshold_mode="abs"
        )
        return OptimizerPlan(chosen, scheduler, "plateau")
    if schedule == "cosine-restarts":
        lowest = min(min_lr, *(group["lr"] for group in chosen.param_groups))
        restarts = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(
            chosen, cycle, cycle_growth, eta_min=lowest
        )
        return OptimizerPlan(chosen, restarts, "epoch")
    rise = max(int(warmup * n_steps), 1)

    def factor(step: int) -> float:
        if step < rise:
            return (step + 1) / rise
        fallen = min((step - rise) / max(n_steps - rise, 1), 1.0)
        return 1 - fallen if schedule == "linear" else (1 + math.cos(math.pi * fallen)) / 2

    return OptimizerPlan(chosen, torch.optim.lr_scheduler.LambdaLR(chosen, factor), "step")


def _parameter_groups(network: nn.Module) -> list[Any]:
    """The parameters of a network; those of a part with a learning rate of its own are a group."""
    parts = [part for part in network.modules() if isinstance(part, ImageBackbone)]
    slower = {id(p): part.lr for part in parts if part.lr is not None for p in part.parameters()}
    parameters = list(network.parameters())
    if not slower:
        return parameters
    groups: list[Any] = [{"params": [p for p in parameters if id(p) not in slower]}]
    for lr in sorted(set(slower.values())):
        groups.append({"params": [p for p in parameters if slower.get(id(p)) == lr], "lr": lr})
    return groups


def _make_optimizer(
    name: str, parameters: Iterable[Any], *, lr: float, weight_decay: float
) -> torch.optim.Optimizer:
    if name not in OPTIMIZERS:
        raise InputError(f"there is no optimizer {name!r}: choose one of {', '.join(OPTIMIZERS)}")
    options: dict[str, Any] = {"lr": lr, "weight_decay": weight_decay, "fused": True}
    if name == "sgd":
        return torch.optim.SGD(parameters, momentum=0.9, **options)
    kind = torch.optim.AdamW if name == "adamw" else torch.optim.Adam
    return kind(parameters, **options)
