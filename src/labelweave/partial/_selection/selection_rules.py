"""What a selection rule is: it chooses, per mini-batch, what each network learns from.

A method that selects labels or rows writes one :class:`SelectionRule`;
:class:`~labelweave.partial._selection.peer_networks.PeerTask` trains the networks by it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from torch import nn


class MiniBatch(NamedTuple):
    """What a selection rule knows about a mini-batch of n rows and L labels.

    Parameters
    ----------
    logits : sequence of arrays of shape (n, L)
        One per network. The loss of a negative rises with its logit, so unannotated entries can be
        ranked by their logits instead of their losses.
    targets : array of shape (n, L)
        1, 0 or NaN (ignored); unannotated entries are 0.
    candidates : sequence of boolean arrays of shape (n, L)
        The unannotated entries that each network may learn from.
    rows : array of shape (n,)
        Positions of the rows in the training data.
    drop_high, drop_low : float
        Shares of the candidates (or rows) of highest and lowest loss to remove in this epoch.
    """

    logits: Sequence[np.ndarray]
    targets: np.ndarray
    candidates: Sequence[np.ndarray]
    rows: np.ndarray
    drop_high: float
    drop_low: float


class Selection(NamedTuple):
    """What one network learns from in a mini-batch.

    Parameters
    ----------
    targets : array of shape (n, L)
        NaN where an entry is ignored.
    removed : array of int
        Flat positions of the unannotated entries that were ignored or corrected because their
        loss is high.
    n_low : int, default=0
        Number of entries that are ignored because their loss is low.
    """

    targets: np.ndarray
    removed: np.ndarray
    n_low: int = 0


class SelectionRule(nn.Module):
    """Base of the selection rules.

    It is a module so that a rule with a state (permanent corrections, for instance) can keep it in
    buffers, which checkpoints save.

    Attributes
    ----------
    corrects : bool
        Whether the rule gives unannotated entries a target above 0.
    agreement : float
        Weight of a loss term that draws the probabilities of two networks together; all other
        terms get one minus this weight.
    """

    corrects: bool = False
    agreement: float = 0.0

    @abstractmethod
    def select(self, batch: MiniBatch) -> list[Selection]:
        """The targets of each network."""


def row_losses(logits: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Binary cross-entropy of each row, summed over the labels that are not ignored."""
    entries = np.logaddexp(0, logits) - targets * logits  # log(1 + e^z) - y z
    return np.sum(entries, axis=1, where=~np.isnan(targets))


def disagreeing_rows(logits_f: np.ndarray, logits_g: np.ndarray) -> np.ndarray:
    """Mask of the rows for which the two networks predict different label sets."""
    return ((logits_f > 0) != (logits_g > 0)).any(axis=1)


def drop_rows(batch: MiniBatch, dropped: Sequence[np.ndarray]) -> list[Selection]:
    """The selections of networks that ignore whole rows; one mask of rows per network."""
    selections = []
    for candidates, rows in zip(batch.candidates, dropped, strict=True):
        targets = batch.targets.copy()
        targets[rows] = np.nan
        selections.append(Selection(targets, np.flatnonzero(rows[:, None] & candidates)))
    return selections
