"""The label tree in the files that napkinXC writes, read and used without napkinXC.

napkinXC follows the indices in its files without looking whether they are in range. Here they are
checked, and the predictions are products of arrays, so that no file can harm the process.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import expit
from sklearn.preprocessing import normalize

from labelweave.exceptions import InputError
from labelweave.rows import row_chunks

__all__ = ["NodeClassifiers", "read_node_classifiers"]

# Position 0 of a weight vector is unused, the bias is at 1, the features follow, and an
# unused position may come last.
_BIAS, _FIRST_FEATURE, _EXTRA = 1, 2, 3
_WITHOUT_WEIGHTS = 10.0  # logit of a node that was positive (or negative) in all of its rows
_PAIR = np.dtype([("index", "<i4"), ("weight", "<f4")])


@dataclass
class NodeClassifiers:
    """A label tree with a linear classifier in each node.

    * `parent`: The parent of each node, which comes before it; -1 of the root.
    * `label`: The label of each leaf; -1 of other nodes.
    * `weights`: One row per node and one column per feature.
    * `bias`: One number per node.
    """

    parent: np.ndarray
    label: np.ndarray
    weights: sp.csr_array
    bias: np.ndarray

    def label_probabilities(self, X: Any, n_labels: int) -> np.ndarray:
        """Multiply the probabilities of the nodes on the path from the root to each label."""
        leaves = np.flatnonzero(self.label >= 0)
        levels = self._levels()
        by_feature = sp.csr_array(self.weights.T)
        result = np.zeros((X.shape[0], n_labels))
        for rows in row_chunks(X.shape[0], len(self.parent)):
            features = normalize(sp.csr_array(X[rows], dtype=np.float64))
            probability = expit((features @ by_feature).toarray() + self.bias)
            for nodes in levels[1:]:
                probability[:, nodes] *= probability[:, self.parent[nodes]]
            result[rows, self.label[leaves]] = probability[:, leaves]
        return result

    def _levels(self) -> list[np.ndarray]:
        """The nodes at each distance from the root."""
        depth = [0] * len(self.parent)
        for node, parent in enumerate(self.parent.tolist()[1:], start=1):
            depth[node] = depth[parent] + 1
        order = np.argsort(depth, kind="stable")
        return np.split(order, np.cumsum(np.bincount(depth))[:-1])


def read_node_classifiers(
    tree: bytes, weights: bytes, n_features: int, n_labels: int
) -> NodeClassifiers:
    """Read ``tree.bin`` and ``weights.bin``."""
    parent, label = _read_tree(_Cursor(tree), n_labels)
    vectors, bias = _read_weights(_Cursor(weights), len(parent), n_features)
    return NodeClassifiers(parent, label, vectors, bias)


class _Cursor:
    """Numbers one after the other in bytes."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._position = 0

    def take(self, kind: Any, count: int) -> np.ndarray:
        size = np.dtype(kind).itemsize * count
        _require(0 <= size <= len(self._content) - self._position)
        taken = np.frombuffer(self._content, kind, count, self._position)
        self._position += size
        return taken

    def one(self, kind: str) -> int:
        return int(self.take(kind, 1)[0])

    def finish(self) -> None:
        _require(self._position == len(self._content))


def _read_tree(file: _Cursor, n_labels: int) -> tuple[np.ndarray, np.ndarray]:
    n_leaves, n_nodes = file.take("<i4", 2).tolist()
    _require(1 <= n_leaves <= n_labels and n_nodes >= 1)
    index, label = file.take("<i4", 2 * n_nodes).reshape(n_nodes, 2).T
    root = file.one("<i4")
    parent = file.take("<i4", n_nodes)
    file.finish()
    nodes = np.arange(n_nodes)
    labels = label[label >= 0]
    _require(
        root == 0
        and parent[0] == -1
        and np.array_equal(index, nodes)
        and bool((parent[1:] >= 0).all() and (parent[1:] < nodes[1:]).all())
        and len(labels) == n_leaves == len(np.unique(labels))
        and int(labels.max()) < n_labels
    )
    return parent, label


def _read_weights(file: _Cursor, n_nodes: int, n_features: int) -> tuple[sp.csr_array, np.ndarray]:
    width = n_features + _EXTRA
    _require(file.one("<i4") == n_nodes)
    bias = np.zeros(n_nodes)
    indices, values = [], []
    for node in range(n_nodes):
        n_classes, first_class, loss = file.take("<i4", 3).tolist()
        _require(0 <= n_classes <= 2 and first_class in (0, 1) and loss == 0)
        sign = 1 if first_class == 1 else -1
        index, weight = np.empty(0, np.int32), np.empty(0, np.float32)
        if n_classes < 2:
            bias[node] = sign * _WITHOUT_WEIGHTS
        else:
            file.take("<u8", 2)  # size and number of non-zero weights, which follow again
            size, n_weights = (file.one("<u8") for _ in range(2))
            if file.one("u1"):
                pairs = file.take(_PAIR, n_weights)
                index, weight = pairs["index"], pairs["weight"]
            else:
                weight = file.take("<f4", size)
                index = np.flatnonzero(weight).astype(np.int32)
                weight = weight[index]
            _require(file.one("u1") == 0)  # no gradients
            _require(
                len(np.unique(index)) == len(index)
                and bool(np.isfinite(weight).all())
                and bool((index >= 0).all() and (index < width).all())
            )
        bias[node] += sign * weight[index == _BIAS].sum()
        is_feature = (index >= _FIRST_FEATURE) & (index < _FIRST_FEATURE + n_features)
        indices.append(index[is_feature] - _FIRST_FEATURE)
        values.append(sign * weight[is_feature])
    file.finish()
    indptr = np.cumsum([0, *map(len, indices)])
    parts = np.concatenate(values), np.concatenate(indices), indptr
    return sp.csr_array(parts, shape=(n_nodes, n_features)), bias


def _require(condition: bool) -> None:
    if not condition:
        raise InputError("the files of the label tree are damaged or were changed")
