"""Base of the classifiers that predict with one fitted network.

These are the neural methods themselves (:class:`~labelweave.nn.estimator.NeuralClassifier`) and
the methods that train the network of another method.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from labelweave.base import MultiLabelClassifier
from labelweave.labels import LabelMatrix
from labelweave.nn.batches import Batches
from labelweave.nn.distributed import find_device
from labelweave.nn.network_spec import NetworkSpec
from labelweave.nn.prediction import predict_scores
from labelweave.nn.scaling import FeatureScaling
from labelweave.nn.session import TrainingSession
from labelweave.nn.stored_weights import network_with_weights

__all__ = ["NetworkClassifier"]


class NetworkClassifier(MultiLabelClassifier):
    """A classifier that predicts with one fitted network.

    Its fitted attributes are those of :class:`~labelweave.nn.estimator.NeuralClassifier`.
    """

    # -- what a subclass defines -------------------------------------------------------

    @abstractmethod
    def network_spec(self) -> NetworkSpec:
        """The network, its objective and its training settings."""

    @abstractmethod
    def _build_network(self, n_features: int, n_labels: int) -> nn.Module:
        """The network that predicts; its parameters are drawn from torch's generator."""

    def _image_encoder(self) -> Any:
        """The network for images, if the features are images; else None."""
        return self.network_spec().image_encoder

    # -- fitted network and prediction -------------------------------------------------

    def _keep(self, network: nn.Module, session: TrainingSession) -> None:
        """Keep the trained network."""
        self.network_ = network.to("cpu", torch.float32).eval()
        self.history_ = session.history()
        self.best_epoch_ = session.results[-1][1].best_epoch

    def _predict_proba(self, X: Any) -> np.ndarray:
        return self._in_batches(lambda x: torch.sigmoid(self.network_(x)), X)

    def _in_batches(
        self, function: Callable[..., Tensor], X: Any, labels: LabelMatrix | None = None
    ) -> np.ndarray:
        """Apply a function of the (scaled) features to all rows of X, on the network's device.

        If labels of the rows are given, it is a function of both.
        """
        spec = self.network_spec()
        device = find_device(spec.settings.device)
        rows = spec.rows_at_once(X.shape[1], self.n_labels_)
        batches = Batches(X, labels, batch_size=rows, scaling=self.scaling_, device=device)
        self.network_.to(device).eval()
        return predict_scores(function, batches, with_labels=labels is not None)

    # -- images ------------------------------------------------------------------------

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.capabilities.progress_bar = True
        if self._image_encoder() is not None:
            tags.input_tags.two_d_array = False
            tags.input_tags.three_d_array = True
            tags.capabilities.images = True
            tags.capabilities.vectors = False
        return tags

    def _checked_features(self, X: Any, *, reset: bool) -> Any:
        encoder = self._image_encoder()
        if encoder is None:
            return super()._checked_features(X, reset=reset)
        from labelweave.data.images.collection import checked_images

        images = checked_images(X, encoder.size)
        if reset:
            self.n_features_in_ = images.shape[1]
        return images

    # -- persistence -------------------------------------------------------------------

    def _state(self) -> dict[str, Any]:
        scaling = self.scaling_
        return {
            "network": dict(self.network_.state_dict()),
            "scaling": None
            if scaling is None
            else {"shift": scaling.shift.numpy(), "factor": scaling.factor.numpy()},
            "history": self.history_.to_dict("list"),
            "best_epoch": self.best_epoch_,
        }

    def _set_state(self, state: Mapping[str, Any]) -> None:
        import pandas as pd

        self.network_ = network_with_weights(
            lambda: self._build_network(self._n_columns, self.n_labels_), state["network"]
        )
        scaling = state["scaling"]
        self.scaling_ = scaling and FeatureScaling(
            torch.from_numpy(scaling["shift"]), torch.from_numpy(scaling["factor"])
        )
        self.history_ = pd.DataFrame(state["history"])
        self.best_epoch_ = state["best_epoch"]
