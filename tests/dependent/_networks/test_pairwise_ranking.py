"""The ranking loss against a loop over pairs."""

import math

import pytest
import torch

from labelweave.dependent._networks.pairwise_ranking import exponential_ranking, signed_targets


def drawn(n_rows=9, n_labels=6, unknown=0.2, seed=0):
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(n_rows, n_labels, generator=generator, dtype=torch.float64)
    targets = (torch.rand(n_rows, n_labels, generator=generator) < 0.4).double()
    hide = torch.rand(n_rows, n_labels, generator=generator) < unknown
    targets = targets.masked_fill(hide, torch.nan)
    targets[0], targets[1], targets[2] = 0, 1, torch.nan  # rows without a pair
    return scores, targets


def slow(scores, targets, slope, anchor):
    """Every pair of a positive and a negative, one after the other."""
    losses = []
    for row, target in zip(scores.tolist(), targets.tolist(), strict=True):
        positives = [s for s, t in zip(row, target, strict=True) if t == 1]
        negatives = [s for s, t in zip(row, target, strict=True) if t == 0]
        pairs = [(p, n) for p in positives for n in negatives]
        if anchor is not None:
            pairs += [(p, anchor) for p in positives] + [(anchor, n) for n in negatives]
        values = [math.exp(-slope * (p - n)) / slope for p, n in pairs]
        losses.append(sum(values) / len(values) if values else 0.0)
    return torch.tensor(losses, dtype=torch.float64)


@pytest.mark.parametrize("slope", [1.0, 5.0])
@pytest.mark.parametrize("anchor", [None, 0.5])
def test_it_is_the_mean_over_pairs(slope, anchor):
    scores, targets = drawn()
    losses = exponential_ranking(scores, targets, slope=slope, anchor=anchor)
    torch.testing.assert_close(losses, slow(scores, targets, slope, anchor))
    several = torch.stack([scores, -scores])
    torch.testing.assert_close(
        exponential_ranking(several, targets, slope=slope, anchor=anchor)[1],
        slow(-scores, targets, slope, anchor),
    )


@pytest.mark.parametrize("anchor", [None, 0.5])
def test_unknown_entries_are_in_no_pair(anchor):
    scores, targets = drawn(unknown=0.4)
    scores.requires_grad_()
    exponential_ranking(scores, targets, slope=5.0, anchor=anchor).sum().backward()
    assert (scores.grad[torch.isnan(targets)] == 0).all()
    assert torch.isfinite(scores.grad).all()
    assert (scores.grad[targets == 1] <= 0).all()
    assert (scores.grad[targets == 0] >= 0).all()


def test_far_scores_stay_finite_where_the_order_is_right():
    scores = torch.tensor([[300.0, -300.0, 5000.0]], requires_grad=True)
    loss = exponential_ranking(scores, torch.tensor([[1.0, 0.0, torch.nan]]))
    loss.sum().backward()
    assert loss.item() == 0
    assert torch.isfinite(scores.grad).all()


def test_memory_does_not_grow_with_the_square_of_the_labels():
    scores = torch.rand(2, 100_000)  # all pairs of one row would take 40 GB
    targets = (torch.arange(100_000) % 2).float().expand(2, -1)
    assert torch.isfinite(exponential_ranking(scores, targets, slope=5.0)).all()


def test_signs_tell_unknown_from_negative():
    signs = signed_targets(torch.tensor([[1.0, 0.0, torch.nan]]))
    assert signs.tolist() == [[1, -1, 0]]
