"""Base of methods in which labels attend to features and to each other."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.utils._param_validation import Interval, StrOptions
from torch import Tensor, nn

from labelweave.class_weights import CLASS_WEIGHT
from labelweave.dependent._networks.label_nodes import FeatureTokens, PositionTokens, mask_labels
from labelweave.exceptions import InputError
from labelweave.known_labels import KnownLabelsMixin
from labelweave.labels import LabelMatrix
from labelweave.nn.batches import Batch
from labelweave.nn.encoders import NORMS, build_encoder
from labelweave.nn.estimator import NeuralClassifier
from labelweave.nn.losses import LOSSES, Loss, mean_loss
from labelweave.nn.task import StepInfo, Task

__all__ = ["LabelAttentionClassifier", "LabelMaskTask"]


class LabelAttentionClassifier(KnownLabelsMixin, NeuralClassifier):
    """Base of methods whose network reads features and known labels.

    Known labels are a tensor of shape (n, L) with NaN for unknown entries, or None.

    Parameters
    ----------
    size : int, default=128
        Width of all nodes and tokens.
    layers : int, default=2
        Layers of attention.
    heads : int, default=4
        Attention heads per layer; a divisor of `size`.
    n_tokens : int, default=4
        Number of vectors computed from the features, to which labels attend.
    hidden : sequence of int, default=(512, 512)
        Hidden layers before the tokens.
    encoder_dropout : float, default=0.5
        After each hidden layer.
    norm : {"batch", "layer"} or None, default="batch"
        Normalisation in the hidden layers.
    encoder : callable or str, optional
        A network for images (:class:`labelweave.images.ResNet`, or "resnet18", "resnet50"): the
        positions of its last layer are then the tokens, and the four parameters above are not
        used.
    dropout : float, default=0.2
        In the layers of attention.
    loss : str or callable, default="bce"
        A key of :data:`labelweave.nn.losses.LOSSES`, or a function of (logits, targets) in which
        NaN targets are ignored.
    loss_params : dict, optional
        Parameters of the loss.
    class_weight : "balanced" or mapping of label to number, optional
        Weights of positives in the loss, as in :mod:`labelweave.class_weights`; not for losses
        of whole rows ("zlpr").
    lr : float, default=2e-4
    epochs, batch_size, min_steps, weight_decay, schedule, schedule_params, clip_norm, monitor,
    patience, scale, device, precision, checkpoint, checkpoint_every, callbacks, verbose,
    threshold, validation_fraction, random_state
        The other parameters of :class:`labelweave.nn.estimator.NeuralClassifier`.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **NeuralClassifier._parameter_constraints,
        "size": [Interval(Integral, 1, None, closed="left")],
        "layers": [Interval(Integral, 1, None, closed="left")],
        "heads": [Interval(Integral, 1, None, closed="left")],
        "n_tokens": [Interval(Integral, 1, None, closed="left")],
        "hidden": [list, tuple],
        "encoder_dropout": [Interval(Real, 0, 1, closed="left")],
        "norm": [StrOptions(set(NORMS)), None],
        "encoder": [callable, str, None],
        "dropout": [Interval(Real, 0, 1, closed="left")],
        "loss": [StrOptions(set(LOSSES)), callable],
        "loss_params": [dict, None],
        "class_weight": CLASS_WEIGHT,
    }

    tuning_space: ClassVar[dict[str, Any]] = {
        "size": ("choice", [64, 128, 256]),
        "layers": ("choice", [1, 2, 3]),
        "n_tokens": ("choice", [1, 4, 8]),
        "encoder_dropout": ("float", 0.0, 0.6),
        "dropout": ("float", 0.0, 0.4),
        "lr": ("log", 1e-4, 3e-3),
        "weight_decay": ("log", 1e-6, 1e-2),
    }

    size: int
    layers: int
    heads: int
    n_tokens: int
    hidden: Sequence[int]
    encoder_dropout: float
    norm: str | None
    encoder: Any
    dropout: float
    loss: str | Callable[..., Any]
    loss_params: Mapping[str, Any] | None
    class_weight: Any

    def _feature_tokens(self, n_features: int) -> nn.Module:
        if self.encoder is not None:
            return PositionTokens(build_encoder(self.encoder, n_features), self.size)
        return FeatureTokens(
            n_features,
            self.n_tokens,
            self.size,
            hidden=self.hidden,
            dropout=self.encoder_dropout,
            norm=self.norm,
        )

    def _predict_proba(self, X: Any, known: np.ndarray | None = None) -> np.ndarray:
        if known is None:
            return NeuralClassifier._predict_proba(self, X)
        if (setting := self._setting_without_known_labels()) is not None:
            raise InputError(f"with {setting} the model has not learnt to use known labels")
        labels = LabelMatrix(known, tuple(self.label_names_))
        return self._in_batches(lambda x, y: torch.sigmoid(self.network_(x, y)), X, labels)

    @abstractmethod
    def _setting_without_known_labels(self) -> str | None:
        """The setting, if any, with which the model does not learn to use known labels."""

    def _row_size(self, n_features: int, n_labels: int) -> int:
        return max(n_features, (self.n_tokens + n_labels) * self.size)

    @classmethod
    def _test_params(cls) -> dict[str, Any]:
        sizes = {"size": 16, "heads": 2, "layers": 1, "n_tokens": 2, "hidden": (32,)}
        return {**super()._test_params(), **sizes, "encoder_dropout": 0.1, "batch_size": 32}


class LabelMaskTask(Task):
    """Label-mask training: some labels of a row are known, the loss is that of the others.

    The validation loss is computed twice, with no known label and with every other label known, so
    that early stopping waits until the network has learnt to predict labels from labels. `most` and
    `rows` say how many labels are known, as in
    :func:`~labelweave.dependent._networks.label_nodes.mask_labels`; the other parameters are those
    of :class:`~labelweave.nn.task.SupervisedTask`.
    """

    weighs_rows: ClassVar[bool] = True

    def __init__(
        self,
        network: nn.Module,
        loss: Loss,
        plan: dict[str, Any],
        *,
        name: str = "loss",
        most: float,
        rows: float = 1.0,
    ) -> None:
        super().__init__(network, plan)
        self.loss = loss
        self.name = name
        self.most = most
        self.rows = rows

    def losses(self, batch: Batch, info: StepInfo) -> dict[str, Tensor]:
        if self.most * self.rows == 0:
            return self.terms(batch, None, batch.y)
        if self.training:
            known = mask_labels(batch.y, most=self.most, rows=self.rows)
            return self.terms(batch, known, _without(batch.y, known))
        (none_known,) = self.terms(batch, None, batch.y).values()
        labels = torch.arange(batch.y.shape[1], device=batch.y.device)
        every_other = (batch.rows[:, None] + labels) % 2 == 0
        known = torch.where(every_other, batch.y, torch.nan)
        (half_known,) = self.terms(batch, known, _without(batch.y, known)).values()
        return {"none_known": none_known, "half_known": half_known}

    def terms(self, batch: Batch, known: Tensor | None, targets: Tensor) -> dict[str, Tensor]:
        """The terms of the objective for these known labels and targets."""
        loss = self.loss(self.network(batch.x, known), targets)
        return {self.name: mean_loss(loss, row_weight=batch.row_weight)}


def _without(targets: Tensor, known: Tensor) -> Tensor:
    """The targets, with NaN for known labels."""
    return targets.masked_fill(~torch.isnan(known), torch.nan)
