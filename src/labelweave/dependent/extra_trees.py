"""Extremely randomised trees, or a random forest, over all labels together."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.utils._param_validation import Interval, StrOptions

from labelweave.base import MultiLabelClassifier, Pair, WeightedClassifier
from labelweave.class_weights import weighted_counts
from labelweave.importance import FeatureImportanceMixin
from labelweave.labels import LabelMatrix
from labelweave.shallow.forest import GRID, Forest, Splits, grow_forest

__all__ = ["ExtraTrees"]


class ExtraTrees(FeatureImportanceMixin, WeightedClassifier):
    """A forest of scikit-learn's trees, each grown on all labels together [1]_ [2]_.

    Splits minimise the variance summed over all labels (for 0/1 labels half of Gini's impurity),
    so that labels share the structure of the trees. The probability of a label is the mean over
    the trees of its frequency in the leaf.

    Parameters
    ----------
    n_estimators : int, default=300
        Number of trees.
    trees : {"extra", "random-forest"}, default="extra"
        Thresholds drawn at random [1]_, or the best ones on rows drawn with replacement [2]_.
    max_features : {"sqrt", "log2"}, int, float or None, default="sqrt"
        Features tried at a split.
    max_depth : int, optional
    min_samples_leaf : int, default=1
    n_projections : int, "auto" or None, default="auto"
        Number of random projections of the labels on which each tree is grown [3]_ (the
        frequencies in the leaves are those of the labels all the same); None grows on the labels
        themselves. "auto" takes 64 where there are more labels than that: the time to grow a tree
        is proportional to this number.
    n_jobs : int, optional
        Number of trees grown in parallel threads; None means one.
    verbose : int, default=0
        Above 0, joblib prints its progress.
    threshold, validation_fraction, random_state
        As for every estimator: see :class:`~labelweave.base.MultiLabelClassifier`.

    Attributes
    ----------
    node_children_, node_feature_, node_threshold_, roots_ : ndarray
        The splits of all trees; see :class:`labelweave.shallow.forest.Splits`.
    members_ : csr_array of shape (n_nodes, n_rows)
        How often each training row is in each leaf, times its weight (scaled to a mean near 1).
    train_positive_ : csr_array of shape (n_rows, n_labels)
    frequency_ : ndarray of shape (n_labels,)
        Share of the positives among the known entries of each label, weighted like the rows.

    Notes
    -----
    Unknown entries: while a tree is grown, an unknown entry is replaced by the label's frequency.
    In the leaves it is ignored: the probability is the weight of the positive rows divided by the
    weight of the rows whose entry is known, both summed over all trees (a row has the weight
    1 / leaf size in each tree whose leaf it shares). If no such row is known, the probability is
    the label's frequency.

    Weights of rows count in the splits, in the frequencies of the leaves and in the importance of
    features. As in scikit-learn, `min_samples_leaf` counts rows whatever their weights, and a
    random forest draws all rows with the same probability: a drawn row then has its weight.

    With all entries known and without projections the trees are those of scikit-learn's
    ``ExtraTreesClassifier(max_features="sqrt")`` up to the seeds and to splits that are equally
    good. They are stored without the table of class frequencies that scikit-learn keeps in every
    node: 300 trees on 374 labels and 4,500 rows need 65 MB instead of 16 GB.

    The importance of a feature for a label is the reduction of the label's variance by its splits,
    normalised to the sum 1 per tree and averaged over the trees. It is computed on request.

    References
    ----------
    .. [1] P. Geurts, D. Ernst and L. Wehenkel. Extremely randomized trees. Machine Learning
       63(1), 2006, pages 3-42.
    .. [2] L. Breiman. Random forests. Machine Learning 45(1), 2001, pages 5-32.
    .. [3] A. Joly, P. Geurts and L. Wehenkel. Random forests with random projections of the
       output space for high dimensional multi-label classification. ECML PKDD 2014.

    Examples
    --------
    >>> import numpy as np
    >>> from labelweave.dependent.extra_trees import ExtraTrees
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [0.0, 0.0]] * 5)
    >>> model = ExtraTrees(10, random_state=0).fit(X, X.astype(int))
    >>> model.predict([[1, 1], [0, 1]])
    array([[1, 1],
           [0, 1]])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **MultiLabelClassifier._parameter_constraints,
        "n_estimators": [Interval(Integral, 1, None, closed="left")],
        "trees": [StrOptions({"extra", "random-forest"})],
        "max_features": [
            StrOptions({"sqrt", "log2"}),
            Interval(Integral, 1, None, closed="left"),
            Interval(Real, 0, 1, closed="right"),
            None,
        ],
        "max_depth": [Interval(Integral, 1, None, closed="left"), None],
        "min_samples_leaf": [Interval(Integral, 1, None, closed="left")],
        "n_projections": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"}), None],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }

    tuning_space: ClassVar = {
        "max_features": ("choice", ["sqrt", "log2", 0.3]),
        "min_samples_leaf": ("int-log", 1, 20),
    }

    def __init__(
        self,
        n_estimators: int = 300,
        trees: str = "extra",
        max_features: Any = "sqrt",
        max_depth: int | None = None,
        min_samples_leaf: int = 1,
        n_projections: Any = "auto",
        n_jobs: int | None = None,
        verbose: int = 0,
        threshold: Any = 0.5,
        validation_fraction: float = 0.2,
        random_state: Any = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.trees = trees
        self.max_features = max_features
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
        self.n_projections = n_projections
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.threshold = threshold
        self.validation_fraction = validation_fraction
        self.random_state = random_state

    @classmethod
    def _test_params(cls) -> dict[str, Any]:
        # Fully grown trees fit the training rows exactly.
        return {"n_estimators": 20, "max_depth": 5}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.capabilities.missing_values = tags.input_tags.allow_nan = True
        return tags

    def _fit(
        self,
        X: Any,
        Y: LabelMatrix,
        validation: Pair | None,
        sample_weight: np.ndarray | None = None,
    ) -> None:
        self.train_positive_ = sp.csr_array(Y.positive()).astype(np.float32)
        # `known_base_ + known_change_` is 1 where an entry is known and 0 where it is unknown. The
        # change is 1 at known entries or -1 at unknown ones, whichever the label matrix stores.
        few_known = Y.has_unknown and Y.unstored_is_unknown
        self.known_base_ = 0 if few_known else 1
        change = sp.csr_array(Y.known() if few_known else Y.unknown()).astype(np.float32)
        self.known_change_ = change if few_known else -change
        positives, known = weighted_counts(Y, sample_weight)
        # Rounding must leave no label without a known entry.
        self.frequency_ = positives / np.maximum(known, np.finfo(np.float64).tiny)
        forest = grow_forest(
            X,
            *self._targets(),
            n_trees=self.n_estimators,
            trees=self.trees,
            n_projections=self.n_projections,
            max_features=self.max_features,
            max_depth=self.max_depth,
            min_samples_leaf=self.min_samples_leaf,
            n_jobs=self.n_jobs,
            verbose=self.verbose,
            random=self._generator(),
            sample_weight=sample_weight,
        )
        splits = forest.splits
        self.node_children_, self.node_feature_ = splits.children, splits.feature
        self.node_threshold_, self.roots_ = splits.threshold, splits.roots
        self.node_missing_left_ = splits.missing_left
        self.members_ = forest.members

    def _targets(self) -> tuple[sp.csr_array, np.ndarray]:
        """The targets of the trees, as a sparse matrix and a vector to add to each of its rows.

        Unknown entries are the label's frequency.
        """
        frequency = np.rint(self.frequency_ * GRID) / GRID
        targets = sp.csr_array(self.train_positive_ - self.known_change_ * frequency)
        return targets, (1 - self.known_base_) * frequency

    def _splits(self) -> Splits:
        nodes = (self.node_children_, self.node_feature_, self.node_threshold_, self.roots_)
        return Splits(*nodes, missing_left=getattr(self, "node_missing_left_", None))

    def _check_state(self) -> None:
        """Check what was loaded."""
        n_rows = self.train_positive_.shape[0]
        Forest(self._splits(), self.members_).check(self._n_columns, n_rows)

    def _predict_proba(self, X: Any) -> np.ndarray:
        result = np.empty((X.shape[0], self.n_labels_), dtype=np.float32)
        for rows, weights in Forest(self._splits(), self.members_).weights(X, self.n_labels_):
            positive = (weights @ self.train_positive_).toarray()
            known = self.known_base_ + (weights @ self.known_change_).toarray()
            has_known = known > 1e-6
            shares = positive / np.where(has_known, known, 1)
            result[rows] = np.where(has_known, shares, self.frequency_)
        return result

    def _feature_importance(self) -> np.ndarray:
        parent, ends = self._splits().parents(), [*self.roots_[1:], len(self.node_feature_)]
        total = np.zeros((self.n_labels_, self._n_columns))
        for start, end in zip(self.roots_, ends, strict=True):
            above = np.maximum(parent[start:end] - start, -1)
            passed = _passing_rows(self.members_[start:end], above)
            spread = self._spread_below(passed)
            inner = np.flatnonzero(self.node_children_[start:end, 0] != np.arange(start, end))
            down = self.node_children_[start:end][inner] - start
            gain = spread[inner] - spread[down[:, 0]] - spread[down[:, 1]]
            shape = (len(inner), self._n_columns)
            features = self.node_feature_[start:end][inner], np.arange(len(inner) + 1)
            split_on = sp.csr_array((np.ones(len(inner)), *features), shape=shape)
            gains = (split_on.T @ np.maximum(gain, 0)).T
            gains = np.where(gains > 1e-9 * len(above), gains, 0)  # without rounding errors
            sums = gains.sum(axis=1, keepdims=True)
            total += np.divide(gains, sums, out=np.zeros_like(gains), where=sums > 0)
        return total

    def _spread_below(self, passed: sp.csr_array) -> np.ndarray:
        """Squared deviations of each label from its mean over the rows that pass each node."""
        positive = (passed @ self.train_positive_).toarray().astype(np.float64)
        n_rows = np.asarray(passed.sum(axis=1)).reshape(-1, 1)
        known = self.known_base_ * n_rows + (passed @ self.known_change_).toarray()
        return positive - positive**2 / np.where(known > 0, known, 1)


def _passing_rows(leaf_rows: sp.csr_array, parent: np.ndarray) -> sp.csr_array:
    """Rows that pass each node of a tree, from the rows in its leaves."""
    entries = leaf_rows.tocoo()
    # In float64 the rounding errors of sums of weights are too small to look like gains.
    node, row, drawn = entries.row, entries.col, entries.data.astype(np.float64)
    levels = []
    while len(node):
        levels.append((drawn, node, row))
        above = parent[node]
        up = above >= 0
        node, row, drawn = above[up], row[up], drawn[up]
    counts, nodes, rows = (np.concatenate(part) for part in zip(*levels, strict=True))
    return sp.coo_array((counts, (nodes, rows)), shape=leaf_rows.shape).tocsr()
