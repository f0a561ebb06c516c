"""A classifier of images: features of a frozen network, followed by any classifier."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone
from sklearn.utils._param_validation import HasMethods

from labelweave.base import MultiLabelClassifier
from labelweave.embedding_classifier import EmbeddingClassifier
from labelweave.exceptions import InputError
from labelweave.images.encoder import ImageEncoder

__all__ = ["ImageClassifier"]


class ImageClassifier(EmbeddingClassifier):
    """A classifier of images: features of a frozen network, followed by any classifier.

    A saved model contains the network, and it predicts from a list of paths. X may also be a matrix
    of features that the encoder made of images before.

    Parameters
    ----------
    classifier : estimator, default=None
        The classifier of the features; binary relevance if None.
    encoder : ImageEncoder or another transformer of images, default=None
        Computes the features; ``ImageEncoder()`` if None, which is EfficientNet-lite0 with weights
        of ImageNet (the extra ``vision``).
    threshold : float, str or Threshold, default="auto"
        How probabilities are turned into label sets. ``"auto"`` uses the rule of the classifier,
        such as "cardinality" for methods for partial labels.
    validation_fraction, random_state
        As in :class:`~labelweave.base.MultiLabelClassifier`.

    Attributes
    ----------
    classifier_ : estimator
        The fitted classifier.
    encoder_ : transformer
        The fitted encoder.

    Examples
    --------
    >>> import numpy as np
    >>> from labelweave.dependent.mlknn import MLkNN
    >>> from labelweave.images import ImageEncoder, ResNet
    >>> images = np.repeat(np.arange(20, dtype=np.uint8) * 12, 64).reshape(20, 8, 8)
    >>> labels = [["dark"] if k < 10 else ["light"] for k in range(20)]
    >>> encoder = ImageEncoder(ResNet(size=8, width=4), weights="random", cache=False)
    >>> model = ImageClassifier(MLkNN(k=1), encoder=encoder).fit(images, labels)
    >>> model.predict_labels(images[[0, 19]])
    [['dark'], ['light']]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **MultiLabelClassifier._parameter_constraints,
        "classifier": [HasMethods(["fit", "predict_proba"]), None],
        "encoder": [HasMethods(["fit", "transform"]), None],
    }

    def __init__(
        self,
        classifier: Any = None,
        *,
        encoder: Any = None,
        threshold: Any = "auto",
        validation_fraction: float = 0.2,
        random_state: Any = None,
    ) -> None:
        self.classifier = classifier
        self.encoder = encoder
        self.threshold = threshold
        self.validation_fraction = validation_fraction
        self.random_state = random_state

    def _checked_features(self, X: Any, *, reset: bool) -> Any:
        if reset:
            encoder = self._unfitted_encoder()
            self.encoder_ = clone(encoder).fit(X)
        if isinstance(X, np.ndarray) and X.ndim == 2:
            width = len(self.encoder_.get_feature_names_out())
            if X.shape[1] != width:
                raise InputError(
                    f"X has {X.shape[1]:,} columns, but the encoder makes {width:,} features: pass "
                    "images, or features that it made of them"
                )
            return X
        with self._about_folder():
            return self.encoder_.transform(X)

    def _unfitted_encoder(self) -> Any:
        return ImageEncoder() if self.encoder is None else self.encoder

    def default_part(self, parameter: str) -> Any:
        """Return the encoder or the classifier that None stands for."""
        return ImageEncoder() if parameter == "encoder" else super().default_part(parameter)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        tags.capabilities.images = True
        return tags
