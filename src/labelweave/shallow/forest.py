"""Forests that use little memory: the nodes of their trees and the training rows in each leaf.

scikit-learn's trees store a number for every class of every label in every node: gigabytes for a
few hundred labels. But the prediction of a forest is a weighted mean of training labels, where the
weight of a training row depends on how many leaves it shares with x and on their size (Y. Lin and
Y. Jeon, Random forests and adaptive nearest neighbors, JASA 101(474), 2006). So it is enough to
store the labels once, and for each tree its splits and the leaf of every training row.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelweave.exceptions import InputError
from labelweave.rows import row_chunks
from labelweave.shallow.per_label import with_int32_indices

GRID = 1024  # targets are multiples of 1/1024, so that sums are exact and pure nodes are seen
_FEW_LABELS = 64  # above, "auto" projects the labels
_WEIGHT_STEPS = 4096  # of the mantissa of a weight while trees are grown, for the same reason


@dataclass
class Splits:
    """The nodes of all trees of a forest, one after the other."""

    # (n_nodes, 2): the child for rows whose feature is at most the threshold, and that for the
    # others; the children of a leaf are the leaf itself.
    children: np.ndarray
    feature: np.ndarray  # the feature that is compared; 0 in leaves
    threshold: np.ndarray  # in the precision of the features that it is compared with
    roots: np.ndarray  # the first node of each tree
    missing_left: np.ndarray | None = None  # whether NaN goes to the first child
    # Of nodes that split categories: the row of `left_sets`, whose bits are the codes that go to
    # the first child; -1 of all other nodes.
    left_set: np.ndarray | None = None
    left_sets: np.ndarray | None = None

    @property
    def is_leaf(self) -> np.ndarray:
        return self.children[:, 0] == np.arange(len(self.children))

    def leaves_of(self, X: Any) -> np.ndarray:
        """Return the leaf of each row of a dense array in each tree."""
        node = np.tile(self.roots, (len(X), 1))
        pending = np.arange(node.size)  # pairs of row and tree that have not reached a leaf
        flat, n_trees = node.reshape(-1), len(self.roots)
        while len(pending):
            at = flat[pending]
            values = X[pending // n_trees, self.feature[at]]
            following = self.children[at, self._go_right(at, values).astype(np.intp)]
            flat[pending] = following
            pending = pending[following != at]
        return node

    def _go_right(self, node: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Whether rows with these values of the compared feature go to the second child."""
        right = values > self.threshold[node]
        if self.left_set is not None and self.left_sets is not None:
            of_categories = np.flatnonzero((self.left_set[node] >= 0) & ~np.isnan(values))
            code = values[of_categories].astype(np.int64)
            bits = self.left_sets[self.left_set[node[of_categories]], code >> 5]
            right[of_categories] = (bits >> (code & 31).astype(np.uint32)) & 1 == 0
        if self.missing_left is not None:
            blank = np.flatnonzero(np.isnan(values))
            right[blank] = ~self.missing_left[node[blank]]
        return right

    def check(self, n_features: int) -> None:
        """Raise an error unless every walk from a root ends in a leaf; of a loaded forest."""
        n_nodes = len(self.children)
        own = np.arange(n_nodes)[:, None]
        is_leaf = (self.children == own).all(axis=1)
        sets, left_set = self.left_sets, self.left_set
        is_valid = (
            self.children.shape == (n_nodes, 2)
            and all(part.dtype.kind in "iu" for part in (self.children, self.feature, self.roots))
            and self.feature.shape == self.threshold.shape == (n_nodes,)
            and bool((self.children[~is_leaf] > own[~is_leaf]).all())
            and bool((self.children >= 0).all() and (self.children < n_nodes).all())
            and bool((self.feature >= 0).all() and (self.feature < max(n_features, 1)).all())
            and self.roots.ndim == 1
            and bool((self.roots >= 0).all() and (self.roots < n_nodes).all())
            and (self.missing_left is None or self.missing_left.shape == (n_nodes,))
            and (left_set is None) == (sets is None)
            and (left_set is None or left_set.shape == (n_nodes,))
            and (left_set is None or sets is None or (left_set < len(sets)).all())
        )
        if not is_valid:
            raise InputError("the nodes of its trees do not fit together")

    def parents(self) -> np.ndarray:
        """Return the parent of each node, -1 for a root."""
        above = np.full(len(self.children), -1, dtype=np.int32)
        inner = np.flatnonzero(~self.is_leaf)
        above[self.children[inner].ravel()] = np.repeat(inner, 2)
        return above


@dataclass
class Forest:
    """The splits of all trees, and how much each training row counts in each leaf."""

    splits: Splits
    members: sp.csr_array

    def check(self, n_features: int, n_rows: int) -> None:
        """Raise an error unless the trees and their training rows fit together."""
        self.splits.check(n_features)
        if self.members.shape != (len(self.splits.children), n_rows):
            raise InputError("the training rows of its trees do not fit together")

    def weights(self, X: Any, n_labels: int) -> Iterator[tuple[slice, sp.csr_array]]:
        """Yield the weights of the training rows for the rows of X, one chunk of rows at a time."""
        sizes = np.asarray(self.members.sum(axis=1)).ravel()
        width = max(X.shape[1], self.members.shape[1], n_labels, len(self.splits.roots))
        for rows in row_chunks(X.shape[0], width):
            leaves = self.splits.leaves_of(dense_rows(X, rows))
            yield rows, row_weights(leaves, self.members, sizes)


def grow_forest(
    X: Any,
    targets: sp.csr_array,
    constant: np.ndarray | None = None,
    *,
    n_trees: int,
    random: np.random.RandomState,
    sample_weight: np.ndarray | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
    **options: Any,
) -> Forest:
    """Grow scikit-learn's trees on all targets together.

    `constant` is added to each row of the targets; the weights of the rows are positive; `n_jobs`
    and `verbose` are joblib's. The options are `trees`, `n_projections`, `max_features`,
    `max_depth` and `min_samples_leaf` of :class:`labelweave.dependent.extra_trees.ExtraTrees`.
    """
    from joblib import Parallel, delayed

    features = _tree_input(X)
    added = np.zeros(targets.shape[1]) if constant is None else constant
    seeds = random.randint(np.iinfo(np.int32).max, size=n_trees)
    weight = None if sample_weight is None else _scaled(sample_weight)
    grown = Parallel(n_jobs=n_jobs, verbose=verbose, prefer="threads")(
        delayed(_grow)(features, targets, added, seed, weight, **options) for seed in seeds.tolist()
    )
    splits = concatenate_trees([tree for tree, _, _ in grown])
    leaves = np.column_stack([leaf for _, leaf, _ in grown]) + splits.roots
    draws = [drawn for _, _, drawn in grown if drawn is not None]
    counts = np.column_stack(draws) if draws else None
    if weight is not None:
        counts = weight[:, None] * (np.ones(leaves.shape) if counts is None else counts)
    return Forest(splits, leaf_members(leaves, counts, len(splits.children)))


def _grow(
    X: Any,
    varying: sp.csr_array,
    constant: np.ndarray,
    seed: int,
    weight: np.ndarray | None,
    *,
    trees: str = "extra",
    n_projections: Any = "auto",
    **tree_options: Any,
) -> tuple[Any, np.ndarray, np.ndarray | None]:
    """Grow one tree: its splits, the leaf of each row and how often the row was drawn."""
    from sklearn.tree import DecisionTreeRegressor, ExtraTreeRegressor

    random = np.random.RandomState(seed)
    n_rows, n_labels = varying.shape
    wanted = n_projections
    if wanted == "auto":
        wanted = _FEW_LABELS if n_labels > _FEW_LABELS else None
    if wanted is None:
        seen = varying.toarray() + constant
    else:
        projection = random.normal(size=(n_labels, wanted)) / np.sqrt(wanted)
        seen = varying @ projection + constant @ projection
    seen = np.rint(seen.astype(np.float64) * GRID) / GRID
    extra = trees == "extra"
    tree = (ExtraTreeRegressor if extra else DecisionTreeRegressor)(
        **tree_options, random_state=random.randint(np.iinfo(np.int32).max)
    )
    drawn = None
    if not extra:
        drawn = np.bincount(random.randint(n_rows, size=n_rows), minlength=n_rows)
    counted = drawn
    if weight is not None:
        mantissa, exponent = np.frexp(weight)
        rounded = np.ldexp(np.rint(mantissa * _WEIGHT_STEPS) / _WEIGHT_STEPS, exponent)
        counted = rounded if drawn is None else rounded * drawn
    # scikit-learn looks for missing values only when it checks its input
    has_missing = not sp.issparse(X) and bool(np.isnan(X.sum()))
    tree.fit(X, seen, sample_weight=counted, check_input=has_missing)
    names = ("children_left", "children_right", "feature", "threshold", "missing_go_to_left")
    # Copies, so that the tree with its large table of values is freed.
    kept = SimpleNamespace(**{name: getattr(tree.tree_, name).copy() for name in names})
    kept.node_count = tree.tree_.node_count
    return kept, tree.tree_.apply(X.tocsr() if sp.issparse(X) else X), drawn


def _scaled(weight: np.ndarray) -> np.ndarray:
    """Weights with a mean near 1, and none that float32 takes for 0.

    They are scaled by a power of two, so that sums of whole numbers stay exact.
    """
    for size in (np.max, np.mean):  # the first, because a sum of huge weights is infinite
        weight = np.ldexp(weight, -np.frexp(size(weight))[1])
    return np.maximum(weight, np.finfo(np.float32).tiny)


def _tree_input(X: Any) -> Any:
    """Convert features to the form that scikit-learn's trees accept without checks."""
    if not sp.issparse(X):
        return np.ascontiguousarray(X, dtype=np.float32)
    columns = with_int32_indices(sp.csc_array(X, dtype=np.float32))
    columns.sort_indices()
    return columns


def concatenate_trees(trees: list[Any], dtype: Any = np.float32) -> Splits:
    """Collect the splits of fitted scikit-learn trees (their `tree_`).

    In single precision the thresholds are rounded so that float32 features stay on the same side.
    """
    sizes = np.array([tree.node_count for tree in trees], dtype=np.int64)
    roots = (sizes.cumsum() - sizes).astype(np.int32)
    children, feature = [np.empty((0, 2), np.int32)], [np.empty(0, np.int32)]
    threshold, missing_left = [np.empty(0, dtype)], [np.empty(0, bool)]
    for tree, root in zip(trees, roots, strict=True):
        both = np.column_stack([tree.children_left, tree.children_right])
        leaf = both[:, 0] <= 0  # no child is the root
        both[leaf] = np.flatnonzero(leaf)[:, None]
        children.append((both + root).astype(np.int32))
        feature.append(np.where(leaf, 0, tree.feature).astype(np.int32))
        values = np.where(leaf, np.inf, tree.threshold)
        threshold.append(_rounded_down(values) if dtype == np.float32 else values)
        missing_left.append(np.asarray(tree.missing_go_to_left, dtype=bool))
    return Splits(
        np.vstack(children),
        np.concatenate(feature),
        np.concatenate(threshold),
        roots,
        np.concatenate(missing_left),
    )


def _rounded_down(threshold: np.ndarray) -> np.ndarray:
    """The largest float32 that is not above: float32 features compare the same with it."""
    rounded = threshold.astype(np.float32)
    return np.where(rounded > threshold, np.nextafter(rounded, np.float32(-np.inf)), rounded)


def leaf_members(leaves: np.ndarray, counts: np.ndarray | None, n_nodes: int) -> sp.csr_array:
    """How much each training row counts in each leaf, (n_nodes, n_rows).

    `leaves` and `counts` have shape (n_rows, n_trees): the leaf of each training row in each tree,
    and how often the row was drawn for it, times its weight (None: once).
    """
    n_rows, n_trees = leaves.shape
    drawn = np.ones(leaves.size, np.float32) if counts is None else counts.ravel().astype("f4")
    rows = np.repeat(np.arange(n_rows, dtype=np.int32), n_trees)
    members = sp.coo_array((drawn, (leaves.ravel(), rows)), shape=(n_nodes, n_rows)).tocsr()
    members.eliminate_zeros()
    return members


def row_weights(leaves: np.ndarray, members: sp.csr_array, sizes: np.ndarray) -> sp.csr_array:
    """Compute the weights of the training rows for each row of `leaves`; they sum to one.

    >>> two_leaves = sp.csr_array(np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]))
    >>> row_weights(np.array([[0], [1]]), two_leaves, two_leaves.sum(axis=1)).toarray()
    array([[0.5, 0.5, 0. ],
           [0. , 0. , 1. ]])
    """
    n_rows, n_trees = leaves.shape
    # In float64, so that a row of weight 2 and two equal rows have the same predictions.
    share = 1 / (n_trees * sizes[leaves.ravel()].astype(np.float64))
    indptr = np.arange(0, leaves.size + 1, n_trees)
    shared = sp.csr_array((share, leaves.ravel(), indptr), shape=(n_rows, members.shape[0]))
    return shared @ members


def dense_rows(X: Any, rows: slice) -> np.ndarray:
    """Return a slice of rows as a dense float32 array, the form that trees compare."""
    chunk = X[rows]
    return (chunk.toarray() if sp.issparse(chunk) else chunk).astype(np.float32, copy=False)
