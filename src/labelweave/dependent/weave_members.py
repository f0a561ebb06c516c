"""The members of :class:`~labelweave.dependent.weave.Weave`."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone

from labelweave.capabilities import capabilities
from labelweave.exceptions import InputError, LabelweaveWarning
from labelweave.input_checks import is_mostly_zero
from labelweave.labels import LabelMatrix
from labelweave.methods import make, method_of
from labelweave.tables.table import Table

__all__ = ["Member", "fit_clone", "list_members", "with_known_entries", "with_weights"]

MANY_FEATURES = 1000  # above, a linear model is tried first
MOST_NAMES = 10  # of labels in a warning
MANY_LABELS = 100  # above, methods with one model per label are too slow
# Networks depend on the seed, so that averaging the models of the folds helps; other members gain
# more from a last fit to all rows.
BAGGED = {"mlp", "c-gmvae", "mulsupcon"}
# Batch norm and early stopping instead of the published settings: less time, and at least as good
# on the sets that were tried (docs/explanation/choices-dependent.md).
NETWORK_SETTINGS: dict[str, dict[str, Any]] = {
    "c-gmvae": {
        "embedding_size": 512,
        "decoder": (512, 512),
        "decoder_dropout": 0.5,
        "norm": "batch",
        "label_activation": None,
        "output_activation": None,
        "normalize": "contrast",
        "kl_weight": 1.0,
        "n_samples": 1,
        "label_branch": False,
        "schedule": "constant",
        "min_steps": 8,
        "monitor": "val_loss",
        "patience": 10,
    },
    "mulsupcon": {
        "pretrain_steps": 30,
        "hidden": (512, 512),
        "dropout": 0.5,
        "norm": "batch",
        "min_steps": 30,
        "monitor": "map",
    },
}


@dataclass(frozen=True)
class Member:
    """A method with its settings; if `bagged`, the models of all folds are kept and averaged."""

    name: str
    estimator: Any
    bagged: bool

    @property
    def method_id(self) -> str:
        """The id of the method; empty for an estimator of another library."""
        method = method_of(self.estimator)
        return "" if method is None else method.id


def list_members(members: Any, X: Any, n_labels: int, *, n_trees: int = 300) -> list[Member]:
    """The members in the order in which they are tried.

    Parameters
    ----------
    members : "auto", or sequence of method ids and estimators
    X : features
    n_labels : int
    n_trees : int, default=300
        Trees of the forests that "auto" stands for.
    """
    if isinstance(members, str) and members != "auto":
        raise InputError(f"members must be 'auto' or a list of methods, not {members!r}")
    methods = _by_shape(X, n_labels, n_trees) if isinstance(members, str) else list(members)
    if not methods:
        raise InputError("members is empty: name at least one method")
    listed = [_member(method, X) for method in methods]
    names = [member.name for member in listed]
    return [
        replace(member, name=f"{member.name}-{names[:k].count(member.name) + 1}")
        if names.count(member.name) > 1
        else member
        for k, member in enumerate(listed)
    ]


def _by_shape(X: Any, n_labels: int, n_trees: int) -> Sequence[Any]:
    """The methods that help most for their time come first: the plan leaves out the last ones."""

    def forest(name: str, **settings: Any) -> Member:
        return Member(name, make("extra-trees", n_estimators=n_trees, **settings), False)

    extra = forest("extra-trees")
    random = forest("random-forest", trees="random-forest")
    boosted = ["boosted-trees"] if n_labels <= MANY_LABELS else []
    if isinstance(X, Table):
        # Trees take categories and blanks as they are; the others need numbers. The first is tried
        # whatever it costs: boosted trees may use up the effort where columns and labels are many.
        return [extra, *boosted, random, "br", "ls-svm", "mlp", "mlknn", "c-gmvae", "mulsupcon"]
    if X.shape[1] > MANY_FEATURES or is_mostly_zero(X):
        # Which penalty and which class weights suit the words is decided by the weights.
        weak, balanced = _linear("br-C10", C=10.0), _linear("br-balanced", class_weight="balanced")
        first = [balanced, "ls-svm", weak, "br", "mlp", extra, random]
        return [*first, "mlknn", "c-gmvae", "mulsupcon"]
    # Trees that try many features per split differ from those that try few.
    more_features = forest("extra-trees-30%", max_features=0.3)
    first = [extra, "ls-svm", "mlp", random, "br", more_features, "mlknn"]
    return [*first, *boosted, "c-gmvae", "mulsupcon"]


def _linear(name: str, **settings: Any) -> Member:
    """Binary relevance with a logistic regression whose solver is quick on sparse features."""
    from sklearn.linear_model import LogisticRegression

    estimator = LogisticRegression(solver="liblinear", **settings)
    return Member(name, make("br", estimator=estimator), False)


def _member(method: Any, X: Any) -> Member:
    """The member of a method id or of an estimator."""
    if isinstance(method, Member):
        return method
    if not isinstance(method, str):
        info = method_of(method)
        name = type(method).__name__.lower() if info is None else info.id
        return Member(name, clone(method), name in BAGGED)
    settings = dict(NETWORK_SETTINGS.get(method, {}))
    if method == "mlknn":
        settings["k"] = int(np.clip(X.shape[0] // 4, 1, 10))
    return Member(method, make(method, **settings), method in BAGGED)


def with_weights(members: list[Member]) -> tuple[list[Member], list[Member]]:
    """The members that take weights of rows, and the others, which a warning names."""
    able = [member for member in members if capabilities(member.estimator).sample_weight]
    if not able:
        raise InputError(
            "none of the members takes sample_weight: name one that does (`labelweave methods "
            "--accepts sample_weight` lists them), or leave the weights out"
        )
    others = [member for member in members if member not in able]
    if others:
        names = ", ".join(member.name for member in others)
        text = f"members that take no weights of rows are left out: {names}"
        warnings.warn(text, LabelweaveWarning, stacklevel=5)
    return able, others


def fit_clone(
    estimator: Any, X: Any, Y: LabelMatrix, seed: int, row_weight: np.ndarray | None = None
) -> Any:
    """Fit a copy of the estimator with this seed."""
    weights = {} if row_weight is None else {"sample_weight": row_weight}
    copy = clone(estimator).set_params(random_state=seed)
    return copy.fit(X, with_known_entries(Y), **weights)


def with_known_entries(Y: LabelMatrix, *, warn: bool = False) -> LabelMatrix:
    """Labels without a known entry in these rows are set to negative; a warning may name them."""
    _, known = Y.counts()
    if known.all():
        return Y
    if warn:
        empty = np.flatnonzero(known == 0)
        named = ", ".join(repr(Y.names[label]) for label in empty[:MOST_NAMES])
        named += f" and {len(empty) - MOST_NAMES:,} more" if len(empty) > MOST_NAMES else ""
        text = (
            f"labels without a known entry are learnt as if they had no positive: {named}; "
            "annotate some of their rows, or leave them out"
        )
        warnings.warn(text, LabelweaveWarning, stacklevel=8)
    values = Y.to_numpy().copy()
    values[:, known == 0] = 0
    return LabelMatrix(values, Y.names, Y.descriptions)
