"""Checks of scikit-learn estimators that were read from a file, before they predict.

Compiled code follows indices and sizes that are stored in an estimator without looking whether they
are in range, so that a crafted file could end the process or make it read foreign memory. Here they
are compared with the arrays that they belong to. Neighbour trees, whose tables cannot be checked at
a reasonable price, are built again from their rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.cluster import KMeans, MiniBatchKMeans
from sklearn.ensemble import IsolationForest
from sklearn.ensemble._forest import BaseForest
from sklearn.ensemble._gb import BaseGradientBoosting
from sklearn.ensemble._hist_gradient_boosting.gradient_boosting import BaseHistGradientBoosting
from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor
from sklearn.feature_extraction import DictVectorizer, FeatureHasher
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer
from sklearn.metrics import DistanceMetric
from sklearn.neighbors import BallTree, KDTree
from sklearn.neighbors._base import NeighborsBase
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures
from sklearn.svm._base import BaseLibSVM
from sklearn.tree import BaseDecisionTree
from sklearn.tree._tree import Tree

from labelweave.exceptions import InputError

__all__ = ["MODEL", "check_loaded", "child_levels", "require_fit"]

MODEL = "labelweave model"  # the key of the dict that stands for a model inside an estimator
_MAX_THREADS = 1024
_MAX_ITEM = 1 << 16  # bytes of an entry of an array
_MAX_RUN = 100  # words or letters that count as one feature
_MAX_COLUMNS, _MAX_DEGREE = 10**7, 100  # of polynomial features
_QUICK_PATTERNS = (CountVectorizer().token_pattern, r"(?u)\b\w+\b", r"\b\w+\b", r"\w+", r"\S+")


def check_loaded(
    value: Any, models: Sequence[Any] = (), with_pattern: Callable[[str], object] = bool
) -> Any:
    """Return estimators, in whatever containers, with their native parts checked or rebuilt.

    Each of the `models` is put where its number is. `with_pattern` is called with each regular
    expression that splits texts into words and is not known to be quick; it may refuse it.
    """
    return _Check(models, with_pattern).of(value)


class _Check:
    def __init__(self, models: Sequence[Any], with_pattern: Callable[[str], object]) -> None:
        self._models, self._with_pattern = models, with_pattern
        self._done: dict[int, tuple[Any, Any]] = {}  # the first of a pair is kept alive

    def of(self, value: Any) -> Any:
        """Return the value, or what stands in its place."""
        if value is None or isinstance(value, str | bytes | bool | int | float | np.generic | type):
            return value
        if id(value) not in self._done:
            self._done[id(value)] = value, value
            self._done[id(value)] = value, self._checked(value)
        return self._done[id(value)][1]

    def _checked(self, value: Any) -> Any:
        if isinstance(value, BallTree | KDTree):
            return _rebuilt(value)
        if isinstance(value, list):
            value[:] = map(self.of, value)
        elif isinstance(value, dict):
            if set(value) == {MODEL}:
                number = value[MODEL]
                require_fit(type(number) is int and 0 <= number < len(self._models), "a model")
                return self._models[number]
            value.update({key: self.of(item) for key, item in value.items()})
        elif isinstance(value, tuple | set | frozenset):
            return type(value)(map(self.of, value))
        elif isinstance(value, np.ndarray):
            if value.dtype == object:
                for k, item in enumerate(value.flat):
                    value.flat[k] = self.of(item)
        elif sp.issparse(value):
            _check_sparse(value)
        elif isinstance(value, Tree):
            _check_tree(value)
        elif isinstance(value, np.dtype):
            require_fit(value.kind in "biufOUM" and value.itemsize <= _MAX_ITEM, "a data type")
        elif isinstance(value, DistanceMetric):
            raise InputError("it contains a distance outside of a neighbour tree")
        elif isinstance(value, np.random.RandomState):
            state: Any = value.get_state(legacy=False)["state"]
            require_fit(0 <= state.get("pos", 0) <= 624, "a random state")
        else:
            self._check_object(value)
        return value

    def _check_object(self, value: Any) -> None:
        attributes = getattr(value, "__dict__", {})
        for name, item in attributes.items():
            attributes[name] = self.of(item)
        if not isinstance(value, BaseEstimator):
            return
        others = sorted(set(attributes) - set(value._get_param_names()))
        if replaced := [name for name in others if hasattr(type(value), name)]:
            raise InputError(f"it replaces {replaced[0]!r} of {type(value).__name__}")
        require_fit(_has_threads(value), f"a {type(value).__name__}")
        if "memory" in attributes:  # a folder with pickled results, which only fitting uses
            attributes["memory"] = None
        for cls, attribute, check in _CHECKS:
            if attribute in attributes and isinstance(value, cls):
                try:
                    is_valid = check(value)
                except (AttributeError, IndexError, TypeError, ValueError):
                    is_valid = False
                require_fit(is_valid, f"a {type(value).__name__}")
        if isinstance(value, CountVectorizer | HashingVectorizer) and value.analyzer == "word":
            require_fit(isinstance(value.token_pattern, str), f"a {type(value).__name__}")
            if value.token_pattern not in _QUICK_PATTERNS:
                self._with_pattern(value.token_pattern)


def require_fit(condition: bool, what: str) -> None:
    """Refuse a part of a file, such as "a tree", unless a condition holds."""
    if not condition:
        raise InputError(f"it contains {what} whose parts do not fit together")


def _check_sparse(matrix: Any) -> None:
    require_fit(matrix.format in ("csr", "csc") and matrix.data.dtype.kind in "biuf", "a matrix")
    matrix.check_format(full_check=True)


def _rebuilt(tree: Any) -> Any:
    """The neighbour tree of the same rows: its tables are not trusted."""
    state = tree.__getstate__()
    leaf_size, metric, weight = state[4], state[11], state[12]
    rows = np.ascontiguousarray(state[0])
    require_fit(weight is None or weight.shape == (len(rows),), "a neighbour tree")
    return type(tree)(rows, leaf_size=leaf_size, metric=metric, sample_weight=weight)


# -- trees ------------------------------------------------------------------------------


def child_levels(left: np.ndarray, right: np.ndarray, is_leaf: np.ndarray) -> int | None:
    """Return the depth of a tree of nodes, or None if it is no tree.

    The first node is the root, each other node is the child of one node, and comes after it.

    >>> child_levels(np.array([1, 0, 0]), np.array([2, 0, 0]), np.array([False, True, True]))
    1
    >>> child_levels(np.array([0, 0, 0]), np.array([2, 0, 0]), np.array([False, True, True]))
    """
    inner = np.flatnonzero(~is_leaf)
    children = np.column_stack([left[inner], right[inner]]).astype(np.int64)
    if len(is_leaf) == 0 or (children <= inner[:, None]).any():
        return None
    if not np.array_equal(np.sort(children.ravel()), np.arange(1, len(is_leaf))):
        return None
    table = np.full((len(is_leaf), 2), -1, dtype=np.int64)
    table[inner] = children
    depth, level = 0, table[0]
    while (level := level[level >= 0]).size:
        depth, level = depth + 1, table[level].ravel()
    return depth


def _check_tree(tree: Any) -> None:
    """The nodes of a scikit-learn tree: children in range, without cycles; existing features."""
    left, right = tree.children_left, tree.children_right
    is_leaf = left == -1
    depth = child_levels(left, right, is_leaf)
    feature = tree.feature[~is_leaf]
    in_range = (feature >= 0).all() and (feature < tree.n_features).all()
    require_fit(depth is not None and depth <= tree.max_depth and bool(in_range), "a tree")


def _has_tree(estimator: Any) -> bool:
    tree = estimator.tree_
    return isinstance(tree, Tree) and tree.n_features == estimator.n_features_in_


def _has_trees(ensemble: Any) -> bool:
    """Ensembles pass their features to the trees without checking them again."""
    return all(
        isinstance(tree, BaseDecisionTree) and tree.n_features_in_ == ensemble.n_features_in_
        for tree in np.ravel(np.asarray(ensemble.estimators_, dtype=object))
    )


def _has_isolation_trees(forest: Any) -> bool:
    n_columns = forest.n_features_in_
    takes_all = forest._max_features == n_columns
    return all(
        isinstance(tree, BaseDecisionTree)
        and tree.n_features_in_ == (n_columns if takes_all else len(columns))
        for tree, columns in zip(forest.estimators_, forest.estimators_features_, strict=True)
    )


def _has_stages(boosting: Any) -> bool:
    trees = boosting.estimators_
    first = boosting._raw_predict_init(np.zeros((1, boosting.n_features_in_), dtype=np.float32))
    return _has_trees(boosting) and trees.ndim == 2 and first.shape == (1, trees.shape[1])


def _has_predictors(boosting: Any) -> bool:
    mapper = boosting._bin_mapper
    n_columns = boosting.n_features_in_
    if boosting._preprocessor is not None:
        row = np.zeros((1, n_columns))
        n_columns = boosting._preprocess_X(row, reset=False).shape[1]
    is_category = np.asarray(mapper.is_categorical_)
    return is_category.shape == (n_columns,) and all(
        isinstance(predictor, TreePredictor) and _fits(predictor, is_category)
        for stage in boosting._predictors
        for predictor in stage
    )


def _fits(predictor: Any, is_category: np.ndarray) -> bool:
    nodes, sets = predictor.nodes, predictor.raw_left_cat_bitsets
    if nodes.ndim != 1 or sets.dtype != np.uint32 or sets.shape[1:] != (8,):
        return False
    is_leaf = nodes["is_leaf"] != 0
    inner = nodes[~is_leaf]
    feature = inner["feature_idx"]
    if (feature < 0).any() or (feature >= len(is_category)).any():
        return False
    of_sets = inner[inner["is_categorical"] != 0]
    return (
        child_levels(nodes["left"], nodes["right"], is_leaf) is not None
        and bool((of_sets["bitset_idx"] < len(sets)).all())
        and bool(is_category[of_sets["feature_idx"]].all())
    )


# -- neighbours, machines, clusters -----------------------------------------------------


def _has_neighbors(estimator: Any) -> bool:
    rows, tree = estimator._fit_X, estimator._tree
    n_rows, n_columns = rows.shape
    k = getattr(estimator, "n_neighbors", None)
    known = (
        isinstance(rows, np.ndarray | sp.csr_matrix | sp.csr_array)
        and n_rows == estimator.n_samples_fit_
        and n_columns == estimator.n_features_in_
        and (k is None or 1 <= k <= n_rows)
        and (
            tree is None or (isinstance(tree, BallTree | KDTree) and tree.data.shape == rows.shape)
        )
    )
    if not known or not hasattr(estimator, "classes_"):
        return known
    codes = estimator._y
    classes = estimator.classes_ if estimator.outputs_2d_ else [estimator.classes_]
    columns = codes.reshape(n_rows, -1).T
    return len(columns) == len(classes) and all(
        column.min() >= 0 and column.max() < len(names)
        for column, names in zip(columns, classes, strict=True)
    )


def _has_support(machine: Any) -> bool:
    """libsvm reads as many coefficients as the numbers of support vectors promise."""
    counts, support = machine._n_support, machine.support_
    vectors, weights = machine.support_vectors_, machine._dual_coef_
    is_classifier = machine._impl in ("c_svc", "nu_svc")
    n_classes = len(counts) if is_classifier else 2
    n_pairs = n_classes * (n_classes - 1) // 2
    n_vectors = len(support)
    if machine._sparse:
        weights_fit = weights.data.shape == ((n_classes - 1) * n_vectors,)
    else:
        weights_fit = weights.shape == (n_classes - 1, n_vectors)
    if machine.kernel == "precomputed":
        vectors_fit = n_vectors == 0 or support.max() < machine.n_features_in_
    else:
        vectors_fit = vectors.shape == (n_vectors, machine.n_features_in_)
    sums_fit = not is_classifier or counts.sum() == n_vectors
    return (
        isinstance(machine._sparse, bool)
        and sp.issparse(vectors) == machine._sparse == sp.issparse(weights)
        and isinstance(machine.kernel, str)
        and (counts >= 0).all()
        and (support >= 0).all()
        and n_classes == (len(machine.classes_) if is_classifier else len(counts)) >= 2
        and sums_fit
        and weights_fit
        and vectors_fit
        and machine._intercept_.shape == (n_pairs,)
        and all(p.shape in ((0,), (n_pairs,)) for p in (machine._probA, machine._probB))
        and machine._probA.shape == machine._probB.shape
    )


def _has_centers(clusters: Any) -> bool:
    centers = clusters.cluster_centers_
    return (
        centers.ndim == 2
        and len(centers) == clusters.n_clusters
        and centers.shape[1] == clusters.n_features_in_
        and 1 <= clusters._n_threads <= _MAX_THREADS
    )


# -- indices of columns -----------------------------------------------------------------


def _has_columns(vectorizer: Any) -> bool:
    columns = vectorizer.vocabulary_.values()
    return all(isinstance(k, Integral) for k in columns) and sorted(columns) == list(
        range(len(columns))
    )


def _has_widths(encoder: Any) -> bool:
    """Codes of categories, also of those that are grouped or dropped, are within the columns."""
    n_columns = len(encoder.categories_)
    nothing = [None] * n_columns
    widths = list(encoder._n_features_outs)
    dropped = encoder._drop_idx_after_grouping
    groups = encoder._default_to_infrequent_mappings if encoder._infrequent_enabled else nothing
    columns = (encoder.categories_, widths, nothing if dropped is None else dropped, groups)
    return widths == list(encoder._compute_n_features_outs()) and all(
        _has_codes(*column) for column in zip(*columns, strict=True)
    )


def _has_codes(names: np.ndarray, width: int, dropped: Any, groups: Any) -> bool:
    """The codes of the categories of one column; numbers are searched for, so they are sorted."""
    n_codes = width + (dropped is not None)
    is_sorted = names.dtype.kind in "OUS" or not (names[1:] <= names[:-1]).any()
    if names.ndim != 1 or not is_sorted or not (dropped is None or 0 <= dropped < n_codes):
        return False
    if groups is None:
        return len(names) == n_codes
    return len(groups) == len(names) and 0 <= groups.min() <= groups.max() < n_codes


def _has_powers(features: Any) -> bool:
    """As many columns are allocated as this number says."""
    n = features._n_out_full
    return isinstance(n, Integral) and n <= _MAX_COLUMNS and _powers(features) == n


def _powers(features: Any) -> int:
    low, high = features._min_degree, features._max_degree
    require_fit(0 <= low <= high <= _MAX_DEGREE, "a PolynomialFeatures")
    return features._num_combinations(
        n_features=features.n_features_in_,
        min_degree=0,
        max_degree=high,
        interaction_only=features.interaction_only,
        include_bias=features.include_bias,
    )


def _has_threads(estimator: Any) -> bool:
    n_jobs = vars(estimator).get("n_jobs")
    return n_jobs is None or (isinstance(n_jobs, Integral) and abs(int(n_jobs)) <= _MAX_THREADS)


def _hashes(vectorizer: Any) -> bool:
    n = vectorizer.n_features
    return isinstance(n, Integral) and 1 <= int(n) <= np.iinfo(np.int32).max


def _reads_texts(vectorizer: Any) -> bool:
    """Whether texts are texts, not names of files that are opened, and their runs are short."""
    low, high = vectorizer.ngram_range
    return vectorizer.input == "content" and 1 <= low <= high <= _MAX_RUN


# Classes, the attribute without which their compiled code is not reached, and the check.
_CHECKS: tuple[tuple[Any, str, Callable[[Any], bool]], ...] = (
    (BaseDecisionTree, "tree_", _has_tree),
    (BaseForest, "estimators_", _has_trees),
    (BaseGradientBoosting, "estimators_", _has_stages),
    (BaseHistGradientBoosting, "_predictors", _has_predictors),
    (IsolationForest, "estimators_", _has_isolation_trees),
    (NeighborsBase, "_fit_X", _has_neighbors),
    (BaseLibSVM, "support_", _has_support),
    ((KMeans, MiniBatchKMeans), "cluster_centers_", _has_centers),
    ((CountVectorizer, DictVectorizer), "vocabulary_", _has_columns),
    ((CountVectorizer, HashingVectorizer), "input", _reads_texts),
    ((FeatureHasher, HashingVectorizer), "n_features", _hashes),
    (OneHotEncoder, "_n_features_outs", _has_widths),
    (PolynomialFeatures, "_n_out_full", _has_powers),
)
