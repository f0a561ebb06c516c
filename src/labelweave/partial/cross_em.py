"""Cross-fitted expectation maximisation: networks label the rows that they were not trained on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.utils._param_validation import Interval, StrOptions
from torch import Tensor, nn

from labelweave.data.splits import stratified_folds
from labelweave.exceptions import InputError
from labelweave.nn.batches import Batch
from labelweave.nn.losses import bce, mean_loss
from labelweave.nn.prediction import predict_scores
from labelweave.nn.session import TrainingSession
from labelweave.nn.task import StepInfo, SupervisedTask, Task
from labelweave.partial._selection.partial_losses import PartialLossTask, plain_targets
from labelweave.partial._selection.partial_run import PartialRun
from labelweave.partial._selection.peer_networks import PeerNetwork, peers_of
from labelweave.partial._selection.posterior import (
    annotation_posterior,
    annotation_posterior_given_labels,
    annotation_rate,
    logit_shift,
    positive_posterior,
    shifted,
)
from labelweave.partial.base import PartialClassifier
from labelweave.partial.large_loss import LargeLossRule
from labelweave.unannotated import assume_negative

__all__ = ["CrossFitEM"]

_NEGATIVES_PER_ROW = 3.0  # weight of all unannotated entries of a row together, in positives


class CrossFitEM(PartialClassifier):
    """Cross-fitted expectation maximisation with any network.

    The rows are split into folds. One network per fold is trained on the rows of all other folds,
    so every row has scores of a network that was not trained on it. From these scores the share of
    annotated positives is estimated, and each unannotated entry gets its posterior probability of
    being positive (E-step). New networks are trained on these probabilities as soft targets
    (M-step). The prediction is the mean of the probabilities of the last networks.

    In the first round each network ignores its own unannotated entries of highest loss (LL-R). The
    loss is cross-entropy, whatever the loss of `base` is.

    Parameters
    ----------
    base : str or neural estimator, default="mlp"
        The network to train, with its epochs, learning rate and patience.
    n_folds : int, default=4
        Number of folds, and of networks per round. No other rows are held out.
    rounds : int, default=1
        Number of E- and M-steps after the first networks; 0 keeps the first networks.
    ramp : float or "auto", default="auto"
        Number of epochs over which the share of entries that the first networks ignore rises to the
        estimated share. ``"auto"``: half of the run, at most 10.
    negative_weight : float or "auto", default="auto"
        Weight of an unannotated entry for the first networks. ``"auto"``: all unannotated entries
        of a row weigh as much as three positives, at most 1 each.
    soft_weight : float or "auto", default="auto"
        Weight of an entry with a soft target; ``"auto"`` as `negative_weight`.
    label_evidence : bool, default=True
        Whether the posterior of an entry also depends on the other annotated labels of its row.
    unannotated, validation, monitor, threshold, validation_fraction, random_state
        As in :class:`~labelweave.partial.base.PartialClassifier`.

    Attributes
    ----------
    annotation_rate_ : float or None
        Estimated share of the positives that are annotated, in the last round; None without one.

    Notes
    -----
    The rows of a fold stop the training of the network that labels them. The soft targets are
    therefore out of fold, but the number of epochs is not quite.

    The method assumes that all positives are equally likely to be annotated. With a single
    annotated label per row this holds only on average.

    References
    ----------
    .. [1] C. Elkan and K. Noto. Learning classifiers from only positive and unlabeled data. KDD
       2008, Eq. 6.
    .. [2] V. Chernozhukov et al. Double/debiased machine learning for treatment and structural
       parameters. The Econometrics Journal, 2018 (cross-fitting).

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from labelweave.data.scenarios import hide_positives
    >>> X, Y = make_multilabel_classification(n_samples=200, random_state=0)
    >>> partial = hide_positives(Y, 0.5, random_state=0).Y
    >>> model = CrossFitEM(n_folds=2, random_state=0).set_params(base__epochs=5).fit(X, partial)
    >>> model.predict_proba(X[:3]).shape
    (3, 5)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PartialClassifier._parameter_constraints,
        "n_folds": [Interval(Integral, 2, None, closed="left")],
        "rounds": [Interval(Integral, 0, None, closed="left")],
        "ramp": [Interval(Real, 0, None, closed="left"), StrOptions({"auto"})],
        "negative_weight": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "soft_weight": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "label_evidence": ["boolean"],
    }

    def __init__(
        self,
        base: Any = "mlp",
        *,
        n_folds: int = 4,
        rounds: int = 1,
        ramp: float | str = "auto",
        negative_weight: float | str = "auto",
        soft_weight: float | str = "auto",
        label_evidence: bool = True,
        unannotated: str = "auto",
        validation: str = "partial",
        monitor: str = "auto",
        threshold: Any = "cardinality",
        validation_fraction: float = 0.2,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            base,
            unannotated=unannotated,
            validation=validation,
            monitor=monitor,
            threshold=threshold,
            validation_fraction=validation_fraction,
            random_state=random_state,
        )
        self.n_folds = n_folds
        self.rounds = rounds
        self.ramp = ramp
        self.negative_weight = negative_weight
        self.soft_weight = soft_weight
        self.label_evidence = label_evidence

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.capabilities.out_of_fold = True
        return tags

    def _needs_validation(self) -> bool:
        return self.validation == "clean"  # otherwise each fold is the validation set of a network

    def _networks_to_build(self) -> int:
        return self.n_folds

    def _train(self, run: PartialRun) -> None:
        scores = self._train_rounds(run)
        shift = logit_shift(scores, run.session.Y.to_numpy())
        assert isinstance(run.network, PeerNetwork)
        run.network.shift_logits(shift)
        self._out_of_fold = assume_negative(run.session.Y), shifted(scores, shift)

    def _train_rounds(self, run: PartialRun) -> np.ndarray:
        """Train the networks and return the out-of-fold scores of the last ones."""
        session = run.session
        codes = session.Y.to_numpy()
        if len(codes) < self.n_folds:
            raise InputError(
                f"n_folds is {self.n_folds}, but there are fewer rows: n_samples = {len(codes)}",
                parameter="n_folds",
            )
        fold = self._folds(session)
        self.annotation_rate_: float | None = None
        soft_targets = None
        for number in range(self.rounds):
            networks = self._build_networks(session.spec, session.X.shape[1], session.Y.n_labels)
            scores = self._train_folds(
                networks, session, fold, soft_targets, f"round-{number + 1}-"
            )
            self.annotation_rate_ = annotation_rate(scores, codes)
            annotated = annotation_posterior(scores, codes)
            if self.label_evidence:
                annotated = annotation_posterior_given_labels(
                    annotated, codes, X=session.X, random_state=session.seed
                )
            posterior = positive_posterior(annotated, self.annotation_rate_)
            soft_targets = torch.from_numpy(posterior.astype(np.float32))
        return self._train_folds(
            run.network, session, fold, soft_targets, f"round-{self.rounds + 1}-"
        )

    def _folds(self, session: TrainingSession) -> np.ndarray:
        """The fold of each row; the same for every call with a session."""
        return stratified_folds(
            assume_negative(session.Y), self.n_folds, X=session.X, random_state=session.seed
        )

    def _train_folds(
        self,
        network: nn.Module,
        session: TrainingSession,
        fold: np.ndarray,
        soft_targets: Tensor | None,
        prefix: str,
    ) -> np.ndarray:
        """Train one network per fold on the other folds and return the out-of-fold scores."""
        scores = np.zeros(session.Y.shape, np.float32)
        for k, fold_network in enumerate(peers_of(network)):
            training_rows, held_out_rows = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
            held_out = (session.X[held_out_rows], session.Y[held_out_rows])
            validation = session.validation
            if self.validation == "partial":
                validation = (held_out[0], assume_negative(held_out[1]))
            part = replace(
                session.rows(training_rows),
                validation=validation,
                prefix=f"{prefix}fold-{k + 1}-",
            )
            session.spec.pretrain(fold_network, replace(part, Y=assume_negative(part.Y)))
            if soft_targets is None:
                task = self._build_task(PartialRun(fold_network, part, validation=held_out))
            else:
                task = SoftTargetsTask(
                    fold_network,
                    session.spec.settings.optimizer_options(),
                    soft_targets[training_rows],
                    weight=_weight_per_row(self.soft_weight, part.Y.n_labels),
                )
            part.train(task, monitor=self._chosen_monitor(part))
            batches = part.scoring_batches(*held_out)
            scores[held_out_rows] = predict_scores(task.scores, batches, part.engine)
        return scores

    def _build_task(self, run: PartialRun) -> Task:
        """The objective of a network of the first round."""
        options = run.session.spec.settings.optimizer_options()
        return run.peer_task(
            LargeLossRule(),
            objectives=[SupervisedTask(run.network, bce, options, name="bce")],
            tau_h=None,
            ramp=self.ramp,
            negative_weight=_weight_per_row(self.negative_weight, run.session.Y.n_labels),
        )

    @classmethod
    def _test_params(cls) -> dict[str, Any]:
        return {**super()._test_params(), "n_folds": 2}

    def _state(self) -> dict[str, Any]:
        return {**super()._state(), "annotation_rate": self.annotation_rate_}

    def _set_state(self, state: Mapping[str, Any]) -> None:
        super()._set_state(state)
        self.annotation_rate_ = state["annotation_rate"]


def _weight_per_row(weight: float | str, n_labels: int) -> float:
    """Weight of an unannotated entry; "auto": those of a row weigh as three positives, at most 1.

    >>> _weight_per_row(0.5, 31), _weight_per_row("auto", 31), _weight_per_row("auto", 3)
    (0.5, 0.1, 1.0)
    """
    if weight != "auto":
        return float(weight)
    return min(_NEGATIVES_PER_ROW / max(n_labels - 1, 1), 1.0)


class SoftTargetsTask(PartialLossTask):
    """Cross-entropy with the posterior of each unannotated entry as its soft target.

    Parameters
    ----------
    network, plan
        As in :class:`labelweave.partial._selection.partial_losses.PartialLossTask`.
    soft_targets : Tensor of shape (n_rows, L)
        For the training rows; only the values of unannotated entries are used.
    weight : float, default=1.0
        Weight of these entries.
    """

    soft_targets: Tensor

    def __init__(
        self, network: nn.Module, plan: dict[str, Any], soft_targets: Tensor, *, weight: float = 1.0
    ) -> None:
        super().__init__(network, lambda z, y, _: bce(z, y), plan, name="bce")
        self.register_buffer("soft_targets", soft_targets, persistent=False)
        self.weight = weight

    def losses(self, batch: Batch, info: StepInfo) -> dict[str, Tensor]:
        logits = self.network(batch.x)
        targets, unannotated = plain_targets(batch.y)
        if self.training:
            targets = torch.where(unannotated, self.soft_targets[batch.rows], targets)
        weight = torch.where(unannotated, self.weight, 1.0)
        return {self.name: mean_loss(bce(logits, targets), weight)}
