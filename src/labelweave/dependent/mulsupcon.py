"""MulSupCon: contrastive pretraining of an encoder on shared labels, then a linear layer."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from numbers import Integral, Real
from os import PathLike
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted
from torch import nn

from labelweave.dependent.mulsupcon_published import published_settings
from labelweave.dependent.mulsupcon_tasks import (
    ContrastiveTask,
    FineTuningTask,
    encoder_and_head,
)
from labelweave.exceptions import InputError
from labelweave.labels import LabelMatrix
from labelweave.nn.contrastive import POSITIVES
from labelweave.nn.encoders import ACTIVATIONS, NORMS, encoder_or_mlp
from labelweave.nn.estimator import NeuralClassifier, TrainingSession
from labelweave.nn.prediction import predict_scores
from labelweave.nn.scaling import FeatureScaling
from labelweave.nn.task import OPTIMIZERS, SCHEDULES, Task

__all__ = ["MulSupCon"]

MODES = {"finetune": 4e-4, "linear-probe": 1e-2}  # default learning rate of the linear layer


class MulSupCon(ClassNamePrefixFeaturesOutMixin, TransformerMixin, NeuralClassifier):
    """Multi-label supervised contrastive learning.

    First the encoder is pretrained: a contrastive loss pulls rows that share labels together, with
    each label of a row as a separate class (see :mod:`labelweave.nn.contrastive`). Then a linear
    layer on the encoder is trained by binary cross-entropy, together with the encoder (at a lower
    learning rate) or alone. Rows without a known positive label are no anchors in the pretraining.

    The defaults are the settings of the authors' program for vectors, but for the number of steps
    (see *Choices*). :meth:`published` returns all settings of the paper's tables.

    Parameters
    ----------
    hidden : sequence of int, default=(256, 512, 256)
        Widths of the layers of the encoder.
    dropout : float, default=0.2
        After each of them.
    activation : str, default="relu"
        A key of :data:`labelweave.nn.encoders.ACTIVATIONS`.
    norm : {"batch", "layer"} or None, default=None
        Normalisation in each layer of the encoder.
    encoder : callable or str, optional
        Another encoder: a network for images (:class:`labelweave.images.ResNet`, or
        "resnet18", "resnet50"), or a function of the number of features that returns a module
        with an attribute `n_out`, the width of its output. The four parameters above are then
        not used.
    positives : {"each-label", "all", "any"}, default="each-label"
        The positive examples of a row: for each of its labels the rows with that label (Eq. 4),
        the rows with the same label set ("all"), or the rows with any of its labels ("any").
    weighted : bool, default=False
        Divide the terms of a row by the number of its labels, Eq. 6.
    temperature : float, default=0.1
        tau of Eq. 4.
    momentum : float, default=0.999
        Share of its weights that the momentum encoder keeps at each step.
    queue_size : int, default=256
        Number of keys of earlier batches that are kept for comparison, once there are as many.
    projection : int, default=256
        Width of the embeddings that are compared. The hidden layer of the projection head is
        half as wide as the encoder's output where that is at least twice this width, else as
        wide as the embeddings.
    mask : float, default=0.5
        Probability of setting a feature to zero in the pretraining, after scaling. The two views
        of images are made by the augmentation of the encoder instead.
    pretrain_epochs : int, default=150
        0 skips the pretraining.
    pretrain_steps : int or None, default=1000
        Steps per epoch of the pretraining; None: one pass over the rows. The default takes more
        than ten minutes on one core; 30 steps take half a minute and score nearly as well.
    pretrain_batch_size : int, default=64
    pretrain_optimizer : {"adam", "adamw", "sgd"}, default="adam"
    pretrain_lr : float, default=4e-4
    pretrain_weight_decay : float, default=1e-5
    pretrain_schedule : str, default="cosine-restarts"
        Schedule of the pretraining's learning rate, as `schedule` without "plateau". The default
        decays to 1e-4 and restarts in cycles of 50 and 100 epochs; with fewer than 50 epochs use
        "cosine", which starts at `pretrain_lr` without a warm-up.
    pretrained : fitted MulSupCon or path of a saved one, optional
        Use its encoder and its scaling of the features instead of pretraining. The features must
        be the same, the labels may differ.
    mode : {"finetune", "linear-probe"}, default="finetune"
        Whether the encoder is fine-tuned with the linear layer or stays fixed.
    probe_epochs : int, default=0
        Epochs in which the linear layer is trained alone before fine-tuning, so that the
        gradients of a new layer do not undo the pretraining.
    lr : float, optional
        Learning rate of the linear layer: by default 4e-4 in fine-tuning and 1e-2 in a linear
        probe, as in the paper.
    backbone_lr : float, default=4e-5
        Learning rate of the encoder in fine-tuning.
    optimizer : {"adam", "adamw", "sgd"}, default="adam"
        Of the second stage.
    epochs, batch_size, weight_decay, schedule, monitor, patience
        Parameters of the second stage: 30, 32, 0, "plateau" (a tenth at the third epoch in a row
        without improvement), "val_loss", 20.
    min_steps : int, default=50
        Smallest number of steps per epoch of the second stage.
    schedule_params, clip_norm, scale, device, precision, checkpoint, checkpoint_every,
    callbacks, verbose, threshold, validation_fraction, random_state
        The other parameters of :class:`labelweave.nn.estimator.NeuralClassifier`.

    Notes
    -----
    The pretraining keeps the weights of the epoch with the lowest training loss. The encoder of
    the keys runs in training mode. Both are as in the program.

    *Choices.* The training loss of an epoch is its mean over the rows; the program's is a running
    average over steps. SGD has a momentum of 0.9,
    which the paper does not state. Unknown labels make no pair a positive one, and a row without
    labels is no positive of another such row under "all". In the second stage the rate falls unless
    the validation loss improves by 1e-4; the program asks for a thousandth of the loss, and waits
    one epoch more after each fall. An epoch of that stage is a pass over the rows where this is
    more than the program's 50 steps. With ``published(source="text")`` its batches are as large as
    those of the pretraining, and the cosine falls to zero, step by step: the text leaves both open.
    A linear probe sees images without augmentation. Sparse features are divided by their largest
    absolute value, not standardised.

    With batch norm, layers of (512, 512) and a dropout of 0.5 scene is learnt better and yeast
    is not: see the method's page.

    The queue stores `queue_size` x labels numbers in addition to the embeddings.

    References
    ----------
    .. [1] P. Zhang and M. Wu. Multi-Label Supervised Contrastive Learning. AAAI 2024.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, Y = make_multilabel_classification(n_samples=200, random_state=0)
    >>> small = {"hidden": (32,), "pretrain_epochs": 2, "random_state": 0}
    >>> model = MulSupCon(epochs=5, **small).fit(X, Y)
    >>> model.predict_proba(X[:3]).shape, model.transform(X[:3]).shape
    ((3, 5), (3, 32))
    >>> other = MulSupCon(epochs=5, pretrained=model, **small).fit(X, Y[:, :2])
    >>> other.predict_proba(X[:3]).shape
    (3, 2)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **NeuralClassifier._parameter_constraints,
        "hidden": [list, tuple],
        "dropout": [Interval(Real, 0, 1, closed="left")],
        "activation": [StrOptions(set(ACTIVATIONS))],
        "norm": [StrOptions(set(NORMS)), None],
        "encoder": [callable, str, None],
        "positives": [StrOptions(set(POSITIVES))],
        "weighted": ["boolean"],
        "temperature": [Interval(Real, 0, None, closed="neither")],
        "momentum": [Interval(Real, 0, 1, closed="both")],
        "queue_size": [Interval(Integral, 0, None, closed="left")],
        "projection": [Interval(Integral, 1, None, closed="left")],
        "mask": [Interval(Real, 0, 1, closed="left")],
        "pretrain_epochs": [Interval(Integral, 0, None, closed="left")],
        "pretrain_steps": [Interval(Integral, 1, None, closed="left"), None],
        "pretrain_batch_size": [Interval(Integral, 1, None, closed="left")],
        "pretrain_optimizer": [StrOptions(set(OPTIMIZERS))],
        "pretrain_lr": [Interval(Real, 0, None, closed="neither")],
        "pretrain_weight_decay": [Interval(Real, 0, None, closed="left")],
        "pretrain_schedule": [StrOptions(set(SCHEDULES) - {"plateau"})],
        "pretrained": [NeuralClassifier, str, PathLike, None],
        "mode": [StrOptions(set(MODES))],
        "probe_epochs": [Interval(Integral, 0, None, closed="left")],
        "lr": [Interval(Real, 0, None, closed="neither"), None],
        "backbone_lr": [Interval(Real, 0, None, closed="neither")],
    }

    tuning_space: ClassVar = {
        "temperature": ("log", 0.03, 0.5),
        "mask": ("float", 0.0, 0.7),
        "dropout": ("float", 0.0, 0.6),
        "pretrain_lr": ("log", 1e-4, 2e-3),
        "lr": ("log", 1e-4, 1e-2),
        "backbone_lr": ("log", 1e-5, 1e-3),
    }

    def __init__(
        self,
        hidden: Sequence[int] = (256, 512, 256),
        *,
        dropout: float = 0.2,
        activation: str = "relu",
        norm: str | None = None,
        encoder: Callable[[int], nn.Module] | str | None = None,
        positives: str = "each-label",
        weighted: bool = False,
        temperature: float = 0.1,
        momentum: float = 0.999,
        queue_size: int = 256,
        projection: int = 256,
        mask: float = 0.5,
        pretrain_epochs: int = 150,
        pretrain_steps: int | None = 1000,
        pretrain_batch_size: int = 64,
        pretrain_optimizer: str = "adam",
        pretrain_lr: float = 4e-4,
        pretrain_weight_decay: float = 1e-5,
        pretrain_schedule: str = "cosine-restarts",
        pretrained: Any = None,
        mode: str = "finetune",
        probe_epochs: int = 0,
        epochs: int = 30,
        batch_size: int = 32,
        min_steps: int = 50,
        optimizer: str = "adam",
        lr: float | None = None,
        backbone_lr: float = 4e-5,
        weight_decay: float = 0.0,
        schedule: str = "plateau",
        monitor: str = "val_loss",
        patience: int | None = 20,
        schedule_params: Mapping[str, Any] | None = None,
        clip_norm: float | None = None,
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
            epochs=epochs,
            batch_size=batch_size,
            min_steps=min_steps,
            lr=lr,  # type: ignore[arg-type]
            weight_decay=weight_decay,
            optimizer=optimizer,
            schedule=schedule,
            monitor=monitor,
            patience=patience,
            schedule_params=schedule_params,
            clip_norm=clip_norm,
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
        self.hidden = hidden
        self.dropout = dropout
        self.activation = activation
        self.norm = norm
        self.encoder = encoder
        self.positives = positives
        self.weighted = weighted
        self.temperature = temperature
        self.momentum = momentum
        self.queue_size = queue_size
        self.projection = projection
        self.mask = mask
        self.pretrain_epochs = pretrain_epochs
        self.pretrain_steps = pretrain_steps
        self.pretrain_batch_size = pretrain_batch_size
        self.pretrain_optimizer = pretrain_optimizer
        self.pretrain_lr = pretrain_lr
        self.pretrain_weight_decay = pretrain_weight_decay
        self.pretrain_schedule = pretrain_schedule
        self.pretrained = pretrained
        self.mode = mode
        self.probe_epochs = probe_epochs
        self.backbone_lr = backbone_lr

    @classmethod
    def published(
        cls, dataset: str | None = None, *, source: str = "program", form: str = "fine-tuned"
    ) -> Self:
        """Return the method with the settings of the paper's tables.

        Parameters
        ----------
        dataset : str, optional
            A name of the catalog. Names of the paper's sets of images get the settings for images,
            all others those for vectors.
        source : {"program", "text"}, default="program"
            The authors' program, or the text of the paper, which for vectors has other batches
            and one fall of the learning rate. The program's settings are public for yeast only:
            they serve all vectors. For images both sources give the settings of the text, with
            the augmentation and the length of the queue from the program.
        form : {"fine-tuned", "linear-probe", "transferred", "from-scratch"}, default="fine-tuned"
            The kinds of training of Tables 5 to 8: the whole network fine-tuned; a linear
            classifier on the frozen encoder, trained on the same data set or on another; and
            cross-entropy from random weights, without pretraining.
        """
        return cls(**published_settings(dataset, source, form))

    def transform(self, X: Any) -> np.ndarray:
        """The encoder's representation of each row."""
        check_is_fitted(self)
        encoder, _ = encoder_and_head(self.network_)
        return self._in_batches(encoder, self._checked_features(X, reset=False))

    def class_similarity(self, X: Any, y: Any) -> Any:
        """How well the representation separates the labels (Figure 3 of the paper).

        The embedding of a label is the mean representation of the rows that have this label
        alone. Labels without such a row are left out.

        Parameters
        ----------
        X : features
        y : their labels

        Returns
        -------
        DataFrame
            One row per label: the softmax over all labels of the cosines of the embeddings.
        """
        import pandas as pd

        Y = self._known_labels(y).to_numpy() == 1
        alone = Y & (Y.sum(axis=1, keepdims=True) == 1)
        shown = alone.any(axis=0)
        members = alone[:, shown].astype(np.float64)
        means = members.T @ self.transform(X) / members.sum(axis=0)[:, None]
        unit = means / np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-12)
        shares = np.exp(unit @ unit.T)
        names = np.asarray(self.label_names_)[shown]
        shares /= shares.sum(axis=1, keepdims=True)
        return pd.DataFrame(shares, index=names, columns=names)

    @property
    def _n_features_out(self) -> int:
        return encoder_and_head(self.network_)[1].in_features  # type: ignore[return-value]

    def _build_network(self, n_features: int, n_labels: int) -> nn.Module:
        shape = {"dropout": self.dropout, "activation": self.activation, "norm": self.norm}
        encoder = encoder_or_mlp(self.encoder, n_features, self.hidden, **shape)
        head = nn.Linear(encoder.n_out, n_labels)  # type: ignore[arg-type]
        return nn.Sequential(OrderedDict(encoder=encoder, head=head))

    def _pretrain(self, network: nn.Module, session: TrainingSession) -> None:
        if self.pretrained is not None:
            self._copy_encoder(network, session)
        elif self.pretrain_epochs > 0:
            session.train(
                self._contrastive_task(network, session.Y.n_labels),
                stage="pretraining",
                epochs=self.pretrain_epochs,
                batch_size=self.pretrain_batch_size,
                steps_per_epoch=self.pretrain_steps,
                min_steps=1,
                monitor="loss",
                patience=None,
            )
        if self.mode == "finetune" and self.probe_epochs > 0:
            linear, frozen = self._frozen(network, session)
            frozen.train(
                self._head_task(linear, "linear-probe", lr=MODES["linear-probe"]),
                stage="linear-probe",
                epochs=self.probe_epochs,
                monitor=None if self.patience is None else self.monitor,
            )

    def _learn(self, network: nn.Module, session: TrainingSession) -> None:
        if getattr(self._image_encoder(), "lr", None) is not None:
            raise InputError("the encoder of MulSupCon has the learning rate backbone_lr: leave lr")
        self._pretrain(network, session)
        if self.mode == "linear-probe":
            network, session = self._frozen(network, session)
        session.train(
            self._build_task(network, session),
            stage=self.mode,
            monitor=None if self.patience is None else self.monitor,
        )

    def _frozen(
        self, network: nn.Module, session: TrainingSession
    ) -> tuple[nn.Module, TrainingSession]:
        """The linear layer alone, and a session whose rows are the encoder's representations."""
        encoder, head = encoder_and_head(network)
        encoder.to(session.engine.device).eval()

        def represent(X: Any, Y: LabelMatrix) -> tuple[np.ndarray, LabelMatrix]:
            return predict_scores(encoder, session.scoring_batches(X, Y), session.engine), Y

        X, _ = represent(session.X, session.Y)
        validation = None if session.validation is None else represent(*session.validation)
        linear = nn.Sequential(OrderedDict(encoder=nn.Identity(), head=head))
        return linear, replace(session, X=X, validation=validation, scaled=False)

    def _contrastive_task(self, network: nn.Module, n_labels: int) -> ContrastiveTask:
        return ContrastiveTask(
            encoder_and_head(network)[0],
            n_labels,
            n_dims=self.projection,
            queue_size=self.queue_size,
            momentum=self.momentum,
            mask=0.0 if self._image_encoder() is not None else self.mask,
            loss={
                "temperature": self.temperature,
                "positives": self.positives,
                "weighted": self.weighted,
            },
            plan={
                "optimizer": self.pretrain_optimizer,
                "lr": self.pretrain_lr,
                "weight_decay": self.pretrain_weight_decay,
                "schedule": self.pretrain_schedule,
                "warmup": 0.0,
            },
        )

    def _build_task(self, network: nn.Module, session: TrainingSession) -> Task:
        return self._head_task(network, self.mode, lr=self.lr or MODES[self.mode])

    def _head_task(self, network: nn.Module, mode: str, *, lr: float) -> FineTuningTask:
        backbone_lr = self.backbone_lr if mode == "finetune" else None
        plan = {"plateau_patience": 2} | self._optimizer_options() | {"lr": lr}
        return FineTuningTask(network, backbone_lr=backbone_lr, plan=plan)

    def _pretrained_model(self) -> MulSupCon:
        source = self.pretrained
        if isinstance(source, str | PathLike):
            from labelweave.persistence import load

            source = load(source)
        if not isinstance(source, MulSupCon):
            raise InputError(f"pretrained must be a MulSupCon, not {type(source).__name__}")
        check_is_fitted(source)
        return source

    def _fit_scaling(self, X: Any) -> FeatureScaling | None:
        """The scaling of the features: that of the pretrained encoder, where there is one."""
        if self.pretrained is not None:
            return self._pretrained_model().scaling_
        return super()._fit_scaling(X)

    def _copy_encoder(self, network: nn.Module, session: TrainingSession) -> None:
        """Copy the weights of the pretrained encoder."""
        source = self._pretrained_model()
        n_features = session.X.shape[1]
        if source._n_columns != n_features:
            raise InputError(
                f"X has {n_features} features, but the pretrained encoder was fitted to "
                f"{source._n_columns}: use the same features"
            )
        try:
            encoder_and_head(network)[0].load_state_dict(
                encoder_and_head(source.network_)[0].state_dict()
            )
        except RuntimeError:
            raise InputError(
                "the pretrained encoder has other layers: use the same hidden, norm and encoder "
                "as in its fit"
            ) from None

    def __sklearn_clone__(self) -> Any:
        copy = super().__sklearn_clone__()
        copy.pretrained = self.pretrained  # a clone of it would not be fitted
        return copy

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # The contrastive loss compares pairs of rows, which have no weights.
        has_contrast = self.pretrained is None and self.pretrain_epochs != 0
        tags.capabilities.sample_weight = not has_contrast
        tags.transformer_tags.preserves_dtype = []  # the representation is in single precision
        return tags

    @classmethod
    def _test_params(cls) -> dict[str, Any]:
        return {
            **super()._test_params(),
            "hidden": (32,),
            "projection": 16,
            "queue_size": 32,
            "pretrain_epochs": 2,
            "pretrain_steps": None,
            "backbone_lr": 1e-2,
        }
