"""Base of the methods for partial labels: a way to train any network of the library."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.utils._param_validation import StrOptions
from torch import nn

from labelweave.base import MultiLabelClassifier, Pair
from labelweave.capabilities import capabilities
from labelweave.exceptions import InputError
from labelweave.labels import LabelMatrix, as_labels
from labelweave.methods import make
from labelweave.missing_positives import missing_share
from labelweave.nn.estimator import NeuralClassifier
from labelweave.nn.losses import bce
from labelweave.nn.network_spec import NetworkSpec
from labelweave.nn.randomness import forked_rng
from labelweave.nn.scoring import predict_scores
from labelweave.nn.session import TrainingSession
from labelweave.nn.task import Task
from labelweave.partial._selection.held_out import HeldOutRows
from labelweave.partial._selection.label_evidence import LabelEvidence
from labelweave.partial._selection.partial_losses import EntryLoss, PartialLossTask
from labelweave.partial._selection.peer_networks import PeerNetwork, PeerTask, peers_of
from labelweave.partial._selection.posterior import count_shift, shifted
from labelweave.partial._selection.strategies import Strategy
from labelweave.rows import concatenate_features, concatenate_labels
from labelweave.unannotated import UNANNOTATED, as_observed, assume_negative, unannotated_rule

__all__ = ["SHORT_RUN", "PartialClassifier"]

_PROBE_EPOCHS = 8

# How an MLP is trained here. Few annotated positives are too few to choose an epoch by: a run
# of fixed length whose rate falls to zero needs no rows to choose on.
SHORT_RUN: dict[str, Any] = {
    "epochs": "auto",
    "min_steps": "auto",
    "patience": None,
    "lr": 1e-3,
    "schedule": "cosine",
    "schedule_params": {"warmup": 0.2},
    "input_dropout": 0.2,
}


class PartialClassifier(NeuralClassifier):
    """Base of the methods for partial labels; these parameters are common to all of them.

    Parameters
    ----------
    base : str or neural estimator, default="mlp"
        The network to train, and how: any neural estimator of the library or its id. Epochs,
        learning rate, patience, device, checkpoint, callbacks are its parameters
        (``base__epochs=50``). ``"mlp"`` is trained as :data:`SHORT_RUN` says. A method that is a
        loss puts it in the place of the network's own.
    unannotated : {"auto", "zeros", "unknown"}, default="auto"
        Which entries of Y nobody annotated. ``"zeros"``: the zeros; NaN entries then take no
        part at all. ``"unknown"``: the NaN entries; zeros are then known negatives that are
        never doubted. ``"auto"``: the zeros if there is any, else the NaN entries.
    validation : {"partial", "clean"}, default="partial"
        What the validation rows are. ``"partial"``: annotated like the training rows.
        ``"clean"``: annotated in full, and given to `fit`; this is how the literature chooses
        epochs, and only for comparison with it.
    monitor : str, default="auto"
        What says which weights are best, where `base` has patience. ``"auto"``: on partial
        validation rows the mean over labels of the area under the ROC curve of annotated
        positives against unannotated entries; on clean ones mean average precision. Otherwise
        as in every neural estimator. See Notes.
    threshold : float, str or Threshold, default="cardinality"
        As in every estimator. The default predicts as many labels as the probabilities sum up
        to, and looks at no label.
    validation_fraction, random_state
        As in every estimator.

    Attributes
    ----------
    network_ : nn.Module
        Maps (scaled) features to one logit a label; the mean of the peers where there are two.
    scaling_ : FeatureScaling or None
    history_ : DataFrame
    best_epoch_ : int

    Notes
    -----
    Where positives are missed by chance, a missing positive ranks like an annotated one, so the
    area under the ROC curve against unannotated entries is ``(1 - m) A + m / 2``, with A the true
    area and m the share of missing positives among these entries: the model that is best by the
    one is best by the other. Losses and precisions on partial labels have no such guarantee.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **MultiLabelClassifier._parameter_constraints,
        "base": [str, NeuralClassifier],
        "unannotated": [StrOptions(set(UNANNOTATED))],
        "validation": [StrOptions({"partial", "clean"})],
        "monitor": [str],
    }
    _n_peers: ClassVar[int] = 1
    _run: ClassVar[dict[str, Any]] = SHORT_RUN

    def __init__(
        self,
        base: Any = "mlp",
        *,
        unannotated: str = "auto",
        validation: str = "partial",
        monitor: str = "auto",
        threshold: Any = "cardinality",
        validation_fraction: float = 0.2,
        random_state: Any = None,
    ) -> None:
        self.base = base
        self.unannotated = unannotated
        self.validation = validation
        self.monitor = monitor
        self.threshold = threshold
        self.validation_fraction = validation_fraction
        self.random_state = random_state

    # -- the network to train ----------------------------------------------------------

    def _default_base(self) -> Any:
        """The estimator that the id in `base` stands for."""
        return self._made(self.base)

    def _made(self, id: str) -> Any:
        return make(id, **(self._run if id == "mlp" else {}))

    def _network_model(self) -> NeuralClassifier:
        """The estimator whose network is trained: unfitted, and nobody else's."""
        model = self._default_base() if isinstance(self.base, str) else clone(self.base)
        if not isinstance(model, NeuralClassifier):
            raise InputError(f"base must be a neural method, and {self.base!r} is none")
        if isinstance(model, PartialClassifier):
            raise InputError(
                f"base is {type(model).__name__}, which itself trains another network: give that"
            )
        if isinstance(self.base, NeuralClassifier):
            model.callbacks = self.base.callbacks  # they report to their owner, so no copies
        return model

    def set_params(self, **parameters: Any) -> Self:
        """Set parameters; those of the network are called ``base__name``."""
        if any(name.startswith("base__") for name in parameters):
            base = parameters.get("base", self.base)
            parameters["base"] = self._made(base) if isinstance(base, str) else base
        return super().set_params(**parameters)

    def _image_encoder(self) -> Any:
        # The network that an id stands for reads no images.
        return None if isinstance(self.base, str) else self.base._image_encoder()

    @property
    def device(self) -> str:  # type: ignore[override]
        """Where the network computes."""
        return self._network_model().device

    # -- fitting -----------------------------------------------------------------------

    def fit(self, X: Any, y: Any, *, validation: Any = None, truth: Any = None) -> Self:
        """Fit to features and partial labels.

        Parameters
        ----------
        X, y, validation
            As in every estimator.
        truth : labels of the n rows, optional
            The full labels, where a scenario knows them. They are not learnt from: the history
            counts by them how many of the entries that were removed are missing positives.

        Returns
        -------
        self
        """
        self._truth = None if truth is None else as_labels(truth)
        self._training_rows: np.ndarray | None = None
        self._held: Pair | None = None
        try:
            return super().fit(X, y, validation=validation)
        finally:
            for name in ("_truth", "_training_rows", "_held", "_aside", "_n_given", "_evidence"):
                self.__dict__.pop(name, None)

    def _hold_out(self, X: Any, Y: LabelMatrix) -> tuple[Any, LabelMatrix, Pair | None]:
        if self.validation == "clean":
            raise InputError(
                "validation='clean' needs validation rows that are annotated in full: pass "
                "validation= to fit"
            )
        rows, Y, held = super()._hold_out(np.arange(len(Y)), Y)
        self._training_rows = rows  # so that the truth can follow
        return X[rows], Y, None if held is None else (X[held[0]], held[1])

    def _needs_validation(self) -> bool:
        return self._network_model().patience is not None and self.monitor != "loss"

    def _holds_out_per_network(self) -> bool:
        """Whether each of several networks holds out rows of its own."""
        alone = self._n_peers == 1 or self.validation == "clean"
        return not alone and self._network_model().patience is None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.capabilities.label_prevalence = False  # missing positives are not counted
        tags.capabilities.out_of_fold = self._holds_out_per_network()
        return tags

    def _fit(self, X: Any, Y: LabelMatrix, validation: Pair | None) -> None:
        self._n_given = Y.n_rows
        if (
            validation is not None
            and capabilities(self).out_of_fold
            and self.validation == "partial"
        ):
            # As good as the others: other networks learn what one of them sets aside.
            X, Y = concatenate_features([X, validation[0]]), concatenate_labels([Y, validation[1]])
            validation = None
        model = self._network_model()
        if self.random_state is not None:
            model.random_state = int(self._generator().randint(np.iinfo(np.int32).max))
        rule = unannotated_rule(Y, self.unannotated)
        observed = as_observed(Y, rule)
        if validation is not None and self.validation == "partial":
            self._held = (validation[0], as_observed(validation[1], rule))
            validation = (validation[0], assume_negative(self._held[1]))
        spec = model.network_spec()
        spec.learn_statistics(X, assume_negative(observed))
        parameters = self.get_params(deep=False)
        session = spec.open_session(
            X,
            observed,
            validation,
            model.random_state,
            trainer_parameters={n: value for n, value in parameters.items() if n != "base"},
        )
        self._aside: HeldOutRows | None = None
        self._out_of_fold: tuple[LabelMatrix, np.ndarray] | None = None
        with forked_rng(session.seed, session.engine.device):
            network = self._peer_networks(spec, X.shape[1], Y.n_labels)
            self._learn(network, session)
        self._keep(network, session)

    def _build_network(self, n_features: int, n_labels: int) -> nn.Module:
        return self._peer_networks(self._network_model().network_spec(), n_features, n_labels)

    def _n_networks(self) -> int:
        return self._n_peers

    def _peer_networks(self, spec: NetworkSpec, n_features: int, n_labels: int) -> nn.Module:
        networks = [spec.build_network(n_features, n_labels) for _ in range(self._n_networks())]
        return networks[0] if len(networks) == 1 else PeerNetwork(networks)

    def _learn(self, network: nn.Module, session: TrainingSession) -> None:
        spec = session.spec
        networks = peers_of(network)
        if capabilities(self).out_of_fold:
            self._aside = HeldOutRows(session, len(networks))
        plain = replace(session, Y=assume_negative(session.Y))
        for k, own in enumerate(networks):
            part = plain if self._aside is None else plain.rows(self._aside.learnt_by(k))
            prefix = f"peer-{k + 1}-" if len(networks) > 1 else ""
            spec.pretrain(own, replace(part, prefix=prefix))
        monitor = self.monitor
        if monitor == "auto":
            monitor = "auc_macro" if self.validation == "partial" else "map"
        session.train(
            self._build_task(network, session),
            monitor=None if spec.settings.patience is None else monitor,
        )
        if self._aside:  # some rows at least
            self._out_of_fold = self._counted(network, self._aside)

    def _counted(self, network: Any, aside: HeldOutRows) -> tuple[LabelMatrix, np.ndarray]:
        """Lower what the peers expect to what there seems to be; their scores of rows aside."""
        scores = aside.scores()
        by = count_shift(scores, aside.observed.to_numpy())
        network.move(by)
        return assume_negative(aside.observed), shifted(scores, by)

    def _build_task(self, network: nn.Module, session: TrainingSession) -> Task:
        """The objective, over targets coded as in :mod:`labelweave.unannotated`."""
        raise NotImplementedError

    def _loss_task(
        self, network: nn.Module, session: TrainingSession, loss: EntryLoss, name: str
    ) -> Task:
        """The network with a loss of its own in place of that of its estimator."""
        return PartialLossTask(network, loss, session.spec.settings.optimizer_options(), name=name)

    def _peer_task(
        self, network: nn.Module, session: TrainingSession, strategy: Strategy, **rates: Any
    ) -> Task:
        """The networks with the objective of their estimator, under a strategy."""
        spec = session.spec
        tasks = [spec.build_task(own, session) for own in peers_of(network)]
        strategy = self._fitting(strategy, tasks[0])
        self._evidence = self._label_evidence(strategy, session.Y)
        return PeerTask(
            network,
            tasks,
            strategy,
            negative_weight=self._negative_weight(tasks[0], session.Y),
            missing=self._missing(session.Y),
            aside=None if self._aside is None else self._aside.of_row,
            n_rows=session.Y.n_rows,
            n_labels=session.Y.n_labels,
            evidence=self._evidence,
            one_optimizer=spec.settings.clip_norm is None,
            estimate=self._estimator(session) if rates["tau_h"] is None else None,
            **rates,
        )

    def _fitting(self, strategy: Strategy, task: Task) -> Strategy:
        """The strategy that suits the objective of the networks."""
        return strategy

    def _label_evidence(self, strategy: Strategy, observed: LabelMatrix) -> LabelEvidence | None:
        """What labels say of other labels, where the method heeds it."""
        return None

    def _ramp(self, given: float | str, session: TrainingSession) -> float:
        """Epochs over which rates rise; "auto": half of the run, ten at the most."""
        return min(session.n_epochs / 2, 10.0) if given == "auto" else float(given)

    def _negative_weight(self, task: Task, observed: LabelMatrix) -> float:
        """Weight of an unannotated entry in the objective of the networks."""
        return 1.0

    # -- how much is missing -----------------------------------------------------------

    def _estimator(self, session: TrainingSession) -> Callable[[], float]:
        """What tells the rate, by the task that is being trained.

        Scores of rows that a network has set aside, or of validation rows, which were not
        trained on; without any, of training rows.
        """
        if self._aside:
            observed, score = self._aside.observed, self._aside.scores
        else:
            X, observed = (session.X, session.Y) if self._held is None else self._held
            batches = session.scoring_batches(X, observed)

            def score() -> np.ndarray:
                task = session.engine.task
                was_training = task.training
                task.eval()
                found = predict_scores(session.engine.scores, batches, session.engine)
                task.train(was_training)
                return found

        codes = observed.to_numpy()
        return lambda: self._rate(score(), codes)

    def _rate(self, scores: np.ndarray, codes: np.ndarray) -> float:
        """The rate that "auto" stands for, by scores of rows that were not trained on."""
        return missing_share(scores[codes == 1], scores[codes == 0])

    def _expected(self, session: TrainingSession, given: float | str) -> float:
        """Positives to expect a row: as given, or annotated ones and the estimated missing ones."""
        if given != "auto":
            return float(given)
        probe = session.spec.build_network(session.X.shape[1], session.Y.n_labels)
        task = self._loss_task(probe, session, lambda z, y, _: bce(z, y), "an")
        epochs = min(_PROBE_EPOCHS, session.n_epochs)
        short = {"epochs": epochs, "monitor": None, "patience": None}
        session.train(task, stage="probe", **short)
        share = self._estimator(session)()
        positives = float(session.Y.positive().sum())
        unannotated = float((session.Y.to_numpy() == 0).sum())
        return (positives + share * unannotated) / session.Y.n_rows

    def _missing(self, observed: LabelMatrix) -> sp.csr_array | None:
        """The unannotated training entries that are positive in truth, if that is known."""
        if self._truth is None:
            return None
        truth = self._truth if self._training_rows is None else self._truth[self._training_rows]
        if truth.shape != (self._n_given, observed.n_labels):
            raise InputError(
                f"truth has shape {truth.shape}, but Y has {(self._n_given, observed.n_labels)}"
            )
        is_open = observed.to_numpy() == 0
        # Validation rows that are learnt too come after those of Y; nobody knows their truth.
        known = sp.csr_array(truth.positive())
        known.resize(observed.shape)
        return sp.csr_array(known.multiply(is_open))

    @classmethod
    def _test_params(cls) -> dict[str, Any]:
        """Parameters with which tests over many tiny data sets stay quick."""
        mlp = make("mlp")
        mlp.set_params(**{**type(mlp)._test_params(), "epochs": 15, "lr": 2e-2})
        # scikit-learn wants label sets to be the probabilities above one half.
        return {"base": mlp, "threshold": 0.5}
