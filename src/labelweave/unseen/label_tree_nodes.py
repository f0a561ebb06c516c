"""A label tree: its branches, the linear classifiers in its nodes, and the search for labels.

A node has outputs: its branches or, at the end of the tree, its labels. The outputs of all nodes
are numbered through, so that a tree is a few arrays, which a file can hold and a reader can check.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import normalize

from labelweave.exceptions import InputError
from labelweave.shallow.squared_hinge import squared_hinge_weights
from labelweave.top_labels import best_entries

__all__ = ["LabelTreeNodes", "grow_tree"]

_ROUNDS = 12  # of a division of labels into two halves
_LABEL_WORDS = 200  # largest features of a label's mean row by which it is put into a branch


class _Block(NamedTuple):
    """The weights of one node: the features that it uses, and features x outputs."""

    features: np.ndarray
    weights: sp.csr_array


class LabelTreeNodes:
    """The arrays of one tree.

    Parameters
    ----------
    first : ndarray of shape (n_nodes + 1,)
        Node i has the outputs from ``first[i]`` up to ``first[i + 1]``; node 0 is the root.
    branch : ndarray of shape (n_outputs,)
        The node that an output leads to, which comes after its own node; -1 for a label.
    label : ndarray of shape (n_outputs,)
        The label of an output; -1 for a branch.
    weights : csr_array of shape (n_outputs, n_features + 1)
        The last column is the bias.
    """

    def __init__(
        self, first: np.ndarray, branch: np.ndarray, label: np.ndarray, weights: sp.csr_array
    ) -> None:
        self.first, self.branch, self.label, self.weights = first, branch, label, weights
        self._blocks: dict[int, _Block] = {}

    def state(self, prefix: str) -> dict[str, Any]:
        """The arrays by name, for a model folder."""
        names = ("first", "branch", "label", "weights")
        return {prefix + name: getattr(self, name) for name in names}

    @classmethod
    def from_state(
        cls, state: Mapping[str, Any], prefix: str, n_features: int, n_labels: int
    ) -> LabelTreeNodes:
        """The tree of these arrays; one that leads out of its bounds is refused."""
        first, branch, label = (
            np.asarray(state[prefix + name]) for name in ("first", "branch", "label")
        )
        weights = state[prefix + "weights"]
        n_nodes, n_outputs = len(first) - 1, len(branch)
        _require(
            all(part.ndim == 1 and part.dtype.kind == "i" for part in (first, branch, label))
            and n_nodes >= 1
            and label.shape == branch.shape
            and first[0] == 0
            and first[-1] == n_outputs
            and bool((np.diff(first) > 0).all())
            and isinstance(weights, sp.csr_array)
            and weights.shape == (n_outputs, n_features + 1)
            and weights.dtype.kind == "f"
            and bool(np.isfinite(weights.data).all())
        )
        node = np.repeat(np.arange(n_nodes), np.diff(first))
        inner = branch >= 0
        _require(
            bool(((label >= 0) == ~inner).all())
            and np.array_equal(inner, inner[first[node]])  # branches or labels, not both
            and int(label.max()) < n_labels
            and len(np.unique(label[~inner])) == int((~inner).sum())
            and np.array_equal(np.sort(branch[inner]), np.arange(1, n_nodes))
            and bool((branch[inner] > node[inner]).all())
        )
        return cls(first, branch, label, weights)

    def search(self, X: sp.csr_array, k: int, beam: int, n_labels: int) -> sp.csr_array:
        """The k most probable labels of each row, among those that a beam of nodes leads to.

        `X` has rows of length one and a last column of ones.
        """
        n_rows = X.shape[0]
        rows, node = np.arange(n_rows), np.zeros(n_rows, dtype=np.int64)
        score = np.zeros(n_rows, dtype=np.float32)
        found: list[tuple[np.ndarray, ...]] = []
        while len(rows):
            order = np.argsort(node, kind="stable")
            rows, node, score = rows[order], node[order], score[order]
            reached, start = np.unique(node, return_index=True)
            further: list[tuple[np.ndarray, ...]] = []
            for i, a, b in zip(reached, start, [*start[1:], len(node)], strict=True):
                outputs = slice(self.first[i], self.first[i + 1])
                log_p = score[a:b, None] + self._log_probabilities(X[rows[a:b]], int(i))
                is_last = self.branch[self.first[i]] < 0
                number = (self.label if is_last else self.branch)[outputs]
                reached_rows = np.repeat(rows[a:b], len(number))
                entries = reached_rows, np.tile(number, b - a), log_p.ravel()
                (found if is_last else further).append(entries)
            if not further:
                break
            rows, node, score = (np.concatenate(part) for part in zip(*further, strict=True))
            kept = best_entries(rows, score, beam)
            rows, node, score = rows[kept], node[kept], score[kept]
        rows, label, score = (np.concatenate(part) for part in zip(*found, strict=True))
        kept = best_entries(rows, score, k)
        return sp.csr_array(
            (np.exp(score[kept]), (rows[kept], label[kept])), shape=(n_rows, n_labels)
        )

    def _log_probabilities(self, X: sp.csr_array, node: int) -> np.ndarray:
        """Log P(output | node, row): minus the squared hinge loss of a positive, as in Parabel."""
        block = self._block(node)
        place = np.searchsorted(block.features, X.indices)
        place[place == len(block.features)] = 0
        data = np.where(block.features[place] == X.indices, X.data, 0)
        local = sp.csr_array((data, place, X.indptr), shape=(X.shape[0], len(block.features)))
        return -(np.maximum(0, 1 - (local @ block.weights).toarray()) ** 2)

    def _block(self, node: int) -> _Block:
        if node not in self._blocks:
            rows = self.weights[self.first[node] : self.first[node + 1]]
            bias = self.weights.shape[1] - 1
            features, place = np.unique(np.append(rows.indices, bias), return_inverse=True)
            local = sp.csr_array(
                (rows.data, place[:-1], rows.indptr), shape=(rows.shape[0], len(features))
            )
            self._blocks[node] = _Block(features, sp.csr_array(local.T))
        return self._blocks[node]


def _require(condition: bool) -> None:
    if not condition:
        raise InputError("the arrays of the label tree are damaged or were changed")


class _Growth(NamedTuple):
    """What is needed to grow a tree: rows with a last column of ones, and labels by column."""

    X: sp.csr_array
    Y: sp.csc_array  # 1 positive, NaN unknown
    label_means: sp.csr_array
    settings: Mapping[str, Any]
    random: np.random.RandomState


def grow_tree(
    X: sp.csr_array,
    Y: sp.csr_array,
    random: np.random.RandomState,
    *,
    branches: int,
    max_leaves: int,
    C: float,
    tol: float,
    prune: float,
    unstored_is_unknown: bool,
) -> LabelTreeNodes:
    """Divide the labels into branches, and train the classifiers of all nodes.

    `Y` stores 1 for a positive and NaN for an unknown entry; the others are negative. With
    `unstored_is_unknown` it stores 1 and 0, and the others are unknown.
    """
    positive = sp.csr_array(Y == 1, dtype=np.float32)
    growth = _Growth(
        X,
        sp.csc_array(Y),
        _label_means(X[:, : X.shape[1] - 1], positive),
        {
            "branches": branches,
            "max_leaves": max_leaves,
            "C": C,
            "tol": tol,
            "prune": prune,
            "unstored_is_unknown": unstored_is_unknown,
        },
        random,
    )
    nodes = [np.arange(Y.shape[1])]  # the labels below each node
    first, branch, label, weights = [0], [], [], []
    for labels in nodes:  # grows meanwhile
        if len(labels) <= max_leaves:
            groups = [labels[j : j + 1] for j in range(len(labels))]
            branch.append(np.full(len(labels), -1))
            label.append(labels)
        else:
            groups = _divide(growth, labels)
            branch.append(len(nodes) + np.arange(len(groups)))
            label.append(np.full(len(groups), -1))
            nodes.extend(groups)
        weights.append(_node_weights(growth, labels, groups))
        first.append(first[-1] + len(groups))
    return LabelTreeNodes(
        np.array(first),
        np.concatenate(branch),
        np.concatenate(label),
        sp.csr_array(sp.vstack(weights, format="csr")),
    )


def _label_means(X: sp.csr_array, positive: sp.csr_array) -> sp.csr_array:
    """The mean row of each label, of length one, reduced to its largest features."""
    means = sp.csr_array(sp.csr_array(positive.T) @ X)
    rows = np.repeat(np.arange(means.shape[0]), np.diff(means.indptr))
    kept = best_entries(rows, np.abs(means.data), _LABEL_WORDS)
    means = sp.csr_array((means.data[kept], (rows[kept], means.indices[kept])), shape=means.shape)
    return sp.csr_array(normalize(means), dtype=np.float32)


def _divide(growth: _Growth, labels: np.ndarray) -> list[np.ndarray]:
    """Groups of similar labels, of about the same size: halves of halves."""
    groups = [labels]
    while len(groups) < growth.settings["branches"]:
        groups = [half for group in groups for half in _halves(growth, group)]
        if max(map(len, groups)) <= growth.settings["max_leaves"]:
            break
    return groups


def _halves(growth: _Growth, labels: np.ndarray) -> list[np.ndarray]:
    """Divide labels into two groups of equal size by 2-means with cosine similarity."""
    if len(labels) <= growth.settings["max_leaves"]:
        return [labels]
    means = growth.label_means[labels]
    pair = growth.random.choice(len(labels), 2, replace=False)
    towards = np.subtract(*(means[[i]].toarray().ravel() for i in pair))
    left = np.zeros(len(labels), dtype=bool)
    for _ in range(_ROUNDS):
        before, left = left, np.zeros(len(labels), dtype=bool)
        left[np.argsort(-(means @ towards), kind="stable")[: len(labels) // 2]] = True
        if np.array_equal(before, left):
            break
        sums = [means.T @ side.astype(np.float32) for side in (left, ~left)]
        towards = np.subtract(*(part / max(np.linalg.norm(part), 1e-12) for part in sums))
    return [labels[left], labels[~left]]


def _node_weights(growth: _Growth, labels: np.ndarray, groups: list[np.ndarray]) -> sp.csr_array:
    """Train the classifiers of a node on the rows that have one of its labels; the root on all.

    A row is a positive of a group if it has one of its labels, else unknown if one of them is.
    """
    group_of = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
    columns = growth.Y[:, np.concatenate(groups)]
    column = np.repeat(group_of, np.diff(columns.indptr))
    positive = columns.data == 1
    is_root = len(labels) == growth.Y.shape[1]
    rows = np.arange(growth.X.shape[0]) if is_root else np.unique(columns.indices[positive])
    n_features = growth.X.shape[1]
    if not len(rows):  # labels without a positive: what is never seen is never predicted
        bias = np.full(len(groups), -1.0, dtype=np.float32)
        at = (np.arange(len(groups)), np.full(len(groups), n_features - 1))
        return sp.csr_array((bias, at), shape=(len(groups), n_features))
    place = np.searchsorted(rows, columns.indices)
    place[place == len(rows)] = 0
    others = (rows[place] == columns.indices) & ~positive
    if growth.settings["unstored_is_unknown"]:  # negative if all labels of the group are
        n_negative = np.zeros((len(rows), len(groups)), dtype=np.float32)
        np.add.at(n_negative, (place[others], column[others]), 1)
        signs = -(n_negative == [len(group) for group in groups]).astype(np.float32)
    else:
        signs = np.full((len(rows), len(groups)), -1, dtype=np.float32)
        signs[place[others], column[others]] = 0
    signs[place[positive], column[positive]] = 1
    own = growth.X[rows]
    features, local = np.unique(own.indices, return_inverse=True)
    X = sp.csr_array((own.data, local, own.indptr), shape=(len(rows), len(features)))
    settings = growth.settings
    weights = squared_hinge_weights(X, signs, settings["C"], tol=settings["tol"]).T
    kept = (np.abs(weights) >= settings["prune"]) | (features == n_features - 1)
    stored = sp.coo_array(np.where(kept, weights, 0))
    return sp.csr_array(
        (stored.data, (stored.row, features[stored.col])), shape=(len(groups), n_features)
    )
