"""Which members :class:`~labelweave.dependent.weave.Weave` tries, by the shape of the data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from labelweave.exceptions import InputError
from labelweave.input_checks import is_mostly_zero
from labelweave.methods import make, method_of

__all__ = ["Member", "plan_members"]

WIDE = 1000  # features; above, a linear model has enough of them
MANY_LABELS = 100  # above, what fits one model a label takes too long to be tried early
# A network is different at each seed, so the models of the folds are worth keeping, and more of
# them are worth having; the others gain more from a last fit to all rows.
BAGGED = {"mlp", "c-gmvae", "mulsupcon"}
# A network that is stopped long before its end is worth nothing: the least it takes, as multiple
# of the plain one's time and in seconds (measured on twelve data sets).
PLAIN_NETWORK = "mlp"
TIMES_A_PLAIN_NETWORK = {"c-gmvae": 2.0, "mulsupcon": 4.0}
LEAST_SECONDS = {"mulsupcon": 50.0}


@dataclass(frozen=True)
class Member:
    """A method with its settings; `bagged`: the models of all folds are kept and averaged."""

    name: str
    estimator: Any
    bagged: bool

    @property
    def is_plain_network(self) -> bool:
        return self._id == PLAIN_NETWORK

    def least_seconds(self, of_plain_network: float) -> float:
        """Time below which a network is not worth its trial, by that of the plain one."""
        times = TIMES_A_PLAIN_NETWORK.get(self._id, 0.0)
        return max(times * of_plain_network, LEAST_SECONDS.get(self._id, 0.0))

    @property
    def _id(self) -> str:
        method = method_of(self.estimator)
        return "" if method is None else method.id


def plan_members(members: Any, X: Any, n_labels: int) -> list[Member]:
    """The members to try, in the order in which they are tried.

    Parameters
    ----------
    members : "auto", or sequence of method ids and estimators
    X : features
    n_labels : int
    """
    if isinstance(members, str) and members != "auto":
        raise InputError(f"members must be 'auto' or a list of methods, not {members!r}")
    wanted = _by_shape(X, n_labels) if isinstance(members, str) else list(members)
    if not wanted:
        raise InputError("members is empty: name at least one method")
    plan = [_member(one, X) for one in wanted]
    names = [member.name for member in plan]
    return [
        Member(f"{m.name}-{names[:k].count(m.name) + 1}", m.estimator, m.bagged)
        if names.count(m.name) > 1
        else m
        for k, m in enumerate(plan)
    ]


def _by_shape(X: Any, n_labels: int) -> Sequence[Any]:
    """What gives most for its time comes first: what is tried late may find no time."""
    wide = X.shape[1] > WIDE or is_mostly_zero(X)
    if wide:
        return ["br", "ls-svm", "mlp", "extra-trees", "mlknn", "mulsupcon", "c-gmvae"]
    # Trees that try many features at a split differ from those that try few.
    more_features = make("extra-trees", max_features=0.3)
    order = ["extra-trees", "ls-svm", "mlp", more_features, "mlknn"]
    if n_labels <= MANY_LABELS:
        order += ["boosted-trees"]
    return [*order, "mulsupcon", "c-gmvae"]


def _member(wanted: Any, X: Any) -> Member:
    if not isinstance(wanted, str):
        method = method_of(wanted)
        name = type(wanted).__name__.lower() if method is None else method.id
        return Member(name, clone(wanted), name in BAGGED)
    settings: dict[str, Any] = {}
    if wanted == "mlknn":
        settings["k"] = int(np.clip(X.shape[0] // 4, 1, 10))
    return Member(wanted, make(wanted, **settings), wanted in BAGGED)
