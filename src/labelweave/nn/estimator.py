"""Base of the neural methods: scikit-learn's contract over the one training loop.

A method defines `_build_network(n_features, n_labels)`, which maps features to logits and, if it
has an objective of its own, `_build_task(network, session)`. A method that trains in several stages
overrides `_learn` and calls `session.train` once per stage.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from numbers import Integral, Real
from os import PathLike
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions
from torch import nn

from labelweave.base import MultiLabelClassifier, Pair, WeightedClassifier
from labelweave.class_weights import class_weights
from labelweave.input_checks import check_weight
from labelweave.labels import LabelMatrix
from labelweave.nn.losses import Loss, get_loss, label_weighted
from labelweave.nn.network_classifier import NetworkClassifier
from labelweave.nn.network_spec import NetworkSpec, TrainingSettings
from labelweave.nn.prediction import scoring_rows
from labelweave.nn.randomness import forked_rng
from labelweave.nn.scaling import SCALES, FeatureScaling, fit_scaling
from labelweave.nn.session import TrainingSession
from labelweave.nn.task import OPTIMIZERS, SCHEDULES, SupervisedTask, Task

__all__ = ["NeuralClassifier", "TrainingSession"]


class NeuralClassifier(WeightedClassifier, NetworkClassifier):
    """Base of the neural methods; these parameters are common to all of them.

    Weights of rows (`sample_weight` in `fit`) scale the losses of the rows. Scaling of features
    and batch norm use the rows without weights.

    Parameters
    ----------
    epochs : int or "auto", default=100
        The largest number of passes over the training rows. ``"auto"`` is meant for a run without
        patience whose learning rate falls to zero: :func:`labelweave.nn.session.run_length`.
    batch_size : int, default=64
    min_steps : int or "auto", default=1
        The minimum number of steps per epoch. If one pass over the rows takes fewer steps, an
        epoch is several passes; otherwise patience would end before anything is learnt.
        ``"auto"`` is meant for a run without patience: :func:`labelweave.nn.session.fewest_steps`.
    lr : float, default=1e-3
        Learning rate.
    weight_decay : float, default=1e-4
    optimizer : {"adamw", "adam", "sgd"}, default="adamw"
        "adam" adds the weight decay to the gradients; "sgd" has a momentum of 0.9.
    schedule : {"constant", "cosine", "linear", "plateau", "cosine-restarts"}, default="constant"
        Schedule of the learning rate; see :func:`labelweave.nn.task.make_plan`.
    schedule_params : dict, optional
        Parameters of the schedule, such as ``{"warmup": 0.1}``; see the same function.
    clip_norm : float, optional
        Largest norm of the gradients.
    monitor : str, default="val_loss"
        How the best weights are chosen: by the loss of the validation rows, by any metric of
        :mod:`labelweave.metrics` on them ("map", "f1_example"), or by "loss", that of the
        training rows. Metrics of label sets use `threshold`, or with "tuned:f1_macro" and
        "tuned:f1_macro:grid" the best threshold of the validation rows in each epoch.
    patience : int or None, default=10
        Stop after this many epochs without a better value and keep the best weights; None
        trains all epochs, keeps the last weights and holds no rows out.
    scale : {"auto", "standard", "max-abs", "none"}, default="auto"
        Scaling of the features; see :func:`labelweave.nn.scaling.fit_scaling`.
    device : str, default="cpu"
        "cpu", "cuda", "mps", or "auto" for the accelerator of this machine.
    precision : str, default="32-true"
        Anything that Lightning Fabric knows, such as "bf16-mixed" or "16-mixed".
    checkpoint : path, optional
        Folder for checkpoints. A `fit` with the same data and parameters continues from the
        checkpoint there, with the same result as an uninterrupted run; it needs a
        `random_state`.
    checkpoint_every : float, default=30
        Seconds between two checkpoints.
    callbacks : sequence of Callback, optional
        See :mod:`labelweave.nn.callbacks`.
    verbose : int, default=0
        1 shows a progress bar on a terminal.
    threshold, validation_fraction, random_state
        As in every estimator.

    Attributes
    ----------
    network_ : nn.Module
        Maps (scaled) features to one logit per label.
    scaling_ : FeatureScaling or None
    history_ : DataFrame
        One row per epoch: loss, its terms, validation scores, learning rate, seconds.
    best_epoch_ : int
        The epoch, from 1, whose weights were kept.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **MultiLabelClassifier._parameter_constraints,
        "epochs": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "batch_size": [Interval(Integral, 1, None, closed="left")],
        "min_steps": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "lr": [Interval(Real, 0, None, closed="neither")],
        "weight_decay": [Interval(Real, 0, None, closed="left")],
        "optimizer": [StrOptions(set(OPTIMIZERS))],
        "schedule": [StrOptions(set(SCHEDULES))],
        "schedule_params": [dict, None],
        "clip_norm": [Interval(Real, 0, None, closed="neither"), None],
        "monitor": [str],
        "patience": [Interval(Integral, 1, None, closed="left"), None],
        "scale": [StrOptions(set(SCALES))],
        "device": [str],
        "precision": [str],
        "checkpoint": [str, PathLike, None],
        "checkpoint_every": [Interval(Real, 0, None, closed="left")],
        "callbacks": [list, tuple, None],
        "verbose": ["verbose"],
    }
    _label_weight: np.ndarray | None = None  # of negatives and positives per label, in training
    # They belong to the run, not to the model: they are not saved.
    _unsaved_parameters: ClassVar[tuple[str, ...]] = (
        "callbacks",
        "checkpoint",
        "checkpoint_every",
        "device",
        "precision",
        "verbose",
    )

    def __init__(
        self,
        *,
        epochs: int | str = 100,
        batch_size: int = 64,
        min_steps: int | str = 1,
        lr: float = 1e-3,
        weight_decay: float = 1e-4,
        optimizer: str = "adamw",
        schedule: str = "constant",
        schedule_params: Mapping[str, Any] | None = None,
        clip_norm: float | None = None,
        monitor: str = "val_loss",
        patience: int | None = 10,
        scale: str = "auto",
        device: str = "cpu",
        precision: str = "32-true",
        checkpoint: str | PathLike[str] | None = None,
        checkpoint_every: float = 30.0,
        callbacks: Sequence[Any] | None = None,
        verbose: int = 0,
        threshold: Any = 0.5,
        validation_fraction: float = 0.2,
        random_state: Any = None,
    ) -> None:
        self.epochs = epochs
        self.batch_size = batch_size
        self.min_steps = min_steps
        self.lr = lr
        self.weight_decay = weight_decay
        self.optimizer = optimizer
        self.schedule = schedule
        self.schedule_params = schedule_params
        self.clip_norm = clip_norm
        self.monitor = monitor
        self.patience = patience
        self.scale = scale
        self.device = device
        self.precision = precision
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every
        self.callbacks = callbacks
        self.verbose = verbose
        self.threshold = threshold
        self.validation_fraction = validation_fraction
        self.random_state = random_state

    # -- what a method defines ---------------------------------------------------------

    def _build_task(self, network: nn.Module, session: TrainingSession) -> Task:
        """The objective; by default `loss` with `loss_params`, and one optimiser."""
        name, function = self._chosen_loss()
        return SupervisedTask(network, function, self._optimizer_options(), name=name)

    def _chosen_loss(self) -> tuple[str, Loss]:
        """The loss and its name in the history; binary cross-entropy without a parameter for it."""
        loss = getattr(self, "loss", "bce")
        name = loss if isinstance(loss, str) else getattr(loss, "__name__", "own")
        function = get_loss(loss, getattr(self, "loss_params", None))
        if self._label_weight is not None:
            function = label_weighted(function, self._label_weight)
        return name, function

    def _learn_statistics(self, X: Any, Y: LabelMatrix, row_weight: np.ndarray | None) -> None:
        """Compute what network and objective depend on; by default the weights of labels."""
        _, self._label_weight = self._class_weights(Y, row_weight)

    def _class_weights(
        self, Y: LabelMatrix, row_weight: np.ndarray | None
    ) -> tuple[np.ndarray | None, np.ndarray | None]:
        """Weights of rows and of labels by the parameter `class_weight`, where there is one."""
        classes = self.classes_ if vars(self).get("_single_label") else None
        return class_weights(getattr(self, "class_weight", None), Y, row_weight, classes)

    def _pretrain(self, network: nn.Module, session: TrainingSession) -> None:
        """Train what comes before the supervised stage; nothing by default."""

    def _learn(self, network: nn.Module, session: TrainingSession) -> None:
        """Train the network; called with torch's generator seeded."""
        self._train_on_task(network, session, self._build_task)

    def _train_on_task(
        self,
        network: nn.Module,
        session: TrainingSession,
        build_task: Callable[[nn.Module, TrainingSession], Task],
    ) -> None:
        self._pretrain(network, session)
        monitor = None if self.patience is None else self.monitor
        session.train(build_task(network, session), monitor=monitor)

    # -- the network, for methods that train it ----------------------------------------

    def network_spec(self) -> NetworkSpec:
        """The network, its objective and its training settings.

        This is all that another method needs to train the network of this estimator.
        """
        return NetworkSpec(
            name=type(self).__name__,
            parameters=self.get_params(deep=False),
            settings=self._training_settings(),
            learn_statistics=self._learn_statistics,
            build_network=self._build_network,
            build_task=self._build_task,
            pretrain=self._pretrain,
            fit_scaling=self._fit_scaling,
            rows_at_once=self._rows_at_once,
            image_encoder=self._image_encoder(),
        )

    def _training_settings(self) -> TrainingSettings:
        names = [item.name for item in fields(TrainingSettings)]
        return TrainingSettings(**{name: getattr(self, name) for name in names})

    def _optimizer_options(self) -> dict[str, Any]:
        return self._training_settings().optimizer_options()

    def _fit_scaling(self, X: Any) -> FeatureScaling | None:
        """The scaling of the features; a network for images scales by itself."""
        return None if self._image_encoder() is not None else fit_scaling(X, self.scale)

    # -- fitting -----------------------------------------------------------------------

    def _needs_validation(self) -> bool:
        return self.patience is not None and self.monitor != "loss"

    def _fit(
        self,
        X: Any,
        Y: LabelMatrix,
        validation: Pair | None,
        sample_weight: np.ndarray | None = None,
    ) -> None:
        sample_weight, _ = self._class_weights(Y, sample_weight)
        of_validation = None
        if validation is not None:
            of_validation = check_weight(self._validation_weight, len(validation[1]))
            of_validation, _ = self._class_weights(validation[1], of_validation)
        self._fit_network(X, Y, validation, self._learn, sample_weight, of_validation)

    def fit_objective(
        self,
        X: Any,
        y: Any,
        build_task: Callable[[nn.Module, TrainingSession], Task],
        *,
        validation: Any = None,
    ) -> Self:
        """Fit the network to another objective than the estimator's own.

        Everything else is as in `fit`: checks, scaling, early stopping, the threshold.

        Parameters
        ----------
        X, y : features and labels, as in `fit`
        build_task : function of (network, session)
            Returns the objective, a :class:`labelweave.nn.task.Task`.
        validation : Dataset or (X, Y), optional
            As in `fit`.
        """

        def learn(network: nn.Module, session: TrainingSession) -> None:
            self._train_on_task(network, session, build_task)

        return self._fit_checked(
            X, y, validation, lambda X, Y, held_out: self._fit_network(X, Y, held_out, learn)
        )

    def _fit_network(
        self,
        X: Any,
        Y: LabelMatrix,
        validation: Pair | None,
        learn: Callable[[nn.Module, TrainingSession], None],
        row_weight: np.ndarray | None = None,
        validation_weight: np.ndarray | None = None,
    ) -> None:
        self._learn_statistics(X, Y, row_weight)
        session = self.network_spec().open_session(
            X,
            Y,
            validation,
            self.random_state,
            row_weight=row_weight,
            validation_weight=validation_weight,
        )
        self.scaling_ = session.scaling
        with forked_rng(session.seed, session.engine.device):
            network = self._build_network(X.shape[1], Y.n_labels)
            learn(network, session)
        self._keep(network, session)

    def _row_size(self, n_features: int, n_labels: int) -> int:
        """Numbers in the largest layer of one row, which decide how many are scored at a time."""
        return n_features

    def _rows_at_once(self, n_features: int, n_labels: int) -> int:
        """How many rows are scored at a time."""
        size, encoder = self._row_size(n_features, n_labels), self._image_encoder()
        return scoring_rows(size if encoder is None else max(size, encoder.row_size()))

    # -- images ------------------------------------------------------------------------

    def _image_encoder(self) -> Any:
        """The parameter `encoder`, where it is a network for images; else None."""
        encoder = getattr(self, "encoder", None)
        if isinstance(encoder, str):
            encoder = self._default_encoder()
        return encoder if getattr(encoder, "takes_images", False) else None

    def default_part(self, parameter: str) -> Any:
        """Return the network for images that a name in `encoder` stands for."""
        return self._default_encoder() if parameter == "encoder" else None

    def _default_encoder(self) -> Any:
        """The encoder that the name in `encoder` stands for."""
        from labelweave.nn.image_network import make_encoder

        return make_encoder(getattr(self, "encoder", None))

    @classmethod
    def _test_params(cls) -> dict[str, Any]:
        """Parameters with which tests over many tiny data sets stay quick."""
        return {"epochs": 15, "batch_size": 16, "min_steps": 1, "lr": 2e-2}
