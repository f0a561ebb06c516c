"""ASL: the multi-layer perceptron with the asymmetric loss."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Real
from os import PathLike
from typing import Any, ClassVar, Self

from sklearn.utils._param_validation import Interval
from torch import nn

from labelweave.dependent.mlp import Perceptron
from labelweave.exceptions import InputError
from labelweave.nn.cls_run import mlp_run
from labelweave.nn.losses import get_loss
from labelweave.nn.session import TrainingSession
from labelweave.nn.task import SupervisedTask, Task

__all__ = ["ASL"]


class ASL(Perceptron):
    """Asymmetric loss: easy negatives are weighted down, and very easy ones are ignored.

    Rows usually have many more negative labels than positive ones, and most of the negatives are
    easy. The loss focuses the network on positives and on hard negatives.

    Everything but the loss is as in :class:`~labelweave.dependent.mlp.MLP`; the loss itself is
    :func:`labelweave.nn.losses.asl`, Eq. 4 to 7 of the paper.

    Parameters
    ----------
    hidden : sequence of int, default=(512, 512)
    gamma_neg : float, default=4.0
        Focusing of negatives, `gamma-` in the paper.
    gamma_pos : float, default=1.0
        Focusing of positives, `gamma+`.
    clip : float, default=0.05
        Probability shift `m`: negatives below this probability are ignored.
    dropout, input_dropout, activation, norm, encoder, lr, weight_decay, optimizer, epochs,
    batch_size, min_steps, schedule, schedule_params, clip_norm, monitor, patience, scale, device,
    precision, checkpoint, checkpoint_every, callbacks, verbose, threshold,
    validation_fraction, random_state
        The other parameters of :class:`labelweave.dependent.mlp.Perceptron` and of
        :class:`labelweave.nn.estimator.NeuralClassifier`.

    Notes
    -----
    With ``gamma_neg`` above ``gamma_pos`` the outputs are too high to be probabilities: tune the
    threshold (``threshold="tuned"``) or calibrate.

    The paper fine-tunes a convolutional network on images, with an exponential average of the
    weights and a one-cycle learning rate. Here the encoder is an MLP on vectors, trained with the
    same loop as every other network.

    References
    ----------
    .. [1] T. Ridnik, E. Ben-Baruch, N. Zamir, A. Noy, I. Friedman, M. Protter and
       L. Zelnik-Manor. Asymmetric Loss For Multi-Label Classification. ICCV 2021.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, Y = make_multilabel_classification(n_samples=200, random_state=0)
    >>> model = ASL(hidden=(32,), epochs=20, threshold="tuned", random_state=0).fit(X, Y)
    >>> model.predict(X[:3]).shape
    (3, 5)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Perceptron._parameter_constraints,
        "gamma_neg": [Interval(Real, 0, None, closed="left")],
        "gamma_pos": [Interval(Real, 0, None, closed="left")],
        "clip": [Interval(Real, 0, 1, closed="left")],
    }

    tuning_space: ClassVar[dict[str, Any]] = {
        **Perceptron.tuning_space,
        "gamma_neg": ("choice", [1.0, 2.0, 4.0]),
        "gamma_pos": ("choice", [0.0, 1.0]),
        "clip": ("choice", [0.0, 0.05, 0.1]),
    }

    def __init__(
        self,
        hidden: Sequence[int] = (512, 512),
        *,
        gamma_neg: float = 4.0,
        gamma_pos: float = 1.0,
        clip: float = 0.05,
        dropout: float = 0.5,
        input_dropout: float = 0.0,
        activation: str = "relu",
        norm: str | None = "batch",
        encoder: Any = None,
        lr: float = 5e-4,
        weight_decay: float = 0.1,
        optimizer: str = "adamw",
        epochs: int | str = 200,
        batch_size: int = 64,
        min_steps: int | str = 1,
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
            lr=lr,
            weight_decay=weight_decay,
            optimizer=optimizer,
            epochs=epochs,
            batch_size=batch_size,
            min_steps=min_steps,
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
        self.hidden = hidden
        self.dropout = dropout
        self.input_dropout = input_dropout
        self.activation = activation
        self.norm = norm
        self.encoder = encoder
        self.gamma_neg = gamma_neg
        self.gamma_pos = gamma_pos
        self.clip = clip

    @classmethod
    def published(cls, dataset: str | None = None, *, source: str = "mulsupcon") -> Self:
        """Return the method with the focusing and clipping of its paper, which are the defaults.

        Parameters
        ----------
        dataset : str, optional
            A name of the catalog.
        source : {"mulsupcon", "cls"}, default="mulsupcon"
            The paper whose tables have the figures: that of MulSupCon does not say how it trained
            the method, that of CLS trains all methods of its Table 2 alike.
        """
        if source not in ("mulsupcon", "cls"):
            raise InputError(f"source must be 'mulsupcon' or 'cls', not {source!r}")
        run = mlp_run(dataset) if source == "cls" else {}
        return cls(gamma_neg=4.0, gamma_pos=1.0, clip=0.05, **run)

    def _build_task(self, network: nn.Module, session: TrainingSession) -> Task:
        parameters = {"gamma_neg": self.gamma_neg, "gamma_pos": self.gamma_pos, "clip": self.clip}
        loss = get_loss("asl", parameters)
        return SupervisedTask(network, loss, self._optimizer_options(), name="asl")
