"""LaMP: message passing from the features to the labels and between labels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from numbers import Integral, Real
from os import PathLike
from typing import Any, ClassVar, Self

import numpy as np
import torch
from sklearn.utils._param_validation import Interval, StrOptions
from torch import Tensor, nn

from labelweave.dependent._networks.attention import AttentionBlock
from labelweave.dependent._networks.label_attention import LabelAttentionClassifier, LabelMaskTask
from labelweave.dependent._networks.label_graph import cooccurrence_graph
from labelweave.dependent._networks.label_nodes import LabelNodes, LabelReadout
from labelweave.labels import LabelMatrix
from labelweave.nn.batches import Batch
from labelweave.nn.estimator import TrainingSession
from labelweave.nn.losses import mean_loss
from labelweave.nn.task import Task

__all__ = ["LaMP", "LaMPNetwork", "LaMPTask"]

GRAPHS = ("full", "co-occurrence", "none")
# Largest share of known labels per row in training, as in C-Tran.
MOST_KNOWN = 0.75


class LaMPNetwork(nn.Module):
    """Features and known labels to one logit per label.

    `features` turns features into tokens. With `label_messages` a label receives messages from
    labels: from those that `edges`, a boolean (L, L), selects, or from all.
    """

    edges: Tensor | None

    def __init__(
        self,
        features: nn.Module,
        n_labels: int,
        *,
        size: int,
        heads: int,
        layers: int,
        feature_layers: int,
        label_messages: bool,
        edges: Tensor | None,
        dropout: float,
    ) -> None:
        super().__init__()

        def blocks(count: int) -> nn.ModuleList:
            make = partial(AttentionBlock, size, heads, hidden=size, dropout=dropout)
            return nn.ModuleList(make() for _ in range(count))

        self.features = features
        self.among_features = blocks(feature_layers)
        self.labels = LabelNodes(n_labels, size)
        self.from_features = blocks(layers)
        self.from_labels = blocks(layers if label_messages else 0)
        self.readout = LabelReadout(n_labels, size)
        self.register_buffer("edges", edges)

    def steps(self, x: Tensor, known: Tensor | None = None) -> list[Tensor]:
        """The labels' vectors after each step of message passing."""
        features = self.features(x)
        for block in self.among_features:
            features = block(features, features)
        nodes = self.labels(known)
        states = []
        for t, from_features in enumerate(self.from_features):
            nodes = from_features(nodes, features)
            states.append(nodes)
            if self.from_labels:
                nodes = self.from_labels[t](nodes, nodes, self.edges)
                states.append(nodes)
        return states

    def forward(self, x: Tensor, known: Tensor | None = None) -> Tensor:
        return self.readout(self.steps(x, known)[-1])


class LaMPTask(LabelMaskTask):
    """The loss of the prediction plus the weighted losses of the steps before it."""

    network: LaMPNetwork

    def __init__(self, *arguments: Any, intermediate_weight: float, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.intermediate_weight = intermediate_weight

    def terms(self, batch: Batch, known: Tensor | None, targets: Tensor) -> dict[str, Tensor]:
        if not self.training or self.intermediate_weight == 0:
            return super().terms(batch, known, targets)
        logits = (self.network.readout(nodes) for nodes in self.network.steps(batch.x, known))
        *before, last = (
            mean_loss(self.loss(z, targets), row_weight=batch.row_weight) for z in logits
        )
        terms = {self.name: last}
        if before:
            terms["intermediate"] = self.intermediate_weight * torch.stack(before).sum()
        return terms


class LaMP(LabelAttentionClassifier):
    """Label message passing networks.

    Each label is a node with a learnt vector. In each of several rounds it first attends to the
    features, then to the other labels (all of them, or those it occurs with). A separate linear
    classifier per label reads the last vector, and in training also the vectors of the steps
    before, whose losses are added.

    Parameters
    ----------
    layers : int, default=2
        Rounds of message passing, `T` in the paper.
    graph : {"full", "co-occurrence", "none"}, default="full"
        From which labels a label receives messages: all (LaMP_fc in the paper), those it occurs
        with in the training rows (LaMP_pr), or none (LaMP_el).
    feature_layers : int, default=0
        Rounds of message passing among the vectors of the features, before those to the labels.
    intermediate_weight : float, default=0.2
        Weight of the loss of each step before the last.
    known_rows : float, default=0.5
        Share of the rows for which, in each training step, up to three quarters of the labels
        are known and the loss is computed on the others, so that the network can use
        ``predict_proba(X, known=...)``. 0 is the paper's training; then, and with
        ``graph="none"``, known labels are not accepted.
    heads, n_tokens, hidden, encoder_dropout, norm, encoder, dropout, loss, loss_params,
    class_weight, lr, epochs, batch_size, min_steps, weight_decay, schedule, schedule_params,
    clip_norm, monitor, patience, scale, device, precision, checkpoint, checkpoint_every,
    callbacks, verbose, threshold, validation_fraction, random_state
        The parameters that LaMP and C-Tran share:
        size, heads, tokens, dropout, loss and training.

    Notes
    -----
    Unknown entries of Y are ignored in the loss and in the co-occurrence graph.

    The validation loss is the loss of predictions from the features alone plus that of
    predictions with every other label known. The first alone is lowest before the network has
    learnt to predict labels from labels.

    Departures from the paper: it has sequences and sets of words, each a node; here the nodes of
    the features are linear maps of hidden layers over all features. The authors' program
    computes the attention among features and then does not use it; the default here is none.
    Known labels (`known_rows`) are an addition, after C-Tran. The optimiser is AdamW; dropout is
    applied to the output of attention, not to its weights.

    The time per step grows with the square of the number of labels: a thousand labels are slow on
    a CPU.

    References
    ----------
    .. [1] J. Lanchantin, A. Sekhon and Y. Qi. Neural Message Passing for Multi-Label
       Classification. ECML PKDD 2019.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, Y = make_multilabel_classification(n_samples=200, random_state=0)
    >>> model = LaMP(size=16, hidden=(32,), epochs=5, random_state=0).fit(X, Y)
    >>> model.predict_proba(X[:3]).shape
    (3, 5)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **LabelAttentionClassifier._parameter_constraints,
        "graph": [StrOptions(set(GRAPHS))],
        "feature_layers": [Interval(Integral, 0, None, closed="left")],
        "intermediate_weight": [Interval(Real, 0, None, closed="left")],
        "known_rows": [Interval(Real, 0, 1, closed="both")],
    }

    network_: LaMPNetwork

    tuning_space: ClassVar[dict[str, Any]] = {
        **LabelAttentionClassifier.tuning_space,
        "graph": ("choice", list(GRAPHS)),
    }

    def __init__(
        self,
        size: int = 128,
        *,
        layers: int = 2,
        graph: str = "full",
        feature_layers: int = 0,
        intermediate_weight: float = 0.2,
        known_rows: float = 0.5,
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
        self.graph = graph
        self.feature_layers = feature_layers
        self.intermediate_weight = intermediate_weight
        self.known_rows = known_rows

    @classmethod
    def published(cls, dataset: str | None = None) -> Self:
        """Return the method as its paper trains it, without known labels."""
        return cls(known_rows=0.0)

    def _learn_statistics(self, X: Any, Y: LabelMatrix, row_weight: np.ndarray | None) -> None:
        super()._learn_statistics(X, Y, row_weight)
        self._edges = None
        if self.graph == "co-occurrence":
            self._edges = torch.from_numpy(cooccurrence_graph(Y).toarray())

    def _build_network(self, n_features: int, n_labels: int) -> nn.Module:
        return LaMPNetwork(
            self._feature_tokens(n_features),
            n_labels,
            size=self.size,
            heads=self.heads,
            layers=self.layers,
            feature_layers=self.feature_layers,
            label_messages=self.graph != "none",
            edges=self._edges,
            dropout=self.dropout,
        )

    def _build_task(self, network: nn.Module, session: TrainingSession) -> Task:
        name, loss = self._chosen_loss()
        return LaMPTask(
            network,
            loss,
            self._optimizer_options(),
            name=name,
            intermediate_weight=self.intermediate_weight,
            most=MOST_KNOWN,
            rows=self.known_rows if self._setting_without_known_labels() is None else 0.0,
        )

    def _setting_without_known_labels(self) -> str | None:
        if self.graph == "none":
            return "graph='none'"
        return "known_rows=0" if self.known_rows == 0 else None

    def _set_state(self, state: Mapping[str, Any]) -> None:
        self._edges = state["network"].get("edges")
        super()._set_state(state)
