"""Features of images by a frozen network, with a cache."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from labelweave.data.images.collection import Images, as_images
from labelweave.exceptions import InputError
from labelweave.nn.batches import Batches
from labelweave.nn.checkpoints import fingerprint
from labelweave.nn.distributed import find_device
from labelweave.nn.image_network import ImageBackbone, ResNet, make_encoder
from labelweave.nn.network_classifier import NetworkClassifier
from labelweave.nn.prediction import predict_scores, scoring_rows
from labelweave.nn.randomness import forked_rng
from labelweave.nn.stored_weights import network_with_weights
from labelweave.text.cache import EmbeddingCache

__all__ = ["ImageEncoder"]

RANDOM = "random"
_SAVE_EVERY = 1024  # images


class ImageEncoder(TransformerMixin, BaseEstimator):
    """Features of images by a network that is not trained any further.

    The features are vectors, which every method of the library accepts. Each image is encoded once:
    features are cached by a hash of the image file, in one file per network.

    Parameters
    ----------
    weights : path, fitted estimator or "random"
        A file of weights in torchvision's format (.pth or .safetensors), a fitted neural method
        with a network for images, or the folder of a saved one. "random" is an untrained network,
        as a baseline.
    network : str or ResNet, default="resnet18"
        The network of a file of weights; ignored for a fitted method.
    cache : bool or path, default=True
        Folder of the cached features; True is ``features`` in labelweave's cache folder
        (``LABELWEAVE_CACHE``), False disables the cache.
    batch_size : int, optional
        Number of images per batch; by default the number that fits into 64 MB.
    device : str, default="cpu"

    Attributes
    ----------
    weights_ : dict of str to tensor
        The weights of the network, which a saved encoder contains.
    settings_ : ResNet
        The settings of the network.
    checksum_ : str
        Checksum of settings and weights.
    n_features_out_ : int

    Examples
    --------
    >>> images = np.random.default_rng(0).integers(0, 256, (4, 8, 8), dtype=np.uint8)
    >>> encoder = ImageEncoder("random", network=ResNet(size=8, width=4), cache=False)
    >>> encoder.fit_transform(images).shape
    (4, 32)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "weights": [str, PathLike, BaseEstimator, None],
        "network": [str, ResNet],
        "cache": ["boolean", str, PathLike],
        "batch_size": [Interval(Integral, 1, None, closed="left"), None],
        "device": [str],
    }
    _unsaved_parameters: ClassVar[tuple[str, ...]] = ("weights", "cache", "device")

    def __init__(
        self,
        weights: Any = None,
        *,
        network: Any = "resnet18",
        cache: bool | str | PathLike[str] = True,
        batch_size: int | None = None,
        device: str = "cpu",
    ) -> None:
        self.weights = weights
        self.network = network
        self.cache = cache
        self.batch_size = batch_size
        self.device = device

    def fit(self, X: Any = None, y: Any = None) -> Self:
        """Load the weights; the images are not used."""
        self._validate_params()
        self.settings_, backbone = self._loaded()
        self.weights_: Mapping[str, Any] = dict(backbone.state_dict())
        self.n_features_out_ = backbone.n_out
        self._set_checksum()
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Return one vector per image, as a float32 array."""
        check_is_fitted(self)
        images = as_images(X, size=self.settings_.size)
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

    # -- the network -------------------------------------------------------------------

    def _loaded(self) -> tuple[ResNet, ImageBackbone]:
        """Settings of the network and the network with its weights."""
        source = self.weights
        if source is None:
            raise InputError(
                "ImageEncoder needs weights: a file of weights, a fitted method with a network for "
                "images, or 'random'"
            )
        if isinstance(source, str | PathLike) and Path(source).is_dir():
            from labelweave.persistence import load

            source = load(source)
        if not isinstance(source, str | PathLike):
            return _of_estimator(source)
        settings = make_encoder(self.network)
        chosen = ResNet(
            **{**settings.get_params(), "weights": None if source == RANDOM else source}
        )
        with forked_rng(0):
            return chosen, chosen()

    def _set_checksum(self) -> None:
        settings = {**self.settings_.get_params(), "weights": None, "augment": None}
        self.checksum_ = fingerprint(settings, dict(self.weights_))

    def _computed(self, images: Images) -> np.ndarray:
        backbone = _with(self.settings_, self.weights_)
        device = find_device(self.device)
        backbone.to(device).eval()
        rows = self.batch_size or scoring_rows(self.settings_.row_size())
        with torch.inference_mode():
            return predict_scores(backbone, Batches(images, batch_size=rows, device=device))

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

    def _state(self) -> dict[str, Any]:
        settings = {**self.settings_.get_params(), "weights": None}
        return {"settings": settings, "weights": dict(self.weights_)}

    def _set_state(self, state: Mapping[str, Any]) -> None:
        self.settings_ = ResNet(**{**state["settings"], "weights": None})
        self.weights_ = state["weights"]
        self.n_features_out_ = _with(self.settings_, self.weights_).n_out
        self._set_checksum()

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


def _of_estimator(model: Any) -> tuple[ResNet, ImageBackbone]:
    """Settings and network for images of a fitted estimator, or of an encoder."""
    if isinstance(model, ImageEncoder):
        check_is_fitted(model)
        return model.settings_, _with(model.settings_, model.weights_)
    settings = model._image_encoder() if isinstance(model, NetworkClassifier) else None
    network = getattr(model, "network_", None)
    if network is None or settings is None:
        raise InputError(
            f"{type(model).__name__} is not a fitted method with a network for images (encoder=)"
        )
    backbone = next(part for part in network.modules() if isinstance(part, ImageBackbone))
    return settings, _with(settings, backbone.state_dict())


def _with(settings: ResNet, weights: Mapping[str, Any]) -> ImageBackbone:
    chosen = ResNet(**{**settings.get_params(), "weights": None})
    network = network_with_weights(chosen, weights)
    assert isinstance(network, ImageBackbone)
    return network
