"""Diagnostics of a collapsed posterior in C-GMVAE."""

from __future__ import annotations

import torch
from torch import Tensor

from labelweave.dependent._networks.mixture import log_gaussian, sample_gaussian
from labelweave.dependent.cgmvae_network import CGMVAENetwork, has_prior
from labelweave.labels import LabelMatrix
from labelweave.metrics import get_metric
from labelweave.nn.batches import Batches

__all__ = ["latent_diagnostics"]

# Burda, Grosse and Salakhutdinov, "Importance Weighted Autoencoders", ICLR 2016.
_ACTIVE_VARIANCE = 0.01


@torch.inference_mode()
def latent_diagnostics(
    network: CGMVAENetwork, batches: Batches, Y: LabelMatrix, *, n_draws: int = 16, seed: int = 0
) -> dict[str, float]:
    """What :meth:`labelweave.dependent.cgmvae.CGMVAE.latent_diagnostics` returns."""
    generator = torch.Generator().manual_seed(seed)
    encoded = [network.feature_encoder(network.read(batch.x)) for batch in batches.in_order()]
    means = torch.cat([mean.cpu() for mean, _ in encoded])
    log_variances = torch.cat([log_variance.cpu() for _, log_variance in encoded])
    results: dict[str, float] = {}
    if network.prior is not None:
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
