"""C2AE: features and labels encoded to one canonically correlated space, and decoded from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from os import PathLike
from typing import Any, ClassVar, Self

import torch
from sklearn.utils._param_validation import Interval, StrOptions
from torch import Tensor, nn

from labelweave.dependent._networks.pairwise_ranking import exponential_ranking, signed_targets
from labelweave.nn.batches import Batch
from labelweave.nn.encoders import ACTIVATIONS, NORMS, MLPEncoder
from labelweave.nn.estimator import NeuralClassifier, TrainingSession
from labelweave.nn.losses import weigh_rows
from labelweave.nn.process_rows import gather_rows
from labelweave.nn.task import StepInfo, Task

__all__ = ["C2AE", "C2AENetwork", "C2AETask", "correlation_loss"]

# Steepness of the exponential in the authors' program, the same in all their experiments.
_SLOPE = 5.0
# Score of a virtual label that should rank below the positives of a row and above its negatives.
_VIRTUAL_SCORE = 0.5


class C2AENetwork(nn.Module):
    """The three networks `Fx`, `Fe` and `Fd` of the paper; predictions are ``Fd(Fx(x))``.

    `options` are the constructor parameters of the estimator.
    """

    def __init__(self, n_features: int, n_labels: int, options: dict[str, Any]) -> None:
        super().__init__()
        size = options["latent_size"]
        shape = {"dropout": options["dropout"], "activation": options["activation"]}

        def network(n_in: int, sizes: Sequence[int], n_out: int, norm: str | None) -> nn.Module:
            hidden = MLPEncoder(n_in, sizes, norm=norm, **shape)
            return nn.Sequential(hidden, nn.Linear(hidden.n_out, n_out))

        self.feature_encoder = network(n_features, options["encoder"], size, options["norm"])
        self.label_encoder = network(n_labels, options["label_encoder"], size, None)
        self.decoder = network(size, options["decoder"], n_labels, None)

    def forward(self, x: Tensor) -> Tensor:
        return self.decoder(self.feature_encoder(x))


def correlation_loss(of_features: Tensor, of_labels: Tensor, weight: Tensor) -> dict[str, Tensor]:
    """Eq. 5: the distance of the codes, and how far they are from being uncorrelated.

    The codes are ``Fx(X)`` and ``Fe(Y)``, (n, k), and each row has a weight, (n,). Returns
    ``latent``, `C1` of the paper, and ``orthogonality``, its `C2` and `C3`.
    """
    distance = weight * (of_features - of_labels).square().sum(dim=1)
    weights = gather_rows(weight)
    total = weights.sum().clamp(min=1e-6)

    def departure(codes: Tensor) -> Tensor:
        codes = gather_rows(codes)
        moments = (codes * weights.unsqueeze(1)).T @ codes / total
        return (moments - torch.eye(codes.shape[1], device=codes.device)).square().sum()

    orthogonality = departure(of_features) + departure(of_labels)
    return {"latent": distance.mean(), "orthogonality": orthogonality}


class C2AETask(Task):
    """Eq. 1: the distance of the codes under its constraint, and the loss of the decoder."""

    network: C2AENetwork
    weighs_rows: ClassVar[bool] = True

    def __init__(
        self,
        network: C2AENetwork,
        *,
        alpha: float,
        orthogonality: float,
        feature_branch: float,
        plan: dict[str, Any],
    ) -> None:
        super().__init__(network, plan)
        self.alpha = alpha
        self.orthogonality = orthogonality
        self.feature_branch = feature_branch

    def losses(self, batch: Batch, info: StepInfo) -> dict[str, Tensor]:
        network = self.network
        of_features = network.feature_encoder(batch.x)
        if not self.training:  # the loss of the predictions alone
            return {"ranking": self._ranking(of_features, batch)}
        of_labels = network.label_encoder(signed_targets(batch.y))
        known = (~torch.isnan(batch.y)).to(of_features.dtype).mean(dim=1)
        terms = correlation_loss(of_features, of_labels, weigh_rows(known, batch.row_weight))
        terms["orthogonality"] = self.orthogonality * terms["orthogonality"]
        terms["ranking"] = self.alpha * self._ranking(of_labels, batch)
        if self.feature_branch > 0:
            weight = self.alpha * self.feature_branch
            terms["feature_ranking"] = weight * self._ranking(of_features, batch)
        return terms

    def _ranking(self, codes: Tensor, batch: Batch) -> Tensor:
        """Eq. 3, on outputs between 0 and 1."""
        scores = torch.sigmoid(self.network.decoder(codes))
        of_rows = exponential_ranking(scores, batch.y, slope=_SLOPE, anchor=_VIRTUAL_SCORE)
        return weigh_rows(of_rows, batch.row_weight).mean()


# Number of labels of the data sets in published tables, under the names of the catalog.
LABELS = {
    "ebird": 100,
    "bookmarks": 208,
    "nus-vec": 85,
    "mirflickr": 38,
    "reuters21578": 90,
    "scene": 6,
    "sider": 27,
    "yeast": 14,
    "delicious": 983,
}


class C2AE(NeuralClassifier):
    """Canonical-correlated autoencoder.

    A feature encoder and a label encoder map to one latent space, where the codes of a row and
    of its labels are close and the dimensions uncorrelated, as in canonical correlation
    analysis. A decoder turns codes back into label scores that rank each positive label of a row
    above each negative one. It is trained on the codes of labels and predicts from the codes of
    features.

    Parameters
    ----------
    latent_size : int, default=64
        Dimensions of the latent space.
    encoder, label_encoder, decoder : sequence of int
        Hidden layers of `Fx`, `Fe` and `Fd`.
    activation : str, default="leaky-relu"
        A key of :data:`labelweave.nn.encoders.ACTIVATIONS`.
    dropout : float, default=0.5
        After each hidden layer.
    norm : {"batch", "layer"} or None, default="batch"
        Normalisation in the hidden layers of the feature encoder.
    alpha : float, default=10.0
        Weight of the decoder's loss (Eq. 1).
    orthogonality : float, default=0.5
        `lambda` of Eq. 4, the weight of the constraint that codes are uncorrelated.
    feature_branch : float, default=0.0
        Weight of an additional ranking loss on decoded feature codes. The paper has none: its
        decoder sees the codes of features only at prediction. 1 scores about one point more on
        scene and yeast.
    batch_size : int, default=128
    lr : float, default=5e-4
    epochs : int, default=200
    min_steps, weight_decay, schedule, schedule_params, clip_norm, monitor, patience, scale,
    device, precision, checkpoint, checkpoint_every, callbacks, verbose, threshold,
    validation_fraction, random_state
        The other parameters of :class:`labelweave.nn.estimator.NeuralClassifier`.

    Notes
    -----
    Unknown entries are ignored in the ranking loss. The label encoder reads 1 for a positive
    label, -1 for a negative and 0 for an unknown one. In the distance between codes and in the
    constraint each row is weighted by the share of its labels that is known.

    Departures from the paper: the decoder's outputs pass a sigmoid before they are compared, five
    times as steep (the factor of the authors' program), and a virtual label at one half stands
    between positives and negatives. Without it the loss does not change when a constant is
    added to all outputs of a row, rows with all labels or with none have no gradient, and no
    single threshold fits all rows. The constraint is on second moments (means over the batch, not
    sums), so that it does not depend on the batch size. The latent space has 64 dimensions; the
    paper uses 0.8 times the number of labels. Batch norm, dropout and AdamW replace SGD with
    momentum.

    References
    ----------
    .. [1] C.-K. Yeh, W.-C. Wu, W.-J. Ko and Y.-C. F. Wang. Learning Deep Latent Spaces for
       Multi-Label Classification. AAAI 2017.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, Y = make_multilabel_classification(n_samples=200, random_state=0)
    >>> small = {"encoder": (32,), "label_encoder": (16,), "decoder": (16,)}
    >>> model = C2AE(**small, epochs=10, random_state=0).fit(X, Y)
    >>> model.predict_proba(X[:3]).shape
    (3, 5)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **NeuralClassifier._parameter_constraints,
        "latent_size": [Interval(Integral, 1, None, closed="left")],
        "encoder": [list, tuple],
        "label_encoder": [list, tuple],
        "decoder": [list, tuple],
        "activation": [StrOptions(set(ACTIVATIONS))],
        "dropout": [Interval(Real, 0, 1, closed="left")],
        "norm": [StrOptions(set(NORMS)), None],
        "alpha": [Interval(Real, 0, None, closed="neither")],
        "orthogonality": [Interval(Real, 0, None, closed="left")],
        "feature_branch": [Interval(Real, 0, None, closed="left")],
    }

    tuning_space: ClassVar[dict[str, Any]] = {
        "alpha": ("log", 0.1, 10.0),
        "dropout": ("float", 0.0, 0.6),
        "lr": ("log", 1e-4, 1e-2),
        "weight_decay": ("log", 1e-6, 1e-2),
        "feature_branch": ("choice", [0.0, 1.0]),
    }

    def __init__(
        self,
        latent_size: int = 64,
        *,
        encoder: Sequence[int] = (512, 512),
        label_encoder: Sequence[int] = (512,),
        decoder: Sequence[int] = (512,),
        activation: str = "leaky-relu",
        dropout: float = 0.5,
        norm: str | None = "batch",
        alpha: float = 10.0,
        orthogonality: float = 0.5,
        feature_branch: float = 0.0,
        batch_size: int = 128,
        lr: float = 5e-4,
        epochs: int = 200,
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
            batch_size=batch_size,
            lr=lr,
            epochs=epochs,
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
        self.latent_size = latent_size
        self.encoder = encoder
        self.label_encoder = label_encoder
        self.decoder = decoder
        self.activation = activation
        self.dropout = dropout
        self.norm = norm
        self.alpha = alpha
        self.orthogonality = orthogonality
        self.feature_branch = feature_branch

    @classmethod
    def published(cls, dataset: str | None = None) -> Self:
        """Return the method with a latent space of 0.8 times the number of labels, as its paper.

        The number of labels is known for the sets of published tables; others get the defaults.
        """
        n_labels = LABELS.get(dataset or "")
        return cls() if n_labels is None else cls(latent_size=round(0.8 * n_labels))

    def _build_network(self, n_features: int, n_labels: int) -> nn.Module:
        return C2AENetwork(n_features, n_labels, self.get_params(deep=False))

    def _build_task(self, network: nn.Module, session: TrainingSession) -> Task:
        assert isinstance(network, C2AENetwork)
        return C2AETask(
            network,
            alpha=self.alpha,
            orthogonality=self.orthogonality,
            feature_branch=self.feature_branch,
            plan=self._optimizer_options(),
        )

    @classmethod
    def _test_params(cls) -> dict[str, Any]:
        small = {"encoder": (32,), "label_encoder": (16,), "decoder": (16,), "dropout": 0.1}
        return {**super()._test_params(), **small}
