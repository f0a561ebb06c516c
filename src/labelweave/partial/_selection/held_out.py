"""Rows that each of several networks does not learn, so that all rows are learnt by some.

Estimates and cuts need scores of rows by a network that has not learnt them. A part held out for
good would be lost to every network, and where few positives are annotated that is dear. So each
network sets another tenth of the rows aside.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from labelweave.data.splits import stratified_folds
from labelweave.labels import LabelMatrix
from labelweave.nn.scoring import predict_scores
from labelweave.nn.session import TrainingSession
from labelweave.partial._selection.peer_networks import peers_of
from labelweave.unannotated import assume_negative

__all__ = ["HeldOutRows"]

_PARTS = 10


class HeldOutRows:
    """Which rows each network sets aside, and what it says of them.

    Parameters
    ----------
    session : TrainingSession
    n_peers : int

    Attributes
    ----------
    of_row : ndarray of shape (n_rows,)
        The number of the network that does not learn a row; -1 where all do.
    rows : ndarray
        Numbers of the rows set aside, those of the first network first.
    observed : LabelMatrix
        Their labels.
    """

    def __init__(self, session: TrainingSession, n_peers: int) -> None:
        n_rows = session.Y.n_rows
        parts = min(_PARTS, n_rows)
        if parts > n_peers:
            fold = stratified_folds(assume_negative(session.Y), parts, random_state=session.seed)
            self.of_row = np.where(fold < n_peers, fold, -1)
        else:  # too few to set any aside
            self.of_row = np.full(n_rows, -1)
        self._session = session
        self._own = [np.flatnonzero(self.of_row == k) for k in range(n_peers)]
        self._batches = [
            session.scoring_batches(session.X[rows], session.Y[rows]) if len(rows) else None
            for rows in self._own
        ]
        self.rows = np.concatenate(self._own)
        self.observed: LabelMatrix = session.Y[self.rows]

    def __len__(self) -> int:
        return self.observed.n_rows

    def learnt_by(self, k: int) -> np.ndarray:
        """The rows that network k learns."""
        return np.flatnonzero(self.of_row != k)

    def scores(self) -> np.ndarray:
        """The scores of the rows set aside, each by the network that does not learn it."""
        engine = self._session.engine
        network = engine.task.network
        was_training = network.training
        network.eval()
        found = [np.empty((0, self._session.Y.n_labels), np.float32)]
        for peer, batches in zip(peers_of(network), self._batches, strict=True):

            def own(x: Tensor, peer: torch.nn.Module = peer) -> Tensor:
                return engine.apply(lambda rows: torch.sigmoid(peer(rows)), x)

            if batches is not None:
                found.append(predict_scores(own, batches, engine))
        network.train(was_training)
        return np.concatenate(found)
