"""ML-GCN: label classifiers computed by graph convolutions over label co-occurrence."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from numbers import Integral, Real
from os import PathLike
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
import torch
from sklearn.utils._param_validation import Interval, StrOptions
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 (torch's own way)

from labelweave.class_weights import CLASS_WEIGHT
from labelweave.dependent._networks.label_graph import conditional_frequencies
from labelweave.exceptions import InputError
from labelweave.input_checks import first_out_of_range
from labelweave.labels import LabelMatrix
from labelweave.nn.cls_run import CLS_RUN, image_run
from labelweave.nn.encoders import NORMS, encoder_or_mlp
from labelweave.nn.estimator import NeuralClassifier
from labelweave.nn.losses import LOSSES

__all__ = ["MLGCN", "MLGCNNetwork", "reweighted_graph"]

_SLOPE = 0.2  # of LeakyReLU, in the paper


def reweighted_graph(
    Y: LabelMatrix, *, tau: float, p: float, row_weight: np.ndarray | None = None
) -> Any:
    """The normalised graph of the labels.

    Parameters
    ----------
    Y : LabelMatrix
        Only known entries count.
    tau : float
        There is an edge from label j to label i if P(j | i) is at least this (Eq. 7).
    p : float
        Total weight of the neighbours of a label, split evenly; the label itself has the weight
        ``1 - p`` (Eq. 8).
    row_weight : ndarray of shape (n,), optional
        How often each row counts; once by default.

    Returns
    -------
    csr_array of shape (n_labels, n_labels)
        ``D^-1/2 A D^-1/2`` of the re-weighted graph A with row sums D. A label without
        neighbours is connected to itself alone.

    Examples
    --------
    >>> from labelweave.labels import as_labels
    >>> Y = as_labels([[1, 1, 0], [1, 1, 0], [1, 0, 0], [0, 0, 1]])
    >>> reweighted_graph(Y, tau=0.7, p=0.2).toarray().round(2)
    array([[1.  , 0.  , 0.  ],
           [0.22, 0.8 , 0.  ],
           [0.  , 0.  , 1.  ]])
    """
    edges = conditional_frequencies(Y, row_weight)
    edges.data = (edges.data >= tau).astype(np.float64)
    edges.eliminate_zeros()
    n_neighbors = edges.sum(axis=1)
    share = np.divide(p, n_neighbors, out=np.zeros(Y.n_labels), where=n_neighbors > 0)
    weighted = sp.diags_array(share) @ edges + (1 - p) * sp.eye_array(Y.n_labels)
    scale = sp.diags_array(weighted.sum(axis=1) ** -0.5)
    return sp.csr_array(scale @ weighted @ scale)


class MLGCNNetwork(nn.Module):
    """Features to one logit per label, with classifiers computed by graph convolutions.

    The convolutions have the widths `hidden` and that of the encoder's embedding. They start from
    the `vectors` of the labels, (L, d), which are trained if `learnt`, on a sparse `graph`, (L, L).
    """

    edges: Tensor
    weights: Tensor

    def __init__(
        self,
        encoder: nn.Module,
        graph: Any,
        vectors: Tensor,
        *,
        hidden: Sequence[int],
        learnt: bool,
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.vectors = nn.Parameter(vectors, requires_grad=learnt)
        widths = [vectors.shape[1], *hidden, int(encoder.n_out)]  # type: ignore[arg-type]
        self.convolutions = nn.ModuleList(
            nn.Linear(n_in, n_out, bias=False) for n_in, n_out in pairwise(widths)
        )
        # The estimator saves the graph: its number of edges is not known when weights are loaded.
        if graph.shape != (len(vectors), len(vectors)):
            raise InputError(f"the graph has shape {graph.shape} for {len(vectors)} labels")
        entries = graph.tocoo()
        edges = torch.from_numpy(np.stack([entries.row, entries.col]).astype(np.int64))
        self.register_buffer("edges", edges, persistent=False)
        weights = torch.from_numpy(entries.data.astype(np.float32))
        self.register_buffer("weights", weights, persistent=False)

    def classifiers(self) -> Tensor:
        """The classifiers of feature embeddings, one row per label, shape (L, D)."""
        vectors = self.vectors
        with torch.autocast(vectors.device.type, enabled=False):  # not supported by sparse products
            graph = torch.sparse_coo_tensor(
                self.edges,
                self.weights,
                (len(vectors), len(vectors)),
                is_coalesced=True,
                check_invariants=False,
            )
            first, *rest = self.convolutions
            vectors = torch.sparse.mm(graph, first(vectors))  # Eq. 2
            for convolution in rest:
                vectors = torch.sparse.mm(graph, convolution(F.leaky_relu(vectors, _SLOPE)))
        return vectors

    def forward(self, x: Tensor) -> Tensor:
        return self.encoder(x) @ self.classifiers().T  # Eq. 5

    def frozen(self) -> nn.Module:
        """The same function without the graph, with the current classifiers as weights."""
        with torch.no_grad():
            classifiers = self.classifiers()
        readout = nn.Linear(classifiers.shape[1], len(classifiers), bias=False)
        readout.weight = nn.Parameter(classifiers)
        return nn.Sequential(self.encoder, readout)


LabelVectors = str | np.ndarray | Callable[[Sequence[str]], Any]


class MLGCN(NeuralClassifier):
    """Multi-label graph convolutional network.

    Labels have vectors, and the edges of a graph connect labels that often occur together. Graph
    convolutions turn the vectors into classifiers, so that connected labels share information;
    the logit of a label is the inner product of its classifier with the embedding of the features.

    Parameters
    ----------
    hidden : sequence of int, default=(512, 512)
        Hidden layers that compute the feature embedding.
    dropout : float, default=0.5
        After each of them.
    norm : {"batch", "layer"} or None, default="batch"
        Normalisation in each of them.
    encoder : callable or str, optional
        A replacement of the hidden layers: a network for images
        (:class:`labelweave.images.ResNet`, or "resnet18", "resnet50"), as in the paper, or a
        function of the number of features that returns a module with an attribute `n_out`.
    tau : float, default=0.4
        Two labels are connected if the second is positive in at least this share of the rows of
        the first.
    p : float, default=0.2
        Total weight of the neighbours of a label; the label itself has the weight ``1 - p``.
    graph_hidden : sequence of int, default=(512,)
        Widths of the graph convolutions before the last, whose width is that of the embedding.
    label_vectors : "learnt", array of shape (L, d) or callable, default="learnt"
        The vectors of the labels: learnt, an array in the order of the labels, or a function of
        the list of label names (sentence embeddings, for example). Vectors that are not learnt
        are not changed by training.
    vector_size : int, default=300
        Length of learnt vectors.
    loss : str or callable, default="bce"
        A key of :data:`labelweave.nn.losses.LOSSES`, or a function of (logits, targets) in which
        NaN targets are ignored.
    loss_params : dict, optional
        Parameters of the loss.
    class_weight : "balanced" or mapping of label to number, optional
        Weights of positives in the loss, as in :mod:`labelweave.class_weights`; not for losses
        of whole rows ("zlpr").
    lr : float, default=2e-4
    epochs, batch_size, min_steps, weight_decay, optimizer, schedule, schedule_params, clip_norm,
    monitor, patience, scale, device, precision, checkpoint, checkpoint_every, callbacks, verbose,
    threshold, validation_fraction, random_state
        The other parameters of :class:`labelweave.nn.estimator.NeuralClassifier`.

    Attributes
    ----------
    graph_ : csr_array of shape (n_labels, n_labels)
        Normalised weights of the neighbours (columns) of each label (row).
    label_vectors_ : ndarray or None
        The vectors, if they are not learnt.

    Notes
    -----
    Co-occurrence is counted on the training rows that were not held out, and on known entries
    alone: P(j | i) is the share of positives of j among the rows where i is positive and j is
    known. If only positives are known, it is 1 for all pairs that ever occur together.

    A model with a function in `label_vectors` can be saved: its folder holds the vectors.

    Departures from the paper: without an `encoder` hidden layers take the place of the
    convolutional network; an image network's features are averaged over positions instead of
    max-pooled; AdamW replaces SGD. The authors' program connects labels where P(i | j), not
    P(j | i), is large; here it is as in the paper.

    References
    ----------
    .. [1] Z.-M. Chen, X.-S. Wei, P. Wang and Y. Guo. Multi-Label Image Recognition with Graph
       Convolutional Networks. CVPR 2019.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, Y = make_multilabel_classification(n_samples=200, random_state=0)
    >>> model = MLGCN(hidden=(32,), graph_hidden=(16,), epochs=5, random_state=0).fit(X, Y)
    >>> model.predict_proba(X[:3]).shape, model.graph_.shape
    ((3, 5), (5, 5))
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **NeuralClassifier._parameter_constraints,
        "hidden": [list, tuple],
        "dropout": [Interval(Real, 0, 1, closed="left")],
        "norm": [StrOptions(set(NORMS)), None],
        "encoder": [callable, str, None],
        "tau": [Interval(Real, 0, 1, closed="right")],
        "p": [Interval(Real, 0, 1, closed="left")],
        "graph_hidden": [list, tuple],
        "label_vectors": [StrOptions({"learnt"}), "array-like", callable],
        "vector_size": [Interval(Integral, 1, None, closed="left")],
        "loss": [StrOptions(set(LOSSES)), callable],
        "loss_params": [dict, None],
        "class_weight": CLASS_WEIGHT,
    }
    _unsaved_parameters: ClassVar[tuple[str, ...]] = (
        *NeuralClassifier._unsaved_parameters,
        "label_vectors",  # the vectors themselves are saved: functions cannot be
    )

    network_: MLGCNNetwork

    tuning_space: ClassVar = {
        "hidden": ("choice", [[256], [512], [512, 512]]),
        "dropout": ("float", 0.0, 0.6),
        "tau": ("float", 0.1, 0.7),
        "p": ("float", 0.1, 0.6),
        "lr": ("log", 1e-4, 3e-3),
        "weight_decay": ("log", 1e-6, 1e-2),
    }

    def __init__(
        self,
        hidden: Sequence[int] = (512, 512),
        *,
        dropout: float = 0.5,
        norm: str | None = "batch",
        encoder: Any = None,
        tau: float = 0.4,
        p: float = 0.2,
        graph_hidden: Sequence[int] = (512,),
        label_vectors: LabelVectors = "learnt",
        vector_size: int = 300,
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
        self.hidden = hidden
        self.dropout = dropout
        self.norm = norm
        self.encoder = encoder
        self.tau = tau
        self.p = p
        self.graph_hidden = graph_hidden
        self.label_vectors = label_vectors
        self.vector_size = vector_size
        self.loss = loss
        self.loss_params = loss_params
        self.class_weight = class_weight

    @classmethod
    def published(cls, dataset: str | None = None) -> Self:
        """Return the method with the label graph of its paper, trained as the CLS paper trains it.

        Its published figures are those of that paper's Table 2. Data other than its three sets of
        images have an MLP, and the learning rate of this class.
        """
        return cls(tau=0.4, p=0.2, vector_size=300, **CLS_RUN | image_run(dataset))

    def _learn_statistics(self, X: Any, Y: LabelMatrix, row_weight: np.ndarray | None) -> None:
        super()._learn_statistics(X, Y, row_weight)
        self.graph_ = reweighted_graph(Y, tau=self.tau, p=self.p, row_weight=row_weight)
        self.label_vectors_ = self._fixed_vectors(Y.names)

    def _fixed_vectors(self, names: Sequence[str]) -> np.ndarray | None:
        source = self.label_vectors
        if isinstance(source, str):
            return None
        if callable(source):
            source = source(list(names))
        vectors = np.asarray(source, dtype=np.float32)
        if vectors.ndim != 2 or len(vectors) != len(names) or vectors.shape[1] == 0:
            raise InputError(
                f"label_vectors has shape {vectors.shape}, but there are {len(names)} labels: "
                "pass one vector per label, in the order of the labels"
            )
        if (wrong := first_out_of_range(vectors)) is not None:
            kind, name = "NaN" if np.isnan(wrong[0]) else "infinity", names[wrong[1]]
            raise InputError(f"the vector of the label {name!r} in label_vectors has {kind}")
        return vectors

    def _build_network(self, n_features: int, n_labels: int) -> nn.Module:
        encoder = encoder_or_mlp(
            self.encoder, n_features, self.hidden, dropout=self.dropout, norm=self.norm
        )
        is_learnt = self.label_vectors_ is None
        if self.label_vectors_ is None:
            vectors = torch.randn(n_labels, self.vector_size)
        else:
            vectors = torch.from_numpy(self.label_vectors_)
        return MLGCNNetwork(
            encoder, self.graph_, vectors, hidden=self.graph_hidden, learnt=is_learnt
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.capabilities.soft_targets = self.loss == "bce" and self.class_weight is None
        return tags

    # -- persistence -------------------------------------------------------------------

    def _state(self) -> dict[str, Any]:
        return {**super()._state(), "graph": self.graph_, "label_vectors": self.label_vectors_}

    def _set_state(self, state: Mapping[str, Any]) -> None:
        self.graph_ = state["graph"]
        self.label_vectors_ = state["label_vectors"]
        if self.label_vectors_ is not None:
            self.label_vectors = self.label_vectors_
        super()._set_state(state)

    @classmethod
    def _test_params(cls) -> dict[str, Any]:
        sizes = {"hidden": (32,), "graph_hidden": (16,), "vector_size": 16, "dropout": 0.1}
        return {**super()._test_params(), **sizes}
