"""Gradient-boosted trees, one ensemble per label."""

from __future__ import annotations

from numbers import Integral, Real
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from scipy.special import expit, logit
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.utils._param_validation import Interval

from labelweave.base import MultiLabelClassifier, Pair
from labelweave.class_weights import CLASS_WEIGHT
from labelweave.importance import FeatureImportanceMixin
from labelweave.labels import LabelMatrix
from labelweave.rows import row_chunks
from labelweave.shallow.forest import Splits, concatenate_trees
from labelweave.shallow.per_label import PerLabelClassifier

__all__ = ["BoostedTrees"]


class BoostedTrees(FeatureImportanceMixin, PerLabelClassifier):
    """scikit-learn's histogram gradient boosting [1]_, one independent ensemble per label.

    Parameters
    ----------
    max_iter : int, default=100
        Number of trees per label.
    learning_rate : float, default=0.1
    max_leaf_nodes : int, default=31
    min_samples_leaf : int, default=20
        Smallest number of rows in a leaf. With fewer than twice as many training rows no tree
        could split, so a tenth of the rows (at least one) is used instead (``leaf_size_``).
    l2_regularization : float, default=0.0
    max_dense_features : int, default=1000
        Histograms need dense features. Of sparse features with more columns than this those with
        the most non-zero entries are used (``features_``), which bounds the memory.
    class_weight : "balanced" or mapping of label to number, optional
        Weights of positives, as in :mod:`labelweave.class_weights`.
    n_jobs : int, optional
        Number of labels fitted in parallel by joblib; None means one.
    verbose : int, default=0
        Above 0, joblib prints its progress.
    threshold, validation_fraction, random_state
        As for every estimator: see :class:`~labelweave.base.MultiLabelClassifier`. Up to 10,000
        training rows nothing is random; with more, scikit-learn stops a label's trees early on a
        tenth of its rows, drawn by the seed.

    Attributes
    ----------
    node_children_, node_feature_, node_threshold_, roots_, node_value_ : ndarray
        The splits of all trees and the value of each leaf; see
        :class:`labelweave.shallow.forest.Splits`.
    baseline_ : ndarray of shape (n_labels,)
        The log-odds of each label before any tree.
    n_iter_ : ndarray of shape (n_labels,)
        Number of trees of each label.
    constant_probabilities_ : ndarray of shape (n_labels,)
        The probability of a label that was constant in training, NaN for all others.
    features_ : ndarray of int, or None
        The columns in use, where not all are.

    Notes
    -----
    A row whose entry for a label is unknown is left out when that label is fitted. A label whose
    known entries are all equal gets Laplace's estimate (positives + 1) / (known + 2).

    The importance of a feature for a label is the sum of the gains of its splits.

    Missing values of X are taken as they are, and so are the categories of a table with mixed
    columns: each split sends a set of categories, and the rows without a value, to one side.

    References
    ----------
    .. [1] G. Ke et al. LightGBM: A highly efficient gradient boosting decision tree. NeurIPS 2017.

    Examples
    --------
    >>> import numpy as np
    >>> from labelweave.dependent.boosted_trees import BoostedTrees
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [0.0, 0.0]] * 20)
    >>> model = BoostedTrees(max_iter=10).fit(X, X.astype(int))
    >>> model.predict([[1, 1], [0, 1]])
    array([[1, 1],
           [0, 1]])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **MultiLabelClassifier._parameter_constraints,
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "max_leaf_nodes": [Interval(Integral, 2, None, closed="left")],
        "min_samples_leaf": [Interval(Integral, 1, None, closed="left")],
        "l2_regularization": [Interval(Real, 0, None, closed="left")],
        "max_dense_features": [Interval(Integral, 1, None, closed="left")],
        "class_weight": CLASS_WEIGHT,
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }

    tuning_space: ClassVar = {
        "max_iter": ("int-log", 30, 300),
        "learning_rate": ("log", 0.02, 0.3),
        "max_leaf_nodes": ("int-log", 4, 64),
        "min_samples_leaf": ("int-log", 2, 50),
        "l2_regularization": ("log", 1e-3, 10.0),
    }

    def __init__(
        self,
        max_iter: int = 100,
        learning_rate: float = 0.1,
        max_leaf_nodes: int = 31,
        min_samples_leaf: int = 20,
        l2_regularization: float = 0.0,
        max_dense_features: int = 1000,
        class_weight: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        threshold: Any = 0.5,
        validation_fraction: float = 0.2,
        random_state: Any = None,
    ) -> None:
        self.max_iter = max_iter
        self.learning_rate = learning_rate
        self.max_leaf_nodes = max_leaf_nodes
        self.min_samples_leaf = min_samples_leaf
        self.l2_regularization = l2_regularization
        self.max_dense_features = max_dense_features
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.threshold = threshold
        self.validation_fraction = validation_fraction
        self.random_state = random_state

    @classmethod
    def _test_params(cls) -> dict[str, Any]:
        return {"max_iter": 10, "learning_rate": 0.5, "min_samples_leaf": 3}

    def _template(self) -> Any:
        names = ("max_iter", "learning_rate", "max_leaf_nodes", "l2_regularization")
        settings = {name: getattr(self, name) for name in names}
        return HistGradientBoostingClassifier(
            min_samples_leaf=self.leaf_size_, categorical_features=self._categorical(), **settings
        )

    def _categorical(self) -> np.ndarray | None:
        """Which features are codes of categories; they come first."""
        encoder = vars(self).get("table_encoder_")
        mask = None if encoder is None else encoder.categorical_
        return mask if mask is not None and mask.any() else None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.capabilities.randomized = False  # below scikit-learn's limit for early stopping
        tags.capabilities.missing_values = tags.input_tags.allow_nan = True
        tags.capabilities.categories = True
        return tags

    def _fit(
        self,
        X: Any,
        y: LabelMatrix,
        validation: Pair | None,
        sample_weight: np.ndarray | None = None,
    ) -> None:
        self.features_ = None
        if sp.issparse(X) and X.shape[1] > self.max_dense_features:
            counts = np.bincount(X.indices, weights=X.data != 0, minlength=X.shape[1])
            self.features_ = np.sort(np.argsort(-counts, kind="stable")[: self.max_dense_features])
        cannot_split = X.shape[0] < 2 * self.min_samples_leaf
        self.leaf_size_ = max(1, X.shape[0] // 10) if cannot_split else self.min_samples_leaf
        super()._fit(self._dense(X), y, validation, sample_weight)

    def _keep(self, learnt: list[int], fitted: list[Any], X: Any) -> None:
        """Store the trees of all labels as a few arrays, which are quick to save and to load."""
        trees = [tree.nodes for estimator in fitted for (tree,) in estimator._predictors]
        self.n_iter_ = np.zeros(self.n_labels_, dtype=np.int64)
        self.n_iter_[learnt] = [estimator.n_iter_ for estimator in fitted]
        # constant labels have no tree: their baseline is their prediction
        self.baseline_ = logit(self.constant_probabilities_)
        self.baseline_[learnt] = [
            float(estimator._baseline_prediction.item()) for estimator in fitted
        ]
        splits = concatenate_trees([_as_tree(nodes) for nodes in trees], X.dtype)
        self.node_children_, self.node_feature_ = splits.children, splits.feature
        self.node_threshold_, self.roots_ = splits.threshold, splits.roots
        self.node_missing_left_ = splits.missing_left
        self.node_left_set_ = self.left_sets_ = None
        if self._categorical() is not None:
            self.node_left_set_, self.left_sets_ = _category_sets(fitted)
        self.node_value_ = np.concatenate([[], *(nodes["value"] for nodes in trees)])
        self.node_gain_ = np.concatenate([[], *(nodes["gain"] for nodes in trees)])

    def _splits(self) -> Splits:
        nodes = (self.node_children_, self.node_feature_, self.node_threshold_, self.roots_)
        # a model of an earlier version has no missing values and no categories
        names = ("node_missing_left_", "node_left_set_", "left_sets_")
        return Splits(*nodes, *(getattr(self, name, None) for name in names))

    def _check_state(self) -> None:
        """Check what was loaded."""
        self._splits().check(len(self.features_) if self.features_ is not None else self._n_columns)

    def _predict_proba(self, X: Any) -> np.ndarray:
        raw = np.tile(self.baseline_, (X.shape[0], 1))
        if len(self.roots_):
            learnt = np.flatnonzero(self.n_iter_)
            first = np.cumsum(self.n_iter_[learnt]) - self.n_iter_[learnt]
            for rows in row_chunks(X.shape[0], max(X.shape[1], len(self.roots_))):
                leaves = self._splits().leaves_of(self._dense(X[rows]))
                raw[rows, learnt] += np.add.reduceat(self.node_value_[leaves], first, axis=1)
        return expit(raw)

    def _dense(self, X: Any) -> np.ndarray:
        X = X if self.features_ is None else X[:, self.features_]
        return X.toarray() if sp.issparse(X) else X

    def _feature_importance(self) -> np.ndarray:
        shape = (self.n_labels_, self._n_columns)
        n_nodes = len(self.node_feature_)
        tree = np.repeat(np.arange(len(self.roots_)), np.diff([*self.roots_, n_nodes]))
        label = np.repeat(np.arange(self.n_labels_), self.n_iter_)[tree]
        columns = np.arange(shape[1]) if self.features_ is None else self.features_
        inner = ~self._splits().is_leaf
        cell = label[inner] * shape[1] + columns[self.node_feature_[inner]]
        gains = np.bincount(cell, self.node_gain_[inner], minlength=shape[0] * shape[1])
        return np.maximum(gains, 0).reshape(shape)


def _as_tree(nodes: np.ndarray) -> SimpleNamespace:
    """The nodes of a boosted tree under the names that scikit-learn's other trees use."""
    return SimpleNamespace(
        node_count=len(nodes),
        children_left=np.where(nodes["is_leaf"], -1, nodes["left"].astype(np.int64)),
        children_right=np.where(nodes["is_leaf"], -1, nodes["right"].astype(np.int64)),
        feature=nodes["feature_idx"],
        threshold=nodes["num_threshold"],
        missing_go_to_left=nodes["missing_go_to_left"],
    )


def _category_sets(fitted: list[Any]) -> tuple[np.ndarray, np.ndarray]:
    """For each node that splits categories the set of codes that go to the left.

    scikit-learn numbers the categories of each label's rows anew, and a category that these rows
    do not have goes where missing values go.
    """
    of_node, sets, n_sets = [np.empty(0, np.int32)], [np.empty((0, 8), np.uint32)], 0
    for estimator in fitted:
        known = estimator._preprocessor.named_transformers_["encoder"].categories_
        codes = [values[~np.isnan(values)].astype(np.int64) for values in known]
        for (tree,) in estimator._predictors:
            nodes = tree.nodes
            splits = np.flatnonzero((nodes["is_categorical"] == 1) & (nodes["is_leaf"] == 0))
            is_left = np.repeat(nodes["missing_go_to_left"][splits, None] == 1, 256, axis=1)
            raw = _bits(tree.raw_left_cat_bitsets[nodes["bitset_idx"][splits]])
            for k, feature in enumerate(nodes["feature_idx"][splits]):
                is_left[k, codes[feature]] = raw[k, : len(codes[feature])]
            number = np.full(len(nodes), -1, dtype=np.int32)
            number[splits] = n_sets + np.arange(len(splits))
            of_node.append(number)
            sets.append(np.packbits(is_left, axis=1, bitorder="little").view("<u4"))
            n_sets += len(splits)
    return np.concatenate(of_node), np.concatenate(sets).astype(np.uint32)


def _bits(sets: np.ndarray) -> np.ndarray:
    """The 256 bits of sets of eight words each."""
    as_bytes = np.ascontiguousarray(sets.astype("<u4")).view(np.uint8).reshape(len(sets), 32)
    return np.unpackbits(as_bytes, axis=1, bitorder="little").astype(bool)
