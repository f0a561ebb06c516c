"""C-GMVAE: a latent space with one Gaussian per label, and a contrastive loss of embeddings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from numbers import Integral, Real
from os import PathLike
from typing import Any, ClassVar

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
from labelweave.exceptions import InputError
from labelweave.nn.batches import Batches
from labelweave.nn.distributed import find_device
from labelweave.nn.encoders import ACTIVATIONS, NORMS
from labelweave.nn.estimator import NeuralClassifier, TrainingSession
from labelweave.nn.task import Task

__all__ = ["CGMVAE", "PUBLIC_CODE"]

PUBLIC_CODE: dict[str, Any] = {
    "decoder": (512,),
    "norm": None,
    "skip": True,
    "output_activation": "leaky-relu",
    "normalize": "features",
    "n_samples": 2,
    "label_branch": 0.5,
    "beta": 1.0,
    "kl_weight": 6.0,
    "schedule": "cosine-restarts",
    "schedule_params": {"cycle": 50, "cycle_growth": 2, "min_lr": 2e-4},
    "min_steps": 1,
}
"""The settings of the authors' program, as far as they are parameters here.

The program also has ReLU and dropout between label embeddings and label encoder. Its
cross-entropies of two samples and of the label branch are summed and halved; here samples are
averaged and the branch is weighted, which is the same with ``beta=1``.
"""


class CGMVAE(ClassNamePrefixFeaturesOutMixin, TransformerMixin, NeuralClassifier):
    """Contrastive-learning-boosted Gaussian mixture variational autoencoder.

    Every label has a learnt embedding and, through the label encoder, a Gaussian in a latent
    space. Features are encoded to a Gaussian in the same space, which the KL term pulls towards
    the mixture of the Gaussians of the row's labels, and decoded to a feature embedding. The
    inner products of feature and label embeddings are the logits; a contrastive term pulls the
    feature embedding towards the embeddings of the row's labels.

    Parameters
    ----------
    embedding_size : int, default=512
        `E` in the paper: length of feature and label embeddings.
    latent_size : int, default=64
        Dimensions of the latent space.
    encoder, label_encoder, decoder : sequence of int
        Hidden layers of the three networks. `encoder` may also be a network for images
        (:class:`labelweave.images.ResNet`, or "resnet18", "resnet50"), whose features are then
        encoded by hidden layers of 256, 512 and 256.
    dropout : float, default=0.5
        After each hidden layer.
    norm : {"batch", "layer"} or None, default="batch"
        Normalisation in the hidden layers of encoder and decoder.
    skip : bool, default=True
        Whether the decoder sees the features beside the latent point.
    output_activation : str or None, default=None
        Activation of the feature embedding, a key of
        :data:`labelweave.nn.encoders.ACTIVATIONS`.
    normalize : {"contrast", "features"} or None, default="contrast"
        "contrast": both embeddings have unit length in the contrastive term, as in the paper's
        appendix; "features": the decoder's output has unit length everywhere; None: neither.
    prior : {"mixture", "uni-gaussian"} or None, default="mixture"
        "mixture": Eq. 1; "uni-gaussian": the label encoder sees the sum of the labels'
        embeddings and returns one Gaussian; None: no KL term.
    kl_weight : float, default=1.0
        Weight of the KL term (Eq. 3).
    kl_anneal : float, default=0.0
        Share of the run over which that weight rises from zero.
    free_nats : float, default=0.0
        "Free bits": the KL term stops pulling once its mean over a batch is below this.
    contrast : {"softmax", "triplet"}, default="softmax"
        Eq. 5, or the triplet loss of the appendix over all pairs of a positive and a negative
        label.
    alpha : float, default=1.0
        Weight of the contrastive term; 0 leaves it out.
    temperature : float, default=1.0
        `tau` of Eq. 5.
    gap : float, default=1.0
        `g` of the triplet loss.
    beta : float, default=0.5
        Weight of the cross-entropy (Eq. 6), a sum over labels.
    reconstruction : float, default=0.0
        Weight of the reconstruction of the features (Eq. 4) from their embedding.
    n_samples : int, default=1
        Latent points decoded for each row in training.
    label_branch : float, default=0.0
        Weight of an additional loss on the decoded mean of the prior.
    predict_samples : int, default=0
        How many latent points to decode at prediction, averaging their probabilities; 0
        decodes the posterior mean.
    batch_size : int, default=128
    min_steps : int, default=8
    weight_decay : float, default=1e-5
    epochs, lr, schedule, schedule_params, clip_norm, monitor, patience, scale, device,
    precision, checkpoint, checkpoint_every, callbacks, verbose, threshold, validation_fraction,
    random_state
        The other parameters of :class:`labelweave.nn.estimator.NeuralClassifier`.

    Attributes
    ----------
    label_embeddings_ : ndarray of shape (n_labels, embedding_size)

    Notes
    -----
    Rows that are known to have no label share one more learnt Gaussian as their prior and have no
    contrastive term. A row with unknown entries and no known positive has no KL term. Unknown
    entries are neither positives nor negatives in any term.

    The loss of the validation rows is the cross-entropy of the predictions alone.

    Departures from the paper's text: the decoder sees the features too, as in the authors'
    program (otherwise a KL term of weight 1 collapses the posterior); Eq. 4 is off, as in that
    program; batch norm; `min_steps`, which lengthens epochs when there are few rows; AdamW.
    :data:`PUBLIC_CODE` has the program's other settings.

    With ``skip=True`` predictions hardly depend on the latent space, which `latent_diagnostics`
    measures. With ``skip=False`` and a small ``kl_weight`` all information passes through it, at
    a cost in quality.

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
        "norm": [StrOptions(set(NORMS)), None],
        "skip": ["boolean"],
        "output_activation": [StrOptions(set(ACTIVATIONS)), None],
        "normalize": [StrOptions({"contrast", "features"}), None],
        "prior": [StrOptions({"mixture", "uni-gaussian"}), None],
        "kl_weight": [Interval(Real, 0, None, closed="left")],
        "kl_anneal": [Interval(Real, 0, 1, closed="both")],
        "free_nats": [Interval(Real, 0, None, closed="left")],
        "contrast": [StrOptions({"softmax", "triplet"})],
        "alpha": [Interval(Real, 0, None, closed="left")],
        "temperature": [Interval(Real, 0, None, closed="neither")],
        "gap": [Interval(Real, 0, None, closed="left")],
        "beta": [Interval(Real, 0, None, closed="left")],
        "reconstruction": [Interval(Real, 0, None, closed="left")],
        "n_samples": [Interval(Integral, 1, None, closed="left")],
        "label_branch": [Interval(Real, 0, None, closed="left")],
        "predict_samples": [Interval(Integral, 0, None, closed="left")],
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
        embedding_size: int = 512,
        *,
        latent_size: int = 64,
        encoder: Any = ENCODER,
        label_encoder: Sequence[int] = (512, 256),
        decoder: Sequence[int] = (512, 512),
        dropout: float = 0.5,
        norm: str | None = "batch",
        skip: bool = True,
        output_activation: str | None = None,
        normalize: str | None = "contrast",
        prior: str | None = "mixture",
        kl_weight: float = 1.0,
        kl_anneal: float = 0.0,
        free_nats: float = 0.0,
        contrast: str = "softmax",
        alpha: float = 1.0,
        temperature: float = 1.0,
        gap: float = 1.0,
        beta: float = 0.5,
        reconstruction: float = 0.0,
        n_samples: int = 1,
        label_branch: float = 0.0,
        predict_samples: int = 0,
        batch_size: int = 128,
        min_steps: int = 8,
        weight_decay: float = 1e-5,
        epochs: int | str = 100,
        lr: float = 1e-3,
        schedule: str = "constant",
        schedule_params: Mapping[str, Any] | None = None,
        clip_norm: float | None = None,
        monitor: str = "val_loss",
        patience: int | None = 10,
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
        self.norm = norm
        self.skip = skip
        self.output_activation = output_activation
        self.normalize = normalize
        self.prior = prior
        self.kl_weight = kl_weight
        self.kl_anneal = kl_anneal
        self.free_nats = free_nats
        self.contrast = contrast
        self.alpha = alpha
        self.temperature = temperature
        self.gap = gap
        self.beta = beta
        self.reconstruction = reconstruction
        self.n_samples = n_samples
        self.label_branch = label_branch
        self.predict_samples = predict_samples

    def _build_network(self, n_features: int, n_labels: int) -> nn.Module:
        return CGMVAENetwork(n_features, n_labels, self.get_params(deep=False))

    def _build_task(self, network: nn.Module, session: TrainingSession) -> Task:
        assert isinstance(network, CGMVAENetwork)
        settings = {field.name: getattr(self, field.name) for field in fields(Objective)}
        return CGMVAETask(network, Objective(**settings), self._optimizer_options())

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
