"""Loss over all pairs of a positive and a negative label, in time linear in the labels."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["exponential_ranking", "signed_targets"]


def signed_targets(targets: Tensor) -> Tensor:
    """Labels as inputs of a network: 1 positive, -1 negative, 0 unknown.

    >>> signed_targets(torch.tensor([1.0, 0.0, torch.nan]))
    tensor([ 1., -1.,  0.])
    """
    return torch.nan_to_num(2 * targets - 1, nan=0.0)


def exponential_ranking(
    scores: Tensor, targets: Tensor, *, slope: float = 1.0, anchor: float | None = None
) -> Tensor:
    """Mean of ``exp(slope (s_n - s_p)) / slope`` over pairs of a negative n and a positive p.

    The sum over all pairs of known labels of a row is the product of two sums, one over positives
    and one over negatives, so that time and memory grow with the number of labels and not with its
    square. An unknown target (NaN) is in no pair. `anchor` is the score of a virtual label that
    should rank below each positive and above each negative, which makes it a threshold. Scores of
    shape (..., n, L) have one value per row, (..., n); it is 0 for a row without a pair.

    >>> exponential_ranking(torch.tensor([[1.0, 0.0, 0.5]]), torch.tensor([[1.0, 0.0, 1.0]]))
    tensor([0.4872])
    """
    positive, negative = targets == 1, targets == 0
    n_positives, n_negatives = positive.sum(dim=-1), negative.sum(dim=-1)
    # Each sum is divided by its largest term, so that neither overflows.
    lowest, on_positives = _scaled_sum(-slope * scores, positive)
    highest, on_negatives = _scaled_sum(slope * scores, negative)
    total = torch.exp(lowest + highest) * on_positives * on_negatives
    pairs = n_positives * n_negatives
    if anchor is not None:
        total = total + torch.exp(lowest + slope * anchor) * on_positives
        total = total + torch.exp(highest - slope * anchor) * on_negatives
        pairs = pairs + n_positives + n_negatives
    return total / (slope * pairs.clamp(min=1))


def _scaled_sum(exponents: Tensor, counted: Tensor) -> tuple[Tensor, Tensor]:
    """The largest counted exponent m of each row, and the sum of ``exp(exponent - m)``."""
    exponents = exponents.masked_fill(~counted, -torch.inf)
    largest = exponents.detach().amax(dim=-1).nan_to_num(neginf=0.0)
    return largest, torch.exp(exponents - largest.unsqueeze(-1)).sum(dim=-1)
