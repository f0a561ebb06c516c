"""A classifier for thousands of labels: a tree of linear classifiers over the labels."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from joblib import Parallel, delayed
from sklearn.preprocessing import normalize
from sklearn.utils._param_validation import Interval

from labelweave.base import MultiLabelClassifier, Pair
from labelweave.labels import LabelMatrix
from labelweave.rows import row_chunks
from labelweave.top_labels import best_entries
from labelweave.unseen.label_tree_nodes import LabelTreeNodes, grow_tree

__all__ = ["LabelTree"]

_CHUNK_ROWS = 4096
_AHEAD = 20  # labels that each tree adds to the k best, for those that are best on average


class LabelTree(MultiLabelClassifier):
    r"""A tree of linear classifiers over labels, for sparse features and many labels.

    Labels whose rows are similar are put into one branch, halves of halves, until a branch has few
    labels [1]_. Each node has one linear support vector machine per branch or label, trained on
    the rows that have a label of the node, so that a row trains about log(labels) nodes rather than
    one classifier per label. With m the margin of a classifier,
    P(branch | node, x) = exp(-max(0, 1 - m)\ :sup:`2`), and P(label | x) is the product on the way
    from the root; a beam search follows the best branches. The mean over several trees is better
    than one.

    Rows are scaled to length one. Nothing of the size rows x labels is made, in training or by
    `predict_top_k`.

    Parameters
    ----------
    n_trees : int, default=3
        Trees whose probabilities are averaged.
    branches : int, default=16
        Branches of a node, rounded up to a power of two.
    max_leaves : int, default=50
        Largest number of labels of a branch that is not divided further.
    C : float, default=1
        Inverse strength of the penalty of the linear classifiers.
    tol : float, default=0.01
        Relative length of the gradient at which the training of a classifier ends.
    prune : float, default=0.1
        Weights smaller than this are dropped.
    beam : int, default=10
        Branches that the search follows at each depth.
    n_jobs : int, default=1
        Processes of the training, one tree each; -1 uses all cores.
    threshold, validation_fraction, random_state
        As for every estimator: see :class:`~labelweave.base.MultiLabelClassifier`.

    Attributes
    ----------
    trees_ : list
        The trees, each a few arrays.

    Notes
    -----
    The division into balanced branches, the loss and the probabilities are Parabel's [1]_; nodes of
    several branches are Bonsai's [2]_. Unknown entries are left out of the losses.

    References
    ----------
    .. [1] Y. Prabhu, A. Kag, S. Harsola, R. Agrawal and M. Varma. Parabel: partitioned label trees
       for extreme classification. WWW 2018.
    .. [2] S. Khandagale, H. Xiao and R. Babbar. Bonsai: diverse and shallow trees for extreme
       multi-label classification. Machine Learning 109, 2020.

    Examples
    --------
    >>> X = sp.csr_array(np.eye(6))
    >>> model = LabelTree(max_leaves=2, random_state=0).fit(X, np.eye(6))
    >>> model.predict_top_k(X[:2], k=1).indices.tolist()
    [0, 1]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **MultiLabelClassifier._parameter_constraints,
        "n_trees": [Interval(Integral, 1, None, closed="left")],
        "branches": [Interval(Integral, 2, None, closed="left")],
        "max_leaves": [Interval(Integral, 1, None, closed="left")],
        "C": [Interval(Real, 0, None, closed="neither")],
        "tol": [Interval(Real, 0, 1, closed="neither")],
        "prune": [Interval(Real, 0, None, closed="left")],
        "beam": [Interval(Integral, 1, None, closed="left")],
        "n_jobs": [Integral],
    }
    _unsaved_parameters: ClassVar[tuple[str, ...]] = ("n_jobs",)

    def __init__(
        self,
        n_trees: int = 3,
        *,
        branches: int = 16,
        max_leaves: int = 50,
        C: float = 1.0,
        tol: float = 0.01,
        prune: float = 0.1,
        beam: int = 10,
        n_jobs: int = 1,
        threshold: Any = 0.5,
        validation_fraction: float = 0.2,
        random_state: Any = None,
    ) -> None:
        self.n_trees = n_trees
        self.branches = branches
        self.max_leaves = max_leaves
        self.C = C
        self.tol = tol
        self.prune = prune
        self.beam = beam
        self.n_jobs = n_jobs
        self.threshold = threshold
        self.validation_fraction = validation_fraction
        self.random_state = random_state

    def _fit(self, X: Any, Y: LabelMatrix, validation: Pair | None) -> None:
        features = _with_bias(X)
        stored = sp.coo_array(Y.to_sparse().values)
        kept = ~np.isnan(stored.data) if Y.unstored_is_unknown else stored.data != 0
        entries = stored.data[kept], (stored.row[kept], stored.col[kept])
        stored = sp.csr_array(entries, shape=stored.shape)
        seeds = self._generator().randint(2**31 - 1, size=self.n_trees)
        self.trees_ = Parallel(n_jobs=self.n_jobs)(
            delayed(grow_tree)(
                features,
                stored,
                np.random.RandomState(seed),
                branches=self.branches,
                max_leaves=self.max_leaves,
                C=self.C,
                tol=self.tol,
                prune=self.prune,
                unstored_is_unknown=Y.unstored_is_unknown,
            )
            for seed in seeds
        )

    def _predict_proba(self, X: Any) -> np.ndarray:
        every_node = max(tree.first[-1] for tree in self.trees_)
        return self._search(X, self.n_labels_, int(every_node)).toarray()

    def _predict_top_k(self, X: Any, k: int) -> sp.csr_array:
        return self._search(X, k, self.beam)

    def _search(self, X: Any, k: int, beam: int) -> sp.csr_array:
        chunks = row_chunks(X.shape[0], 1, _CHUNK_ROWS)
        return sp.csr_array(sp.vstack([self._of_rows(X[r], k, beam) for r in chunks], format="csr"))

    def _of_rows(self, X: Any, k: int, beam: int) -> sp.csr_array:
        features = _with_bias(X)
        wanted = k if len(self.trees_) == 1 else k + _AHEAD
        found = [tree.search(features, wanted, beam, self.n_labels_) for tree in self.trees_]
        total = sp.csr_array(sum(found[1:], start=found[0]) / np.float32(len(found)))
        if len(found) == 1:
            return total
        rows = np.repeat(np.arange(total.shape[0]), np.diff(total.indptr))
        kept = best_entries(rows, total.data, k)
        return sp.csr_array(
            (total.data[kept], (rows[kept], total.indices[kept])), shape=total.shape
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.capabilities.top_labels = True
        return tags

    @classmethod
    def _test_params(cls) -> dict[str, Any]:
        return {"max_leaves": 2, "branches": 2}

    def _state(self) -> dict[str, Any]:
        state: dict[str, Any] = {}
        for number, tree in enumerate(self.trees_):
            state |= tree.state(f"tree_{number}_")
        return state

    def _set_state(self, state: Mapping[str, Any]) -> None:
        width, n_labels = self._n_columns, self.n_labels_
        self.trees_ = [
            LabelTreeNodes.from_state(state, f"tree_{number}_", width, n_labels)
            for number in range(self.n_trees)
        ]


def _with_bias(X: Any) -> sp.csr_array:
    """Rows of length one, with a last column of ones."""
    rows = sp.csr_array(normalize(sp.csr_array(X, dtype=np.float32)))
    ones = np.ones((rows.shape[0], 1), dtype=np.float32)
    return sp.csr_array(sp.hstack([rows, ones], format="csr"))
