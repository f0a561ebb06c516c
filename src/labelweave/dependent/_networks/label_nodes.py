"""Labels as nodes of a network: their vectors, their known states, and their logits."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from labelweave.exceptions import InputError
from labelweave.nn.encoders import MLPEncoder
from labelweave.nn.process_rows import draw_rows

__all__ = ["FeatureTokens", "LabelNodes", "LabelReadout", "PositionTokens", "mask_labels"]


class FeatureTokens(nn.Module):
    """A row of features as several vectors, to which labels can attend.

    Hidden layers, then one linear map per token, of width `size`. Each token depends on all
    features, because the features of a table have no spatial order.
    """

    def __init__(
        self,
        n_features: int,
        n_tokens: int,
        size: int,
        *,
        hidden: Sequence[int],
        dropout: float,
        norm: str | None,
    ) -> None:
        super().__init__()
        self.encoder = MLPEncoder(n_features, hidden, dropout=dropout, norm=norm)
        self.tokens = nn.Linear(self.encoder.n_out, n_tokens * size)
        self.n_tokens = n_tokens

    def forward(self, x: Tensor) -> Tensor:
        return self.tokens(self.encoder(x)).unflatten(-1, (self.n_tokens, -1))


class PositionTokens(nn.Module):
    """The positions of a network's last feature maps as vectors, to which labels can attend.

    The encoder has a method `maps` that returns (n, n_out, height, width), and an attribute
    `n_out`; `size` is the width of a token.
    """

    def __init__(self, encoder: nn.Module, size: int) -> None:
        super().__init__()
        if not hasattr(encoder, "maps"):
            raise InputError("the encoder needs a method maps, whose positions become tokens")
        self.encoder = encoder
        self.tokens = nn.Linear(int(encoder.n_out), size)  # type: ignore[arg-type]

    def forward(self, x: Tensor) -> Tensor:
        maps: Tensor = self.encoder.maps(x)  # type: ignore[operator]
        return self.tokens(maps.flatten(2).transpose(1, 2))


class LabelNodes(nn.Module):
    """One learnt vector per label, plus a vector of its state where the label is known.

    The states are negative and positive; nothing is added for an unknown label.

    >>> nodes = LabelNodes(3, 8)
    >>> nodes().shape, nodes(torch.tensor([[1.0, 0.0, torch.nan]] * 5)).shape
    (torch.Size([1, 3, 8]), torch.Size([5, 3, 8]))
    """

    def __init__(self, n_labels: int, size: int) -> None:
        super().__init__()
        self.vectors = nn.Parameter(torch.randn(n_labels, size))
        self.states = nn.Parameter(torch.randn(2, size))

    def forward(self, known: Tensor | None = None) -> Tensor:
        """The nodes of rows with these known labels: 1, 0 or NaN; None if none is known."""
        nodes = self.vectors.unsqueeze(0)
        if known is None:
            return nodes
        is_state = torch.stack([known == 0, known == 1], dim=-1)  # NaN is neither
        return nodes + is_state.to(self.states.dtype) @ self.states


class LabelReadout(nn.Module):
    """A linear classifier for each node: ``w_i . u_i + b_i``."""

    def __init__(self, n_labels: int, size: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(n_labels, size) / size**0.5)
        self.bias = nn.Parameter(torch.zeros(n_labels))

    def forward(self, nodes: Tensor) -> Tensor:
        """Logits (n, L) of nodes (n, L, size)."""
        return (nodes * self.weight).sum(dim=-1) + self.bias


def mask_labels(targets: Tensor, *, most: float = 0.75, rows: float = 1.0) -> Tensor:
    """Mask a random part of the targets; the others are the known labels of a training row.

    A share `rows` of the rows has known labels. Their number is drawn uniformly from 0 to the share
    `most` of all labels. Masked targets are NaN, and unknown ones (NaN) stay unknown.

    >>> mask_labels(torch.tensor([[1.0, 0.0]]), most=0.0)
    tensor([[nan, nan]])
    """
    n_most = int(most * targets.shape[1])
    drawn = draw_rows(targets[:, :1].expand(-1, 2), Tensor.uniform_)
    n_known = torch.where(drawn[:, :1] < rows, (drawn[:, 1:] * (n_most + 1)).floor(), 0.0)
    rank = draw_rows(targets, Tensor.uniform_).argsort(dim=1).argsort(dim=1)
    return torch.where(rank < n_known, targets, torch.nan)
