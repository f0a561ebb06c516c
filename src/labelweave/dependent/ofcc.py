"""OFCC: a recurrent classifier chain whose order of labels is chosen per row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from os import PathLike
from typing import Any, ClassVar, Self

import numpy as np
import torch
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from labelweave.dependent.ofcc_network import OrderFreeChain
from labelweave.exceptions import InputError
from labelweave.known_labels import KnownLabelsMixin
from labelweave.labels import as_labels
from labelweave.nn.batches import Batch, Batches
from labelweave.nn.distributed import find_device
from labelweave.nn.encoders import NORMS
from labelweave.nn.estimator import NeuralClassifier, TrainingSession
from labelweave.nn.losses import bce, mean_loss
from labelweave.nn.prediction import scoring_rows
from labelweave.nn.process_rows import draw_rows
from labelweave.nn.task import StepInfo, Task

__all__ = ["OFCC", "OFCCTask"]

_ROLES = ("teacher-1", "teacher-2", "student")
# In the tables of the ANT paper: hidden sizes by role, and the batch size.
_GENERAL = ((64, 128, 32), 8)
_PUBLISHED = {
    "emotions": ((32, 64, 16), 8),
    "scene": ((16, 32, 16), 8),
    "yelp": ((128, 256, 32), 32),
    "yeast": ((32, 64, 32), 8),
    "birds": ((64, 128, 32), 8),
    "tmc2007": ((128, 256, 64), 128),
    "tmc2007-500": ((128, 256, 64), 128),
    "genbase": ((128, 256, 64), 8),
    "medical": ((128, 256, 64), 16),
}


class OFCCTask(Task):
    """Cross-entropy of the final logits (Eq. 11) or of the logits of every step.

    Targets may be probabilities, such as those of teachers, as long as nothing is revealed.

    Parameters
    ----------
    network : OrderFreeChain
    loss : {"final", "every-step"}
    reveal : float
        See the estimator.
    plan : dict
        Arguments of :func:`labelweave.nn.task.make_plan`.
    """

    network: OrderFreeChain
    weighs_rows: ClassVar[bool] = True

    def __init__(
        self, network: OrderFreeChain, loss: str, plan: dict[str, Any], *, reveal: float = 0.0
    ) -> None:
        super().__init__(network, plan)
        self.loss = loss
        self.reveal = reveal

    def losses(self, batch: Batch, info: StepInfo) -> dict[str, Tensor]:
        every_step = self.training and self.loss == "every-step"
        known = self._revealed(batch.y) if self.training and self.reveal > 0 else None
        run = self.network.run(batch.x, known=known, all_steps=every_step)
        targets = batch.y if known is None else batch.y.masked_fill(~torch.isnan(known), torch.nan)
        outputs = torch.stack(run.steps) if every_step else run.logits
        entries = bce(outputs, targets.expand_as(outputs))
        return {"bce": mean_loss(entries, row_weight=batch.row_weight)}

    def _revealed(self, targets: Tensor) -> Tensor:
        """Known labels drawn at random: a random share of the labels in a share of the rows."""
        shares = draw_rows(targets.new_empty((len(targets), 2)), Tensor.uniform_)
        draws = draw_rows(targets, Tensor.uniform_)
        revealed = (shares[:, :1] < self.reveal) & (draws < shares[:, 1:])
        return targets.masked_fill(~revealed, torch.nan)


class OFCC(KnownLabelsMixin, NeuralClassifier):
    """Order-free classifier chain.

    At each step an LSTM reads the features, its logits of the step before and the labels
    predicted so far, and computes new logits. The most probable remaining label turns positive if
    its probability exceeds one half, and the next step sees it. So each row has its specific order
    of labels, with the easiest first.

    Parameters
    ----------
    hidden_size : int, default=64
        Units of the LSTM.
    loss : {"final", "every-step"}, default="final"
        Cross-entropy of the final logits, which is Eq. 11 of the paper, or averaged over the
        logits of all steps, as in the authors' program. The first ends when all chains of a
        batch have ended and takes less than half of the time; their quality is similar.
    max_steps : int, optional
        Length of the chain; by default the number of labels. If there are many labels and few
        per row, a shorter chain saves most of the time.
    choose : {"probable", "every-step"}, default="probable"
        When the best remaining label turns positive: if it is probable (see the notes), as in the
        authors' program, or at every step, as in the paper's text.
    reveal : float, default=0.5
        Share of the training rows in which a random part of the labels is known and the loss is
        computed on the others, as at prediction with `known` labels.
    encoder : sequence of int, default=()
        Hidden layers between the features and the chain, each with `dropout` and `norm`. The
        paper has none; one of 512 is better on yeast.
    dropout : float, default=0.5
    norm : {"batch", "layer"} or None, default="batch"
    min_steps : int, default=30
    epochs, batch_size, lr, weight_decay, schedule, schedule_params, clip_norm, monitor,
    patience, scale, device, precision, checkpoint, checkpoint_every, callbacks, verbose,
    threshold, validation_fraction, random_state
        The other parameters of :class:`labelweave.nn.estimator.NeuralClassifier`.

    Notes
    -----
    A label turns positive if its probability and the product of the probabilities of all best
    labels before it exceed one half. Once the product is below, the chain of a row changes
    nothing, and prediction stops when this holds for all rows. Prediction is deterministic.

    Departures from the paper: `min_steps`, which lengthens epochs when there are few rows, and
    `reveal` (0 in the paper): a chain that was trained only on its predicted labels gets worse
    when it is conditioned on known ones.

    Where the text [1]_ and its authors' program differ, the chain follows the program: in the text
    the best remaining label turns positive at every step, so that each label is chosen at some
    step and has the logit of that step (``choose="every-step"``). Both losses are means over labels
    and rows; Eq. 11 is a sum over labels, and the program's a sum over steps.

    References
    ----------
    .. [1] J. Thadajarassiri, T. Hartvigsen, W. Gerych, X. Kong and E. Rundensteiner. Knowledge
       Amalgamation for Multi-Label Classification via Label Dependency Transfer. AAAI 2023.
    .. [2] S.-F. Chen, Y.-C. Chen, C.-K. Yeh and Y.-C. F. Wang. Order-Free RNN with Visual
       Attention for Multi-Label Classification. AAAI 2018.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, Y = make_multilabel_classification(n_samples=200, random_state=0)
    >>> model = OFCC(hidden_size=16, epochs=10, random_state=0).fit(X, Y)
    >>> start = np.full(Y.shape, np.nan)
    >>> start[:, 2] = 4.0  # logits of another model for the third label
    >>> model.chain_logits(X, start=start).shape
    (200, 5)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **NeuralClassifier._parameter_constraints,
        "hidden_size": [Interval(Integral, 1, None, closed="left")],
        "loss": [StrOptions({"every-step", "final"})],
        "max_steps": [Interval(Integral, 1, None, closed="left"), None],
        "choose": [StrOptions({"probable", "every-step"})],
        "reveal": [Interval(Real, 0, 1, closed="both")],
        "encoder": [list, tuple],
        "dropout": [Interval(Real, 0, 1, closed="left")],
        "norm": [StrOptions(set(NORMS)), None],
    }

    network_: OrderFreeChain

    tuning_space: ClassVar[dict[str, Any]] = {
        "hidden_size": ("choice", [16, 32, 64, 128, 256]),
        "encoder": ("choice", [[], [256], [512, 512]]),
        "loss": ("choice", ["every-step", "final"]),
        "lr": ("log", 2e-4, 5e-3),
        "weight_decay": ("log", 1e-6, 1e-2),
    }

    def __init__(
        self,
        hidden_size: int = 64,
        *,
        loss: str = "final",
        max_steps: int | None = None,
        choose: str = "probable",
        reveal: float = 0.5,
        encoder: Sequence[int] = (),
        dropout: float = 0.5,
        norm: str | None = "batch",
        min_steps: int = 30,
        epochs: int | str = 100,
        batch_size: int = 64,
        lr: float = 1e-3,
        weight_decay: float = 1e-4,
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
            min_steps=min_steps,
            epochs=epochs,
            batch_size=batch_size,
            lr=lr,
            weight_decay=weight_decay,
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
        self.hidden_size = hidden_size
        self.loss = loss
        self.max_steps = max_steps
        self.choose = choose
        self.reveal = reveal
        self.encoder = encoder
        self.dropout = dropout
        self.norm = norm

    @classmethod
    def published(
        cls, dataset: str | None = None, *, source: str = "program", role: str = "teacher-1"
    ) -> Self:
        """OFCC with the settings of the ANT paper's tables.

        Choices: teachers, which train for at most 1000 epochs, stop after 50 without a better
        validation loss; other data sets than the paper's have the hidden sizes of birds.

        Parameters
        ----------
        dataset : str, optional
            Name of a data set in the catalog.
        source : {"program", "text"}, default="program"
            The program, which made the published figures, computes the loss on the logits of every
            step, and the best remaining label turns positive if it is probable. In the text the
            loss is that of the final logits (Eq. 11), and a label turns positive at every step.
        role : {"teacher-1", "teacher-2", "student"}, default="teacher-1"
            They differ in their hidden size, and a student trains for 200 epochs.
        """
        if source not in ("text", "program"):
            raise InputError(
                f"source must be 'program' or 'text', not {source!r}", parameter="source"
            )
        if role not in _ROLES:
            raise InputError(
                f"role must be one of {', '.join(_ROLES)}, not {role!r}", parameter="role"
            )
        sizes, batch_size = _PUBLISHED.get(dataset or "", _GENERAL)
        is_student = role == "student"
        return cls(
            sizes[_ROLES.index(role)],
            loss="final" if source == "text" else "every-step",
            choose="every-step" if source == "text" else "probable",
            reveal=0.0,
            min_steps=1,
            epochs=200 if is_student else 1000,
            batch_size=batch_size,
            lr=1e-3,
            weight_decay=0.0,
            patience=None if is_student else 50,
        )

    def _build_network(self, n_features: int, n_labels: int) -> nn.Module:
        return OrderFreeChain(
            n_features,
            n_labels,
            self.hidden_size,
            max_steps=self.max_steps,
            choose=self.choose,
            encoder=self.encoder,
            dropout=self.dropout,
            norm=self.norm,
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.capabilities.soft_targets = self.reveal == 0
        return tags

    def _build_task(self, network: nn.Module, session: TrainingSession) -> Task:
        assert isinstance(network, OrderFreeChain)
        return OFCCTask(network, self.loss, self._optimizer_options(), reveal=self.reveal)

    def _predict_proba(self, X: Any, known: np.ndarray | None = None) -> np.ndarray:
        if known is None:
            return super(KnownLabelsMixin, self)._predict_proba(X)

        def probabilities(x: Tensor, labels: Tensor) -> Tensor:
            return torch.sigmoid(self.network_.run(x, known=labels).logits)

        return self._in_batches(probabilities, X, as_labels(known))

    def chain_logits(self, X: Any, *, start: np.ndarray | None = None) -> np.ndarray:
        """The final logits of the chain, optionally started from other logits.

        Parameters
        ----------
        X : array-like, SciPy sparse or DataFrame of shape (n, d)
        start : ndarray of shape (n, L), optional
            Logits that the first step reads, in the order of `label_names_`; NaN for the model's
            prediction from the features alone.

        Returns
        -------
        ndarray of shape (n, L)
        """
        check_is_fitted(self)
        X = self._checked_features(X, reset=False)
        shape = (X.shape[0], self.n_labels_)
        if start is not None and np.shape(start) != shape:
            raise InputError(f"start has shape {np.shape(start)}, but must have {shape}")
        device = find_device(self.device)
        network = self.network_.to(device).eval()
        logits = None if start is None else torch.as_tensor(start, dtype=torch.float32)
        rows = scoring_rows(self._row_size(X.shape[1], self.n_labels_))
        batches = Batches(X, batch_size=rows, scaling=self.scaling_, device=device)
        parts = []
        with torch.inference_mode():
            for batch in batches.in_order():
                first = None if logits is None else logits[batch.rows.cpu()].to(device)
                parts.append(network.run(batch.x, start=first).logits.cpu())
        return torch.cat(parts).numpy()

    @classmethod
    def _test_params(cls) -> dict[str, Any]:
        return {**super()._test_params(), "hidden_size": 16}
