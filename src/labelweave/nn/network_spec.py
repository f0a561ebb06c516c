"""A description of a network: how it is built, its objective, and how it is trained.

A method that trains the network of another estimator (two networks that select labels for each
other, a student of several teachers) needs only these three things of that estimator.
:meth:`labelweave.nn.estimator.NeuralClassifier.network_spec` returns them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import check_random_state
from torch import nn

from labelweave.base import Pair
from labelweave.exceptions import InputError
from labelweave.labels import LabelMatrix
from labelweave.nn.distributed import make_engine
from labelweave.nn.scaling import FeatureScaling
from labelweave.nn.task import SCHEDULE_PARAMETERS, Task

if TYPE_CHECKING:
    from labelweave.nn.session import TrainingSession

__all__ = ["NetworkSpec", "TrainingSettings"]


@dataclass(frozen=True)
class TrainingSettings:
    """The training parameters of a neural estimator, documented there.

    See :class:`labelweave.nn.estimator.NeuralClassifier`.
    """

    epochs: int | str
    batch_size: int
    min_steps: int | str
    lr: float
    weight_decay: float
    optimizer: str
    schedule: str
    schedule_params: Mapping[str, Any] | None
    clip_norm: float | None
    monitor: str
    patience: int | None
    device: str
    precision: str
    checkpoint: str | PathLike[str] | None
    checkpoint_every: float
    callbacks: Sequence[Any] | None
    verbose: int
    threshold: Any

    def optimizer_options(self) -> dict[str, Any]:
        """The arguments of :func:`labelweave.nn.task.make_plan`."""
        names = ("lr", "weight_decay", "optimizer", "schedule")
        options = {name: getattr(self, name) for name in names}
        extra = dict(self.schedule_params or {})
        if wrong := sorted(set(extra) - set(SCHEDULE_PARAMETERS)):
            known = ", ".join(SCHEDULE_PARAMETERS)
            raise InputError(f"a schedule has no parameter {wrong[0]!r}: choose among {known}")
        return options | extra


@dataclass(frozen=True)
class NetworkSpec:
    """A network, its objective and its training settings."""

    name: str  # class of the estimator, for messages
    parameters: Mapping[str, Any]  # all of the estimator; a checkpoint must agree with them
    settings: TrainingSettings
    # Computes what network and objective depend on, such as a label graph, from features, labels
    # and the weights of the rows or None; called once, before the network is built.
    learn_statistics: Callable[[Any, LabelMatrix, np.ndarray | None], None]
    build_network: Callable[[int, int], nn.Module]  # of the numbers of features and labels
    build_task: Callable[[nn.Module, TrainingSession], Task]  # the objective of the network
    pretrain: Callable[[nn.Module, TrainingSession], None]  # what precedes the supervised stage
    fit_scaling: Callable[[Any], FeatureScaling | None]  # None: the network scales by itself
    rows_at_once: Callable[[int, int], int]  # how many rows are scored at a time
    image_encoder: Any  # the network for images, or None where the features are no images

    def open_session(
        self,
        X: Any,
        Y: LabelMatrix,
        validation: Pair | None,
        random_state: Any,
        *,
        trainer_parameters: Mapping[str, Any] | None = None,
        row_weight: np.ndarray | None = None,
        validation_weight: np.ndarray | None = None,
    ) -> TrainingSession:
        """A training session on these rows; the features are scaled by them.

        `trainer_parameters` are those of the method that trains this network, where it is another
        one: checkpoints must agree with them too.
        """
        from labelweave.nn.session import TrainingSession

        settings = self.settings
        engine = make_engine(settings.device, settings.precision)
        if random_state is None and (settings.checkpoint is not None or engine.world > 1):
            what = "a checkpoint" if engine.world == 1 else "training with several processes"
            raise InputError(f"{what} needs a seed: set random_state", parameter="random_state")
        generator = (
            np.random.RandomState() if random_state is None else check_random_state(random_state)
        )
        seed = int(generator.randint(np.iinfo(np.int32).max))
        return TrainingSession(
            spec=self,
            X=X,
            Y=Y,
            validation=validation,
            engine=engine,
            seed=seed,
            scaling=self.fit_scaling(X),
            trainer_parameters=trainer_parameters,
            row_weight=row_weight,
            validation_weight=validation_weight,
        )
