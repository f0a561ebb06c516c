"""The one training loop of all neural methods.

A method provides a :class:`~labelweave.nn.task.Task`; the loop takes care of batches, loss
terms, optimisers and schedules, validation, early stopping, checkpoints, history and
callbacks. It has no code for particular methods.

**One step.** :meth:`labelweave.nn.session.TrainingSession.train` makes the batches and calls
:func:`train`. For each batch, `_Run._step` gets the loss terms of the task from the engine, adds
them up, computes the gradients, lets every optimiser step, and calls the task's `after_step`.
After the last batch, `_Run._end_epoch` validates and keeps the best weights.

**Exact resume.** A checkpoint holds the full state of the run: the task, the optimisers and
schedules, the state of the random generators, the position within the epoch
(the order of its rows follows from seed and epoch), the best weights so far and the history.
A run that is killed at any moment and started again ends with the same weights, bit for bit,
as an uninterrupted run.
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from labelweave.exceptions import LabelweaveError
from labelweave.nn.batches import Batch, Batches
from labelweave.nn.callbacks import Callback, RunView
from labelweave.nn.checkpoints import fingerprint, read_checkpoint, write_checkpoint
from labelweave.nn.distributed import Engine
from labelweave.nn.prediction import predict_scores
from labelweave.nn.process_rows import held_share
from labelweave.nn.randomness import get_rng_state, set_rng_state
from labelweave.nn.task import OptimizerPlan, StepInfo, Task

__all__ = [
    "DivergedError",
    "LoopSettings",
    "TrainingResult",
    "Validation",
    "train",
]


class DivergedError(LabelweaveError, ArithmeticError):
    """The loss became NaN or infinite."""


@dataclass(frozen=True)
class LoopSettings:
    """How long and how to train.

    Parameters
    ----------
    epochs : int
    monitor : str, optional
        Column of the history by which the best weights are chosen: "val_loss", a score of the
        validation rows such as "val_map", "loss" or any loss term. None keeps the last weights.
    greater_is_better : bool, default=True
        Whether greater values of the monitored column are better.
    patience : int, optional
        Stop after this many epochs without a better value; None never stops early.
    clip_norm : float, optional
        Largest norm of the gradients of each optimiser.
    checkpoint : Path, optional
        File of the checkpoint; the run continues from it if it exists.
    checkpoint_every : float, default=30
        Seconds between two checkpoints; 0 writes one after each step.
    """

    epochs: int
    monitor: str | None = None
    greater_is_better: bool = True
    patience: int | None = None
    clip_norm: float | None = None
    checkpoint: Path | None = None
    checkpoint_every: float = 30.0


@dataclass(frozen=True)
class Validation:
    """Validation rows: their batches, and a function from their scores to metrics.

    Without `score` only the loss is computed, if it is monitored.
    """

    batches: Batches
    score: Callable[[np.ndarray], Mapping[str, float]] | None = None


@dataclass(frozen=True)
class TrainingResult:
    """The outcome of a run; the trained weights are in its task."""

    history: list[dict[str, float]]
    best_epoch: int
    stopped_early: bool


def train(
    task: Task,
    batches: Batches,
    settings: LoopSettings,
    *,
    engine: Engine | None = None,
    validation: Validation | None = None,
    callbacks: Sequence[Callback] = (),
    stage: str = "training",
    identity: Any = None,
) -> TrainingResult:
    """Train a task, which has its best weights afterwards.

    Random numbers come from torch's generators: construct and train the task within
    :func:`~labelweave.nn.randomness.forked_rng`.

    Parameters
    ----------
    task : Task
    batches : Batches
        Training rows.
    settings : LoopSettings
    engine : Engine, optional
        Where to compute; plain torch in this process by default.
    validation : Validation, optional
    callbacks : sequence of Callback
    stage : str, default="training"
        Name of the run, where a method has several.
    identity : any plain values and arrays, optional
        What a checkpoint must agree with, besides settings and initial weights: the data.

    Returns
    -------
    TrainingResult
    """
    run = _Run(task, batches, settings, engine or Engine(), validation, callbacks, stage, identity)
    return run.go()


@dataclass
class _Run:
    """The state of one call of :func:`train`, with its arguments."""

    task: Task
    batches: Batches
    settings: LoopSettings
    engine: Engine
    validation: Validation | None
    callbacks: Sequence[Callback]
    stage: str
    identity: Any

    def __post_init__(self) -> None:
        task, settings, stage = self.task, self.settings, self.stage
        self.callbacks = self.callbacks if self.engine.rank == 0 else ()
        n_steps = settings.epochs * len(self.batches)
        self.fingerprint = ""
        if settings.checkpoint is not None:
            facts = asdict(settings) | {"checkpoint": None, "checkpoint_every": None}
            self.fingerprint = fingerprint(stage, facts, self.identity, task.state_dict())
        self.plans: list[OptimizerPlan] = task.optimizers(n_steps)
        self.engine.setup(task, self.plans)
        self.view = RunView(
            stage, task, settings.epochs, n_steps, asdict(settings), monitor=settings.monitor
        )
        # The position, and everything else that a checkpoint holds besides the weights.
        self.epoch = 0
        self.batch_number = 0
        self.sums: dict[str, float] = {}
        self.rows_seen = 0
        self.seconds = 0.0
        self.best: dict[str, Any] = {"value": None, "since": -1, "epoch": -1, "weights": None}
        self.is_over = False
        self.saved_at = time.monotonic()

    # -- the loop ----------------------------------------------------------------------

    def go(self) -> TrainingResult:
        self._resume()
        self.view.epoch, self.view.step = self.epoch, self._step_number()
        failed = True
        started: list[Callback] = []
        try:
            for callback in self.callbacks:
                callback.on_start(self.view)
                started.append(callback)
            while self.epoch < self.settings.epochs and not self.is_over:
                self._train_epoch()
                self._end_epoch()
                self._save_if_due(force=self.is_over or self.epoch == self.settings.epochs)
            failed = False
        finally:
            for callback in started:
                callback.on_end(self.view, failed=failed)
        if self.best["weights"] is not None:
            self.task.load_state_dict(self.best["weights"])
        self.task.eval()
        last = len(self.view.history)
        best_epoch = self.best["epoch"] + 1 if self.best["weights"] is not None else last
        return TrainingResult(self.view.history, best_epoch, last < self.settings.epochs)

    def _train_epoch(self) -> None:
        self.task.train()
        started = time.perf_counter() - self.seconds
        for batch in self.batches.epoch(self.epoch, start=self.batch_number):
            loss = self._step(batch)
            self.batch_number += 1
            self.view.step += 1
            self.seconds = time.perf_counter() - started
            for callback in self.callbacks:
                callback.on_step(self.view, loss)
            if self.batch_number < len(self.batches) and self.engine.world == 1:
                # With several processes, sums are not reduced before the end of the epoch.
                self._save_if_due()

    def _step(self, batch: Batch) -> float:
        step = self._step_number()
        info = StepInfo(self.epoch, step, step / self.view.n_steps)
        terms = self.engine.losses(batch, info)
        total = _total(terms)
        loss = self._add_to_sums(terms, total, len(batch.rows))
        for plan in self.plans:
            _clear_gradients(plan.optimizer)
        self.engine.backward(total, batch)
        for plan in self.plans:
            self.engine.step(plan, self.settings.clip_norm)
            if plan.scheduler is not None and plan.every == "step":
                plan.scheduler.step()
        with held_share(batch.share):
            self.task.after_step(batch, info)
        return loss

    def _add_to_sums(self, terms: dict[str, Tensor], total: Tensor, rows: int) -> float:
        """Add the terms to the sums of the epoch and return the value of their total."""
        loss = total.item()
        if not math.isfinite(loss):
            raise DivergedError(
                f"training diverged: the loss became {loss} in epoch {self.epoch + 1}, step "
                f"{self.batch_number + 1}; lower lr, set clip_norm, or scale the features"
            )
        self.rows_seen += rows
        self.sums["loss"] = self.sums.get("loss", 0.0) + loss * rows
        for name, term in terms.items():
            if name != "loss":
                value = loss if len(terms) == 1 else term.item()
                self.sums[name] = self.sums.get(name, 0.0) + value * rows
        return loss

    def _step_number(self) -> int:
        return self.epoch * len(self.batches) + self.batch_number

    # -- the end of an epoch -----------------------------------------------------------

    def _end_epoch(self) -> None:
        row: dict[str, float] = {"epoch": self.epoch + 1}
        *sums, rows = self.engine.sum([*self.sums.values(), self.rows_seen])
        row |= {name: value / rows for name, value in zip(self.sums, sums, strict=True)}
        row |= self._validate()
        self.task.end_epoch(self.epoch)
        row |= self.task.epoch_metrics()
        row["lr"] = self.plans[0].optimizer.param_groups[0]["lr"]
        row["seconds"] = self.seconds
        row = {name: float(value) for name, value in row.items()}
        self._keep_best_weights(row)
        self._step_schedulers(row)
        self.view.history.append(row)
        stop = [callback.on_epoch(self.view, row) for callback in self.callbacks]
        # Only the first process has callbacks: their request to stop is sent to the others.
        self.is_over |= self.engine.sum([float(any(stop))])[0] > 0
        self.epoch += 1
        self.view.epoch = self.epoch
        self.batch_number, self.rows_seen, self.sums, self.seconds = 0, 0, {}, 0.0

    def _validate(self) -> dict[str, float]:
        if self.validation is None:
            return {}
        self.task.eval()
        row: dict[str, float] = {}
        if self.settings.monitor == "val_loss":
            row["val_loss"] = self._validation_loss()
        if self.validation.score is not None:
            scores = predict_scores(self.engine.scores, self.validation.batches, self.engine)
            row |= {f"val_{name}": value for name, value in self.validation.score(scores).items()}
        return row

    @torch.no_grad()
    def _validation_loss(self) -> float:
        assert self.validation is not None
        info = StepInfo(self.epoch, self._step_number(), self._step_number() / self.view.n_steps)
        total, rows = 0.0, 0
        for batch in self.validation.batches.in_order():
            total += _total(self.engine.losses(batch, info)).item() * len(batch.rows)
            rows += len(batch.rows)
        total, n_rows = self.engine.sum([total, rows])
        return total / n_rows

    def _value_to_minimise(self, row: Mapping[str, float]) -> float | None:
        """The monitored value, negated if greater is better; None if it is not in the row."""
        value = row.get(self.settings.monitor or "")
        if value is None:
            return None
        return -value if self.settings.greater_is_better else value

    def _keep_best_weights(self, row: Mapping[str, float]) -> None:
        value = self._value_to_minimise(row)
        if value is None or math.isnan(value):  # NaN: not defined on these rows
            return
        if self.best["value"] is None or value < self.best["value"]:
            self.best |= {"value": value, "since": self.epoch}
        if value == self.best["value"]:
            # The last of equal epochs: a ranking metric can be perfect long before the
            # probabilities are good. Patience counts from the first of them.
            weights = copy.deepcopy(self.task.state_dict())
            self.best |= {"epoch": self.epoch, "weights": weights}
        patience = self.settings.patience
        if patience is not None and self.epoch - self.best["since"] >= patience:
            self.is_over = True

    def _step_schedulers(self, row: Mapping[str, float]) -> None:
        for plan in self.plans:
            if plan.scheduler is None or plan.every == "step":
                continue
            if plan.every == "epoch":
                plan.scheduler.step()
            else:
                value = self._value_to_minimise(row)
                plan.scheduler.step(row["loss"] if value is None else value)

    # -- checkpoints -------------------------------------------------------------------

    def _save_if_due(self, *, force: bool = False) -> None:
        path = self.settings.checkpoint
        if path is None or self.engine.rank > 0:
            return
        if not force and time.monotonic() - self.saved_at < self.settings.checkpoint_every:
            return
        schedulers = [p.scheduler.state_dict() if p.scheduler else None for p in self.plans]
        state = {
            "task": self.task.state_dict(),
            "optimizers": [plan.optimizer.state_dict() for plan in self.plans],
            "schedulers": schedulers,
            "rng": get_rng_state(self.engine.device),
            "precision": self.engine.precision_state(),
            "position": [self.epoch, self.batch_number, self.rows_seen, self.is_over],
            "sums": self.sums,
            "seconds": self.seconds,
            "best": self.best,
            "history": self.view.history,
            "callbacks": [callback.state() for callback in self.callbacks],
        }
        write_checkpoint(path, self.fingerprint, state)
        self.saved_at = time.monotonic()

    def _resume(self) -> None:
        path = self.settings.checkpoint
        if path is None:
            return
        state = read_checkpoint(path, self.fingerprint)
        self.engine.barrier()  # before the first process may write the next one
        if state is None:
            return
        self.task.load_state_dict(state["task"])
        for plan, saved, schedule in zip(
            self.plans, state["optimizers"], state["schedulers"], strict=True
        ):
            plan.optimizer.load_state_dict(saved)
            if plan.scheduler is not None:
                plan.scheduler.load_state_dict(schedule)
        set_rng_state(state["rng"], self.engine.device)
        self.engine.load_precision_state(state["precision"])
        self.epoch, self.batch_number, self.rows_seen, self.is_over = state["position"]
        self.sums, self.seconds, self.best = state["sums"], state["seconds"], state["best"]
        self.view.history = state["history"]
        for callback, callback_state in zip(self.callbacks, state["callbacks"], strict=False):
            callback.set_state(callback_state)


def _clear_gradients(optimizer: torch.optim.Optimizer) -> None:
    """The same as `zero_grad`, without profiler hooks, which slow down small steps."""
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            parameter.grad = None


def _total(terms: Mapping[str, Tensor]) -> Tensor:
    first, *rest = terms.values()
    for term in rest:
        first = first + term
    return first
