"""Network and objective of C-GMVAE; :class:`labelweave.dependent.cgmvae.CGMVAE` trains them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 (torch's own way)

from labelweave.dependent._networks.mixture import log_gaussian, log_mixture, sample_gaussian
from labelweave.dependent.cgmvae_contrast import cosines, label_contrast, label_triplets
from labelweave.exceptions import InputError
from labelweave.labels import LabelMatrix
from labelweave.metrics import get_metric
from labelweave.nn.batches import Batch, Batches
from labelweave.nn.encoders import ACTIVATIONS, NORMS, Dropout, MLPEncoder, build_encoder
from labelweave.nn.losses import bce, weigh_rows
from labelweave.nn.process_rows import draw_rows
from labelweave.nn.task import OptimizerPlan, StepInfo, Task, make_plan

__all__ = [
    "CGMVAENetwork",
    "CGMVAETask",
    "Decoder",
    "GaussianEncoder",
    "Objective",
    "RowPrior",
    "has_prior",
    "latent_diagnostics",
]

ENCODER = (256, 512, 256)
"""Widths of the feature encoder in the paper, also used after a network for images."""

# Variances from 3e-7 to 3e6: far beyond what is learnt, and their inverses stay finite.
_LOG_VARIANCE = 15.0
# Burda, Grosse and Salakhutdinov, "Importance Weighted Autoencoders", ICLR 2016.
_ACTIVE_VARIANCE = 0.01


class GaussianEncoder(nn.Module):
    """Hidden layers, then the mean and the log variance of a diagonal Gaussian."""

    def __init__(
        self,
        n_in: int,
        sizes: Sequence[int],
        n_out: int,
        *,
        dropout: float,
        norm: str | None = None,
    ) -> None:
        super().__init__()
        self.hidden = MLPEncoder(n_in, sizes, dropout=dropout, norm=norm)
        self.gaussian = nn.Linear(self.hidden.n_out, 2 * n_out)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        mean, log_variance = self.gaussian(self.hidden(x)).chunk(2, dim=-1)
        return mean, log_variance.clamp(-_LOG_VARIANCE, _LOG_VARIANCE)


class Decoder(nn.Module):
    """Latent points (n, S, d) and, with `skip`, the features (n, D) to embeddings (n, S, E).

    The features' part of the first layer is computed once for all points of a row.
    """

    def __init__(
        self,
        n_features: int,
        n_latent: int,
        sizes: Sequence[int],
        n_out: int,
        *,
        dropout: float,
        norm: str | None,
        skip: bool,
        activation: str | None,
        unit_length: bool,
    ) -> None:
        super().__init__()
        if not sizes:
            raise InputError("the decoder needs at least one hidden layer")
        first, *rest = sizes
        self.from_latent = nn.Linear(n_latent, first)
        self.from_features = nn.Linear(n_features, first, bias=False) if skip else None
        if self.from_features is not None:  # initialised as one layer of both inputs
            bound = (n_features + n_latent) ** -0.5
            for parameter in (*self.from_latent.parameters(), self.from_features.weight):
                nn.init.uniform_(parameter, -bound, bound)
        hidden = MLPEncoder(first, rest, dropout=dropout, norm=norm)
        self.layers = nn.Sequential(
            *([] if norm is None else [NORMS[norm](first)]),
            nn.ReLU(),
            Dropout(dropout),
            *hidden,
            nn.Linear(hidden.n_out, n_out),
        )
        if activation is not None:
            self.layers.append(ACTIVATIONS[activation]())
        self.by_point = norm == "batch"
        self.unit_length = unit_length

    def forward(self, x: Tensor, z: Tensor) -> Tensor:
        hidden = self.from_latent(z)
        if self.from_features is not None:
            hidden = hidden + self.from_features(x).unsqueeze(1)
        if self.by_point:  # batch statistics are computed over one point per row
            embedding = torch.stack([self.layers(point) for point in hidden.unbind(1)], dim=1)
        else:
            embedding = self.layers(hidden)
        return F.normalize(embedding, dim=-1) if self.unit_length else embedding


class RowPrior(NamedTuple):
    """p(z | y) per row: mixtures of the active components (Eq. 1), or one Gaussian each."""

    means: Tensor
    log_variances: Tensor
    active: Tensor | None

    def log_density(self, z: Tensor) -> Tensor:
        """log p(z | y), one value per row."""
        if self.active is None:
            return log_gaussian(z, self.means, self.log_variances)
        return log_mixture(z, self.means, self.log_variances, self.active)

    def centre(self) -> Tensor:
        """The mean of each row's prior."""
        if self.active is None:
            return self.means
        weights = self.active.to(self.means.dtype)
        return weights @ self.means / weights.sum(dim=1, keepdim=True)


class CGMVAENetwork(nn.Module):
    """Features to one logit per label: inner products of feature and label embeddings.

    Parameters
    ----------
    n_features, n_labels : int
    options : dict
        Constructor parameters of the estimator.
    """

    label_bias: nn.Parameter | None

    def __init__(self, n_features: int, n_labels: int, options: dict[str, Any]) -> None:
        super().__init__()
        size, latent = options["embedding_size"], options["latent_size"]
        dropout, sizes = options["dropout"], options["encoder"]
        self.features: nn.Module | None = None
        if not isinstance(sizes, list | tuple):
            self.features = build_encoder(sizes, n_features)
            n_features, sizes = int(self.features.n_out), ENCODER  # type: ignore[arg-type]
        # Initialised as the weights of a linear layer of `n_labels` inputs.
        bound = n_labels**-0.5
        self.label_embeddings = nn.Parameter(torch.empty(n_labels, size).uniform_(-bound, bound))
        self.feature_encoder = GaussianEncoder(
            n_features, sizes, latent, dropout=dropout, norm=options["norm"]
        )
        self.decoder = Decoder(
            n_features,
            latent,
            options["decoder"],
            size,
            dropout=options["decoder_dropout"],
            norm=options["norm"],
            skip=options["skip"],
            activation=options["output_activation"],
            unit_length=options["normalize"] == "features",
        )
        self.prior = options["prior"]
        self.has_kl = options["kl_weight"] > 0
        if self.has_kl or options["label_branch"]:
            self._add_label_encoder(n_labels, options)
        if options["reconstruction"] > 0:
            self.reconstruct = nn.Linear(size, n_features)

    def _add_label_encoder(self, n_labels: int, options: dict[str, Any]) -> None:
        size, latent = options["embedding_size"], options["latent_size"]
        encoder = GaussianEncoder(
            size, options["label_encoder"], latent, dropout=options["dropout"]
        )
        layers: list[nn.Module] = [encoder]
        self.label_bias = None
        if options["label_activation"] is not None:
            bound = n_labels**-0.5
            self.label_bias = nn.Parameter(torch.empty(size).uniform_(-bound, bound))
            activation = ACTIVATIONS[options["label_activation"]]()
            layers = [activation, Dropout(options["dropout"]), encoder]
        self.label_encoder = nn.Sequential(*layers)
        # Labels are not rows of the batch: dropout must be the same in all processes.
        for module in self.label_encoder.modules():
            if isinstance(module, Dropout):
                module.by_row = self.prior == "uni-gaussian"
        # Mean and log variance of the component of rows without labels.
        self.background = nn.Parameter(torch.zeros(2, latent))

    def read(self, x: Tensor) -> Tensor:
        """The input of encoder and decoder: the features, or the image network's output."""
        return x if self.features is None else self.features(x)

    def embed(self, x: Tensor) -> Tensor:
        """The feature embedding decoded from the posterior mean, shape (n, E)."""
        x = self.read(x)
        mean, _ = self.feature_encoder(x)
        return self.decoder(x, mean.unsqueeze(1)).squeeze(1)

    def products(self, embeddings: Tensor) -> Tensor:
        """Inner products with all label embeddings."""
        return embeddings @ self.label_embeddings.T

    def forward(self, x: Tensor) -> Tensor:
        return self.products(self.embed(x))

    def encode_labels(self, embeddings: Tensor) -> tuple[Tensor, Tensor]:
        """Means and log variances of the Gaussians of these label embeddings."""
        return self.label_encoder(
            embeddings if self.label_bias is None else embeddings + self.label_bias
        )

    def label_gaussians(self) -> tuple[Tensor, Tensor]:
        """Means and log variances, one row per label and a last one for rows without labels."""
        means, log_variances = self.encode_labels(self.label_embeddings)
        background = self.background.unsqueeze(1)
        return torch.cat([means, background[0]]), torch.cat([log_variances, background[1]])

    def row_prior(self, positive: Tensor) -> RowPrior:
        """p(z | y) of rows with these positive labels."""
        if self.prior == "uni-gaussian":
            summed = positive.to(self.label_embeddings.dtype) @ self.label_embeddings
            means, log_variances = self.encode_labels(summed)
            return RowPrior(means, log_variances, None)
        empty = ~positive.any(dim=1, keepdim=True)
        means, log_variances = self.label_gaussians()
        return RowPrior(means, log_variances, torch.cat([positive, empty], dim=1))


def has_prior(targets: Tensor) -> Tensor:
    """Which rows have a prior: not those with unknown entries and no known positive."""
    return (targets == 1).any(dim=1) | ~torch.isnan(targets).any(dim=1)


@dataclass(frozen=True)
class Objective:
    """Weights and forms of the loss terms, explained in the estimator."""

    kl_weight: float
    contrast: str
    alpha: float
    temperature: float
    beta: float
    reconstruction: float
    n_samples: int
    label_branch: bool
    normalize: str | None


class CGMVAETask(Task):
    """Eq. 7: the KL term, the contrastive term, the cross-entropy and, optionally, Eq. 4."""

    network: CGMVAENetwork
    weighs_entries: ClassVar[bool] = True  # in Eq. 6
    weighs_rows: ClassVar[bool] = True

    def __init__(self, network: CGMVAENetwork, objective: Objective, plan: dict[str, Any]) -> None:
        super().__init__(network)
        self.objective = objective
        self.plan = plan

    def optimizers(self, n_steps: int) -> list[OptimizerPlan]:
        return [make_plan(self.network, n_steps=n_steps, **self.plan)]

    def losses(self, batch: Batch, info: StepInfo) -> dict[str, Tensor]:
        objective, network, row_weight = self.objective, self.network, batch.row_weight
        if not self.training:
            # Early stopping watches the loss of the predictions: the KL term of validation rows
            # grows long before the predictions get worse.
            entropy = bce(network(batch.x), batch.y).sum(dim=-1)
            return {"cross_entropy": weigh_rows(entropy, row_weight).mean()}
        x = network.read(batch.x)
        mean, log_variance = network.feature_encoder(x)
        # The last draw, z0, is that of the KL term; the others are decoded.
        shape = mean.unsqueeze(1).expand(-1, objective.n_samples + 1, -1)
        noise = draw_rows(shape, Tensor.normal_)
        draws = sample_gaussian(mean.unsqueeze(1), log_variance.unsqueeze(1), noise)
        points, z0 = draws[:, :-1], draws[:, -1]
        terms = {}
        anchors = [0]  # of the contrastive term: the first sample and the label branch
        if network.has_kl or objective.label_branch:
            prior = network.row_prior(batch.y == 1)
            if objective.label_branch:
                points = torch.cat([points, prior.centre().unsqueeze(1)], dim=1)
                anchors.append(objective.n_samples)
            if network.has_kl:  # Eq. 3
                values = log_gaussian(z0, mean, log_variance) - prior.log_density(z0)
                kl = torch.where(has_prior(batch.y), values, 0.0)
                terms["kl"] = objective.kl_weight * weigh_rows(kl, row_weight).mean()
        embeddings = network.decoder(x, points).transpose(0, 1)  # (points, n, E)
        products = network.products(embeddings)
        if objective.alpha > 0:  # Eq. 5, or Eq. 8
            contrast = self._contrast(products[anchors], embeddings[anchors], batch.y)
            terms["contrast"] = objective.alpha * weigh_rows(contrast, row_weight).mean()
        entropy = bce(products, batch.y.expand_as(products))  # Eq. 6
        entropy = (entropy if batch.weight is None else entropy * batch.weight).sum(dim=-1)
        entropy = weigh_rows(entropy, row_weight)
        terms["cross_entropy"] = objective.beta * entropy.mean(dim=1).sum()
        if objective.reconstruction > 0:
            # Eq. 4 with unit variance, up to a constant.
            residual = network.reconstruct(embeddings[: objective.n_samples]) - x.detach()
            error = 0.5 * weigh_rows(residual.square().sum(dim=-1), row_weight).mean()
            terms["reconstruction"] = objective.reconstruction * error
        return terms

    def _contrast(self, products: Tensor, embeddings: Tensor, targets: Tensor) -> Tensor:
        objective = self.objective
        if objective.normalize == "contrast" or objective.contrast == "triplet":
            products = cosines(products, embeddings, self.network.label_embeddings)
        if objective.contrast == "triplet":
            return label_triplets(products, targets)
        return label_contrast(products, targets, temperature=objective.temperature)


@torch.inference_mode()
def latent_diagnostics(
    network: CGMVAENetwork, batches: Batches, Y: LabelMatrix, *, n_draws: int = 16, seed: int = 0
) -> dict[str, float]:
    """Diagnostics of a collapsed posterior: the values of the estimator's method."""
    generator = torch.Generator().manual_seed(seed)
    encoded = [network.feature_encoder(network.read(batch.x)) for batch in batches.in_order()]
    means = torch.cat([mean.cpu() for mean, _ in encoded])
    log_variances = torch.cat([log_variance.cpu() for _, log_variance in encoded])
    results: dict[str, float] = {}
    if network.has_kl:
        noise = torch.randn((n_draws, *means.shape), generator=generator)
        results["kl"] = _mean_kl(network, batches, means, log_variances, noise)
    spread = means.var(dim=0, correction=0)
    results["active_units"] = int((spread > _ACTIVE_VARIANCE).sum())
    results["mean_spread"] = float(spread.sqrt().mean())
    results["posterior_std"] = float(torch.exp(0.5 * log_variances).mean())
    shuffled = means[torch.randperm(len(means), generator=generator)]
    usual = _scores(network, batches, means)
    results["map"] = get_metric("map")(Y, Y_score=usual.numpy())
    for how, points in (("zeroed", torch.zeros_like(means)), ("shuffled", shuffled)):
        scores = _scores(network, batches, points)
        results[f"map_{how}"] = get_metric("map")(Y, Y_score=scores.numpy())
        results[f"change_{how}"] = float((scores - usual).abs().mean())
    return results


def _mean_kl(
    network: CGMVAENetwork, batches: Batches, means: Tensor, log_variances: Tensor, noise: Tensor
) -> float:
    """Eq. 3 averaged over rows and draws."""
    total, n_rows = 0.0, 0
    for batch in batches.in_order():
        rows = batch.rows.cpu()
        mean = means[rows].to(batch.x.device)
        log_variance = log_variances[rows].to(batch.x.device)
        prior = network.row_prior(batch.y == 1)
        counted = has_prior(batch.y)
        for draw in noise:
            z = sample_gaussian(mean, log_variance, draw[rows].to(mean.device))
            values = log_gaussian(z, mean, log_variance) - prior.log_density(z)
            total += float(values[counted].sum()) / len(noise)
        n_rows += int(counted.sum())
    return total / n_rows if n_rows else float("nan")


def _scores(network: CGMVAENetwork, batches: Batches, points: Tensor) -> Tensor:
    """Probabilities decoded from these latent points instead of the encoder's."""
    parts = []
    for batch in batches.in_order():
        z = points[batch.rows.cpu()].to(batch.x.device)
        embeddings = network.decoder(network.read(batch.x), z.unsqueeze(1)).squeeze(1)
        parts.append(torch.sigmoid(network.products(embeddings)).cpu())
    return torch.cat(parts)
