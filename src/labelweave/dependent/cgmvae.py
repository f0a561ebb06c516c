"""C-GMVAE: a latent space with one Gaussian per label, and a contrastive loss of embeddings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from numbers import Integral, Real
from os import PathLike
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted
from torch import nn

from labelweave.dependent.cgmvae_network import (
    ENCODER,
    CGMVAENetwork,
    CGMVAETask,
    Objective,
    latent_diagnostics,
)
from labelweave.dependent.cgmvae_published import published_settings
from labelweave.exceptions import InputError
from labelweave.nn.batches import Batches
from labelweave.nn.distributed import find_device
from labelweave.nn.encoders import ACTIVATIONS, NORMS
from labelweave.nn.estimator import NeuralClassifier, TrainingSession
from labelweave.nn.task import Task

__all__ = ["CGMVAE"]


class CGMVAE(ClassNamePrefixFeaturesOutMixin, TransformerMixin, NeuralClassifier):
    """Contrastive-learning-boosted Gaussian mixture variational autoencoder.

    Every label has a learnt embedding and, through the label encoder, a Gaussian in a latent
    space. Features are encoded to a Gaussian in the same space, which the KL term pulls towards
    the mixture of the Gaussians of the row's labels, and decoded to a feature embedding. The
    inner products of feature and label embeddings are the logits; a contrastive term pulls the
    feature embedding towards the embeddings of the row's labels.

    The defaults are the settings of the authors' program, which made the published figures.
    :meth:`published` returns the settings of single data sets, and with ``source="text"`` the
    method as the text of the paper describes it.

    Parameters
    ----------
    embedding_size : int, default=2048
        `E` in the paper: length of feature and label embeddings.
    latent_size : int, default=64
        Dimensions of the latent space.
    encoder, label_encoder, decoder : sequence of int
        Hidden layers of the three networks. `encoder` may also be a network for images
        (:class:`labelweave.images.ResNet`, or "resnet18", "resnet50"), whose features are then
        encoded by hidden layers of 256, 512 and 256.
    dropout : float, default=0.5
        After each hidden layer of both encoders.
    decoder_dropout : float, default=0.0
        After each hidden layer of the decoder.
    norm : {"batch", "layer"} or None, default=None
        Normalisation in the hidden layers of feature encoder and decoder.
    skip : bool, default=True
        Whether the decoder sees the features beside the latent point.
    label_activation : str or None, default="relu"
        A bias, this activation and dropout between the label embeddings and the label encoder;
        None: the label encoder sees the embeddings themselves. A key of
        :data:`labelweave.nn.encoders.ACTIVATIONS`.
    output_activation : str or None, default="leaky-relu"
        Activation of the feature embedding, a key of the same table.
    normalize : {"features", "contrast"} or None, default="features"
        "features": the decoder's output has unit length everywhere; "contrast": both embeddings
        have unit length in the contrastive term, as in the paper's appendix; None: neither.
    prior : {"mixture", "uni-gaussian"}, default="mixture"
        "mixture": Eq. 1; "uni-gaussian": the label encoder sees the sum of the labels'
        embeddings and returns one Gaussian.
    kl_weight : float, default=6.0
        Weight of the KL term (Eq. 3); 0 leaves it out.
    contrast : {"softmax", "triplet"}, default="softmax"
        Eq. 5, or the triplet loss of the appendix (Eq. 8 with a gap of 1) over all pairs of a
        positive and a negative label.
    alpha : float, default=1.0
        Weight of the contrastive term; 0 leaves it out.
    temperature : float, default=1.0
        `tau` of Eq. 5.
    beta : float, default=0.5
        Weight of the cross-entropy (Eq. 6), a sum over labels and over all decoded points.
    reconstruction : float, default=0.0
        Weight of the reconstruction of the features (Eq. 4) from their embedding.
    n_samples : int, default=2
        Latent points decoded for each row in training. The first is an anchor of the
        contrastive term.
    label_branch : bool, default=True
        Whether the mean of the Gaussians of the row's labels is decoded too. It then has a
        cross-entropy, and the contrastive term is the mean of this anchor and of the features'.
    batch_size : int, default=128
    weight_decay : float, default=1e-5
        Of Adam, added to the gradients.
    schedule : str, default="cosine-restarts"
        Cycles of 50, 100, ... epochs, down to 2e-4.
    monitor : str, default="tuned:f1_macro:grid"
        The weights of the epoch with the best macro F1 of the validation rows, at the best of
        the thresholds 0.1 to 0.9.
    patience : int or None, default=100
        As long as the run, so that all epochs are trained.
    epochs, lr, min_steps, schedule_params, clip_norm, scale, device, precision, checkpoint,
    checkpoint_every, callbacks, verbose, threshold, validation_fraction, random_state
        The other parameters of :class:`labelweave.nn.estimator.NeuralClassifier`.

    Attributes
    ----------
    label_embeddings_ : ndarray of shape (n_labels, embedding_size)

    Notes
    -----
    *Where program and text differ*, the default follows the program: the decoder takes the
    features beside the latent point, has one hidden layer and no dropout, and its output has
    unit length; label embeddings pass a bias, ReLU and dropout before the label encoder; there
    is no reconstruction (Eq. 4); two points per row and the mean of the labels' Gaussians are
    decoded, with the sum of their cross-entropies; the contrastive term is half on the features'
    anchor, half on the labels'; the KL term has the weight 6 and a draw of its own; label
    embeddings are initialised as the weights of a linear layer; at prediction the latent point
    is the posterior mean. `alpha` has no effect in the program, so that ``published`` keeps it
    at 1 there.

    *Choices.* The learning rate is 1e-3 where Table 7 has no entry. Features are scaled
    (`scale`), which the program leaves to its data files. The batches of an epoch have equal
    sizes, and of epochs with equal macro F1 the last is kept. Rows that are known to have no
    label share one more learnt Gaussian as their prior and have no contrastive term (the
    program's loss is not defined for them). A row with unknown entries and no known positive has
    no KL term. Unknown entries are neither positives nor negatives in any term. The loss of the
    validation rows is the cross-entropy of the predictions alone. In the text's form, batch norm
    is ours: without it yeast is not learnt. Eq. 4 there is the squared error, halved, of a linear
    layer on the feature embedding. The text gives no temperature, weight decay, schedule or
    checkpoint: the rate is constant, the others are the program's, and dropout is in the decoder
    too.

    In the program's form predictions hardly depend on the latent space, in the text's form all
    information passes through it; `latent_diagnostics` measures this.

    References
    ----------
    .. [1] J. Bai, S. Kong and C. Gomes. Gaussian Mixture Variational Autoencoder with
       Contrastive Learning for Multi-Label Classification. ICML 2022.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, Y = make_multilabel_classification(n_samples=200, random_state=0)
    >>> small = {"encoder": (32,), "label_encoder": (32,), "decoder": (32,), "embedding_size": 16}
    >>> model = CGMVAE(**small, epochs=10, random_state=0).fit(X, Y)
    >>> model.transform(X).shape, model.label_similarity().shape
    ((200, 16), (5, 5))
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **NeuralClassifier._parameter_constraints,
        "embedding_size": [Interval(Integral, 1, None, closed="left")],
        "latent_size": [Interval(Integral, 1, None, closed="left")],
        "encoder": [list, tuple, callable, str],
        "label_encoder": [list, tuple],
        "decoder": [list, tuple],
        "dropout": [Interval(Real, 0, 1, closed="left")],
        "decoder_dropout": [Interval(Real, 0, 1, closed="left")],
        "norm": [StrOptions(set(NORMS)), None],
        "skip": ["boolean"],
        "label_activation": [StrOptions(set(ACTIVATIONS)), None],
        "output_activation": [StrOptions(set(ACTIVATIONS)), None],
        "normalize": [StrOptions({"contrast", "features"}), None],
        "prior": [StrOptions({"mixture", "uni-gaussian"})],
        "kl_weight": [Interval(Real, 0, None, closed="left")],
        "contrast": [StrOptions({"softmax", "triplet"})],
        "alpha": [Interval(Real, 0, None, closed="left")],
        "temperature": [Interval(Real, 0, None, closed="neither")],
        "beta": [Interval(Real, 0, None, closed="left")],
        "reconstruction": [Interval(Real, 0, None, closed="left")],
        "n_samples": [Interval(Integral, 1, None, closed="left")],
        "label_branch": ["boolean"],
    }

    network_: CGMVAENetwork

    tuning_space: ClassVar = {
        "embedding_size": ("choice", [512, 1024, 2048]),
        "dropout": ("float", 0.2, 0.7),
        "lr": ("log", 2e-4, 4e-3),
        "alpha": ("choice", [0.0, 0.1, 0.5, 1.0, 2.0]),
        "beta": ("choice", [0.5, 1.0, 2.0]),
        "weight_decay": ("log", 1e-6, 1e-2),
    }

    def __init__(
        self,
        embedding_size: int = 2048,
        *,
        latent_size: int = 64,
        encoder: Any = ENCODER,
        label_encoder: Sequence[int] = (512, 256),
        decoder: Sequence[int] = (512,),
        dropout: float = 0.5,
        decoder_dropout: float = 0.0,
        norm: str | None = None,
        skip: bool = True,
        label_activation: str | None = "relu",
        output_activation: str | None = "leaky-relu",
        normalize: str | None = "features",
        prior: str = "mixture",
        kl_weight: float = 6.0,
        contrast: str = "softmax",
        alpha: float = 1.0,
        temperature: float = 1.0,
        beta: float = 0.5,
        reconstruction: float = 0.0,
        n_samples: int = 2,
        label_branch: bool = True,
        batch_size: int = 128,
        min_steps: int = 1,
        weight_decay: float = 1e-5,
        epochs: int | str = 100,
        lr: float = 1e-3,
        schedule: str = "cosine-restarts",
        schedule_params: Mapping[str, Any] | None = None,
        clip_norm: float | None = None,
        monitor: str = "tuned:f1_macro:grid",
        patience: int | None = 100,
        scale: str = "auto",
        device: str = "cpu",
        precision: str = "32-true",
        checkpoint: str | PathLike[str] | None = None,
        checkpoint_every: float = 30.0,
        callbacks: Sequence[Any] | None = None,
        verbose: int = 0,
        threshold: Any = 0.5,
        validation_fraction: float = 0.2,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            batch_size=batch_size,
            min_steps=min_steps,
            weight_decay=weight_decay,
            optimizer="adam",
            epochs=epochs,
            lr=lr,
            schedule=schedule,
            schedule_params=schedule_params,
            clip_norm=clip_norm,
            monitor=monitor,
            patience=patience,
            scale=scale,
            device=device,
            precision=precision,
            checkpoint=checkpoint,
            checkpoint_every=checkpoint_every,
            callbacks=callbacks,
            verbose=verbose,
            threshold=threshold,
            validation_fraction=validation_fraction,
            random_state=random_state,
        )
        self.embedding_size = embedding_size
        self.latent_size = latent_size
        self.encoder = encoder
        self.label_encoder = label_encoder
        self.decoder = decoder
        self.dropout = dropout
        self.decoder_dropout = decoder_dropout
        self.norm = norm
        self.skip = skip
        self.label_activation = label_activation
        self.output_activation = output_activation
        self.normalize = normalize
        self.prior = prior
        self.kl_weight = kl_weight
        self.contrast = contrast
        self.alpha = alpha
        self.temperature = temperature
        self.beta = beta
        self.reconstruction = reconstruction
        self.n_samples = n_samples
        self.label_branch = label_branch

    @classmethod
    def published(cls, dataset: str | None = None, *, source: str = "program") -> Self:
        """Return the method with the settings of the paper's tables.

        Parameters
        ----------
        dataset : str, optional
            A name of the catalog; Table 7 has settings for nine. Others get the defaults.
        source : {"program", "text"}, default="program"
            The authors' program, or the text of the paper.
        """
        return cls(**published_settings(dataset, source))

    def _build_network(self, n_features: int, n_labels: int) -> nn.Module:
        return CGMVAENetwork(n_features, n_labels, self.get_params(deep=False))

    def _build_task(self, network: nn.Module, session: TrainingSession) -> Task:
        assert isinstance(network, CGMVAENetwork)
        settings = {field.name: getattr(self, field.name) for field in fields(Objective)}
        plan = {"min_lr": 2e-4, **self._optimizer_options()}
        return CGMVAETask(network, Objective(**settings), plan)

    @property
    def label_embeddings_(self) -> np.ndarray:
        """One embedding per label, in the order of `label_names_`."""
        return self.network_.label_embeddings.detach().cpu().numpy()

    def label_similarity(self, kind: str = "inner") -> Any:
        """Similarity of the labels' embeddings (Figure 3 of the paper).

        Parameters
        ----------
        kind : {"inner", "cosine"}, default="inner"
            Inner products, or cosines.

        Returns
        -------
        DataFrame of shape (n_labels, n_labels)
        """
        import pandas as pd

        check_is_fitted(self)
        embeddings = self.label_embeddings_
        if kind not in ("inner", "cosine"):
            raise InputError(f"kind must be 'inner' or 'cosine', not {kind!r}")
        if kind == "cosine":
            lengths = np.linalg.norm(embeddings, axis=1, keepdims=True)
            embeddings = embeddings / np.maximum(lengths, np.finfo(embeddings.dtype).tiny)
        names = self.label_names_
        return pd.DataFrame(embeddings @ embeddings.T, index=names, columns=names)

    def transform(self, X: Any) -> np.ndarray:
        """The feature embeddings, shape (n, embedding_size)."""
        check_is_fitted(self)
        return self._in_batches(self.network_.embed, self._checked_features(X, reset=False))

    def latent_diagnostics(self, X: Any, y: Any) -> dict[str, float]:
        """Measure on these rows whether the predictions use the latent space.

        Parameters
        ----------
        X : features
        y : their labels

        Returns
        -------
        dict
            ``kl``, mean KL divergence from posterior to prior, in nats; ``active_units``,
            latent dimensions whose posterior mean varies over the rows by more than 0.01;
            ``mean_spread``, standard deviation of the posterior mean over the rows, and
            ``posterior_std``, that of the posterior itself, both averaged over dimensions;
            ``map`` with the posterior mean, ``map_zeroed`` with zeros in its place and
            ``map_shuffled`` with the mean of another row; ``change_zeroed`` and
            ``change_shuffled``, the mean absolute change of the probabilities. A KL near 0
            and changes near 0 mean that the latent space is not used.
        """
        check_is_fitted(self)
        X, Y = self._checked_features(X, reset=False), self._known_labels(y)
        device = find_device(self.device)
        rows = self._rows_at_once(X.shape[1], self.n_labels_)
        batches = Batches(X, Y, batch_size=rows, scaling=self.scaling_, device=device)
        return latent_diagnostics(self.network_.to(device).eval(), batches, Y)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []  # embeddings are float32
        return tags

    @property
    def _n_features_out(self) -> int:
        return self.embedding_size

    @classmethod
    def _test_params(cls) -> dict[str, Any]:
        small = {"encoder": (32,), "label_encoder": (16,), "decoder": (32,)}
        sizes = {"embedding_size": 16, "latent_size": 8, "dropout": 0.1}
        return {**super()._test_params(), **small, **sizes}
