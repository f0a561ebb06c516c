"""A network that reads images, as the `encoder` of any neural method."""

from __future__ import annotations

from os import PathLike
from typing import Any, ClassVar

import torch
from sklearn.base import BaseEstimator
from torch import Tensor, nn

from labelweave.exceptions import InputError
from labelweave.nn.augment import make_augment
from labelweave.nn.resnet import DEPTHS, ResNetModule, load_weights, read_weights

__all__ = ["ImageBackbone", "ResNet", "make_encoder"]

_MEAN, _STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # of ImageNet, which weights expect
_MAX_SIZE = 4096  # pixels of a side
_SMALL = 64  # pixels of a side up to which the first layers keep the size


class ImageBackbone(nn.Module):
    """From bytes (n, 3, size, size) to features: augmentation in training, scaling, a ResNet."""

    mean: Tensor
    std: Tensor

    def __init__(self, network: ResNetModule, augment: nn.Module | None) -> None:
        super().__init__()
        self.augment = augment
        self.network = network
        self.n_out = network.n_out
        # Not part of the weights, because they never change.
        for name, values in (("mean", _MEAN), ("std", _STD)):
            self.register_buffer(name, torch.tensor(values).view(3, 1, 1), persistent=False)

    def pixels(self, x: Tensor) -> Tensor:
        """The augmented and scaled images, the input of the network."""
        x = x.to(self.mean.dtype) / 255
        if self.augment is not None:
            x = self.augment(x)
        x = (x - self.mean) / self.std
        return x.contiguous(memory_format=torch.channels_last)

    def forward(self, x: Tensor) -> Tensor:
        return self.network(self.pixels(x))

    def maps(self, x: Tensor) -> Tensor:
        """The last feature maps, (n, n_out, height, width)."""
        return self.network.maps(self.pixels(x))


class ResNet(BaseEstimator):
    """A residual network for images: the `encoder` of MLP, MulSupCon, ML-GCN, C-Tran and others.

    It holds settings, from which a method builds its network when it is fitted. A method with this
    encoder accepts images as X: :class:`labelweave.data.images.collection.Images`, an array
    of bytes, or a list of paths. They are resized to `size` and augmented in training.

    Parameters
    ----------
    depth : {18, 34, 50}, default=18
    size : int, default=64
        Pixels of a side.
    stem : {"auto", "imagenet", "pooled", "small"}, default="auto"
        The first layers, see :class:`labelweave.nn.resnet.ResNetModule`. "auto": "small" up to
        64 pixels, else "imagenet", which is what weights of ImageNet need.
    width : int, default=64
        Channels of the first stage.
    weights : path, optional
        File of weights to start from, as torchvision's ``resnet50`` has them (.pth or
        .safetensors).
    augment : {"light", "strong", "none"} or dict, default="light"
        Augmentation in training; a dict has the fields of
        :class:`labelweave.nn.augment.AugmentSettings`.

    Examples
    --------
    >>> import numpy as np
    >>> from labelweave.dependent.mlp import MLP
    >>> images = np.random.default_rng(0).integers(0, 256, (20, 8, 8), dtype=np.uint8)
    >>> labels = np.arange(40).reshape(20, 2) % 3 > 0
    >>> encoder = ResNet(size=8, width=4)
    >>> model = MLP(encoder=encoder, epochs=1, random_state=0).fit(images, labels)
    >>> model.predict_proba(images[:3]).shape
    (3, 2)
    """

    takes_images: ClassVar[bool] = True
    # A saved model contains its weights.
    _unsaved_parameters: ClassVar[tuple[str, ...]] = ("weights",)

    def __init__(
        self,
        depth: int = 18,
        *,
        size: int = 64,
        stem: str = "auto",
        width: int = 64,
        weights: str | PathLike[str] | None = None,
        augment: Any = "light",
    ) -> None:
        self.depth = depth
        self.size = size
        self.stem = stem
        self.width = width
        self.weights = weights
        self.augment = augment

    def __call__(self, n_features: int | None = None) -> ImageBackbone:
        """The network, with its parameters drawn from torch's generator or read from a file."""
        if not 1 <= self.size <= _MAX_SIZE or self.width < 1:
            raise InputError(
                f"the size of a ResNet must be between 1 and {_MAX_SIZE}, its width at least 1"
            )
        network = ResNetModule(self.depth, stem=self._stem(), width=self.width)
        if self.weights is not None:
            load_weights(network, read_weights(self.weights), str(self.weights))
        # Images are channels-last; kernels are not, or the optimiser would copy each of them twice.
        return ImageBackbone(network, make_augment(self.augment))

    def _stem(self) -> str:
        if self.stem != "auto":
            return self.stem
        return "small" if self.size <= _SMALL else "imagenet"

    def row_size(self) -> int:
        """Numbers in the largest layer of one image."""
        side = self.size // 2 if self._stem() == "imagenet" else self.size
        return side * side * self.width


def make_encoder(encoder: Any) -> Any:
    """The ResNet of a name such as "resnet18"; anything else is returned unchanged.

    >>> make_encoder("resnet50").depth
    50
    """
    if not isinstance(encoder, str):
        return encoder
    names = {f"resnet{depth}": depth for depth in DEPTHS}
    if encoder not in names:
        raise InputError(f"there is no encoder {encoder!r}: choose one of {', '.join(names)}")
    return ResNet(names[encoder])
