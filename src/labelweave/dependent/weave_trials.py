"""Trying a member of :class:`~labelweave.dependent.weave.Weave` on all folds, against the clock."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from scipy.special import expit
from sklearn.base import clone

from labelweave.dependent.weave_members import Member
from labelweave.labels import LabelMatrix
from labelweave.metrics import get_metric
from labelweave.progress import ProgressBar
from labelweave.stacking import log_odds

__all__ = ["Clock", "Trial", "fitted"]


class Clock:
    """Time left of a budget; without one, no end."""

    def __init__(self, seconds: float | None) -> None:
        self.seconds = 0.0 if seconds is None else seconds
        self.ends = np.inf if seconds is None else time.monotonic() + seconds

    def left(self) -> float:
        return max(self.ends - time.monotonic(), 0.0)


class Trial:
    """A member, tried on all folds: its out-of-fold log-odds, or why there are none."""

    def __init__(self, member: Member, n_folds: int, bar: ProgressBar) -> None:
        self.member = member
        self.n_folds = n_folds
        self.bar = bar
        self.odds: np.ndarray | None = None
        self.models: list[Any] = []
        self.n_runs = 0
        self.facts: dict[str, Any] = {"method": member.name, "seconds": 0.0, "note": ""}

    def run(
        self,
        X: Any,
        Y: LabelMatrix,
        fold: np.ndarray,
        allowed: float,
        *,
        must: bool,
        n_jobs: int | None,
        seed: int,
    ) -> None:
        """Fit and predict fold after fold, unless the time allowed will not do.

        Run again, with another seed, it adds models to those of the folds: what is said of a row
        is then the mean over its models.
        """
        if allowed <= 0 and not must:
            self._leave_out("no time left")
            return
        started, spent_before = time.monotonic(), self.facts["seconds"]
        n_fits = self.n_folds + (not self.member.bagged)
        found_here = np.zeros(Y.shape, dtype=np.float32)
        at_a_time = max(1, n_jobs or 1) if (n_jobs or 1) > 0 else self.n_folds
        for batch in np.array_split(np.arange(self.n_folds), -(-self.n_folds // at_a_time)):
            limit = None if np.isinf(allowed) else max(allowed / n_fits * len(batch), 1.0)
            estimator = _with_time_limit(self.member.estimator, limit)
            found = Parallel(n_jobs=n_jobs)(
                delayed(_one_fold)(estimator, X, Y, fold, number, seed + number) for number in batch
            )
            for number, (model, probabilities) in zip(batch, found, strict=True):
                found_here[fold == number] = probabilities
                if self.member.bagged:
                    self.models.append(model)
            self.bar.advance(len(batch), self.member.name)
            spent = time.monotonic() - started
            self.facts["seconds"] = spent_before + spent
            if not must and spent / (batch[-1] + 1) * n_fits > allowed:
                self.bar.advance(self.n_folds - batch[-1] - 1)
                del self.models[self.n_runs * self.n_folds :]
                if self.n_runs == 0:
                    self._leave_out("too slow for the budget")
                return
        if self.odds is not None:
            found_here += (expit(self.odds) - found_here) * (self.n_runs / (self.n_runs + 1))
        self.odds = log_odds(found_here)
        self.n_runs += 1
        self.facts["map"] = get_metric("map")(Y, Y_score=self.odds)

    def seconds_of_a_run(self) -> float:
        return self.facts["seconds"] / max(self.n_runs, 1)

    def seconds_to_finish(self) -> float:
        """Of the last fit, to all rows."""
        return 0.0 if self.member.bagged else self.seconds_of_a_run() / self.n_folds

    def final_models(self, X: Any, Y: LabelMatrix, seed: int) -> list[Any]:
        """What predicts: the models of the folds, or one fitted to all rows."""
        return self.models or [fitted(self.member.estimator, X, Y, seed)]

    def _leave_out(self, why: str) -> None:
        self.models = []
        self.facts["note"] = why


def _one_fold(
    estimator: Any, X: Any, Y: LabelMatrix, fold: np.ndarray, number: int, seed: int
) -> tuple[Any, np.ndarray]:
    model = fitted(estimator, X[fold != number], Y[fold != number], seed)
    return model, model.predict_proba(X[fold == number])


def fitted(estimator: Any, X: Any, Y: LabelMatrix, seed: int) -> Any:
    return clone(estimator).set_params(random_state=seed).fit(X, _with_known_entries(Y))


def _with_known_entries(Y: LabelMatrix) -> LabelMatrix:
    """Labels of which nothing is known in these rows count as negative here."""
    _, known = Y.counts()
    if known.all():
        return Y
    values = Y.to_numpy().copy()
    values[:, known == 0] = 0
    return LabelMatrix(values, Y.names, Y.descriptions)


def _with_time_limit(estimator: Any, seconds: float | None) -> Any:
    """A network that stops after so many seconds; what cannot be stopped stays as it is."""
    if seconds is None or "callbacks" not in estimator.get_params(deep=False):
        return estimator
    from labelweave.nn.callbacks import TimeLimit

    own = estimator.callbacks or ()
    return clone(estimator).set_params(callbacks=[*own, TimeLimit(seconds)])
