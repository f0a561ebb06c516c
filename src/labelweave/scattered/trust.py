"""Weights of teachers, learnt from a few labelled rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor, nn

from labelweave.nn.batches import as_tensor
from labelweave.nn.losses import bce
from labelweave.nn.randomness import forked_rng
from labelweave.nn.scaling import fit_scaling

__all__ = ["trust_weights"]

_DECAY = 1e-2
_BLOCK = 4096  # rows that get their weights at a time


def trust_weights(
    X: Any, logits: np.ndarray, truth: np.ndarray, *, hidden: int, steps: int, seed: int
) -> np.ndarray:
    """How far to trust each teacher on each row.

    Parameters
    ----------
    X : rows
        Numbers; for anything else the weights are the same for all rows.
    logits : array of shape (teachers, rows, labels)
        NaN where a teacher has no opinion.
    truth : array of shape (rows, labels)
        NaN where a label is not known.
    hidden, steps, seed : int

    Returns
    -------
    float32 array of shape (teachers, rows), which sums to 1 over the teachers
    """
    features = _Features(X, truth.shape[0])
    labelled = np.flatnonzero(~np.isnan(truth).all(axis=1))
    with forked_rng(seed):
        network = _network(features.width, len(logits), hidden)
        opinions = torch.from_numpy(logits[:, labelled]).permute(1, 0, 2)  # rows, teachers, labels
        targets = torch.from_numpy(truth[labelled])
        # A label that nobody has an opinion on teaches nothing.
        silent = torch.isnan(opinions).all(dim=1)
        targets = targets.masked_fill(silent, torch.nan)
        known = features.rows(labelled)
        optimizer = torch.optim.AdamW(network.parameters(), lr=1e-2, weight_decay=_DECAY)
        for _ in range(steps):
            optimizer.zero_grad()
            bce(_combined(network(known), opinions), targets).mean().backward()
            optimizer.step()
    with torch.inference_mode():
        parts = [
            torch.softmax(network(features.rows(rows)), dim=1)
            for rows in np.array_split(np.arange(len(truth)), len(truth) // _BLOCK + 1)
        ]
        return torch.cat(parts).T.contiguous().numpy()


def _network(n_features: int, n_teachers: int, hidden: int) -> nn.Module:
    last = nn.Linear(hidden or n_features, n_teachers)
    nn.init.zeros_(last.weight)  # equal weights to begin with
    nn.init.zeros_(last.bias)
    if not hidden:
        return last
    return nn.Sequential(nn.Linear(n_features, hidden), nn.Tanh(), last)


def _combined(trust: Tensor, opinions: Tensor) -> Tensor:
    """Mean of the log odds, weighted by a softmax over the teachers that have an opinion."""
    known = ~torch.isnan(opinions)
    scores = trust.unsqueeze(2).expand_as(opinions).masked_fill(~known, -torch.inf)
    nobody = ~known.any(dim=1, keepdim=True)
    weights = torch.softmax(scores.masked_fill(nobody, 0.0), dim=1)
    return (weights * torch.nan_to_num(opinions)).sum(dim=1)


class _Features:
    """Scaled features of some rows; one constant where rows are not numbers."""

    def __init__(self, X: Any, n_rows: int) -> None:
        if hasattr(X, "iloc"):
            X = X.select_dtypes("number").to_numpy()
        if not hasattr(X, "shape") or X.shape[1] == 0:
            X = np.ones((n_rows, 1), dtype=np.float32)
        self.X = X
        self.width = X.shape[1]
        self.scaling = fit_scaling(X, "auto") if self.width > 1 else None

    def rows(self, rows: np.ndarray) -> Tensor:
        taken = self.X[rows]
        values = as_tensor(taken.toarray() if sp.issparse(taken) else taken)
        return values if self.scaling is None else self.scaling.apply(values)
