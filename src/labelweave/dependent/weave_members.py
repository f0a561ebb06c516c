"""The members of :class:`~labelweave.dependent.weave.Weave` and their cross-validation."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone

from labelweave.dependent.weave_stacking import LOGIT_EPS
from labelweave.exceptions import InputError
from labelweave.input_checks import is_mostly_zero
from labelweave.labels import LabelMatrix
from labelweave.methods import make, method_of
from labelweave.metrics import get_metric
from labelweave.probabilities import log_odds
from labelweave.tables.table import Table

__all__ = ["Clock", "Member", "Trial", "fit_clone", "plan_members"]

MANY_FEATURES = 1000  # above, a linear model is tried first
MANY_LABELS = 100  # above, methods with one model per label are too slow
# Networks depend on the seed, so that averaging the models of the folds helps; other members gain
# more from a last fit to all rows.
BAGGED = {"mlp", "c-gmvae", "mulsupcon"}
# A network that is stopped long before its end is useless: the least time it needs, as a multiple
# of the MLP's time and in seconds (measured on twelve data sets).
TIMES_MLP = {"c-gmvae": 2.0, "mulsupcon": 4.0}
MIN_SECONDS = {"mulsupcon": 50.0}
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
        "hidden": (512, 512),
        "dropout": 0.5,
        "norm": "batch",
        "min_steps": 30,
        "monitor": "map",
    },
}
PROBE_SHARE = 16  # the time of a fit is estimated on one row in so many,
MIN_PROBE_ROWS = 100  # but at least on so many rows


@dataclass(frozen=True)
class Member:
    """A method with its settings; if `bagged`, the models of all folds are kept and averaged."""

    name: str
    estimator: Any
    bagged: bool

    @property
    def is_mlp(self) -> bool:
        return self._id == "mlp"

    def min_seconds(self, of_mlp: float) -> float:
        """The time that this network needs at least, estimated from that of the MLP."""
        return max(TIMES_MLP.get(self._id, 0.0) * of_mlp, MIN_SECONDS.get(self._id, 0.0))

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
    methods = _by_shape(X, n_labels) if isinstance(members, str) else list(members)
    if not methods:
        raise InputError("members is empty: name at least one method")
    plan = [_member(method, X) for method in methods]
    names = [member.name for member in plan]
    return [
        Member(f"{m.name}-{names[:k].count(m.name) + 1}", m.estimator, m.bagged)
        if names.count(m.name) > 1
        else m
        for k, m in enumerate(plan)
    ]


def _by_shape(X: Any, n_labels: int) -> Sequence[Any]:
    """The methods that help most for their time come first, as time may run out."""
    if isinstance(X, Table):
        return _for_tables(n_labels)
    wide = X.shape[1] > MANY_FEATURES or is_mostly_zero(X)
    if wide:
        return ["br", "ls-svm", "mlp", "extra-trees", "mlknn", "mulsupcon", "c-gmvae"]
    # Trees that try many features per split differ from those that try few.
    more_features = make("extra-trees", max_features=0.3)
    order = ["extra-trees", "ls-svm", "mlp", more_features, "mlknn"]
    if n_labels <= MANY_LABELS:
        order += ["boosted-trees"]
    return [*order, "mulsupcon", "c-gmvae"]


def _for_tables(n_labels: int) -> Sequence[Any]:
    """Trees, which take categories and blanks as they are, before those that need numbers."""
    first = ["boosted-trees"] if n_labels <= MANY_LABELS else []
    return [*first, "extra-trees", "br", "ls-svm", "mlp", "mlknn", "mulsupcon", "c-gmvae"]


def _member(method: Any, X: Any) -> Member:
    """The member of a method id or of an estimator."""
    if not isinstance(method, str):
        info = method_of(method)
        name = type(method).__name__.lower() if info is None else info.id
        return Member(name, clone(method), name in BAGGED)
    settings = dict(NETWORK_SETTINGS.get(method, {}))
    if method == "mlknn":
        settings["k"] = int(np.clip(X.shape[0] // 4, 1, 10))
    return Member(method, make(method, **settings), method in BAGGED)


class Clock:
    """The remaining time of a budget; infinite without one."""

    def __init__(self, seconds: float | None) -> None:
        self.seconds = 0.0 if seconds is None else seconds
        self.ends = np.inf if seconds is None else time.monotonic() + seconds

    def left(self) -> float:
        return max(self.ends - time.monotonic(), 0.0)


class Trial:
    """Cross-validation of one member, for one fold or more.

    Parameters
    ----------
    member : Member
    fold : ndarray of shape (n,)
        The fold of each row.
    n_labels : int
    """

    def __init__(self, member: Member, fold: np.ndarray, n_labels: int) -> None:
        self.member = member
        self.fold = fold
        self.models: list[Any] = []
        self.n_models = np.zeros(int(fold.max()) + 1, dtype=int)  # per fold
        self.summary: dict[str, Any] = {"method": member.name, "seconds": 0.0, "note": ""}
        self._sum = np.zeros((len(fold), n_labels), dtype=np.float32)

    @property
    def can_stop_early(self) -> bool:
        return _can_stop_early(self.member.estimator)

    @property
    def seconds_per_fit(self) -> float:
        return self.summary["seconds"] / max(self.n_models.sum(), 1)

    @property
    def seconds_to_finish(self) -> float:
        """Time of the last fit, to all rows."""
        return 0.0 if self.member.bagged else self.seconds_per_fit

    def seconds_expected(self, X: Any, Y: LabelMatrix, seed: int) -> float:
        """Time per fit, estimated by a fit to a sample of the rows; 0 if there are few rows."""
        n_probe = max(len(Y) // PROBE_SHARE, MIN_PROBE_ROWS)
        if len(Y) < 4 * n_probe:
            return 0.0
        probe = np.sort(np.random.RandomState(seed).permutation(len(Y))[:n_probe])
        started = time.monotonic()
        fit_clone(self.member.estimator, X[probe], Y[probe], seed)
        return (time.monotonic() - started) * len(Y) / n_probe

    def run(
        self,
        X: Any,
        Y: LabelMatrix,
        folds: list[int],
        seed: int,
        *,
        seconds: float = np.inf,
        n_jobs: int | None = None,
    ) -> None:
        """Predict each of these folds by a model fitted to the other folds.

        A network stops after so many seconds per fit. Running the same folds again with another
        seed adds models; the prediction of a row is the mean over its models.
        """
        started = time.monotonic()
        estimator = _with_time_limit(self.member.estimator, seconds)
        results = Parallel(n_jobs=n_jobs)(
            delayed(_one_fold)(estimator, X, Y, self.fold, number, seed + number)
            for number in folds
        )
        for number, (_, probabilities) in zip(folds, results, strict=True):
            self._sum[self.fold == number] += probabilities
            self.n_models[number] += 1
        self.summary["seconds"] += time.monotonic() - started
        if self.member.bagged or self.n_models.sum() == 1:
            self.models += [model for model, _ in results]
        else:
            self.models = []  # a fit to all rows follows, which is better
        predicted = self.n_models[self.fold] > 0
        self.summary["map"] = get_metric("map")(Y[predicted], Y_score=self.odds(predicted))

    def odds(self, rows: np.ndarray) -> np.ndarray:
        """Out-of-fold log-odds of rows whose folds were run."""
        mean = self._sum[rows] / self.n_models[self.fold[rows], None]
        return log_odds(mean, LOGIT_EPS, np.float32)

    def final_models(self, X: Any, Y: LabelMatrix, seed: int, seconds: float) -> list[Any]:
        """The models of the folds, or one fitted to all rows if time allows."""
        if self.member.bagged or (self.models and self.seconds_to_finish > seconds):
            return self.models
        return [fit_clone(self.member.estimator, X, Y, seed)]

    def leave_out(self, reason: str) -> None:
        self.models = []
        self.summary["note"] = reason


def _one_fold(
    estimator: Any, X: Any, Y: LabelMatrix, fold: np.ndarray, number: int, seed: int
) -> tuple[Any, np.ndarray]:
    model = fit_clone(estimator, X[fold != number], Y[fold != number], seed)
    return model, model.predict_proba(X[fold == number])


def fit_clone(estimator: Any, X: Any, Y: LabelMatrix, seed: int) -> Any:
    return clone(estimator).set_params(random_state=seed).fit(X, _with_known_entries(Y))


def _with_known_entries(Y: LabelMatrix) -> LabelMatrix:
    """Labels without a known entry in these rows are set to negative."""
    _, known = Y.counts()
    if known.all():
        return Y
    values = Y.to_numpy().copy()
    values[:, known == 0] = 0
    return LabelMatrix(values, Y.names, Y.descriptions)


def _can_stop_early(estimator: Any) -> bool:
    return "callbacks" in estimator.get_params(deep=False)


def _with_time_limit(estimator: Any, seconds: float) -> Any:
    """A network that stops after so many seconds; other estimators are returned unchanged."""
    if np.isinf(seconds) or not _can_stop_early(estimator):
        return estimator
    from labelweave.nn.callbacks import TimeLimit

    callbacks = [*(estimator.callbacks or ()), TimeLimit(seconds)]
    return clone(estimator).set_params(callbacks=callbacks)
