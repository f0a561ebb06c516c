"""Convolutions of 3 x 3 with fewer multiplications, for training on a processor.

Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", CVPR 2016. A map is cut into
tiles that overlap by two; a linear map B of a tile of m + 2 by m + 2, a map G of the kernels and a
map A of what comes out turn the convolution into one matrix product over the channels for each
place of a tile: 36 products instead of 144 for 4 x 4 outputs, 16 instead of 36 for 2 x 2. The
results agree with the direct form to rounding (about 1e-5 of the largest output).

torch's own convolution on a processor is direct and runs at the speed of its matrix product, so
this is worth it where there are many channels: with few, the maps of tiles cost what is saved.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

__all__ = ["Conv3x3", "winograd"]

_FEWEST_CHANNELS = {4: 64, 2: 256}  # from which on tiles of m x m outputs are quicker
_FEWEST_TILES = 32  # below, the map of the kernels costs more than is saved
_TILES_AT_ONCE = 2**19  # numbers in the tiles of a block: two megabytes

_TRANSFORMS = {
    2: (
        [[1, 0, -1, 0], [0, 1, 1, 0], [0, -1, 1, 0], [0, 1, 0, -1]],
        [[1, 0, 0], [1 / 2, 1 / 2, 1 / 2], [1 / 2, -1 / 2, 1 / 2], [0, 0, 1]],
        [[1, 1, 1, 0], [0, 1, -1, -1]],
    ),
    4: (
        [
            [4, 0, -5, 0, 1, 0],
            [0, -4, -4, 1, 1, 0],
            [0, 4, -4, -1, 1, 0],
            [0, -2, -1, 2, 1, 0],
            [0, 2, -1, -2, 1, 0],
            [0, 4, 0, -5, 0, 1],
        ],
        [
            [1 / 4, 0, 0],
            [-1 / 6, -1 / 6, -1 / 6],
            [-1 / 6, 1 / 6, -1 / 6],
            [1 / 24, 1 / 12, 1 / 6],
            [1 / 24, -1 / 12, 1 / 6],
            [0, 0, 1],
        ],
        [[1, 1, 1, 1, 1, 0], [0, 1, -1, 2, -2, 0], [0, 1, 1, 4, 4, 0], [0, 1, -1, 8, -8, 1]],
    ),
}
"""B^T, G and A^T of the paper, by m."""


class Conv3x3(nn.Conv2d):
    """A 3 x 3 convolution of stride 1 without bias that keeps the size of a map.

    In training on a processor it takes the quickest form for the size of its maps; otherwise it
    is torch's own.

    >>> Conv3x3(2, 5)(torch.zeros(1, 2, 4, 4)).shape
    torch.Size([1, 5, 4, 4])
    """

    def __init__(self, n_in: int, n_out: int) -> None:
        super().__init__(n_in, n_out, 3, padding=1, bias=False)

    def forward(self, input: Tensor) -> Tensor:
        if not self.training or input.device.type != "cpu" or torch.is_autocast_enabled("cpu"):
            return super().forward(input)
        if input.dtype != torch.float32 or self.weight.dtype != torch.float32:
            return super().forward(input)
        if input.shape[2:] == (1, 1):  # all but the middle of a kernel lies on the padding
            return (input.flatten(1) @ self.weight[:, :, 1, 1].T)[:, :, None, None]
        m = self._side_of_tiles(*input.shape)
        return super().forward(input) if m is None else winograd(input, self.weight, m)

    def _side_of_tiles(self, n: int, _: int, height: int, width: int) -> int | None:
        for m, channels in _FEWEST_CHANNELS.items():
            whole = height % m == 0 and width % m == 0
            enough = n * (height // m) * (width // m) >= _FEWEST_TILES
            if whole and enough and min(self.in_channels, self.out_channels) >= channels:
                return m
        return None


def winograd(x: Tensor, weight: Tensor, m: int) -> Tensor:
    """The convolution of images with 3 x 3 kernels, padded by one, by tiles of m x m outputs.

    Parameters
    ----------
    x : Tensor of shape (n, channels, height, width)
        Height and width are multiples of `m`.
    weight : Tensor of shape (channels out, channels, 3, 3)
    m : {2, 4}

    Examples
    --------
    >>> x, weight = torch.rand(2, 3, 4, 4), torch.rand(5, 3, 3, 3)
    >>> torch.allclose(winograd(x, weight, 2), nn.functional.conv2d(x, weight, padding=1), 1e-4)
    True
    """
    return _Winograd.apply(x, weight, m)


class _Winograd(torch.autograd.Function):
    """Some images at a time, so that their tiles are still in the cache for the next product.

    Tensors of tiles are (places of a tile, tiles, channels); images are channels-last.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, m: int) -> Tensor:
        n, c, height, width = x.shape
        to_tiles, to_kernels, from_tiles = _transforms(m, x.dtype)
        kernels = (to_kernels @ weight.reshape(-1, 9).T).view(-1, *weight.shape[:2])
        out = x.new_empty(n, height, width, len(weight))
        kept = []
        for rows in _blocks(x.shape, m):
            padded = x.new_zeros(rows.stop - rows.start, height + 2, width + 2, c)
            padded[:, 1:-1, 1:-1] = x[rows].permute(0, 2, 3, 1)
            cut = padded.unfold(1, m + 2, m).unfold(2, m + 2, m)  # n, down, across, c, m+2, m+2
            tiles = cut.permute(4, 5, 0, 1, 2, 3).reshape(len(kernels), -1)
            tiles = (to_tiles @ tiles).view(len(kernels), -1, c)
            product = torch.bmm(tiles, kernels.transpose(1, 2)).flatten(1)
            part = _in_squares(out[rows], m)
            part[...] = (from_tiles @ product).view(part.shape)
            kept.append(tiles)
        ctx.save_for_backward(kernels, *kept)
        ctx.m, ctx.shape = m, x.shape
        return out.permute(0, 3, 1, 2)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        kernels, *kept = ctx.saved_tensors
        m: int = ctx.m
        n, c, height, width = ctx.shape
        to_tiles, to_kernels, from_tiles = _transforms(m, grad.dtype)
        grad = grad.permute(0, 2, 3, 1).contiguous()
        grad_kernels = torch.zeros_like(kernels)
        grad_x = grad.new_empty(n, height, width, c)
        for rows, tiles in zip(_blocks(ctx.shape, m), kept, strict=True):
            product = from_tiles.T @ _in_squares(grad[rows], m).reshape(m * m, -1)
            product = product.view(len(kernels), -1, kernels.shape[1])
            grad_kernels.baddbmm_(product.transpose(1, 2), tiles)
            spread = to_tiles.T @ torch.bmm(product, kernels).flatten(1)
            spread = spread.view(m + 2, m + 2, -1, height // m, width // m, c)
            spread = spread.permute(2, 3, 0, 4, 1, 5)
            # The last two rows and columns of a tile are the first two of the next.
            image = grad.new_zeros(len(spread), height // m + 1, m, width // m + 1, m, c)
            image[:, :-1, :, :-1] = spread[:, :, :m, :, :m]
            image[:, 1:, :2, :-1] += spread[:, :, m:, :, :m]
            image[:, :-1, :, 1:, :2] += spread[:, :, :m, :, m:]
            image[:, 1:, :2, 1:, :2] += spread[:, :, m:, :, m:]
            image = image.view(-1, height + m, width + m, c)
            grad_x[rows] = image[:, 1 : height + 1, 1 : width + 1]
        # Transposed after the product: a product of that shape would be twice as slow.
        grad_weight = (to_kernels.T @ grad_kernels.flatten(1)).T
        return (
            grad_x.permute(0, 3, 1, 2),
            grad_weight.reshape(*kernels.shape[1:], 3, 3),
            None,
        )


def _in_squares(x: Tensor, m: int) -> Tensor:
    """A view of (n, height, width, c) as (m, m, n, squares down, squares across, c)."""
    n, height, width, c = x.shape
    squares = x.view(n, height // m, m, width // m, m, c)
    return squares.permute(2, 4, 0, 1, 3, 5)


def _blocks(shape: Sequence[int], m: int) -> list[slice]:
    """Which images are worked on at a time."""
    n, c, height, width = shape
    tiles = (height // m) * (width // m)
    at_once = max(_TILES_AT_ONCE // (c * (m + 2) ** 2), 2 * _FEWEST_TILES)
    step = max(at_once // tiles, 1)
    return [slice(start, min(start + step, n)) for start in range(0, n, step)]


@lru_cache
def _transforms(m: int, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
    """The maps of tiles, kernels and products, each of both axes at once."""
    one_axis = (torch.tensor(matrix, dtype=dtype) for matrix in _TRANSFORMS[m])
    to_tiles, to_kernels, from_tiles = (torch.kron(matrix, matrix) for matrix in one_axis)
    return to_tiles, to_kernels, from_tiles
