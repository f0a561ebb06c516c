"""Contrastive losses between the embeddings of rows and of labels.

The positive labels of a row are positives, its negative labels negatives; unknown labels are
ignored. The functions read similarities of shape (..., n, L), which are already computed as
logits, and return one value per row: 0 for a row without a positive (or, for triplets, without
a negative) label.
"""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["cosines", "label_contrast", "label_triplets"]

_TINY = 1e-12


def cosines(products: Tensor, rows: Tensor, labels: Tensor) -> Tensor:
    """Cosines from the inner products of row and label embeddings.

    >>> rows, labels = torch.tensor([[3.0, 4.0]]), torch.tensor([[2.0, 0.0]])
    >>> cosines(rows @ labels.T, rows, labels)
    tensor([[0.6000]])
    """
    of_rows = torch.linalg.vector_norm(rows, dim=-1, keepdim=True)
    of_labels = torch.linalg.vector_norm(labels, dim=-1)
    return products / of_rows.clamp(min=_TINY) / of_labels.clamp(min=_TINY)


def label_contrast(similarities: Tensor, targets: Tensor, *, temperature: float = 1.0) -> Tensor:
    """Cross-entropy of each positive label among all known labels, averaged over positives.

    Bai, Kong and Gomes, "Gaussian Mixture Variational Autoencoder with Contrastive Learning for
    Multi-Label Classification", ICML 2022, Eq. 5, for each row.

    Parameters
    ----------
    similarities : Tensor of shape (..., n, L)
    targets : Tensor of shape (n, L)
        1, 0 or NaN.
    temperature : float, default=1.0

    Examples
    --------
    >>> label_contrast(torch.zeros(1, 4), torch.tensor([[1.0, 0.0, 1.0, torch.nan]]))
    tensor([1.0986])
    """
    logits = similarities / temperature
    positive = targets == 1
    n_positive = positive.sum(dim=-1)
    # Not -inf, so that rows without known labels have finite gradients.
    among_known = logits.masked_fill(torch.isnan(targets), torch.finfo(logits.dtype).min)
    mean_positive = (logits * positive).sum(dim=-1) / n_positive.clamp(min=1)
    values = torch.logsumexp(among_known, dim=-1) - mean_positive
    return torch.where(n_positive > 0, values, 0.0)


def label_triplets(similarities: Tensor, targets: Tensor, *, gap: float = 1.0) -> Tensor:
    """Triplet loss, mean over all pairs of a positive and a negative label (Eq. 8 there).

    ``max(0, gap + |v - v+|^2 - |v - v-|^2)`` of unit vectors is
    ``max(0, gap + 2 cos(v, v-) - 2 cos(v, v+))``. After sorting all labels by
    similarity, with the negatives raised by half the gap, exactly the negatives above a positive
    have a positive loss, so that cumulative sums replace the list of pairs.

    Parameters
    ----------
    similarities : Tensor of shape (..., n, L)
        Cosines.
    targets : Tensor of shape (n, L)
        1, 0 or NaN.
    gap : float, default=1.0
        `g` in the paper.

    Examples
    --------
    >>> label_triplets(torch.tensor([[0.5, 0.1, 0.9]]), torch.tensor([[1.0, 0.0, 0.0]]))
    tensor([1.])
    """
    positive, negative = targets == 1, targets == 0
    values = torch.where(negative, similarities + gap / 2, similarities)
    values, order = values.sort(dim=-1, descending=True)
    positive_sorted = positive.expand_as(similarities).gather(-1, order)
    negative_sorted = negative.expand_as(similarities).gather(-1, order).to(values.dtype)
    n_above = negative_sorted.cumsum(dim=-1)
    sum_above = (negative_sorted * values).cumsum(dim=-1)
    hinges = torch.where(positive_sorted, 2 * (sum_above - n_above * values), 0.0).sum(dim=-1)
    n_pairs = positive.sum(dim=-1) * negative.sum(dim=-1)
    return hinges / n_pairs.clamp(min=1)
