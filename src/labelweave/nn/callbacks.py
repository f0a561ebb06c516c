"""Callbacks of a training run: progress bar, TensorBoard, MLflow, or a class of your own.

Callbacks are called in the first process only. They hold only settings until the run starts, so
that estimators with callbacks can be cloned.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike, fspath
from typing import Any

from labelweave.exceptions import require
from labelweave.nn.task import Task
from labelweave.progress import ProgressBar

__all__ = [
    "Callback",
    "MLflowLogger",
    "ProgressCallback",
    "RunView",
    "TensorBoardLogger",
    "TimeLimit",
]


@dataclass
class RunView:
    """The state of the run, for callbacks; it changes during the run."""

    stage: str
    task: Task
    n_epochs: int
    n_steps: int
    settings: Mapping[str, Any]
    epoch: int = 0
    step: int = 0
    monitor: str | None = None
    history: list[dict[str, float]] = field(default_factory=list)


class Callback:
    """Base of callbacks; every method does nothing unless it is overridden."""

    def on_start(self, run: RunView) -> None:
        """The run starts, or continues from a checkpoint at `run.epoch`."""

    def on_step(self, run: RunView, loss: float) -> None:
        """A training step is done."""

    def on_epoch(self, run: RunView, row: dict[str, float]) -> bool | None:
        """An epoch is done and `row` is in the history. Return True to stop the run."""

    def on_end(self, run: RunView, *, failed: bool) -> None:
        """The run is over; `failed` after an error or an interrupt."""

    def state(self) -> dict[str, Any]:
        """State to store in checkpoints (plain values)."""
        return {}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore what :meth:`state` returned; called before `on_start`."""


class TimeLimit(Callback):
    """Stops all runs of a `fit` after this many seconds, at the end of an epoch."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.started: float | None = None

    def on_start(self, run: RunView) -> None:
        self.started = time.monotonic() if self.started is None else self.started

    def on_epoch(self, run: RunView, row: dict[str, float]) -> bool:
        return self.started is not None and time.monotonic() - self.started > self.seconds


class ProgressCallback(Callback):
    """A bar over all steps, with loss, monitored value and time left."""

    def on_start(self, run: RunView) -> None:
        self.bar = ProgressBar(run.stage, run.n_steps)
        self.bar.__enter__()
        self.monitored = ""

    def on_step(self, run: RunView, loss: float) -> None:
        if self.bar.is_shown:
            note = f"epoch {run.epoch + 1}/{run.n_epochs} loss {loss:.4f}{self.monitored}"
            self.bar.move_to(run.step, note)

    def on_epoch(self, run: RunView, row: dict[str, float]) -> None:
        if run.monitor in row:
            self.monitored = f" {run.monitor} {row[run.monitor]:.4f}"

    def on_end(self, run: RunView, *, failed: bool) -> None:
        self.bar.__exit__()


class TensorBoardLogger(Callback):
    """Writes every column of the history as a TensorBoard event file (extra `track`).

    Parameters
    ----------
    folder : path
        Each stage of a method writes to a folder of its own in it.
    """

    def __init__(self, folder: str | PathLike[str]) -> None:
        self.folder = folder

    def on_start(self, run: RunView) -> None:
        require("tensorboard", "track")
        tensorboard = require("torch.utils.tensorboard", "track")
        # Events after the checkpoint belong to a process that died: they are written again.
        self.writer = tensorboard.SummaryWriter(
            f"{fspath(self.folder)}/{run.stage}", purge_step=run.epoch + 1
        )

    def on_epoch(self, run: RunView, row: dict[str, float]) -> None:
        for name, value in row.items():
            if name != "epoch":
                self.writer.add_scalar(name, value, int(row["epoch"]))

    def on_end(self, run: RunView, *, failed: bool) -> None:
        self.writer.close()


class MLflowLogger(Callback):
    """Logs settings and history to MLflow (extra `track`), each stage as a run.

    Parameters
    ----------
    tracking_uri : str
        A database or server, such as ``sqlite:///mlflow.db``.
    experiment : str, default="labelweave"
    run_name : str, optional
        By default the name of the stage.
    """

    def __init__(
        self, tracking_uri: str, *, experiment: str = "labelweave", run_name: str | None = None
    ) -> None:
        self.tracking_uri = tracking_uri
        self.experiment = experiment
        self.run_name = run_name
        self.run_ids: dict[str, str] = {}

    def on_start(self, run: RunView) -> None:
        mlflow = require("mlflow", "track")
        self.client = mlflow.MlflowClient(tracking_uri=self.tracking_uri)
        if run.stage in self.run_ids and run.epoch > 0:
            self.client.update_run(self.run_ids[run.stage], status="RUNNING")
            return
        experiment = self.client.get_experiment_by_name(self.experiment)
        if experiment is None:
            experiment_id = self.client.create_experiment(self.experiment)
        else:
            experiment_id = experiment.experiment_id
        new_run = self.client.create_run(experiment_id, run_name=self.run_name or run.stage)
        self.run_ids[run.stage] = new_run.info.run_id
        for name, value in run.settings.items():
            self.client.log_param(new_run.info.run_id, name, value)

    def on_epoch(self, run: RunView, row: dict[str, float]) -> None:
        now, step = int(time.time() * 1000), int(row["epoch"])
        entities = require("mlflow.entities", "track")
        metrics = [
            entities.Metric(name.replace("@", "_at_"), value, now, step)  # MLflow refuses "@"
            for name, value in row.items()
            if name != "epoch"
        ]
        self.client.log_batch(self.run_ids[run.stage], metrics=metrics)

    def on_end(self, run: RunView, *, failed: bool) -> None:
        status = "FAILED" if failed else "FINISHED"
        self.client.set_terminated(self.run_ids[run.stage], status=status)

    def state(self) -> dict[str, Any]:
        return {"run_ids": dict(self.run_ids)}

    def set_state(self, state: dict[str, Any]) -> None:
        self.run_ids = dict(state["run_ids"])
