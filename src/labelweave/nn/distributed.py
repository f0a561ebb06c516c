"""The engine of a run: plain torch in this process, or Lightning Fabric.

Fabric is imported only for more than one process (under `torchrun` or `fabric run`), another
precision, or an accelerator. Each process computes a part of every global batch, and the gradients
are averaged so that the result is that of one process, up to rounding.

This holds for a task whose loss terms are means over rows, which draws random numbers by
:func:`~labelweave.nn.process_rows.draw_rows` (or the layers of :mod:`labelweave.nn.encoders`) and
calls :func:`~labelweave.nn.process_rows.gather_rows` before it compares rows. A plain
``torch.nn.Dropout`` would give the rows of all processes the same mask.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from labelweave.exceptions import InputError, require
from labelweave.nn.batches import Batch
from labelweave.nn.process_rows import gather_rows, held_share
from labelweave.nn.task import OptimizerPlan, StepInfo, Task

__all__ = ["Engine", "FabricEngine", "find_device", "make_engine"]

FULL_PRECISION = "32-true"


class Engine:
    """One process, plain torch."""

    rank = 0
    world = 1
    device = torch.device("cpu")

    def setup(self, task: Task, plans: Sequence[OptimizerPlan]) -> None:
        """Prepare the task for training with this engine."""
        self.task = task

    def losses(self, batch: Batch, info: StepInfo) -> dict[str, Tensor]:
        """The task's loss terms on this process's rows."""
        return self.task.losses(batch, info)

    def scores(self, x: Tensor) -> Tensor:
        """The task's scores of these rows."""
        return self.apply(self.task.scores, x)

    def apply(self, function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
        """Apply a function that uses the task's networks, in the precision of this run."""
        return function(x)

    def backward(self, total: Tensor, batch: Batch) -> None:
        """Gradients of the mean over the rows of the full batch."""
        total.backward()

    def step(self, plan: OptimizerPlan, clip_norm: float | None) -> None:
        """Clip the gradients of one optimiser, if `clip_norm` is set, and make a step."""
        if clip_norm is not None:
            parameters = [p for group in plan.optimizer.param_groups for p in group["params"]]
            torch.nn.utils.clip_grad_norm_(parameters, clip_norm)
        plan.optimizer.step()

    def sum(self, values: Sequence[float]) -> list[float]:
        """Element-wise sum over the processes."""
        return list(values)

    def gather(self, batch: Batch, rows: Tensor) -> Tensor:
        """The rows of the full batch, from all processes."""
        return rows

    def barrier(self) -> None:
        """Wait until every process has reached this point."""

    def precision_state(self) -> dict[str, Any]:
        """The state of the precision between steps, such as the scale of a gradient scaler."""
        return {}

    def load_precision_state(self, state: dict[str, Any]) -> None:
        """Restore what :meth:`precision_state` returned."""


class FabricEngine(Engine):
    """Several processes, another precision or an accelerator, through Lightning Fabric."""

    def __init__(self, device: torch.device, precision: str) -> None:
        fabric = require("lightning_fabric", "distributed")
        strategies = require("lightning_fabric.strategies", "distributed")
        self.world = _world_size()
        local = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
        strategy: Any = "auto"
        if self.world > 1:
            # Buffers are the same in all processes, as their random numbers are; a method may
            # not use some parameters in a step.
            buffers = {_buffer_option(): False}
            strategy = strategies.DDPStrategy(find_unused_parameters=True, **buffers)
        one_of_many = device.type != "cpu" and device.index is not None and self.world == 1
        self.fabric = fabric.Fabric(
            accelerator=device.type,
            devices=[device.index] if one_of_many else local,
            num_nodes=self.world // local,
            strategy=strategy,
            precision=precision,
        )
        self.fabric.launch()
        self.rank = self.fabric.global_rank
        self.device = self.fabric.device

    def setup(self, task: Task, plans: Sequence[OptimizerPlan]) -> None:
        super().setup(task, plans)
        self.wrapped, *optimizers = self.fabric.setup(task, *(plan.optimizer for plan in plans))
        self.optimizers = {
            id(plan): optimizer for plan, optimizer in zip(plans, optimizers, strict=True)
        }

    def losses(self, batch: Batch, info: StepInfo) -> dict[str, Tensor]:
        with held_share(batch.share):
            return self.wrapped(batch, info)

    def apply(self, function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
        precision = self.fabric.strategy.precision
        with precision.forward_context():
            return function(precision.convert_input(x))

    def backward(self, total: Tensor, batch: Batch) -> None:
        if batch.share is not None:
            # The processes' gradients are averaged; weighted like this, the average is the
            # mean over all rows even where the shares differ in size.
            total = total * (len(batch.rows) * self.world / batch.share.total)
        with held_share(batch.share):
            self.fabric.backward(total)

    def step(self, plan: OptimizerPlan, clip_norm: float | None) -> None:
        optimizer = self.optimizers[id(plan)]
        if clip_norm is not None:
            self.fabric.clip_gradients(self.wrapped, optimizer, max_norm=clip_norm)
        optimizer.step()

    def sum(self, values: Sequence[float]) -> list[float]:
        summands = torch.tensor(values, dtype=torch.float64)
        if self.device.type == "mps":
            summands = summands.float()  # it has no double precision
        return self.fabric.all_reduce(summands.to(self.device), reduce_op="sum").tolist()

    def gather(self, batch: Batch, rows: Tensor) -> Tensor:
        with held_share(batch.share):
            return gather_rows(rows)

    def barrier(self) -> None:
        self.fabric.barrier()

    def precision_state(self) -> dict[str, Any]:
        return self.fabric.strategy.precision.state_dict()

    def load_precision_state(self, state: dict[str, Any]) -> None:
        self.fabric.strategy.precision.load_state_dict(state)


def make_engine(device: str = "cpu", precision: str = FULL_PRECISION) -> Engine:
    """The engine for a device and precision, and for the processes that were started.

    >>> make_engine().world
    1
    """
    torch_device = find_device(device)
    if _world_size() == 1 and precision == FULL_PRECISION and torch_device.type == "cpu":
        return Engine()
    return FabricEngine(torch_device, precision)


def find_device(device: str) -> torch.device:
    """The device of this name; "auto" is the accelerator of this machine, if it has one.

    >>> find_device("cpu")
    device(type='cpu')
    """
    accelerator = (
        torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    )
    if device == "auto":
        return accelerator or torch.device("cpu")
    try:
        named = torch.device(device)
    except RuntimeError:
        raise InputError(f"there is no device {device!r}: say cpu, cuda, mps or auto") from None
    if named.type != "cpu" and (accelerator is None or accelerator.type != named.type):
        raise InputError(f"this machine has no {named.type} device: say device='cpu' or 'auto'")
    return named


def _buffer_option() -> str:
    """The option of this version of torch for copying buffers before each step."""
    options = inspect.signature(torch.nn.parallel.DistributedDataParallel).parameters
    return "forward_sync_buffers" if "forward_sync_buffers" in options else "broadcast_buffers"


def _world_size() -> int:
    """How many processes `torchrun` or `fabric run` has started."""
    return int(os.environ.get("WORLD_SIZE", "1")) if "RANK" in os.environ else 1
