"""Contrast of rows and labels against loops, and its gradient against the closed form."""

import math

import pytest
import torch

from labelweave.dependent.cgmvae_contrast import cosines, label_contrast, label_triplets


def drawn(n_rows=6, n_labels=5, size=4, unknown=True, seed=0):
    generator = torch.Generator().manual_seed(seed)
    rows = torch.randn(n_rows, size, generator=generator, dtype=torch.float64)
    labels = torch.randn(n_labels, size, generator=generator, dtype=torch.float64)
    targets = (torch.rand(n_rows, n_labels, generator=generator) < 0.4).double()
    if unknown:
        hide = torch.rand(n_rows, n_labels, generator=generator) < 0.25
        targets = targets.masked_fill(hide, torch.nan)
        targets[1] = 0.0  # no label
        targets[2] = torch.nan  # nothing known
        targets[3] = 1.0  # nothing to tell apart from
    return rows, labels, targets


def slow_contrast(similarities, targets, temperature):
    losses = []
    for row, target in zip(similarities.tolist(), targets.tolist(), strict=True):
        known = [s for s, t in zip(row, target, strict=True) if not math.isnan(t)]
        below = sum(math.exp(s / temperature) for s in known)
        positives = [s for s, t in zip(row, target, strict=True) if t == 1]
        terms = [-math.log(math.exp(s / temperature) / below) for s in positives]
        losses.append(sum(terms) / len(terms) if terms else 0.0)
    return torch.tensor(losses, dtype=torch.float64)


def slow_triplets(rows, labels, targets, gap):
    """Eq. 8 with distances between unit vectors, pair by pair."""
    losses = []
    for row, target in zip(rows / rows.norm(dim=1, keepdim=True), targets.tolist(), strict=True):
        units = labels / labels.norm(dim=1, keepdim=True)
        distance = ((row - units) ** 2).sum(1).tolist()
        hinges = [
            max(0.0, gap + distance[p] - distance[n])
            for p in range(len(target))
            for n in range(len(target))
            if target[p] == 1 and target[n] == 0
        ]
        losses.append(sum(hinges) / len(hinges) if hinges else 0.0)
    return torch.tensor(losses, dtype=torch.float64)


def test_cosines():
    rows, labels, _ = drawn()
    expected = torch.nn.functional.cosine_similarity(rows[:, None], labels, dim=-1)
    torch.testing.assert_close(cosines(rows @ labels.T, rows, labels), expected)
    assert torch.isfinite(cosines(torch.zeros(1, 5), torch.zeros(1, 4), labels.float())).all()


@pytest.mark.parametrize("temperature", [0.2, 1.0])
def test_contrast_is_that_of_the_loop(temperature):
    rows, labels, targets = drawn()
    similarities = rows @ labels.T
    losses = label_contrast(similarities, targets, temperature=temperature)
    torch.testing.assert_close(losses, slow_contrast(similarities, targets, temperature))
    assert losses[1] == losses[2] == 0


@pytest.mark.parametrize("gap", [0.3, 1.0, 4.0])
def test_triplets_are_those_of_the_loop(gap):
    rows, labels, targets = drawn(n_labels=9)
    losses = label_triplets(cosines(rows @ labels.T, rows, labels), targets, gap=gap)
    torch.testing.assert_close(losses, slow_triplets(rows, labels, targets, gap))
    assert losses[1] == losses[2] == losses[3] == 0


@pytest.mark.parametrize("loss", [label_contrast, label_triplets])
def test_several_points_a_row_at_once(loss):
    rows, labels, targets = drawn()
    stacked = torch.stack([rows @ labels.T, -rows @ labels.T])
    expected = torch.stack([loss(part, targets) for part in stacked])
    torch.testing.assert_close(loss(stacked, targets), expected)


@pytest.mark.parametrize("loss", [label_contrast, label_triplets])
def test_unknown_entries_have_no_gradient(loss):
    rows, labels, targets = drawn()
    similarities = (rows @ labels.T).requires_grad_()
    (gradient,) = torch.autograd.grad(loss(similarities, targets).sum(), similarities)
    assert torch.isfinite(gradient).all()
    assert not gradient[torch.isnan(targets)].any()
    assert gradient[0].any()


@pytest.mark.parametrize("temperature", [0.5, 1.0])
def test_gradient_is_the_closed_form_of_the_appendix(temperature):
    """Eq. 14, with the softmax of label t where the paper's index slips to a."""
    rows, labels, targets = drawn(unknown=False)
    targets[:, 0] = 1
    rows.requires_grad_()
    values = label_contrast(
        cosines(rows @ labels.T, rows, labels), targets, temperature=temperature
    )
    (gradient,) = torch.autograd.grad(values.sum(), rows)
    units = labels / labels.norm(dim=1, keepdim=True)
    for w, target, of_row in zip(rows.detach(), targets, gradient, strict=True):
        length = w.norm()
        v = w / length
        softmax = torch.softmax(units @ v / temperature, 0)
        expected = torch.zeros_like(w)
        for t in range(len(units)):
            away = units[t] - (v @ units[t]) * v
            share = 1 / target.sum() if target[t] == 1 else 0.0
            expected += away * (softmax[t] - share)
        torch.testing.assert_close(of_row, expected / (temperature * length))
