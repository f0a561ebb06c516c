"""A moving average of the weights, which is used for prediction.

The average of the weights along the run often lies in a flatter and better minimum than the last
weights: Polyak and Juditsky, "Acceleration of Stochastic Approximation by Averaging", 1992;
Izmailov et al., "Averaging Weights Leads to Wider Optima and Better Generalization", UAI 2018.
"""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

from labelweave.nn.batches import Batch
from labelweave.nn.task import OptimizerPlan, StepInfo, Task


class AveragedTask(Task):
    """Wraps a task, and validates and keeps the moving average of its network.

    At the n-th step the average keeps ``min(decay, n / (n + 10))`` of itself and takes the rest
    from the trained weights, so that it soon forgets where they started: about
    ``1 / (1 - decay)`` steps are averaged. The network of `task` becomes the average; a copy of the
    task is trained.
    """

    def __init__(self, task: Task, decay: float) -> None:
        nn.Module.__init__(self)
        self.trained = copy.deepcopy(task)
        self.averaged = task.requires_grad_(False)
        self.decay = decay

    @property
    def network(self) -> nn.Module:  # type: ignore[override]
        """The averaged network, which predicts."""
        return self.averaged.network

    @property
    def weighs_entries(self) -> bool:  # type: ignore[override]
        """Whether the wrapped task weighs entries."""
        return self.averaged.weighs_entries

    @property
    def weighs_rows(self) -> bool:  # type: ignore[override]
        """Whether the wrapped task weighs rows."""
        return self.averaged.weighs_rows

    def losses(self, batch: Batch, info: StepInfo) -> dict[str, Tensor]:
        return (self.trained if self.training else self.averaged).losses(batch, info)

    def optimizers(self, n_steps: int) -> list[OptimizerPlan]:
        return self.trained.optimizers(n_steps)

    def scores(self, x: Tensor) -> Tensor:
        return self.averaged.scores(x)

    def end_epoch(self, epoch: int) -> None:
        self.trained.end_epoch(epoch)

    def epoch_metrics(self) -> dict[str, float]:
        return self.trained.epoch_metrics()

    @torch.no_grad()
    def after_step(self, batch: Batch, info: StepInfo) -> None:
        self.trained.after_step(batch, info)
        n = info.step + 1
        share = 1 - min(self.decay, n / (n + 10))
        averaged, trained = (t.network.state_dict() for t in (self.averaged, self.trained))
        floats = [name for name, values in averaged.items() if values.is_floating_point()]
        torch._foreach_lerp_(
            [averaged[name] for name in floats], [trained[name] for name in floats], share
        )
        for name in averaged.keys() - set(floats):  # counters
            averaged[name].copy_(trained[name])
