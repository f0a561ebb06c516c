"""Rows that each of several networks holds out, while the other networks learn from them.

Estimates and thresholds need scores of rows by a network that was not trained on them. If the same
rows were held out from all networks, their labels would be lost, which is costly where few
positives are annotated. Instead each network holds out a different tenth of the rows.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from labelweave.data.splits import stratified_folds
from labelweave.labels import LabelMatrix
from labelweave.nn.prediction import predict_scores
from labelweave.nn.session import TrainingSession
from labelweave.partial._selection.peer_networks import peers_of
from labelweave.unannotated import assume_negative

_N_FOLDS = 10


class HeldOutRows:
    """Which rows each network holds out, and its scores of them. It is empty if rows are too few.

    Parameters
    ----------
    session : TrainingSession
    n_networks : int

    Attributes
    ----------
    held_out_by : ndarray of shape (n_rows,)
        Index of the network that does not learn from a row; -1 where all networks do.
    rows : ndarray
        Positions of the held-out rows, those of the first network first.
    observed : LabelMatrix
        Their coded labels.
    """

    def __init__(self, session: TrainingSession, n_networks: int) -> None:
        n_rows = session.Y.n_rows
        n_folds = min(_N_FOLDS, n_rows)
        if n_folds > n_networks:
            fold = stratified_folds(
                assume_negative(session.Y), n_folds, X=session.X, random_state=session.seed
            )
            self.held_out_by = np.where(fold < n_networks, fold, -1)
        else:
            self.held_out_by = np.full(n_rows, -1)
        self._session = session
        per_network = [np.flatnonzero(self.held_out_by == k) for k in range(n_networks)]
        self._batches = [
            session.scoring_batches(session.X[rows], session.Y[rows]) if len(rows) else None
            for rows in per_network
        ]
        self.rows = np.concatenate(per_network)
        self.observed: LabelMatrix = session.Y[self.rows]

    def __len__(self) -> int:
        return self.observed.n_rows

    def training_rows(self, k: int) -> np.ndarray:
        """The rows that network k learns from."""
        return np.flatnonzero(self.held_out_by != k)

    def scores(self) -> np.ndarray:
        """The scores of the held-out rows, each by the network that did not learn from it."""
        engine = self._session.engine
        network = engine.task.network
        was_training = network.training
        network.eval()
        scores = [np.empty((0, self._session.Y.n_labels), np.float32)]
        for peer, batches in zip(peers_of(network), self._batches, strict=True):

            def predict(x: Tensor, peer: torch.nn.Module = peer) -> Tensor:
                return engine.apply(lambda rows: torch.sigmoid(peer(rows)), x)

            if batches is not None:
                scores.append(predict_scores(predict, batches, engine))
        network.train(was_training)
        return np.concatenate(scores)
