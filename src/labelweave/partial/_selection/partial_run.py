"""One training run of a method for partial labels, and what its objective may need to know."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from torch import nn

from labelweave.base import Pair
from labelweave.data.splits import stratified_holdout
from labelweave.missing_positives import missing_share
from labelweave.nn.losses import bce
from labelweave.nn.prediction import predict_scores
from labelweave.nn.randomness import forked_rng
from labelweave.nn.session import TrainingSession
from labelweave.nn.task import Task
from labelweave.partial._selection.held_out import HeldOutRows
from labelweave.partial._selection.partial_losses import EntryLoss, PartialLossTask
from labelweave.partial._selection.peer_networks import PeerTask, peers_of
from labelweave.partial._selection.selection_rules import SelectionRule
from labelweave.unannotated import assume_negative

_PROBE_EPOCHS = 8

Rate = Callable[[np.ndarray, np.ndarray], float]


def _missing_rate(scores: np.ndarray, codes: np.ndarray) -> float:
    return missing_share(scores[codes == 1], scores[codes == 0])


@dataclass(frozen=True)
class PartialRun:
    """One training run; labels are coded as in :mod:`labelweave.unannotated`.

    Parameters
    ----------
    network : nn.Module
        The network to train, or a :class:`~labelweave.partial._selection.peer_networks.PeerNetwork`
        of several.
    session : TrainingSession
        The training rows, and how to train.
    held_out : HeldOutRows, optional
        The rows that each of several networks does not learn from.
    validation : (X, LabelMatrix), optional
        Validation rows that are annotated as incompletely as the training rows.
    missing : boolean csr_array, optional
        The unannotated training entries that are really positive, if known.
    """

    network: nn.Module
    session: TrainingSession
    held_out: HeldOutRows | None = None
    validation: Pair | None = None
    missing: sp.csr_array | None = None

    def entry_loss_task(self, loss: EntryLoss, name: str) -> PartialLossTask:
        """The network with this loss in place of its usual objective."""
        options = self.session.spec.settings.optimizer_options()
        return PartialLossTask(self.network, loss, options, name=name)

    def objectives(self) -> list[Task]:
        """The usual objective of each network."""
        build_task = self.session.spec.build_task
        return [build_task(peer, self.session) for peer in peers_of(self.network)]

    def peer_task(
        self,
        rule: SelectionRule,
        *,
        tau_h: float | None,
        ramp: float | str = 10,
        objectives: Sequence[Task] | None = None,
        rate: Rate = _missing_rate,
        **options: Any,
    ) -> PeerTask:
        """The networks with their usual objectives, under a selection rule.

        Parameters
        ----------
        rule, tau_h, **options
            As in :class:`~labelweave.partial._selection.peer_networks.PeerTask`.
        ramp : float or "auto", default=10
            Epochs over which the shares rise. ``"auto"``: half of the run, at most 10.
        objectives : sequence of Task, optional
            One per network; their usual objectives by default.
        rate : function of (scores, codes)
            Estimates the share `tau_h` if that is None; by default the share of missing positives
            among the unannotated entries.
        """
        if ramp == "auto":
            ramp = min(self.session.n_epochs / 2, 10.0)
        return PeerTask(
            self.network,
            self.objectives() if objectives is None else objectives,
            rule,
            tau_h=tau_h,
            ramp=float(ramp),
            estimate=self.rate_estimate(rate) if tau_h is None else None,
            missing=self.missing,
            held_out_by=None if self.held_out is None else self.held_out.held_out_by,
            one_optimizer=self.session.spec.settings.clip_norm is None,
            **options,
        )

    def missing_rate(self) -> float:
        """The estimated share of missing positives among the unannotated entries.

        A separate network is trained for a few epochs on four fifths of the rows, with unannotated
        entries as negatives, and scores the other fifth. It leaves no trace: neither history nor
        checkpoint nor random numbers. It is 0 with fewer than five rows.
        """
        session = self.session
        if session.Y.n_rows < 5:
            return 0.0
        quiet = replace(session.spec.settings, callbacks=None, checkpoint=None)
        session = replace(session, spec=replace(session.spec, settings=quiet), results=[])
        rest, held_out = stratified_holdout(
            assume_negative(session.Y), 0.2, X=session.X, random_state=session.seed
        )
        part = session.rows(rest)
        with forked_rng(session.seed, session.engine.device):
            network = session.spec.build_network(session.X.shape[1], session.Y.n_labels)
            task = replace(self, network=network, session=part).entry_loss_task(
                lambda z, y, _: bce(z, y), "an"
            )
            epochs = min(_PROBE_EPOCHS, session.n_epochs)
            part.train(task, stage="probe", epochs=epochs, monitor=None, patience=None)
        batches = session.scoring_batches(session.X[held_out], session.Y[held_out])
        task.eval()
        scores = predict_scores(session.engine.scores, batches, session.engine)
        return _missing_rate(scores, session.Y[held_out].to_numpy())

    def rate_estimate(self, rate: Rate = _missing_rate) -> Callable[[], float]:
        """A function that estimates a rate from the scores of the network being trained.

        It uses the scores of rows that the network was not trained on: the held-out rows or the
        validation rows. If there are none, it uses the training rows.
        """
        session = self.session
        if self.held_out:
            codes, score = self.held_out.observed.to_numpy(), self.held_out.scores
            return lambda: rate(score(), codes)
        X, observed = (session.X, session.Y) if self.validation is None else self.validation
        batches, codes = session.scoring_batches(X, observed), observed.to_numpy()

        def estimate() -> float:
            task = session.engine.task
            was_training = task.training
            task.eval()
            scores = predict_scores(session.engine.scores, batches, session.engine)
            task.train(was_training)
            return rate(scores, codes)

        return estimate
