"""Base of the methods for partial labels: different ways to train any network of the library."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self, final

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
from labelweave.nn.cls_run import mlp_run
from labelweave.nn.estimator import NeuralClassifier
from labelweave.nn.network_classifier import NetworkClassifier
from labelweave.nn.network_spec import NetworkSpec
from labelweave.nn.randomness import forked_rng
from labelweave.nn.session import TrainingSession
from labelweave.nn.task import Task
from labelweave.partial._selection.partial_run import PartialRun
from labelweave.partial._selection.peer_networks import PeerNetwork, peers_of
from labelweave.rows import concatenate_features, concatenate_labels
from labelweave.unannotated import UNANNOTATED, as_observed, assume_negative, unannotated_rule

__all__ = ["SHORT_RUN", "PartialClassifier", "published_base"]

# Settings of an MLP here. Few annotated positives are not enough to choose the best epoch by; a run
# of fixed length, whose learning rate falls to zero, needs no validation rows.
SHORT_RUN: dict[str, Any] = {
    "epochs": "auto",
    "min_steps": "auto",
    "patience": None,
    "lr": 1e-3,
    "schedule": "cosine",
    "schedule_params": {"warmup": 0.2},
    "input_dropout": 0.2,
}


class PartialClassifier(NetworkClassifier):
    """Base of the methods for partial labels; these parameters are common to all of them.

    A method writes `_build_task(run)`, the objective of its network or networks, and sets
    `_n_networks` if it trains several.

    Parameters
    ----------
    base : str or neural estimator, default="mlp"
        The network to train, and its training settings: any neural estimator of the library, or
        its id. Epochs, learning rate, patience, device, checkpoint and callbacks are parameters of
        it (``base__epochs=50``). ``"mlp"`` is trained with the settings :data:`SHORT_RUN`. A method
        that is a loss replaces the loss of the network.
    unannotated : {"auto", "zeros", "unknown"}, default="auto"
        Which entries of Y are unannotated. ``"zeros"``: the zeros; NaN entries are then ignored.
        ``"unknown"``: the NaN entries; zeros are then known negatives. ``"auto"``: the NaN entries
        if there are any, else the zeros. It is decided by all labels in `y`; validation rows
        follow it.
    validation : {"partial", "clean"}, default="partial"
        How the validation rows are annotated. ``"partial"``: like the training rows. ``"clean"``:
        completely, and they are passed to `fit`. The literature chooses epochs on such rows; use it
        only to compare with it.
    monitor : str, default="auto"
        What decides which weights are best, if `base` has patience. ``"auto"``: on partial
        validation rows the mean over labels of the area under the ROC curve of annotated
        positives against unannotated entries; on clean ones mean average precision. Otherwise
        as in every neural estimator. See Notes.
    threshold : float, str or Threshold, default="cardinality"
        As in every estimator. The default predicts, over all rows, the number of labels that the
        probabilities add up to; it uses no labels.
    validation_fraction, random_state
        As in every estimator.

    Attributes
    ----------
    network_ : nn.Module
        Maps (scaled) features to one logit per label; the mean of the peers if there are several.
    unannotated_ : {"zeros", "unknown"}
        The rule that was applied.
    scaling_ : FeatureScaling or None
    history_ : DataFrame
    best_epoch_ : int

    Notes
    -----
    If all positives are equally likely to be missed, a missing positive ranks like an annotated
    one. The area under the ROC curve against unannotated entries is then ``(1 - m) A + m / 2``,
    with A the true area and m the share of missing positives among these entries: the model that
    is best by the one is best by the other. Losses and precisions on partial labels have no such
    guarantee.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **MultiLabelClassifier._parameter_constraints,
        "base": [str, NetworkClassifier],
        "unannotated": [StrOptions(set(UNANNOTATED))],
        "validation": [StrOptions({"partial", "clean"})],
        "monitor": [str],
    }
    _n_networks: ClassVar[int] = 1
    _default_settings: ClassVar[dict[str, Any]] = SHORT_RUN
    _out_of_fold: tuple[LabelMatrix, np.ndarray] | None

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

    # -- what a method writes ----------------------------------------------------------

    def _build_task(self, run: PartialRun) -> Task:
        """The objective; targets are coded as in :mod:`labelweave.unannotated`."""
        raise NotImplementedError

    def _networks_to_build(self) -> int:
        return self._n_networks

    def _train(self, run: PartialRun) -> None:
        """Train the networks; torch's generator is seeded."""
        session, networks = run.session, peers_of(run.network)
        plain = replace(session, Y=assume_negative(session.Y))
        for k, network in enumerate(networks):
            part = plain if run.held_out is None else plain.rows(run.held_out.training_rows(k))
            prefix = f"peer-{k + 1}-" if len(networks) > 1 else ""
            session.spec.pretrain(network, replace(part, prefix=prefix))
        session.train(self._build_task(run), monitor=self._chosen_monitor(session))

    def _chosen_monitor(self, session: TrainingSession) -> str | None:
        if session.spec.settings.patience is None:
            return None
        if self.monitor == "auto":
            return "auc_macro" if self.validation == "partial" else "map"
        return self.monitor

    # -- the network to train ----------------------------------------------------------

    def network_spec(self) -> NetworkSpec:
        """The network that this method trains, its usual objective and its training settings."""
        return self._network_estimator().network_spec()

    def _network_estimator(self) -> NeuralClassifier:
        """The estimator whose network is trained."""
        estimator = self._estimator_of(self.base) if isinstance(self.base, str) else self.base
        if isinstance(estimator, PartialClassifier):
            raise InputError(
                f"base is {type(estimator).__name__}, which trains another network: pass the "
                "estimator of that network",
                parameter="base",
            )
        if not isinstance(estimator, NeuralClassifier):
            raise InputError(f"base must be a neural method, not {self.base!r}", parameter="base")
        return estimator

    def _estimator_of(self, id: str) -> Any:
        return make(id, **(self._default_settings if id == "mlp" else {}))

    def default_part(self, parameter: str) -> Any:
        """Return the estimator that the id in `base` stands for."""
        return self._estimator_of(self.base) if parameter == "base" else None

    def set_params(self, **parameters: Any) -> Self:
        """Set parameters; those of the network are called ``base__name``."""
        if any(name.startswith("base__") for name in parameters):
            base = parameters.get("base", self.base)
            parameters["base"] = self._estimator_of(base) if isinstance(base, str) else base
        return super().set_params(**parameters)

    def _build_networks(self, spec: NetworkSpec, n_features: int, n_labels: int) -> nn.Module:
        networks = [
            spec.build_network(n_features, n_labels) for _ in range(self._networks_to_build())
        ]
        return networks[0] if len(networks) == 1 else PeerNetwork(networks)

    def _build_network(self, n_features: int, n_labels: int) -> nn.Module:
        return self._build_networks(self.network_spec(), n_features, n_labels)

    # -- fitting -----------------------------------------------------------------------

    @final
    def fit(self, X: Any, y: Any, *, validation: Any = None, truth: Any = None) -> Self:
        """Fit to features and partial labels.

        Parameters
        ----------
        X, y, validation
            As in every estimator.
        truth : labels of the n rows, optional
            The complete labels, if they are known, as in an experiment. The model does not learn
            from them: the history counts the missing positives among the removed entries.

        Returns
        -------
        self
        """
        self._truth = None if truth is None else as_labels(truth)
        try:
            return super().fit(X, y, validation=validation)
        finally:
            del self._truth

    def _check_truth(self, Y: LabelMatrix) -> None:
        if self._truth is not None and self._truth.shape != Y.shape:
            raise InputError(
                f"truth has shape {self._truth.shape}, but Y has {Y.shape}", parameter="truth"
            )

    def _checked_targets(self, Y: Any) -> LabelMatrix:
        labels = super()._checked_targets(Y)
        self.unannotated_ = unannotated_rule(labels, self.unannotated)
        return labels

    def _rows_to_hold_out(self, X: Any, Y: LabelMatrix) -> tuple[np.ndarray, np.ndarray] | None:
        if self.validation == "clean":
            raise InputError(
                "validation='clean' needs validation rows that are annotated in full: pass "
                "validation= to fit",
                parameter="validation",
            )
        self._check_truth(Y)
        rows = super()._rows_to_hold_out(X, Y)
        if self._truth is not None and rows is not None:
            self._truth = self._truth[rows[0]]
        return rows

    def _needs_validation(self) -> bool:
        return self._network_estimator().patience is not None and self.monitor != "loss"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.capabilities.partial_labels = True
        tags.capabilities.label_prevalence = False  # missing positives are not counted
        return tags

    def _fit(self, X: Any, Y: LabelMatrix, validation: Pair | None) -> None:
        self._check_truth(Y)
        truth = self._truth
        learns_validation = capabilities(self).out_of_fold and self.validation == "partial"
        if validation is not None and learns_validation:
            X, Y = concatenate_features([X, validation[0]]), concatenate_labels([Y, validation[1]])
            validation = None
        rule = self.unannotated_
        observed = as_observed(Y, rule)
        coded_validation = None
        if validation is not None and self.validation == "partial":
            coded_validation = (validation[0], as_observed(validation[1], rule))
            validation = (validation[0], assume_negative(coded_validation[1]))
        session = self._open_session(X, observed, validation)
        self.scaling_ = session.scaling
        self._out_of_fold = None
        with forked_rng(session.seed, session.engine.device):
            network = self._build_networks(session.spec, X.shape[1], Y.n_labels)
            self._train(
                PartialRun(
                    network,
                    session,
                    validation=coded_validation,
                    missing=None if truth is None else _missing_positives(truth, observed),
                )
            )
        self._keep(network, session)

    def _open_session(
        self, X: Any, observed: LabelMatrix, validation: Pair | None
    ) -> TrainingSession:
        estimator = self._network_estimator()
        callbacks = estimator.callbacks
        estimator = clone(estimator)
        estimator.callbacks = callbacks  # not copies: a callback reports to its owner
        seed = estimator.random_state
        if self.random_state is not None:
            seed = int(self._generator().randint(np.iinfo(np.int32).max))
        spec = estimator.network_spec()
        spec.learn_statistics(X, assume_negative(observed), None)
        parameters = self.get_params(deep=False)
        return spec.open_session(
            X,
            observed,
            validation,
            seed,
            trainer_parameters={n: value for n, value in parameters.items() if n != "base"},
        )

    def _state(self) -> dict[str, Any]:
        return {**super()._state(), "unannotated": self.unannotated_}

    def _set_state(self, state: Mapping[str, Any]) -> None:
        super()._set_state(state)
        self.unannotated_ = state["unannotated"]

    @classmethod
    def _test_params(cls) -> dict[str, Any]:
        """Parameters with which tests over many tiny data sets stay quick."""
        mlp = make("mlp")
        mlp.set_params(**{**type(mlp)._test_params(), "epochs": 15, "lr": 2e-2})
        # scikit-learn's checks expect the labels with a probability above one half.
        return {"base": mlp, "threshold": 0.5}


def published_base(dataset: str | None) -> Any:
    """The network that all methods of Table 2 of the CLS paper share, and how it is trained.

    It is a ResNet-50 for the three sets of images; its weights from ImageNet are a file that the
    user adds (``base__encoder__weights``). For all other data it is an MLP.
    """
    return make("mlp", **mlp_run(dataset))


def _missing_positives(truth: LabelMatrix, observed: LabelMatrix) -> sp.csr_array:
    """The unannotated training entries that are positive according to the truth.

    Validation rows that are learnt too come after the rows of `truth`; theirs is not known.
    """
    positive = sp.csr_array(truth.positive())
    positive.resize(observed.shape)
    return sp.csr_array(positive.multiply(observed.to_numpy() == 0))
