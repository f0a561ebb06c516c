"""Diagonal Gaussians, and mixtures of them with a subset of active components per row.

A tensor of rows x components x dimensions is never stored: either only the active pairs are
computed, or the squared distances are expanded into matrix products.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

__all__ = ["gaussian_divergence", "log_gaussian", "log_mixture", "sample_gaussian"]

_LOG_TWO_PI = math.log(2 * math.pi)
# Above this share of active pairs matrix products are faster (measured on 64 dimensions).
_MANY_ACTIVE = 1 / 16


def log_gaussian(z: Tensor, mean: Tensor, log_variance: Tensor) -> Tensor:
    """Log density of a diagonal Gaussian at `z`, summed over the last axis.

    >>> log_gaussian(torch.zeros(1, 2), torch.zeros(2), torch.zeros(2))
    tensor([-1.8379])
    """
    distance = (z - mean) * torch.exp(-0.5 * log_variance)
    return -0.5 * (distance.square() + log_variance + _LOG_TWO_PI).sum(dim=-1)


def sample_gaussian(mean: Tensor, log_variance: Tensor, noise: Tensor) -> Tensor:
    """Reparametrised sample: standard normal noise scaled and shifted to this Gaussian."""
    return mean + torch.exp(0.5 * log_variance) * noise


def gaussian_divergence(
    mean: Tensor, log_variance: Tensor, other_mean: Tensor, other_log_variance: Tensor
) -> Tensor:
    """KL divergence from one diagonal Gaussian to another, summed over the last axis.

    >>> gaussian_divergence(torch.ones(1, 2), torch.zeros(2), torch.zeros(2), torch.zeros(2))
    tensor([1.])
    """
    difference = log_variance - other_log_variance
    distance = (mean - other_mean).square() * torch.exp(-other_log_variance)
    return 0.5 * (torch.exp(difference) - difference - 1 + distance).sum(dim=-1)


def log_mixture(z: Tensor, means: Tensor, log_variances: Tensor, active: Tensor) -> Tensor:
    """Log density of each row under the equal mixture of its active Gaussians.

    The rows `z` are (n, d), the means and variances of the components (K, d); the boolean `active`,
    (n, K), selects the components of each row. A row without any has the log density ``-inf``.

    Time and memory grow with the number of active pairs times d, or, where more than a
    sixteenth of all pairs are active, with n (d + K) in memory and one product of n x 2d x K
    in double precision: ``(z - m)^2 / v`` expanded loses digits where variances are small.

    >>> means, log_variances = torch.tensor([[0.0], [2.0]]), torch.zeros(2, 1)
    >>> active = torch.tensor([[True, False], [True, True]])
    >>> log_mixture(torch.tensor([[0.0], [1.0]]), means, log_variances, active)
    tensor([-0.9189, -1.4189])
    """
    rows, components = active.nonzero(as_tuple=True)
    has_double = z.device.type != "mps"
    if has_double and len(rows) > _MANY_ACTIVE * active.numel():
        log_sum = torch.logsumexp(
            _all_densities(z, means, log_variances).masked_fill(~active, -torch.inf), dim=1
        ).to(z.dtype)
    else:
        log_sum = _log_sum_of_pairs(z, means, log_variances, rows, components)
    return log_sum - torch.log(active.sum(dim=1).clamp(min=1))


def _all_densities(z: Tensor, means: Tensor, log_variances: Tensor) -> Tensor:
    """Log density of every row under every component, by one product in double precision."""
    z, means, log_variances = z.double(), means.double(), log_variances.double()
    centre = means.detach().mean(dim=0)  # smaller numbers lose fewer digits
    z, means = z - centre, means - centre
    precision = torch.exp(-log_variances)
    constant = (means.square() * precision + log_variances + _LOG_TWO_PI).sum(dim=1)
    left = torch.cat([z.square(), z], dim=1)
    right = torch.cat([precision, -2 * means * precision], dim=1)
    return -0.5 * torch.addmm(constant, left, right.T)


def _log_sum_of_pairs(
    z: Tensor, means: Tensor, log_variances: Tensor, rows: Tensor, components: Tensor
) -> Tensor:
    """Log of the sum of the densities of each row's pairs."""
    scale = torch.exp(-0.5 * log_variances)
    constant = (log_variances + _LOG_TWO_PI).sum(dim=1)
    distance = z.index_select(0, rows) - means.index_select(0, components)
    distance = distance * scale.index_select(0, components)
    pairs = -0.5 * (distance.square().sum(dim=1) + constant.index_select(0, components))
    none = pairs.new_full((len(z),), -torch.inf)
    largest = none.scatter_reduce(0, rows, pairs.detach(), "amax")
    shifted = torch.exp(pairs - largest.index_select(0, rows))
    total = torch.zeros_like(none).index_add(0, rows, shifted)
    return torch.log(total) + largest
