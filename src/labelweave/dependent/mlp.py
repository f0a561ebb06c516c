"""A multi-layer perceptron with one output per label and a choice of losses."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from os import PathLike
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval, StrOptions
from torch import nn

from labelweave.class_weights import CLASS_WEIGHT
from labelweave.nn.encoders import ACTIVATIONS, NORMS, encoder_or_mlp
from labelweave.nn.estimator import NeuralClassifier
from labelweave.nn.losses import LOSSES

__all__ = ["MLP", "Perceptron"]


class Perceptron(NeuralClassifier):
    """Hidden layers shared by all labels and one logit per label; subclasses choose the loss.

    Parameters
    ----------
    hidden : sequence of int, default=(512, 512)
        Widths of the hidden layers; without any, the model is a logistic regression.
    dropout : float, default=0.5
        After each hidden layer.
    input_dropout : float, default=0.0
        Of the features themselves.
    activation : str, default="relu"
        A key of :data:`labelweave.nn.encoders.ACTIVATIONS`.
    norm : {"batch", "layer"} or None, default="batch"
        Normalisation in each hidden layer. Batch norm helps most with many sparse features.
    encoder : callable or str, optional
        Replaces the hidden layers: a network for images
        (:class:`labelweave.images.ResNet`, or "resnet18", "resnet50"), or a function of the
        number of features that returns a module with an attribute `n_out`. The five parameters
        above are then not used.
    lr : float, default=5e-4
    weight_decay : float, default=0.1
    optimizer : {"adamw", "adam", "sgd"}, default="adamw"
    epochs : int or "auto", default=200
    batch_size, min_steps, schedule, schedule_params, clip_norm, monitor, patience, scale,
    device, precision, checkpoint, checkpoint_every, callbacks, verbose, threshold,
    validation_fraction, random_state
        The other parameters of :class:`labelweave.nn.estimator.NeuralClassifier`.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **NeuralClassifier._parameter_constraints,
        "hidden": [list, tuple],
        "dropout": [Interval(Real, 0, 1, closed="left")],
        "input_dropout": [Interval(Real, 0, 1, closed="left")],
        "activation": [StrOptions(set(ACTIVATIONS))],
        "norm": [StrOptions(set(NORMS)), None],
        "encoder": [callable, str, None],
    }

    tuning_space: ClassVar[dict[str, Any]] = {
        "hidden": ("choice", [[256], [512], [512, 512], [256, 512, 256]]),
        "dropout": ("float", 0.0, 0.6),
        "input_dropout": ("float", 0.0, 0.5),
        "lr": ("log", 1e-4, 1e-2),
        "weight_decay": ("log", 1e-4, 1.0),
        "batch_size": ("choice", [32, 64, 128]),
    }

    hidden: Sequence[int]
    dropout: float
    input_dropout: float
    activation: str
    norm: str | None
    encoder: Any

    def _build_network(self, n_features: int, n_labels: int) -> nn.Module:
        encoder = encoder_or_mlp(
            self.encoder,
            n_features,
            self.hidden,
            dropout=self.dropout,
            input_dropout=self.input_dropout,
            activation=self.activation,
            norm=self.norm,
        )
        return nn.Sequential(encoder, nn.Linear(encoder.n_out, n_labels))  # type: ignore[arg-type]

    @classmethod
    def _test_params(cls) -> dict[str, Any]:
        return {**super()._test_params(), "hidden": (32,)}


class MLP(Perceptron):
    """Multi-layer perceptron: hidden layers shared by all labels and one logit per label.

    A strong baseline: labels interact only through the shared hidden layers.

    Parameters
    ----------
    hidden : sequence of int, default=(512, 512)
        Widths of the hidden layers; without any, the model is a logistic regression.
    loss : str or callable, default="bce"
        A key of :data:`labelweave.nn.losses.LOSSES` ("bce", "asl", "focal", ...) or a
        function of (logits, targets) in which NaN targets are ignored.
    loss_params : dict, optional
        Parameters of the loss, such as ``{"gamma_neg": 2}``.
    class_weight : "balanced" or mapping of label to number, optional
        Weights of positives in the loss, as in :mod:`labelweave.class_weights`; not for losses
        of whole rows ("zlpr").
    dropout, input_dropout, activation, norm, encoder, lr, weight_decay, optimizer, epochs,
    batch_size, min_steps, schedule, schedule_params, clip_norm, monitor, patience, scale, device,
    precision, checkpoint, checkpoint_every, callbacks, verbose, threshold, validation_fraction,
    random_state
        The other parameters of :class:`Perceptron` and of
        :class:`labelweave.nn.estimator.NeuralClassifier`.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, Y = make_multilabel_classification(n_samples=200, random_state=0)
    >>> model = MLP(hidden=(32,), loss="asl", epochs=20, random_state=0).fit(X, Y)
    >>> model.predict_proba(X[:3]).shape
    (3, 5)
    >>> list(model.history_.columns)
    ['epoch', 'loss', 'asl', 'val_loss', 'lr', 'seconds']
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Perceptron._parameter_constraints,
        "loss": [StrOptions(set(LOSSES)), callable],
        "loss_params": [dict, None],
        "class_weight": CLASS_WEIGHT,
    }

    def __init__(
        self,
        hidden: Sequence[int] = (512, 512),
        *,
        loss: str | Callable[..., Any] = "bce",
        loss_params: Mapping[str, Any] | None = None,
        class_weight: Any = None,
        dropout: float = 0.5,
        input_dropout: float = 0.0,
        activation: str = "relu",
        norm: str | None = "batch",
        encoder: Any = None,
        lr: float = 5e-4,
        weight_decay: float = 0.1,
        optimizer: str = "adamw",
        epochs: int | str = 200,
        batch_size: int = 64,
        min_steps: int | str = 1,
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
        super().__init__(
            lr=lr,
            weight_decay=weight_decay,
            optimizer=optimizer,
            epochs=epochs,
            batch_size=batch_size,
            min_steps=min_steps,
            schedule=schedule,
            schedule_params=schedule_params,
            clip_norm=clip_norm,
            monitor=monitor,
            patience=patience,
            scale=scale,
            device=device,
            precision=precision,
            checkpoint=checkpoint,
            checkpoint_every=checkpoint_every,
            callbacks=callbacks,
            verbose=verbose,
            threshold=threshold,
            validation_fraction=validation_fraction,
            random_state=random_state,
        )
        self.hidden = hidden
        self.dropout = dropout
        self.input_dropout = input_dropout
        self.activation = activation
        self.norm = norm
        self.encoder = encoder
        self.loss = loss
        self.loss_params = loss_params
        self.class_weight = class_weight

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.capabilities.soft_targets = self.loss == "bce" and self.class_weight is None
        return tags
