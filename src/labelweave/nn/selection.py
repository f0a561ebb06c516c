"""Choosing among the labels, or the rows, of a mini-batch by the rank of their losses.

Pure functions. A selection is a partial one (``torch.topk``): nothing is sorted that need not be.
"""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["drop_share", "extreme", "label_loss", "rows_to_drop"]


def drop_share(epoch: int, tau: float, ramp: float) -> float:
    """The share to drop in an epoch (from 0): ``min(epoch / ramp * tau, tau)``.

    It is one minus the reserving rate R(e) of CLS, Algorithm 1, line 12, as set at the end of
    the epoch before: nothing is dropped in the first.

    >>> [drop_share(epoch, 0.2, 4) for epoch in (0, 2, 4, 9)]
    [0.0, 0.1, 0.2, 0.2]
    """
    return tau * min(epoch / ramp, 1.0) if ramp > 0 else tau


def label_loss(logits: Tensor, positive: bool = False) -> Tensor:
    """Cross-entropy of each entry if its label were negative (or positive), without gradient.

    >>> label_loss(torch.zeros(1, 2))
    tensor([[0.6931, 0.6931]])
    """
    logits = logits.detach()
    return torch.nn.functional.softplus(-logits if positive else logits)


def extreme(values: Tensor, among: Tensor, share: float, *, largest: bool = True) -> Tensor:
    """Mask of the share of the entries `among` whose values are largest (or smallest).

    Exactly ``round(share * number of entries among)`` are chosen, whatever ties there are.

    Parameters
    ----------
    values : Tensor of any shape
    among : boolean Tensor of that shape
    share : float from 0 to 1
    largest : bool, default=True

    Examples
    --------
    >>> values = torch.tensor([[0.1, 0.9], [0.5, 0.7]])
    >>> extreme(values, values < 0.8, 0.34)
    tensor([[False, False],
            [False,  True]])
    """
    chosen = torch.zeros_like(among)
    count = round(share * int(among.sum()))
    if count == 0:
        return chosen
    worst = -torch.inf if largest else torch.inf
    candidates = values.masked_fill(~among, worst).view(-1)
    chosen.view(-1)[candidates.topk(count, largest=largest, sorted=False).indices] = True
    return chosen


def rows_to_drop(losses: Tensor, share: float, among: Tensor | None = None) -> Tensor:
    """Mask of the share of rows (of those `among`) whose losses are largest; (n, 1).

    >>> rows_to_drop(torch.tensor([0.3, 0.1, 0.2]), 0.34).ravel()
    tensor([ True, False, False])
    """
    among = torch.ones_like(losses, dtype=torch.bool) if among is None else among
    return extreme(losses, among, share).unsqueeze(1)
