"""A forest of labels: its structure learning, and exact inference.

Each label has at most one parent. Then the likelihood of partly known labels, the probability of
each label conditioned on others, and the most probable label set are exact and take time linear in
the number of labels. They are computed for all rows at once, one level of the forest at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from scipy.linalg import solve
from scipy.sparse import csgraph
from torch import Tensor

__all__ = ["LabelForest", "cross_residuals", "learn_parents"]

_NO_PARENT = -1
_MAX_ROWS = 4000  # the matrix of inner products of so many rows fits into memory


def cross_residuals(X: Any, Y: np.ndarray, *, seed: int = 0, strength: float = 0.01) -> np.ndarray:
    """Out-of-fold residuals of a linear model of the features, for each label.

    Each half of the rows is predicted by ridge regression on the other half, because residuals of
    fitted rows are too small. At most 4,000 rows are drawn; the others have no residuals (NaN), nor
    have unknown entries. The ridge penalty is `strength` times the mean square of the features.
    """
    known = ~np.isnan(Y)
    means = np.where(known, Y, 0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    order = np.random.default_rng(seed).permutation(len(Y))[:_MAX_ROWS]
    half = len(order) // 2
    rank = max(min(half, X.shape[1]), 1)
    X, filled = X[order].astype(float), np.where(known, Y, means)[order]
    if not sp.issparse(X):
        X = X - X.mean(axis=0)  # large constants would cause rounding errors
    kernel = X @ X.T
    kernel = kernel.toarray() if sp.issparse(kernel) else kernel
    first, second = slice(None, half), slice(half, None)
    errors = np.empty(filled.shape)
    for train, test in ((first, second), (second, first)):
        predicted = _ridge(kernel[train, train], filled[train], kernel[test, train], rank, strength)
        errors[test] = filled[test] - predicted
    residuals = np.full(Y.shape, np.nan)
    residuals[order] = np.where(known[order], errors, np.nan)
    return residuals


def _ridge(
    kernel: np.ndarray, targets: np.ndarray, test: np.ndarray, rank: int, strength: float
) -> np.ndarray:
    """Predictions of ridge regression with an intercept, all from inner products of rows."""
    means = kernel.mean(axis=0)
    centred = kernel - means - means[:, None] + means.mean()
    test = test - means - test.mean(axis=1, keepdims=True) + means.mean()
    rounding = np.finfo(float).eps * len(kernel) * np.abs(kernel).max(initial=0)
    penalty = max(strength * np.trace(centred) / rank, 10 * rounding, 1e-6)
    centred[np.diag_indices_from(centred)] += penalty
    offset = targets.mean(axis=0)
    return test @ solve(centred, targets - offset, assume_a="pos", overwrite_a=True) + offset


def learn_parents(values: np.ndarray) -> np.ndarray:
    """The maximum-weight spanning forest of the columns' dependence (Chow and Liu's).

    The weight of an edge is its gain of log-likelihood in a Gaussian model, ``-n/2 log(1 - r^2)``,
    minus the penalty ``log(n) / 2`` of the Bayesian information criterion; edges without a
    positive weight are left out, and NaN entries of the values, (n, L), are ignored. Returns the
    parent of each column, -1 for a root, which is the column with the heaviest edges of its tree.

    >>> first, second = np.random.default_rng(0).normal(size=(2, 50, 1))
    >>> learn_parents(np.hstack([second, first, first + 0.1 * second]))
    array([-1, -1,  1])
    """
    known = ~np.isnan(values)
    with np.errstate(invalid="ignore", divide="ignore"):
        centred = np.where(known, values - np.nanmean(values, axis=0), 0.0)
        mask = known.astype(float)
        counts = mask.T @ mask
        squares = np.square(centred).T @ mask  # of column i over rows known for i and j
        correlation = (centred.T @ centred) / np.sqrt(squares * squares.T)
        explained = np.minimum(np.nan_to_num(correlation) ** 2, 1 - 1e-12)
        gain = -0.5 * counts * np.log1p(-explained) - 0.5 * np.log(np.maximum(counts, 1))
    np.fill_diagonal(gain, 0)
    edges = -csgraph.minimum_spanning_tree(sp.csr_array(np.where(gain > 0, -gain, 0)))
    edges = sp.csr_array(edges + edges.T)
    n_trees, tree = csgraph.connected_components(edges, directed=False)
    weight = np.asarray(edges.sum(axis=1)).ravel()
    parents = np.full(values.shape[1], _NO_PARENT)
    for k in range(n_trees):
        members = np.flatnonzero(tree == k)
        if len(members) > 1:
            root = members[np.argmax(weight[members])]
            order, before = csgraph.breadth_first_order(edges, root, directed=False)
            parents[order[1:]] = before[order[1:]]
    return parents


class LabelForest:
    """Exact inference in a Bayesian network with at most one parent per label.

    The methods read `tables` of shape (n, L, 2, 2), the log probability of each label's value
    (last axis) conditioned on its parent's (the axis before; equal for both values at a root),
    and `known` of shape (n, L) with 1, 0 and NaN. The parent of a root is -1.

    >>> forest = LabelForest([-1, 0])
    >>> tables = torch.log(torch.tensor([[[[0.5, 0.5], [0.5, 0.5]], [[0.9, 0.1], [0.2, 0.8]]]]))
    >>> torch.exp(forest.marginals(tables))[:, :, 1]
    tensor([[0.5000, 0.4500]])
    >>> torch.exp(forest.marginals(tables, torch.tensor([[torch.nan, 1.0]])))[:, :, 1]
    tensor([[0.8889, 1.0000]])
    """

    def __init__(self, parents: Sequence[int]) -> None:
        self.parents = list(parents)
        level = [label for label, parent in enumerate(self.parents) if parent == _NO_PARENT]
        levels = []
        while level:
            levels.append(level)
            last = set(level)
            level = [label for label, parent in enumerate(self.parents) if parent in last]
        self.levels = [torch.tensor(level) for level in levels]
        self.above = [torch.tensor([self.parents[j] for j in level]) for level in levels]
        self.place = torch.argsort(torch.cat(self.levels))  # of each label among the levels

    def log_likelihood(self, tables: Tensor, known: Tensor) -> Tensor:
        """log P(known labels) of each row, shape (n,); unknown labels are summed out."""
        return self._upward(tables, known, _log_sum)[1]

    def marginals(self, tables: Tensor, known: Tensor | None = None) -> Tensor:
        """log P(value of each label | known labels), shape (n, L, 2)."""
        below, _ = self._upward(tables, known, _log_sum)
        levels: list[Tensor] = []
        for k, level in enumerate(self.levels):
            # log P(value | value of the parent, known labels below)
            conditional = torch.log_softmax(tables[:, level] + below[:, level].unsqueeze(2), dim=-1)
            if k == 0:
                levels.append(conditional[:, :, 0])
            else:
                above = torch.cat(levels, dim=1)[:, self.place[self.above[k]]]
                levels.append(torch.logsumexp(above.unsqueeze(-1) + conditional, dim=2))
        return torch.cat(levels, dim=1)[:, self.place]

    def most_probable(self, tables: Tensor, known: Tensor | None = None) -> Tensor:
        """The jointly most probable label set of each row, shape (n, L) of bool."""
        below, _ = self._upward(tables, known, _largest)
        levels: list[Tensor] = []
        for k, level in enumerate(self.levels):
            values = tables[:, level] + below[:, level].unsqueeze(2)
            of_negative, of_positive = (values[..., 1] > values[..., 0]).unbind(dim=-1)
            if k == 0:
                levels.append(of_negative)
            else:
                above = torch.cat(levels, dim=1)[:, self.place[self.above[k]]]
                levels.append(torch.where(above, of_positive, of_negative))
        return torch.cat(levels, dim=1)[:, self.place]

    def _upward(self, tables: Tensor, known: Tensor | None, combine: Any) -> tuple[Tensor, Tensor]:
        """Messages from each label and those below it, (n, L, 2), and the total per row, (n,)."""
        below = tables.new_zeros((*tables.shape[:2], 2))
        if known is not None:
            excluded = torch.stack([known == 1, known == 0], dim=-1)
            below = below.masked_fill(excluded, -torch.inf)
        for k in range(len(self.levels) - 1, 0, -1):
            level = self.levels[k]
            messages = combine(tables[:, level] + below[:, level].unsqueeze(2))
            below = below.index_add(1, self.above[k].to(tables.device), messages)
        roots = self.levels[0]
        return below, combine(tables[:, roots] + below[:, roots].unsqueeze(2))[..., 0].sum(dim=1)


def _log_sum(values: Tensor) -> Tensor:
    return torch.logsumexp(values, dim=-1)


def _largest(values: Tensor) -> Tensor:
    return values.amax(dim=-1)
