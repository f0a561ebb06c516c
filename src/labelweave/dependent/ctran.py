"""C-Tran: a transformer over features and labels, trained with randomly masked labels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from os import PathLike
from typing import Any, ClassVar, Self

import torch
from sklearn.utils._param_validation import Interval
from torch import Tensor, nn

from labelweave.dependent._networks.attention import AttentionBlock
from labelweave.dependent._networks.label_attention import LabelAttentionClassifier, LabelMaskTask
from labelweave.dependent._networks.label_nodes import LabelNodes, LabelReadout
from labelweave.nn.cls_run import CLS_RUN, image_run
from labelweave.nn.estimator import TrainingSession
from labelweave.nn.task import Task

__all__ = ["CTran", "CTranNetwork"]


class CTranNetwork(nn.Module):
    """Features and known labels to one logit per label; `features` turns features into tokens."""

    def __init__(
        self,
        features: nn.Module,
        n_labels: int,
        *,
        size: int,
        layers: int,
        heads: int,
        dropout: float,
    ) -> None:
        super().__init__()
        self.features = features
        self.labels = LabelNodes(n_labels, size)
        self.norm = nn.LayerNorm(size)
        self.blocks = nn.ModuleList(
            AttentionBlock(size, heads, hidden=size, dropout=dropout) for _ in range(layers)
        )
        self.readout = LabelReadout(n_labels, size)

    def forward(self, x: Tensor, known: Tensor | None = None) -> Tensor:
        features = self.features(x)
        # A label's token is its vector plus that of its state.
        labels = self.labels(known).expand(features.shape[0], -1, -1)
        tokens = self.norm(torch.cat([features, labels], dim=1))
        for block in self.blocks:
            tokens = block(tokens, tokens)
        return self.readout(tokens[:, features.shape[1] :])


class CTran(LabelAttentionClassifier):
    """Classification transformer.

    Each label is a token: a learnt vector, plus the vector of its state, which is unknown,
    negative or positive. Features are tokens too. All tokens attend to all tokens in several
    layers, and a separate linear classifier per label reads the label's last vector. In training
    a random part of the labels of each row is known and the loss is computed on the others, so
    that the network learns to predict labels from labels and can use
    ``predict_proba(X, known=...)``.

    Parameters
    ----------
    layers : int, default=3
        Transformer layers.
    most_known : float, default=0.75
        Largest share of known labels per row in training; the share is drawn uniformly between
        0 and this value. With 0 the network is trained without known labels, and
        `predict_proba` does not accept them.
    heads, n_tokens, hidden, encoder_dropout, norm, encoder, dropout, loss, loss_params,
    class_weight, lr, epochs, batch_size, min_steps, weight_decay, optimizer, schedule,
    schedule_params, clip_norm, monitor, patience, scale, device, precision, checkpoint,
    checkpoint_every, callbacks, verbose, threshold, validation_fraction, random_state
        The parameters that LaMP and C-Tran share:
        size, heads, tokens, dropout, loss and training.

    Notes
    -----
    Unknown entries of Y are tokens of unknown state that are ignored in the loss.

    The validation loss is the loss of predictions from the features alone plus that of
    predictions with every other label known. The first alone is lowest before the network has
    learnt to predict labels from labels.

    Departures from the paper: it has images, whose tokens are the places of a convolutional
    network's last layer, as here with an `encoder`; without one, hidden layers take the place of
    that network, and each token is a linear map of the last of them. The width is that of small
    tables, not 2,048. Dropout is applied to the output of attention, not to its weights. The
    optimiser is AdamW.

    The time per step grows with the square of the number of labels: a thousand labels are slow on
    a CPU.

    References
    ----------
    .. [1] J. Lanchantin, T. Wang, V. Ordonez and Y. Qi. General Multi-Label Image
       Classification with Transformers. CVPR 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, Y = make_multilabel_classification(n_samples=200, random_state=0)
    >>> model = CTran(size=16, layers=1, hidden=(32,), epochs=5, random_state=0).fit(X, Y)
    >>> known = np.full((1, 5), np.nan)
    >>> known[0, 2] = 1
    >>> float(model.predict_proba(X[:1], known=known)[0, 2])
    1.0
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **LabelAttentionClassifier._parameter_constraints,
        "most_known": [Interval(Real, 0, 1, closed="left")],
    }

    network_: CTranNetwork

    def __init__(
        self,
        size: int = 128,
        *,
        layers: int = 3,
        most_known: float = 0.75,
        heads: int = 4,
        n_tokens: int = 4,
        hidden: Sequence[int] = (512, 512),
        encoder_dropout: float = 0.5,
        norm: str | None = "batch",
        encoder: Any = None,
        dropout: float = 0.2,
        loss: str | Callable[..., Any] = "bce",
        loss_params: Mapping[str, Any] | None = None,
        class_weight: Any = None,
        lr: float = 2e-4,
        epochs: int | str = 100,
        batch_size: int = 64,
        min_steps: int | str = 1,
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
        super().__init__(
            lr=lr,
            epochs=epochs,
            batch_size=batch_size,
            min_steps=min_steps,
            weight_decay=weight_decay,
            optimizer=optimizer,
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
        self.size = size
        self.layers = layers
        self.heads = heads
        self.n_tokens = n_tokens
        self.hidden = hidden
        self.encoder_dropout = encoder_dropout
        self.norm = norm
        self.encoder = encoder
        self.dropout = dropout
        self.loss = loss
        self.loss_params = loss_params
        self.class_weight = class_weight
        self.most_known = most_known

    @classmethod
    def published(cls, dataset: str | None = None) -> Self:
        """Return the method with the layers and the known labels of its paper.

        It is trained as the CLS paper trains it, whose Table 2 has its published figures. Data
        other than that paper's three sets of images have an MLP, and the learning rate of this
        class.
        """
        return cls(layers=3, heads=4, most_known=0.75, **CLS_RUN | image_run(dataset))

    def _build_network(self, n_features: int, n_labels: int) -> nn.Module:
        return CTranNetwork(
            self._feature_tokens(n_features),
            n_labels,
            size=self.size,
            layers=self.layers,
            heads=self.heads,
            dropout=self.dropout,
        )

    def _build_task(self, network: nn.Module, session: TrainingSession) -> Task:
        name, loss = self._chosen_loss()
        plan = self._optimizer_options()
        return LabelMaskTask(network, loss, plan, name=name, most=self.most_known)

    def _setting_without_known_labels(self) -> str | None:
        return "most_known=0" if self.most_known == 0 else None
