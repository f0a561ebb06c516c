"""One `fit` of a neural method: its data, its device, and its runs of the training loop."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelweave.base import Pair
from labelweave.exceptions import InputError
from labelweave.labels import LabelMatrix
from labelweave.nn.batches import Batches
from labelweave.nn.callbacks import ProgressCallback
from labelweave.nn.distributed import Engine
from labelweave.nn.network_spec import NetworkSpec
from labelweave.nn.scaling import FeatureScaling
from labelweave.nn.task import Task
from labelweave.nn.training import LoopSettings, TrainingResult, Validation, train
from labelweave.thresholds import make_threshold

__all__ = ["TrainingSession", "fewest_steps", "run_length"]

_OPTIONS = ("epochs", "batch_size", "min_steps", "monitor", "patience", "clip_norm")

_FEWEST_PASSES, _MOST_PASSES = 10, 40
_FEWEST_STEPS = 40
_ENOUGH_POSITIVES = 100  # of the average label


def run_length(Y: LabelMatrix) -> int:
    """Passes over the rows, from 10 to 40: more of them if labels have few positives.

    >>> from labelweave.labels import as_labels
    >>> [run_length(as_labels(np.ones((n, 2)))) for n in (3, 25, 1000)]
    [40, 20, 10]
    """
    positives = float(Y.positive().sum()) / Y.n_labels
    passes = _FEWEST_PASSES * math.sqrt(_ENOUGH_POSITIVES / max(positives, 1.0))
    return round(min(max(passes, _FEWEST_PASSES), _MOST_PASSES))


def fewest_steps(X: Any) -> int:
    """The minimum number of steps per epoch: 40, or 1 if there are more features than rows.

    A network soon overfits few rows with thousands of features (the words of texts), and more
    passes over them do harm.

    >>> fewest_steps(np.ones((9, 2))), fewest_steps(np.ones((9, 10)))
    (40, 1)
    """
    is_table = sp.issparse(X) or (isinstance(X, np.ndarray) and X.ndim == 2)
    return 1 if is_table and X.shape[1] > X.shape[0] else _FEWEST_STEPS


@dataclass
class TrainingSession:
    """One `fit`: its data, its device, and its runs of the training loop so far."""

    spec: NetworkSpec
    X: Any
    Y: LabelMatrix
    validation: Pair | None
    engine: Engine
    seed: int
    scaling: FeatureScaling | None
    trainer_parameters: Mapping[str, Any] | None = None
    row_weight: np.ndarray | None = None
    validation_weight: np.ndarray | None = None
    results: list[tuple[str, TrainingResult]] = field(default_factory=list)
    prefix: str = ""  # of the names of its stages, if several networks are trained
    scaled: bool = True  # whether the features are still to be scaled

    @property
    def n_epochs(self) -> int:
        """The largest number of passes over the training rows."""
        epochs = self.spec.settings.epochs
        return run_length(self.Y) if epochs == "auto" else int(epochs)

    def rows(self, rows: np.ndarray) -> TrainingSession:
        """The same session with these training rows only."""
        weight = None if self.row_weight is None else self.row_weight[rows]
        return replace(self, X=self.X[rows], Y=self.Y[rows], row_weight=weight)

    def train(self, task: Task, *, stage: str = "training", **changes: Any) -> TrainingResult:
        """Run the loop on a task.

        Parameters
        ----------
        task : Task
        stage : str, default="training"
            Name of this run in history, logs and checkpoints.
        **changes
            What differs from the settings in this stage: `epochs`, `batch_size`, `min_steps`,
            `monitor` (None keeps the last weights), `patience`, `clip_norm`. And
            `steps_per_epoch`, the steps of each epoch for any number of rows.
        """
        if self.row_weight is not None and not task.weighs_rows:
            raise InputError(
                f"the objective of {self.spec.name} has no weights of rows: leave sample_weight out"
            )
        defaults = self.spec.settings
        stage = self.prefix + stage
        fixed = changes.pop("steps_per_epoch", None)
        options = {name: changes.pop(name, getattr(defaults, name)) for name in _OPTIONS}
        if options["epochs"] == "auto":
            options["epochs"] = self.n_epochs
        if changes:
            raise TypeError(f"a stage has no setting {', '.join(changes)}")
        monitor = options["monitor"]
        column, greater, metric = self._monitored(monitor)
        # "tuned:f1_macro" brings its own rule of thresholds.
        rule = monitor if metric is not None and monitor.startswith("tuned:") else None
        folder = defaults.checkpoint
        settings = LoopSettings(
            epochs=options["epochs"],
            monitor=column,
            greater_is_better=greater,
            patience=options["patience"],
            clip_norm=options["clip_norm"],
            checkpoint=None if folder is None else Path(folder) / f"{stage}.ckpt",
            checkpoint_every=defaults.checkpoint_every,
        )
        batches = self._batches(
            self.X,
            self.Y,
            batch_size=options["batch_size"],
            steps_per_epoch=fixed or self._lengthened(options["batch_size"], options["min_steps"]),
            row_weight=self.row_weight,
        )
        result = train(
            task,
            batches,
            settings,
            engine=self.engine,
            validation=self._validation(column, metric, rule or defaults.threshold),
            callbacks=[
                *(defaults.callbacks or ()),
                *([ProgressCallback()] if defaults.verbose else ()),
            ],
            stage=stage,
            identity=None if folder is None else self._identity(options | {"steps": fixed}),
        )
        self.results.append((stage, result))
        return result

    def history(self) -> Any:
        """All epochs of all runs; with several runs, the column "stage" names the run."""
        import pandas as pd

        frames = [pd.DataFrame(result.history) for _, result in self.results]
        if len(frames) > 1:
            for frame, (stage, _) in zip(frames, self.results, strict=True):
                frame.insert(0, "stage", stage)
        history = pd.concat(frames, ignore_index=True)
        return history.astype({"epoch": int})

    def _lengthened(self, batch_size: int, min_steps: int | str) -> int | None:
        """Steps per epoch, if one pass over the rows has too few; else None."""
        fewest = fewest_steps(self.X) if min_steps == "auto" else int(min_steps)
        return fewest if math.ceil(len(self.Y) / batch_size) < fewest else None

    def scoring_batches(
        self, X: Any, Y: LabelMatrix, row_weight: np.ndarray | None = None
    ) -> Batches:
        """These rows in batches for prediction."""
        rows = self.spec.rows_at_once(X.shape[1], Y.n_labels)
        return self._batches(X, Y, batch_size=rows, row_weight=row_weight)

    def _batches(self, X: Any, Y: LabelMatrix, *, batch_size: int, **options: Any) -> Batches:
        return Batches(
            X,
            Y,
            batch_size=batch_size,
            seed=self.seed,
            scaling=self.scaling if self.scaled else None,
            device=self.engine.device,
            rank=self.engine.rank,
            world=self.engine.world,
            **options,
        )

    def _monitored(self, monitor: str | None) -> tuple[str | None, bool, Any]:
        """The monitored column, whether greater is better, and the metric to compute, if any."""
        if monitor is None:
            return None, True, None
        if monitor in ("loss", "val_loss"):
            return monitor, False, None
        from labelweave.metrics import get_metric

        metric = get_metric(monitor.split(":")[1] if monitor.startswith("tuned:") else monitor)
        return f"val_{metric.name}", metric.greater_is_better, metric

    def _validation(self, column: str | None, metric: Any, threshold: Any) -> Validation | None:
        if self.validation is None or column in (None, "loss"):
            return None
        X, Y = self.validation
        weight = self.validation_weight

        def score(scores: np.ndarray) -> dict[str, float]:
            if metric.needs == "score":
                return {metric.name: metric(Y, Y_score=scores, sample_weight=weight)}
            rule = make_threshold(threshold)
            if rule.needs_validation:
                rule.fit(Y, scores)
            sets = rule.apply(scores)
            return {metric.name: metric(Y, Y_pred=sets, sample_weight=weight)}

        return Validation(self.scoring_batches(X, Y, weight), None if metric is None else score)

    def _identity(self, options: Mapping[str, Any]) -> list[Any]:
        parameters = {
            name: value
            for name, value in self.spec.parameters.items()
            if name not in ("callbacks", "checkpoint", "checkpoint_every", "verbose")
        }
        validation = () if self.validation is None else self.validation
        weights = (self.row_weight, self.validation_weight)
        return [
            options,
            parameters,
            self.trainer_parameters,
            self.seed,
            self.X,
            self.Y,
            *validation,
            *(weights if self.row_weight is not None else ()),
        ]
