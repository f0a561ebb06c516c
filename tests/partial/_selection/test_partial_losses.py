"""Losses and tasks for partial labels against slow loops."""

import math

import pytest
import torch
from torch import nn

from labelweave.nn.batches import Batch
from labelweave.nn.losses import (
    bce,
    entropy_maximisation,
    expected_positives,
    generalized_robust,
    hill,
    positive_bce,
    splc,
)
from labelweave.nn.task import StepInfo
from labelweave.partial._selection.partial_losses import (
    ExpectedTask,
    FreeLabelsTask,
    PartialLossTask,
    PseudoNegativesTask,
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


def test_gradient_of_the_hill_loss_falls_for_probable_negatives():
    logits = torch.tensor([[0.0, 1.0, 6.0]], requires_grad=True)
    hill(logits, torch.zeros(1, 3)).sum().backward()
    assert logits.grad[0, 2] < logits.grad[0, 0]


def test_splc_before_corrections_start(logits):
    zeros = torch.zeros_like(logits)
    torch.testing.assert_close(splc(logits, zeros, correct=False), bce(logits, zeros))


def test_expected_positives(logits):
    p = torch.sigmoid(logits)
    total = sum(float(value) for row in p for value in row)
    assert expected_positives(p, 1.5).item() == pytest.approx(((total / 7 - 1.5) / 5) ** 2)


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


def test_epr(batch):
    task = ExpectedTask(network(), {}, k=1.2, weight=3.0)
    z = task.network(batch.x)
    positives = -torch.log(torch.sigmoid(z))[batch.y == 1].sum()
    checked = -torch.log(1 - torch.sigmoid(z))[0, 2]
    terms = task.losses(batch, at(0))
    torch.testing.assert_close(terms["positive_bce"], (positives + checked) / 12)
    assert terms["expected"].item() == pytest.approx(
        3 * ((torch.sigmoid(z)[~torch.isnan(batch.y)].sum().item() / 4 - 1.2) / 3) ** 2, rel=1e-5
    )


def test_role(batch):
    """Both halves of the objective; the gradient of each stops at the other."""
    torch.manual_seed(1)
    task = FreeLabelsTask(network(), {"lr": 0.1}, (6, 3), k=1.2, weight=2.0, label_lr=1)
    task.train()
    f, free = task.network(batch.x), task.labels[batch.rows]
    ignored = torch.isnan(batch.y)
    terms = task.losses(batch, at(0))

    def half(one, other):
        estimate = torch.where(batch.y == -1, 0.0, torch.sigmoid(other))
        estimate = torch.where(ignored, NAN, estimate)
        p = torch.sigmoid(one)
        entries = -(estimate * torch.log(p) + (1 - estimate) * torch.log(1 - p))
        entries = torch.where(batch.y == 1, entries - torch.log(p), entries).nan_to_num(0.0)
        return entries.mean(), 2 * ((p[~ignored].sum() / 4 - 1.2) / 3) ** 2

    (on_f, expected_f), (on_free, expected_free) = half(f, free), half(free, f)
    torch.testing.assert_close(terms["network"], on_f / 2)
    torch.testing.assert_close(terms["labels"], on_free / 2)
    torch.testing.assert_close(terms["expected"], (expected_f + expected_free) / 2)
    terms["network"].backward(retain_graph=True)
    assert task.labels.grad is None
    task.network.zero_grad()
    terms["labels"].backward()
    assert task.network.weight.grad is None or (task.network.weight.grad == 0).all()
    touched = task.labels.grad.abs().sum(dim=1) > 0
    assert touched.nonzero().ravel().tolist() == [0, 2, 3, 5]
    assert [plan.optimizer.param_groups[0]["lr"] for plan in task.optimizers(9)] == [0.1, 1]


def test_pseudo_negatives(batch):
    task = PseudoNegativesTask(
        network(),
        lambda z, y, _: entropy_maximisation(z, y, alpha=0.2),
        {},
        n_rows=6,
        n_labels=3,
        warmup=1,
        ramp=2,
        share=0.8,
        beta=0.5,
    ).train()
    plain, unannotated = batch.y.clamp(min=0), batch.y == 0

    def entropy(z):
        entries = entropy_maximisation(z, plain, alpha=0.2)
        entries[0, 2] = bce(z, plain)[0, 2]
        return entries

    z = task.network(batch.x)
    torch.testing.assert_close(task.losses(batch, at(0))["entropy"], entropy(z).mean())
    seen = torch.sigmoid(z).detach()
    with torch.no_grad():
        task.network.weight += 0.3
    z = task.network(batch.x)
    found = task.losses(batch, at(1))["entropy"]
    expected = entropy(z)
    for j in range(3):  # the lower 40 % of each label's unannotated entries, by epoch 0
        values = seen[:, j][unannotated[:, j]]
        threshold = torch.quantile(values, 0.4)
        for i in range(4):
            if unannotated[i, j] and seen[i, j] <= threshold:
                expected[i, j] = 0.5 * bce(z[i, j], seen[i, j])
    torch.testing.assert_close(found, expected.mean())
