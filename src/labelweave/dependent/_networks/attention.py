"""Attention between nodes: labels to features, labels to labels, or all tokens to all."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 (torch's own way)

from labelweave.exceptions import InputError
from labelweave.nn.encoders import Dropout

__all__ = ["Attention", "AttentionBlock"]


class Attention(nn.Module):
    """Scaled dot-product attention with several heads.

    Node i receives the sum over senders j of ``a_ij W_v v_j``, where `a_i` is the softmax over j
    of ``(W_q u_i) . (W_k v_j) / sqrt(size / heads)``, for each head; one more linear map
    combines the heads. With torch's fused kernels the matrix of weights is never stored. `size` is
    the width of nodes and senders.
    """

    def __init__(self, size: int, heads: int) -> None:
        super().__init__()
        if size % heads:
            raise InputError(f"{heads} heads cannot share vectors of {size}: choose a divisor")
        self.heads = heads
        self.query = nn.Linear(size, size)
        # A bias of the keys has no effect, and one of the values is part of the bias of `combine`.
        self.key_value = nn.Linear(size, 2 * size, bias=False)
        self.combine = nn.Linear(size, size)

    def forward(self, nodes: Tensor, senders: Tensor, edges: Tensor | None = None) -> Tensor:
        """Messages to the nodes, (n, L, size), from senders (n, S, size).

        Nodes that are the same for all rows may be passed once, as (1, L, size). `edges`, a
        boolean (L, S), selects the senders of each node; every node needs at least one.
        """
        queries = self._split(self.query(nodes)).expand(senders.shape[0], -1, -1, -1)
        keys, values = (self._split(part) for part in self.key_value(senders).chunk(2, dim=-1))
        received = F.scaled_dot_product_attention(queries, keys, values, attn_mask=edges)
        return self.combine(received.transpose(1, 2).flatten(2))

    def _split(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)


class AttentionBlock(nn.Module):
    """One step of message passing: attention, then two linear layers at each node.

    Both have dropout, a residual connection and layer norm; `hidden` is the width between the two
    linear layers.

    >>> import torch
    >>> block = AttentionBlock(8, 2, hidden=16, dropout=0.1)
    >>> block(torch.zeros(1, 3, 8), torch.zeros(5, 4, 8)).shape
    torch.Size([5, 3, 8])
    """

    def __init__(self, size: int, heads: int, *, hidden: int, dropout: float) -> None:
        super().__init__()
        self.attention = Attention(size, heads)
        self.forward_layers = nn.Sequential(
            nn.Linear(size, hidden), nn.ReLU(), nn.Linear(hidden, size)
        )
        self.norms = nn.ModuleList([nn.LayerNorm(size), nn.LayerNorm(size)])
        # The dropout inside torch's attention would not be the same in several processes.
        self.dropout = Dropout(dropout)

    def forward(self, nodes: Tensor, senders: Tensor, edges: Tensor | None = None) -> Tensor:
        """The nodes after one step; see :meth:`Attention.forward`."""
        nodes = self.norms[0](nodes + self.dropout(self.attention(nodes, senders, edges)))
        return self.norms[1](nodes + self.dropout(self.forward_layers(nodes)))
