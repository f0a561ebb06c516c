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
    of ``(W_q u_i) . (W_k v_j) / sqrt(size / heads)``, for each head; the heads' sums are joined
    by one more linear map. The matrix of weights is never held as a whole where torch has a
    fused kernel.

    Parameters
    ----------
    size : int
        Width of nodes and senders.
    heads : int
        How many attentions run side by side; they divide `size`.
    """

    def __init__(self, size: int, heads: int) -> None:
        super().__init__()
        if size % heads:
            raise InputError(f"{heads} heads cannot share vectors of {size}: choose a divisor")
        self.heads = heads
        self.query = nn.Linear(size, size)
        # A bias of the keys changes nothing, and one of the values only what `join` adds.
        self.key_value = nn.Linear(size, 2 * size, bias=False)
        self.join = nn.Linear(size, size)

    def forward(self, nodes: Tensor, senders: Tensor, edges: Tensor | None = None) -> Tensor:
        """Messages to the nodes, (n, L, size), from senders (n, S, size).

        Nodes that are the same for all rows may come once, as (1, L, size). `edges`, a boolean
        (L, S), says which senders a node hears; each must hear one.
        """
        queries = self._split(self.query(nodes)).expand(senders.shape[0], -1, -1, -1)
        keys, values = (self._split(part) for part in self.key_value(senders).chunk(2, dim=-1))
        received = F.scaled_dot_product_attention(queries, keys, values, attn_mask=edges)
        return self.join(received.transpose(1, 2).flatten(2))

    def _split(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)


class AttentionBlock(nn.Module):
    """One step of message passing: attention, then two linear layers at each node.

    Both are added to what they started from and normalised (layer norm), with dropout before.

    Parameters
    ----------
    size, heads : int
        See :class:`Attention`.
    hidden : int
        Width between the two linear layers.
    dropout : float

    Examples
    --------
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
        # Torch's own attention would draw its dropout without regard to other processes.
        self.dropout = Dropout(dropout)

    def forward(self, nodes: Tensor, senders: Tensor, edges: Tensor | None = None) -> Tensor:
        """The nodes after hearing the senders; see :meth:`Attention.forward`."""
        nodes = self.norms[0](nodes + self.dropout(self.attention(nodes, senders, edges)))
        return self.norms[1](nodes + self.dropout(self.forward_layers(nodes)))
