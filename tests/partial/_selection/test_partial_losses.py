"""Losses and tasks for partial labels against slow loops."""

import math

import pytest
import torch
from torch import nn

from labelweave.nn.batches import Batch
from labelweave.nn.losses import (
    bce,
    entropy_maximisation,
    generalized_robust,
    hill,
    positive_bce,
    splc,
)
from labelweave.nn.task import StepInfo
from labelweave.partial._selection.partial_losses import (
    PartialLossTask,
)

NAN = torch.nan


@pytest.fixture
def logits():
    generator = torch.Generator().manual_seed(0)
    return torch.randn(7, 5, generator=generator, dtype=torch.float64) * 3


@pytest.fixture
def targets():
    generator = torch.Generator().manual_seed(1)
    return (torch.rand(7, 5, generator=generator) < 0.4).double()


def sigmoid(s):
    return 1 / (1 + math.exp(-s))


def slow_positive(s, y):
    return -math.log(sigmoid(s)) if y == 1 else 0.0


def slow_hill(s, y):
    p = sigmoid(s)
    return -math.log(p) if y == 1 else (1.5 - p) * p**2


def slow_splc(s, y):
    if y == 1 or sigmoid(s) > 0.6:
        q = sigmoid(s - 1)
        return -((1 - q) ** 2) * math.log(q)
    return -math.log(1 - sigmoid(s))


def slow_entropy(s, y):
    p = sigmoid(s)
    if y == 1:
        return -math.log(p)
    return 0.2 * (p * math.log(p) + (1 - p) * math.log(1 - p))


def slow_robust(s, y, progress=1.0):
    p = sigmoid(s)
    if y == 1:
        return -math.log(p)
    slope, mean, width = 2 * progress, 0.5 + 0.3 * progress, 2 - 1.5 * progress
    k = sigmoid(slope * p - 2)
    v = math.exp(-0.5 * ((p - mean) / width) ** 2)
    return v * (k * (1 - p**0.01) / 0.01 + (1 - k) * p)


LOSSES = [
    (positive_bce, slow_positive),
    (hill, slow_hill),
    (splc, slow_splc),
    (entropy_maximisation, slow_entropy),
    (generalized_robust, slow_robust),
    (
        lambda s, y: generalized_robust(s, y, progress=0.4),
        lambda s, y: slow_robust(s, y, progress=0.4),
    ),
]


@pytest.mark.parametrize(("loss", "slow"), LOSSES)
def test_entries_equal_the_slow_loop(loss, slow, logits, targets):
    expected = [
        [slow(s, y) for s, y in zip(*rows, strict=True)]
        for rows in zip(logits.tolist(), targets.tolist(), strict=True)
    ]
    torch.testing.assert_close(loss(logits, targets), torch.tensor(expected, dtype=torch.float64))


@pytest.mark.parametrize("loss", [one for one, _ in LOSSES])
def test_unknown_entries_are_ignored(loss, logits, targets):
    targets[0, 1], targets[3] = NAN, NAN
    logits = logits.requires_grad_()
    loss(logits, targets).sum().backward()
    unknown = torch.isnan(targets)
    assert (logits.grad[unknown] == 0).all()
    assert torch.isfinite(logits.grad).all()


@pytest.mark.parametrize("loss", [one for one, _ in LOSSES])
def test_extreme_logits(loss):
    logits = torch.tensor([[-200.0, 200.0, -200.0, 200.0]], requires_grad=True)
    entries = loss(logits, torch.tensor([[1.0, 1.0, 0.0, 0.0]]))
    entries.sum().backward()
    assert torch.isfinite(entries).all()
    assert torch.isfinite(logits.grad).all()


# -- tasks -----------------------------------------------------------------------------


def at(epoch):
    return StepInfo(epoch, 0, 0.0)


@pytest.fixture
def batch():
    generator = torch.Generator().manual_seed(3)
    y = torch.tensor([[1.0, 0.0, -1.0], [0.0, 1.0, NAN], [0.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
    return Batch(torch.randn(4, 2, generator=generator), y, torch.tensor([5, 0, 3, 2]))


def network():
    torch.manual_seed(0)
    return nn.Linear(2, 3)


def test_known_negatives_have_cross_entropy(batch):
    task = PartialLossTask(network(), lambda z, y, _: hill(z, y), {}, name="hill")
    z = task.network(batch.x)
    plain = batch.y.clamp(min=0)
    expected = hill(z, plain)
    expected[0, 2] = bce(z, plain)[0, 2]
    torch.testing.assert_close(task.losses(batch, at(0))["hill"], expected.mean())
