"""MPVAE: two aligned autoencoders and a multivariate probit model of dependent labels."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from os import PathLike
from typing import Any, ClassVar, Self

import numpy as np
import torch
from sklearn.utils._param_validation import Interval, StrOptions
from torch import Tensor, nn

from labelweave.dependent._networks.mixture import gaussian_divergence, sample_gaussian
from labelweave.dependent._networks.pairwise_ranking import exponential_ranking, signed_targets
from labelweave.dependent.cgmvae_network import Decoder, GaussianEncoder
from labelweave.dependent.mpvae_published import published_settings
from labelweave.exceptions import InputError
from labelweave.nn.batches import Batch
from labelweave.nn.encoders import NORMS
from labelweave.nn.estimator import NeuralClassifier, TrainingSession
from labelweave.nn.losses import bce, weigh_rows
from labelweave.nn.process_rows import draw_rows
from labelweave.nn.task import StepInfo, Task

__all__ = ["MPVAE", "MPVAENetwork", "MPVAETask", "probit_logits"]

# Steepness of the ranking loss in the authors' program.
_SLOPE = 5.0


def probit_logits(mean: Tensor, factor: Tensor) -> Tensor:
    """Logit of the marginal probability of each label under the multivariate probit.

    A label is positive where a Gaussian of this mean and of covariance ``I + factor factor'`` is;
    its marginal variance is ``1 + |factor_j|^2``. The average over samples converges to this.

    >>> probit_logits(torch.zeros(1, 2), torch.ones(2, 3))
    tensor([[0., 0.]])
    """
    standard = mean * torch.rsqrt(1 + factor.square().sum(dim=1))
    # Φ(s) / Φ(-s) in logarithms, so that neither is rounded to 0.
    return torch.special.log_ndtr(standard) - torch.special.log_ndtr(-standard)


class MPVAENetwork(nn.Module):
    """Features to one logit per label, from the mean of the feature branch.

    `options` are the constructor parameters of the estimator.
    """

    def __init__(self, n_features: int, n_labels: int, options: dict[str, Any]) -> None:
        super().__init__()
        if len(options["decoder"]) < 2:
            raise InputError("the decoder needs at least two hidden layers")
        *sizes, last = options["decoder"]
        latent, norm = options["latent_size"], options["norm"]
        shape = {"dropout": options["dropout"]}
        self.feature_encoder = GaussianEncoder(
            n_features, options["encoder"], latent, norm=norm, **shape
        )
        self.label_encoder = GaussianEncoder(
            n_features + n_labels, options["label_encoder"], latent, norm=norm, **shape
        )
        in_decoder = options["decoder_dropout"]
        self.decoder = Decoder(
            n_features,
            latent,
            sizes,
            last,
            norm=None,
            skip=True,
            activation="relu",
            unit_length=False,
            dropout=options["dropout"] if in_decoder is None else in_decoder,
        )
        self.feature_mean = nn.Linear(last, n_labels)
        self.label_mean = nn.Linear(last, n_labels)
        rank = min(options["rank"] or n_labels, n_labels)
        bound = math.sqrt(6 / (n_labels + rank))
        self.factor = nn.Parameter(torch.empty(n_labels, rank).uniform_(-bound, bound))

    def forward(self, x: Tensor) -> Tensor:
        mean, _ = self.feature_encoder(x)
        decoded = self.decoder(x, mean.unsqueeze(1)).squeeze(1)
        return probit_logits(self.feature_mean(decoded), self.factor)


class MPVAETask(Task):
    """Eq. 5: likelihood and ranking loss of both branches, and the KL that aligns them."""

    network: MPVAENetwork
    weighs_rows: ClassVar[bool] = True

    def __init__(
        self,
        network: MPVAENetwork,
        *,
        n_samples: int,
        likelihood_weight: float,
        ranking_weight: float,
        kl_weight: float,
        plan: dict[str, Any],
    ) -> None:
        super().__init__(network, plan)
        self.n_samples = n_samples
        self.likelihood_weight = likelihood_weight
        self.ranking_weight = ranking_weight
        self.kl_weight = kl_weight

    def losses(self, batch: Batch, info: StepInfo) -> dict[str, Tensor]:
        network = self.network
        if not self.training:
            return self._loss_of_predictions(network(batch.x), batch)
        signs = signed_targets(batch.y)
        of_labels = network.label_encoder(torch.cat([batch.x, signs], dim=1))
        of_features = network.feature_encoder(batch.x)
        # Both branches use the same noise.
        noise = draw_rows(of_features[0], Tensor.normal_)
        points = [
            sample_gaussian(mean, log_variance, noise)
            for mean, log_variance in (of_labels, of_features)
        ]
        by_label, by_feature = network.decoder(batch.x, torch.stack(points, dim=1)).unbind(1)
        means = torch.stack([network.label_mean(by_label), network.feature_mean(by_feature)], dim=1)
        likelihood, ranking = self._probit_terms(means, signs, batch)
        known = (signs != 0).to(noise.dtype).mean(dim=1)
        divergence = known * gaussian_divergence(*of_labels, *of_features)
        return {
            "likelihood": self.likelihood_weight * likelihood,
            "ranking": self.ranking_weight * ranking,
            "kl": self.kl_weight * weigh_rows(divergence, batch.row_weight).mean(),
        }

    def _loss_of_predictions(self, logits: Tensor, batch: Batch) -> dict[str, Tensor]:
        """The validation loss: both losses of the predicted probabilities."""
        likelihood = bce(logits, batch.y).sum(dim=1)
        ranking = exponential_ranking(torch.sigmoid(logits), batch.y, slope=_SLOPE)
        return {
            "likelihood": self.likelihood_weight * weigh_rows(likelihood, batch.row_weight).mean(),
            "ranking": self.ranking_weight * weigh_rows(ranking, batch.row_weight).mean(),
        }

    def _probit_terms(self, means: Tensor, signs: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
        """Minus the log-likelihood, and the ranking loss, both summed over the branches.

        Given a draw of the shared factors the labels are independent (Eq. 3), so that leaving out
        unknown labels is the same as summing over their values. `means` is (n, branches, L).
        """
        factor = self.network.factor
        draws = draw_rows(
            factor.new_empty((len(means), self.n_samples, factor.shape[1])), Tensor.normal_
        )
        shared = draws @ factor.T
        samples = means.transpose(0, 1).unsqueeze(2) + shared  # (branches, n, samples, L)
        signs = signs.unsqueeze(1)
        log_correct = torch.special.log_ndtr(signs * samples)
        of_rows = torch.where(signs == 0, 0.0, log_correct).sum(dim=-1)
        # log of the mean over samples of the product over labels
        log_likelihood = torch.logsumexp(of_rows, dim=2) - math.log(self.n_samples)
        correct = torch.exp(log_correct)
        scores = torch.where(signs > 0, correct, 1 - correct).transpose(1, 2)
        ranking = weigh_rows(exponential_ranking(scores, batch.y, slope=_SLOPE), batch.row_weight)
        log_likelihood = weigh_rows(log_likelihood, batch.row_weight)
        return -log_likelihood.mean(dim=1).sum(), ranking.mean(dim=(1, 2)).sum()


class MPVAE(NeuralClassifier):
    """Multivariate probit variational autoencoder.

    One branch encodes features, another features and labels, each to a Gaussian in a latent
    space; a KL term aligns the two, and they share one decoder. The decoder's outputs are the means
    of a multivariate probit: a label is positive if its coordinate of a Gaussian is positive. The
    covariance of that Gaussian is learnt, is the same for all rows, and models how labels depend
    on each other beyond the features.

    Parameters
    ----------
    latent_size : int, default=50
    encoder, label_encoder, decoder : sequence of int
        Hidden layers of the three networks.
    rank : int, optional
        Columns of the factor B of the covariance ``I + B B'``; by default the number of labels.
    dropout : float, default=0.5
        After each hidden layer.
    decoder_dropout : float, optional
        After each hidden layer of the decoder; by default `dropout`.
    norm : {"batch", "layer"} or None, default="batch"
        Normalisation in the hidden layers of the encoders. The decoder has none, because its
        two branches would need separate statistics.
    n_samples : int, default=20
        Draws from the probit for each row in training.
    likelihood_weight : float, default=1.0
        Weight of the probit's log-likelihood, estimated from the draws.
    ranking_weight : float, default=1.0
        Weight of the ranking loss of the draws' probabilities.
    kl_weight : float, default=1.1
        Weight of the KL divergence between the branches, `beta` in the paper.
    batch_size : int, default=128
    min_steps : int, default=30
    weight_decay : float, default=1e-5
    epochs : int, default=200
    optimizer : {"adamw", "adam", "sgd"}, default="adamw"
    lr, schedule, schedule_params, clip_norm, monitor, patience, scale, device, precision,
    checkpoint, checkpoint_every, callbacks, verbose, threshold, validation_fraction, random_state
        The other parameters of :class:`labelweave.nn.estimator.NeuralClassifier`.

    Attributes
    ----------
    label_covariance_ : ndarray of shape (n_labels, n_labels)

    Notes
    -----
    Unknown entries are ignored in both losses; the label branch reads 1 for positive, -1 for
    negative and 0 for unknown labels; the KL term of a row is weighted by the share of its known
    labels.

    Prediction is deterministic: given the mean of the feature branch, the probability of a label
    has a closed form, to which the average over draws (10,000 in the authors' program) converges.

    Departures from the paper: the label branch and the decoder see the features too, as in the
    authors' program; batch norm; dropout in the decoder; AdamW; twenty draws in training where
    the program has a hundred; weights of 1 for likelihood and ranking, where the program has 0.1
    and 20 to 40 and trains for hundreds of epochs (with these, probabilities saturate at once and
    early stopping ends too early); `min_steps`, which lengthens epochs when there are few rows.
    :meth:`published` has the program's settings.

    References
    ----------
    .. [1] J. Bai, S. Kong and C. Gomes. Disentangled Variational Autoencoder based Multi-Label
       Classification with Covariance-Aware Multivariate Probit Model. IJCAI 2020.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, Y = make_multilabel_classification(n_samples=200, random_state=0)
    >>> small = {"encoder": (32,), "label_encoder": (32,), "decoder": (32, 32)}
    >>> model = MPVAE(latent_size=8, **small, epochs=10, random_state=0).fit(X, Y)
    >>> model.label_covariance_.shape
    (5, 5)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **NeuralClassifier._parameter_constraints,
        "latent_size": [Interval(Integral, 1, None, closed="left")],
        "encoder": [list, tuple],
        "label_encoder": [list, tuple],
        "decoder": [list, tuple],
        "rank": [Interval(Integral, 1, None, closed="left"), None],
        "dropout": [Interval(Real, 0, 1, closed="left")],
        "decoder_dropout": [Interval(Real, 0, 1, closed="left"), None],
        "norm": [StrOptions(set(NORMS)), None],
        "n_samples": [Interval(Integral, 1, None, closed="left")],
        "likelihood_weight": [Interval(Real, 0, None, closed="left")],
        "ranking_weight": [Interval(Real, 0, None, closed="left")],
        "kl_weight": [Interval(Real, 0, None, closed="left")],
    }

    network_: MPVAENetwork

    tuning_space: ClassVar[dict[str, Any]] = {
        "likelihood_weight": ("log", 0.05, 2.0),
        "ranking_weight": ("log", 0.1, 100.0),
        "kl_weight": ("log", 0.1, 5.0),
        "dropout": ("float", 0.2, 0.7),
        "lr": ("log", 2e-4, 4e-3),
    }

    def __init__(
        self,
        latent_size: int = 50,
        *,
        encoder: Sequence[int] = (256, 512, 256),
        label_encoder: Sequence[int] = (512, 256),
        decoder: Sequence[int] = (256, 512),
        rank: int | None = None,
        dropout: float = 0.5,
        decoder_dropout: float | None = None,
        norm: str | None = "batch",
        n_samples: int = 20,
        likelihood_weight: float = 1.0,
        ranking_weight: float = 1.0,
        kl_weight: float = 1.1,
        batch_size: int = 128,
        min_steps: int = 30,
        weight_decay: float = 1e-5,
        optimizer: str = "adamw",
        epochs: int = 200,
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
            optimizer=optimizer,
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
        self.latent_size = latent_size
        self.encoder = encoder
        self.label_encoder = label_encoder
        self.decoder = decoder
        self.rank = rank
        self.dropout = dropout
        self.decoder_dropout = decoder_dropout
        self.norm = norm
        self.n_samples = n_samples
        self.likelihood_weight = likelihood_weight
        self.ranking_weight = ranking_weight
        self.kl_weight = kl_weight

    @classmethod
    def published(cls, dataset: str | None = None) -> Self:
        """Return the method with the settings of the authors' program.

        It has a script for each of seven data sets; others get the defaults of its flags. All
        epochs are trained, and those weights are kept that have the best macro F1 on the validation
        rows. Different are: the thresholds of this F1 (nine, where the program tries 27), the rate
        (constant, where the program lowers it three times, mostly by a fifth), and the label
        branch, which reads -1 for a negative label in place of 0.

        Parameters
        ----------
        dataset : str, optional
            A name of the catalog.
        """
        return cls(**published_settings(dataset))

    def _build_network(self, n_features: int, n_labels: int) -> nn.Module:
        return MPVAENetwork(n_features, n_labels, self.get_params(deep=False))

    def _build_task(self, network: nn.Module, session: TrainingSession) -> Task:
        assert isinstance(network, MPVAENetwork)
        return MPVAETask(
            network,
            n_samples=self.n_samples,
            likelihood_weight=self.likelihood_weight,
            ranking_weight=self.ranking_weight,
            kl_weight=self.kl_weight,
            plan=self._optimizer_options(),
        )

    @property
    def label_covariance_(self) -> np.ndarray:
        """Covariance of the probit, in the order of `label_names_`."""
        factor = self.network_.factor.detach().cpu().numpy()
        return np.eye(len(factor), dtype=factor.dtype) + factor @ factor.T

    @classmethod
    def _test_params(cls) -> dict[str, Any]:
        small = {"encoder": (32,), "label_encoder": (16,), "decoder": (16, 16)}
        return {**super()._test_params(), **small, "latent_size": 8, "dropout": 0.1}
