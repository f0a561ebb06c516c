"""RBCC: a recurrent cell predicts each label from its parent in a Bayesian network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from os import PathLike
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
import torch
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 (torch's own way)

from labelweave.dependent.rbcc_structure import LabelForest, cross_residuals, learn_parents
from labelweave.known_labels import KnownLabelsMixin
from labelweave.labels import as_labels
from labelweave.nn.batches import Batch
from labelweave.nn.encoders import NORMS, MLPEncoder
from labelweave.nn.estimator import NeuralClassifier, TrainingSession
from labelweave.nn.losses import weigh_rows
from labelweave.nn.task import StepInfo, Task

__all__ = ["RBCC", "RBCCNetwork", "RBCCTask"]

_MIN_ROWS = 10  # with fewer rows no dependence is significant


class RBCCNetwork(nn.Module):
    """Features to the probability tables of a Bayesian network over labels, by a GRU cell.

    The initial state is computed from the features; the input is the sum of a vector of the label
    and a vector of the value of its parent. `options` are the estimator's parameters.
    """

    parents: Tensor

    def __init__(self, n_features: int, n_labels: int, options: dict[str, Any]) -> None:
        super().__init__()
        size = options["hidden_size"]
        self.encoder = MLPEncoder(
            n_features, options["encoder"], dropout=options["dropout"], norm=options["norm"]
        )
        self.state = nn.Linear(self.encoder.n_out, size)
        self.label_vectors = nn.Parameter(torch.randn(n_labels, size) / size**0.5)
        self.parent_vectors = nn.Parameter(torch.randn(n_labels, 2, size) / size**0.5)
        self.from_input = nn.Linear(size, 3 * size)
        self.from_state = nn.Linear(size, 3 * size)
        self.out = nn.Parameter(torch.randn(n_labels, size) / size**0.5)
        self.bias = nn.Parameter(torch.zeros(n_labels))
        self.register_buffer("parents", torch.full((n_labels,), -1))
        self.forest = LabelForest([-1] * n_labels)
        self.register_load_state_dict_post_hook(_rebuild_forest)

    def set_parents(self, parents: np.ndarray) -> None:
        """Set the parent of each label, before training."""
        self.parents.copy_(torch.from_numpy(parents))
        self.forest = LabelForest(parents.tolist())

    def forward(self, x: Tensor) -> Tensor:
        return self.logits(x)

    def logits(self, x: Tensor, known: Tensor | None = None) -> Tensor:
        """Logits of P(label | x, known labels)."""
        negative, positive = self.forest.marginals(self.tables(x), known).unbind(dim=-1)
        # The logit of a known label is infinite, so it is clamped.
        return (positive - negative).clamp(-80, 80)

    def tables(self, x: Tensor) -> Tensor:
        """log P(label = u | parent = v, x), shape (n, L, v, u)."""
        state = torch.tanh(self.state(self.encoder(x)))
        has_parent = (self.parents >= 0).to(state.dtype)
        above = self.parent_vectors[self.parents.clamp(min=0)] * has_parent[:, None, None]
        inputs = self.from_input(self.label_vectors.unsqueeze(1) + above)  # (L, 2, 3 size)
        # Features and labels are combined only in the gates, after their matrix products.
        states = self.from_state(state)[:, None, None]
        reset, update, new = inputs.chunk(3, dim=-1)
        reset_x, update_x, new_x = states.chunk(3, dim=-1)
        kept = torch.sigmoid(update + update_x)
        fresh = torch.tanh(new + torch.sigmoid(reset + reset_x) * new_x)
        hidden = fresh + kept * (state[:, None, None] - fresh)  # (n, L, 2, size)
        logits = torch.einsum("nlvh,lh->nlv", hidden, self.out) + self.bias.unsqueeze(1)
        return torch.stack([F.logsigmoid(-logits), F.logsigmoid(logits)], dim=-1)


def _rebuild_forest(network: nn.Module, _: Any) -> None:
    """Build the forest of the parents that were loaded with the weights."""
    assert isinstance(network, RBCCNetwork)
    network.forest = LabelForest(network.parents.tolist())


class RBCCTask(Task):
    """Minus the log-likelihood of the known labels, divided by the number of labels."""

    network: RBCCNetwork
    weighs_rows: ClassVar[bool] = True

    def losses(self, batch: Batch, info: StepInfo) -> dict[str, Tensor]:
        network = self.network
        of_rows = network.forest.log_likelihood(network.tables(batch.x), batch.y)
        return {"likelihood": -weigh_rows(of_rows, batch.row_weight).mean() / batch.y.shape[1]}


class RBCC(KnownLabelsMixin, NeuralClassifier):
    """Recurrent Bayesian classifier chain.

    A Bayesian network describes which labels depend on each other beyond what the features
    explain. A gated recurrent unit, shared by all labels, computes the probability of each label
    from the features and the value of its parent in that network.

    Parameters
    ----------
    hidden_size : int, default=100
        Units of the recurrent cell.
    encoder : sequence of int, default=(512, 512)
        Hidden layers between the features and the cell.
    dropout : float, default=0.5
    norm : {"batch", "layer"} or None, default="batch"
    structure : {"errors", "labels"} or None, default="errors"
        What the Bayesian network is learnt from: the residuals of a linear model of the
        features, or the labels themselves. With None the labels are independent.
    lr : float, default=5e-4
    epochs : int, default=200
    batch_size, min_steps, weight_decay, schedule, schedule_params, clip_norm, monitor, patience,
    scale, device, precision, checkpoint, checkpoint_every, callbacks, verbose, threshold,
    validation_fraction, random_state
        The other parameters of :class:`labelweave.nn.estimator.NeuralClassifier`.

    Attributes
    ----------
    parents_ : ndarray of int
        The parent of each label, -1 for those without one.

    Notes
    -----
    With at most one parent per label, probabilities are exact and nothing is sampled:
    `predict_proba` sums over the values of all other labels (conditioned on the known labels, if
    any), and `most_probable_sets` returns the most probable label set. The loss is the likelihood
    of the known labels, with unknown labels summed out.

    The implementation follows the paper's abstract and descriptions of it, not its text or
    program. The network is the best forest (Chow and Liu's algorithm, with the edges that the
    Bayesian information criterion selects) over the residuals of ridge regression on held-out
    halves of the training rows. Weights of rows are not used for it. The input of the cell is a
    choice of this library.

    References
    ----------
    .. [1] W. Gerych, T. Hartvigsen, L. Buquicchio, E. Agu and E. Rundensteiner. Recurrent Bayesian
       Classifier Chains for Exact Multi-Label Classification. NeurIPS 2021.
    .. [2] C. K. Chow and C. N. Liu. Approximating discrete probability distributions with
       dependence trees. IEEE Transactions on Information Theory 14, 1968.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, Y = make_multilabel_classification(n_samples=200, random_state=0)
    >>> model = RBCC(hidden_size=16, encoder=(32,), epochs=10, random_state=0).fit(X, Y)
    >>> model.predict_proba(X, known=np.where(Y == 1, 1.0, np.nan)).shape
    (200, 5)
    >>> model.most_probable_sets(X).shape
    (200, 5)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **NeuralClassifier._parameter_constraints,
        "hidden_size": [Interval(Integral, 1, None, closed="left")],
        "encoder": [list, tuple],
        "dropout": [Interval(Real, 0, 1, closed="left")],
        "norm": [StrOptions(set(NORMS)), None],
        "structure": [StrOptions({"errors", "labels"}), None],
    }

    network_: RBCCNetwork

    tuning_space: ClassVar[dict[str, Any]] = {
        "hidden_size": ("choice", [50, 100, 200]),
        "encoder": ("choice", [[], [512], [512, 512]]),
        "dropout": ("float", 0.0, 0.6),
        "lr": ("log", 1e-4, 1e-2),
        "weight_decay": ("log", 1e-6, 1e-2),
    }

    def __init__(
        self,
        hidden_size: int = 100,
        *,
        encoder: Sequence[int] = (512, 512),
        dropout: float = 0.5,
        norm: str | None = "batch",
        structure: str | None = "errors",
        lr: float = 5e-4,
        epochs: int = 200,
        batch_size: int = 64,
        min_steps: int | str = 1,
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
            lr=lr,
            epochs=epochs,
            batch_size=batch_size,
            min_steps=min_steps,
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
        self.encoder = encoder
        self.dropout = dropout
        self.norm = norm
        self.structure = structure

    @classmethod
    def published(cls, dataset: str | None = None) -> Self:
        """Return the method with the cell of 100 units of its paper."""
        return cls(hidden_size=100)

    def _build_network(self, n_features: int, n_labels: int) -> nn.Module:
        return RBCCNetwork(n_features, n_labels, self.get_params(deep=False))

    def _build_task(self, network: nn.Module, session: TrainingSession) -> Task:
        assert isinstance(network, RBCCNetwork)
        return RBCCTask(network, self._optimizer_options())

    def _learn(self, network: nn.Module, session: TrainingSession) -> None:
        assert isinstance(network, RBCCNetwork)
        if self.structure is not None and len(session.Y) >= _MIN_ROWS:
            values = session.Y.to_numpy().astype(float)
            if self.structure == "errors":
                X = session.X
                if session.scaling is not None:  # a linear model does not depend on the shift
                    factor = session.scaling.factor.cpu().numpy()
                    X = X @ sp.diags_array(factor) if sp.issparse(X) else X * factor
                values = cross_residuals(X, values, seed=session.seed)
            network.set_parents(learn_parents(values))
        super()._learn(network, session)

    def _row_size(self, n_features: int, n_labels: int) -> int:
        return max(n_features, 2 * n_labels * self.hidden_size)

    def _predict_proba(self, X: Any, known: np.ndarray | None = None) -> np.ndarray:
        if known is None:
            return super(KnownLabelsMixin, self)._predict_proba(X)

        def probabilities(x: Tensor, labels: Tensor) -> Tensor:
            return torch.sigmoid(self.network_.logits(x, labels))

        return self._in_batches(probabilities, X, as_labels(known))

    def most_probable_sets(self, X: Any, known: Any = None) -> np.ndarray:
        """The jointly most probable label sets, as a matrix of 0 and 1.

        `predict` applies a threshold to the marginal probability of each label; the jointly most
        probable set maximises the expected subset accuracy instead.

        Parameters
        ----------
        X : array-like, SciPy sparse or DataFrame of shape (n, d)
        known : as in `predict_proba`, optional
        """
        check_is_fitted(self)
        X = self._checked_features(X, reset=False)
        unknown = np.full((X.shape[0], self.n_labels_), np.nan, dtype=np.float32)
        known_labels = as_labels(unknown if known is None else self._checked_known(known))

        def sets(x: Tensor, labels: Tensor) -> Tensor:
            return self.network_.forest.most_probable(self.network_.tables(x), labels)

        return self._in_batches(sets, X, known_labels).astype(self._target_dtype)

    @property
    def parents_(self) -> np.ndarray:
        """The parent of each label in the Bayesian network, -1 for those without one."""
        return self.network_.parents.cpu().numpy()

    @classmethod
    def _test_params(cls) -> dict[str, Any]:
        small = {"hidden_size": 16, "encoder": (32,), "dropout": 0.1}
        return {**super()._test_params(), **small}
