"""Mixture densities against the form that lists every row, component and dimension."""

import math

import pytest
import torch

from labelweave.dependent._networks.mixture import (
    gaussian_divergence,
    log_gaussian,
    log_mixture,
    sample_gaussian,
)


def slow_log_mixture(z, means, log_variances, active):
    """Eq. 1 over the whole tensor of rows x components x dimensions."""
    variances = log_variances.exp()
    terms = (z[:, None] - means) ** 2 / variances + log_variances + math.log(2 * math.pi)
    densities = -0.5 * terms.sum(-1)
    densities = densities.masked_fill(~active, -torch.inf)
    return torch.logsumexp(densities, 1) - active.sum(1).log()


def drawn(n_rows=40, n_components=30, size=64, share=0.5, spread=0.3, shift=0.0, seed=0):
    generator = torch.Generator().manual_seed(seed)
    z = torch.randn(n_rows, size, generator=generator)
    means = torch.randn(n_components, size, generator=generator) + shift
    log_variances = spread * torch.randn(n_components, size, generator=generator)
    active = torch.rand(n_rows, n_components, generator=generator) < share
    active[:, 0] |= ~active.any(1)
    return (z, means, log_variances), active


def value_and_gradients(function, tensors, active):
    tensors = [tensor.clone().requires_grad_() for tensor in tensors]
    values = function(*tensors, active)
    gradients = torch.autograd.grad(values.mean(), tensors)
    return values.detach(), gradients


def test_a_gaussian_is_that_of_torch():
    (z, means, log_variances), _ = drawn(5, 5, 7)
    normal = torch.distributions.Normal(means, torch.exp(0.5 * log_variances))
    torch.testing.assert_close(
        log_gaussian(z, means, log_variances), normal.log_prob(z).sum(-1), rtol=1e-5, atol=1e-5
    )


def test_samples_have_the_moments_and_pass_gradients():
    mean = torch.tensor([1.0, -2.0], requires_grad=True)
    log_variance = torch.tensor([0.0, 2.0], requires_grad=True)
    noise = torch.randn(20000, 2, generator=torch.Generator().manual_seed(0))
    z = sample_gaussian(mean, log_variance, noise)
    assert torch.allclose(z.mean(0), mean, atol=0.06)
    assert torch.allclose(z.var(0), log_variance.exp(), rtol=0.05)
    of_mean, of_log = torch.autograd.grad(z[0].sum(), [mean, log_variance])
    assert torch.equal(of_mean, torch.ones(2))
    assert torch.allclose(of_log, 0.5 * torch.exp(0.5 * log_variance) * noise[0])


@pytest.mark.parametrize("share", [0.01, 0.5, 1.0])  # few pairs are listed, many multiplied
@pytest.mark.parametrize("shift", [0.0, 3.0])
def test_value_and_gradients_of_the_slow_form(share, shift):
    tensors, active = drawn(share=share, shift=shift)
    values, gradients = value_and_gradients(log_mixture, tensors, active)
    exact, slow = value_and_gradients(slow_log_mixture, [t.double() for t in tensors], active)
    torch.testing.assert_close(values.double(), exact, rtol=1e-5, atol=1e-5)
    for one, other in zip(gradients, slow, strict=True):
        torch.testing.assert_close(one.double(), other, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("share", [0.01, 0.5])
def test_tiny_variances_lose_no_digits(share):
    """Points that lie on their means to within a few standard deviations of 1e-4."""
    (z, means, log_variances), active = drawn(share=share)
    log_variances = log_variances - 2 * math.log(1e4)
    component = active.to(torch.float32).argmax(1)
    z = means[component] + torch.exp(0.5 * log_variances[component]) * z
    tensors = (z, means, log_variances)
    values, gradients = value_and_gradients(log_mixture, tensors, active)
    exact, slow = value_and_gradients(slow_log_mixture, [t.double() for t in tensors], active)
    torch.testing.assert_close(values.double(), exact, rtol=1e-5, atol=1e-4)
    for one, other in zip(gradients, slow, strict=True):
        torch.testing.assert_close(one.double(), other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("share", [0.01, 0.5])
def test_far_points_do_not_underflow(share):
    (z, means, log_variances), active = drawn(share=share)
    values, gradients = value_and_gradients(log_mixture, (100 * z, means, log_variances), active)
    assert torch.isfinite(values).all()
    assert all(torch.isfinite(gradient).all() for gradient in gradients)


def test_components_that_nobody_activates_get_no_gradient():
    tensors, active = drawn(share=0.5)
    active[:, 3] = False
    _, (_, of_means, of_log_variances) = value_and_gradients(log_mixture, tensors, active)
    assert not of_means[3].any()
    assert not of_log_variances[3].any()


@pytest.mark.parametrize("share", [0.01, 0.5])
def test_a_row_without_component_has_no_density(share):
    (z, means, log_variances), active = drawn(share=share)
    active[7] = False
    values = log_mixture(z, means, log_variances, active)
    assert values[7] == -torch.inf
    assert torch.isfinite(values[:7]).all()


def test_divergence_is_torchs():
    generator = torch.Generator().manual_seed(0)
    mean, log_variance, other_mean, other_log_variance = torch.randn(4, 7, 5, generator=generator)
    divergence = gaussian_divergence(mean, log_variance, other_mean, other_log_variance)
    one = torch.distributions.Normal(mean, torch.exp(0.5 * log_variance))
    other = torch.distributions.Normal(other_mean, torch.exp(0.5 * other_log_variance))
    torch.testing.assert_close(divergence, torch.distributions.kl_divergence(one, other).sum(1))
    assert (gaussian_divergence(mean, log_variance, mean, log_variance) == 0).all()
