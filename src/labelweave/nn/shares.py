"""What one process holds of a batch that several processes share.

Each process computes on its own rows of the same global batch. Two things need care so that
several processes learn what one would: random numbers, which every process draws for the
whole batch (their generators run in step) and then cuts to its rows, and losses or
statistics that look across rows, which gather the rows of the others first.

With one process all of this costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

import torch
from torch import Tensor

__all__ = ["RowShare", "current_share", "draw_rows", "gather_rows", "held_share", "share_of"]


class RowShare(NamedTuple):
    """Rows `start` to `stop` of a batch of `total` rows."""

    start: int
    stop: int
    total: int


_current: ContextVar[RowShare | None] = ContextVar("row_share", default=None)


def share_of(total: int, rank: int, world: int) -> RowShare:
    """The rows that process `rank` of `world` takes; shares differ by one row at most.

    >>> [share_of(5, rank, 2)[:2] for rank in range(2)]
    [(0, 2), (2, 5)]
    """
    return RowShare(total * rank // world, total * (rank + 1) // world, total)


def current_share() -> RowShare | None:
    """The share that this process is computing on; None if it holds the whole batch."""
    return _current.get()


@contextmanager
def held_share(share: RowShare | None) -> Iterator[None]:
    """Within the block, this process holds `share` of the batch."""
    token = _current.set(share)
    try:
        yield
    finally:
        _current.reset(token)


def draw_rows(like: Tensor, fill: Callable[[Tensor], Tensor]) -> Tensor:
    """Random numbers of the shape of `like`, whose first axis is the rows of the batch.

    `fill` fills an empty tensor in place, such as ``Tensor.normal_``. The numbers of a row do
    not depend on how many processes share the batch.

    >>> draw_rows(torch.zeros(3, 2), Tensor.normal_).shape
    torch.Size([3, 2])
    """
    share = _current.get()
    if share is None:
        return fill(torch.empty(like.shape, dtype=like.dtype, device=like.device))
    start, stop, total = share
    if like.shape[0] != stop - start:
        raise ValueError(
            f"a tensor of {like.shape[0]} rows is not this process's share of the batch, "
            f"which has {stop - start} rows: draw for the rows first, then stack"
        )
    whole = torch.empty((total, *like.shape[1:]), dtype=like.dtype, device=like.device)
    return fill(whole)[start:stop]


def gather_rows(rows: Tensor) -> Tensor:
    """The rows of the whole batch, in order, from the share of each process; differentiable.

    A loss over pairs of rows (contrastive, say) gathers its rows first; every process then
    computes the same value, and the gradient that reaches each share is the right one.
    """
    share = _current.get()
    if share is None:
        return rows
    from torch.distributed import get_world_size
    from torch.distributed.nn.functional import all_gather

    world = get_world_size()
    sizes = [share_of(share.total, rank, world) for rank in range(world)]
    longest = max(stop - start for start, stop, _ in sizes)
    padding = rows.new_zeros((longest - rows.shape[0], *rows.shape[1:]))
    parts = all_gather(torch.cat([rows, padding]))
    held = zip(parts, sizes, strict=True)
    return torch.cat([part[: stop - start] for part, (start, stop, _) in held])
