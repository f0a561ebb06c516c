"""Predicted training times of the members of :class:`~labelweave.dependent.weave.Weave`.

The times depend on the size of the data only, never on the clock, so that the same data lead to the
same plan on every machine. The constants are rough: they were set by hand from measured times on
one core of one machine, those of boosted trees and C-GMVAE from one small set each, and that of
MulSupCon is a guess. ``python benchmarks/weave_costs.py`` prints predicted and measured times.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelweave.dependent.weave_members import Member
from labelweave.labels import LabelMatrix
from labelweave.methods import make
from labelweave.tables.table import Table

__all__ = ["DataSize", "seconds_per_fit"]

_FEATURES_OF_WORDS = 4  # features per column of a mixed table that does not hold numbers, roughly
_FEW_LABELS = 64  # trees are grown on at most so many projections of the labels
_CENTRES = 2000  # of LS-SVM


@dataclass(frozen=True)
class DataSize:
    """Number of rows, features, non-zero features per row, labels, and positives."""

    rows: int
    features: int
    filled: float
    labels: int
    positives: int

    @classmethod
    def of(cls, X: Any, Y: LabelMatrix) -> DataSize:
        """The size of features and labels."""
        rows, columns = X.shape
        if isinstance(X, Table):
            n_numbers = X.frame.select_dtypes(["number", "bool"]).shape[1]
            columns = n_numbers + _FEATURES_OF_WORDS * (columns - n_numbers)
        filled = X.nnz / max(rows, 1) if sp.issparse(X) else columns
        return cls(rows, columns, float(filled), Y.n_labels, int(Y.counts()[0].sum()))

    def with_rows(self, rows: int) -> DataSize:
        """The size with another number of rows."""
        return replace(self, rows=max(rows, 1))


def seconds_per_fit(member: Member, size: DataSize) -> float | None:
    """Predicted seconds of one fit on one core; None for a method without a formula."""
    formula = _FORMULAS.get(member.method_id)
    return None if formula is None else float(formula(size, member.estimator))


def _trees(size: DataSize, estimator: Any) -> float:
    tried = {"sqrt": np.sqrt(size.features), "log2": np.log2(size.features + 1)}
    share = estimator.max_features
    per_split = tried[share] if isinstance(share, str) else _count(share, size.features)
    depth = np.log2(size.rows + 1)
    outputs = min(size.labels, _FEW_LABELS)
    # A threshold drawn at random needs no sorting.
    per_feature = 4e-9 if estimator.trees == "extra" else 1.5e-8
    work = size.rows * depth * (per_split * (per_feature + 7e-10 * outputs) + 1e-8 * outputs)
    return estimator.n_estimators * (4e-4 + work)


def _count(share: Any, features: int) -> float:
    if share is None:
        return features
    return share if isinstance(share, int) else share * features


def _linear(size: DataSize, estimator: Any) -> float:
    return size.labels * (4e-3 + 6e-8 * size.rows * size.filled)


def _ls_svm(size: DataSize, estimator: Any) -> float:
    centres = min(size.rows, _CENTRES)
    search = 7 * min(size.rows, 800) ** 3 * 2e-10
    solution = centres**3 * 2e-10 + size.rows * centres**2 * 1.5e-10
    return (
        0.05 + search + solution + size.rows * centres * (1e-9 * size.filled + 1e-9 * size.labels)
    )


def _neighbours(size: DataSize, estimator: Any) -> float:
    return 0.01 + size.rows**2 * (1e-10 * size.filled + 1e-9)


def _boosted(size: DataSize, estimator: Any) -> float:
    features = min(size.features, estimator.max_dense_features)
    per_tree = 1e-3 + 1.2e-5 * features + 6e-9 * size.rows * features
    return size.labels * estimator.max_iter * per_tree


def _network(epochs: float, factor: float) -> Callable[[DataSize, Any], float]:
    def seconds(size: DataSize, estimator: Any) -> float:
        weights = 512 * (size.features + 512 + size.labels)
        steps = max(size.rows / 64, estimator.min_steps)
        return epochs * steps * factor * (2e-3 + 64 * weights * 6 * 1e-11 + weights * 3e-9)

    return seconds


def _short_run(size: DataSize) -> float:
    """A network for partial labels: few passes, but many steps each if there are few rows."""
    per_label = max(size.positives / max(size.labels, 1), 1.0)
    passes = float(np.clip(100 / np.sqrt(per_label), 10, 40))
    mlp = make("mlp", min_steps=40 if size.features <= size.rows else 1)
    return _network(passes, 0.5)(size, mlp)


def _em_forest(size: DataSize, estimator: Any) -> float:
    in_folds = size.with_rows(size.rows * (estimator.n_folds - 1) // estimator.n_folds)
    trees = _trees(in_folds, make("extra-trees", n_estimators=estimator.n_trees))
    return estimator.n_folds * (estimator.rounds + 1) * _short_run(in_folds) + trees


def _cls_plus(size: DataSize, estimator: Any) -> float:
    return 2 * _short_run(size)


_FORMULAS: dict[str, Callable[[DataSize, Any], float]] = {
    "extra-trees": _trees,
    "br": _linear,
    "ls-svm": _ls_svm,
    "mlknn": _neighbours,
    "boosted-trees": _boosted,
    "mlp": _network(30, 1.0),
    "c-gmvae": _network(40, 1.2),
    "mulsupcon": _network(60, 4.0),
    "em-forest": _em_forest,
    "cls+": _cls_plus,
}
