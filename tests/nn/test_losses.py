"""Losses against slow loops, closed-form gradients, and unknown labels."""

import math

import pytest
import torch

from labelweave.exceptions import InputError
from labelweave.nn.losses import (
    LOSSES,
    asl,
    bce,
    focal,
    get_loss,
    mean_loss,
    smoothed_bce,
    weighted_bce,
    zlpr,
)


@pytest.fixture
def logits() -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(7, 5, generator=generator, dtype=torch.float64) * 3


@pytest.fixture
def targets() -> torch.Tensor:
    generator = torch.Generator().manual_seed(1)
    return (torch.rand(7, 5, generator=generator) < 0.4).double()


def sigmoid(s: float) -> float:
    return 1 / (1 + math.exp(-s))


def by_entry(function, logits, targets):
    """The slow way: a Python function of one logit and one target, entry by entry."""
    return torch.tensor(
        [
            [function(s, y) for s, y in zip(row_s, row_y, strict=True)]
            for row_s, row_y in zip(logits.tolist(), targets.tolist(), strict=True)
        ],
        dtype=torch.float64,
    )


def slow_bce(s, y):
    return -math.log(sigmoid(s)) if y == 1 else -math.log(1 - sigmoid(s))


def slow_smoothed(s, y):
    soft = 0.9 * y + 0.05
    return -soft * math.log(sigmoid(s)) - (1 - soft) * math.log(1 - sigmoid(s))


def slow_focal(s, y):
    right = sigmoid(s) if y == 1 else 1 - sigmoid(s)
    return -(0.25 if y == 1 else 0.75) * (1 - right) ** 2 * math.log(right)


def slow_asl(s, y):
    p = sigmoid(s)
    if y == 1:
        return -(1 - p) * math.log(p)
    shifted = max(p - 0.05, 0.0)
    return -(shifted**4) * math.log(1 - shifted)


@pytest.mark.parametrize(
    ("loss", "slow"),
    [(bce, slow_bce), (smoothed_bce, slow_smoothed), (focal, slow_focal), (asl, slow_asl)],
)
def test_entries_equal_the_slow_loop(loss, slow, logits, targets):
    torch.testing.assert_close(loss(logits, targets), by_entry(slow, logits, targets))


def test_weights_of_positives_and_negatives(logits, targets):
    weights = [1.0, 2.0, 3.0, 4.0, 5.0]
    losses = weighted_bce(logits, targets, pos_weight=weights, neg_weight=0.25)
    plain = by_entry(slow_bce, logits, targets)
    expected = torch.where(targets == 1, plain * torch.tensor(weights), plain * 0.25)
    torch.testing.assert_close(losses, expected)


def test_zlpr_equals_the_slow_loop(logits, targets):
    expected = [
        math.log1p(sum(math.exp(-s) for s, y in zip(row_s, row_y, strict=True) if y == 1))
        + math.log1p(sum(math.exp(s) for s, y in zip(row_s, row_y, strict=True) if y == 0))
        for row_s, row_y in zip(logits.tolist(), targets.tolist(), strict=True)
    ]
    torch.testing.assert_close(zlpr(logits, targets), torch.tensor(expected, dtype=torch.float64))


def gradient(loss, logits, targets):
    logits = logits.clone().requires_grad_()
    loss(logits, targets).sum().backward()
    return logits.grad


def test_gradient_of_bce(logits, targets):
    torch.testing.assert_close(gradient(bce, logits, targets), torch.sigmoid(logits) - targets)


def test_gradient_of_focal_loss(logits, targets):
    # Appendix B of the paper, with x_t = s for positives and -s for negatives.
    sign = 2 * targets - 1
    p = torch.sigmoid(sign * logits)
    alpha = torch.where(targets == 1, 0.25, 0.75)
    expected = alpha * sign * (1 - p) ** 2 * (2 * p * torch.log(p) + p - 1)
    torch.testing.assert_close(gradient(focal, logits, targets), expected)


def test_gradient_of_asl(logits, targets):
    p = torch.sigmoid(logits)
    slope = p * (1 - p)
    on_positive = slope * torch.log(p) - (1 - p) ** 2
    q = (p - 0.05).clamp(min=0)
    on_negative = slope * (q**4 / (1 - q) - 4 * q**3 * torch.log1p(-q)) * (q > 0)
    expected = torch.where(targets == 1, on_positive, on_negative)
    torch.testing.assert_close(gradient(asl, logits, targets), expected)


@pytest.mark.parametrize("clip", [0.0, 0.05])
@pytest.mark.parametrize("gamma", [0.0, 0.5, 4.0])
def test_asl_is_finite_for_extreme_logits(clip, gamma):
    logits = torch.tensor([[-200.0, 200.0, -200.0, 200.0, 0.0]])
    targets = torch.tensor([[1.0, 1.0, 0.0, 0.0, 0.0]])

    def loss(s, y):
        return asl(s, y, gamma_neg=gamma, gamma_pos=gamma, clip=clip)

    assert torch.isfinite(loss(logits, targets)).all()
    assert torch.isfinite(gradient(loss, logits, targets)).all()


def test_asl_without_focus_and_shift_is_bce(logits, targets):
    losses = asl(logits, targets, gamma_neg=0, gamma_pos=0, clip=0)
    torch.testing.assert_close(losses, bce(logits, targets))


@pytest.mark.parametrize("name", LOSSES)
def test_unknown_entries_take_no_part(name, logits, targets):
    unknown = torch.zeros_like(targets, dtype=torch.bool)
    unknown[0, 1] = unknown[3] = True  # one entry, and a whole row
    masked = targets.masked_fill(unknown, torch.nan)
    moved = torch.where(unknown, logits + 5, logits)
    loss = LOSSES[name]
    torch.testing.assert_close(loss(logits, masked), loss(moved, masked))
    slope = gradient(loss, logits, masked)
    assert (slope[unknown] == 0).all()
    assert (slope[~unknown] != 0).any()
    assert torch.isfinite(slope).all()


@pytest.mark.parametrize("name", LOSSES)
def test_the_mean_of_a_batch_is_the_weighted_mean_of_its_parts(name, logits, targets):
    targets[2, 3] = torch.nan
    of_batch = mean_loss(LOSSES[name](logits, targets))
    parts = [
        mean_loss(LOSSES[name](logits[rows], targets[rows])) * len(logits[rows])
        for rows in (slice(0, 3), slice(3, 7))
    ]
    torch.testing.assert_close(of_batch, sum(parts) / 7)


def test_a_loss_by_name_with_parameters(logits, targets):
    loss = get_loss("smoothed-bce", {"smoothing": 0.0})
    torch.testing.assert_close(loss(logits, targets), bce(logits, targets))
    assert get_loss(bce) is bce


def test_wrong_names_and_parameters_are_refused():
    with pytest.raises(InputError, match="choose one of bce"):
        get_loss("mse")
    with pytest.raises(InputError, match=r"'asl'.*gama"):
        get_loss("asl", {"gama": 1})
