"""Trying a member of :class:`~labelweave.dependent.weave.Weave` on rows it has not seen."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone

from labelweave.dependent.weave_members import Member
from labelweave.dependent.weave_stacking import LOGIT_EPS
from labelweave.labels import LabelMatrix
from labelweave.metrics import get_metric
from labelweave.probabilities import log_odds

__all__ = ["Clock", "Trial", "fitted"]

PROBE = 16  # one row in so many shows how long a fit to all of them will take,
LEAST_PROBE = 100  # if that makes so many rows


class Clock:
    """Time left of a budget; without one, no end."""

    def __init__(self, seconds: float | None) -> None:
        self.seconds = 0.0 if seconds is None else seconds
        self.ends = np.inf if seconds is None else time.monotonic() + seconds

    def left(self) -> float:
        return max(self.ends - time.monotonic(), 0.0)


class Trial:
    """A member, fitted to all folds but one and asked for that one, for one fold or more.

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
        self.n_models = np.zeros(int(fold.max()) + 1, dtype=int)  # of each fold so far
        self.facts: dict[str, Any] = {"method": member.name, "seconds": 0.0, "note": ""}
        self._sum = np.zeros((len(fold), n_labels), dtype=np.float32)

    @property
    def can_be_stopped(self) -> bool:
        return _can_be_stopped(self.member.estimator)

    @property
    def seconds_of_a_fit(self) -> float:
        return self.facts["seconds"] / max(self.n_models.sum(), 1)

    @property
    def seconds_to_finish(self) -> float:
        """Of the last fit, to all rows."""
        return 0.0 if self.member.bagged else self.seconds_of_a_fit

    def seconds_expected(self, X: Any, Y: LabelMatrix, seed: int) -> float:
        """Of a fit, by a fit to few rows; 0 where rows are few anyway."""
        n_few = max(len(Y) // PROBE, LEAST_PROBE)
        if len(Y) < 4 * n_few:
            return 0.0
        some = np.sort(np.random.RandomState(seed).permutation(len(Y))[:n_few])
        started = time.monotonic()
        fitted(self.member.estimator, X[some], Y[some], seed)
        return (time.monotonic() - started) * len(Y) / n_few

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
        """Fit without these folds and predict them; a network stops after so many seconds a fit.

        Run again for the same folds, with another seed, it adds models: what is said of a row is
        the mean over its models.
        """
        started = time.monotonic()
        estimator = _with_time_limit(self.member.estimator, seconds)
        found = Parallel(n_jobs=n_jobs)(
            delayed(_one_fold)(estimator, X, Y, self.fold, number, seed + number)
            for number in folds
        )
        for number, (_, probabilities) in zip(folds, found, strict=True):
            self._sum[self.fold == number] += probabilities
            self.n_models[number] += 1
        self.facts["seconds"] += time.monotonic() - started
        if self.member.bagged or self.n_models.sum() == 1:
            self.models += [model for model, _ in found]
        else:
            self.models = []  # there is time for a fit to all rows, which is better
        here = self.n_models[self.fold] > 0
        self.facts["map"] = get_metric("map")(Y[here], Y_score=self.odds(here))

    def odds(self, rows: np.ndarray) -> np.ndarray:
        """Log-odds of rows whose folds were run."""
        mean = self._sum[rows] / self.n_models[self.fold[rows], None]
        return log_odds(mean, LOGIT_EPS, np.float32)

    def final_models(self, X: Any, Y: LabelMatrix, seed: int, seconds: float) -> list[Any]:
        """What predicts: the models of the folds, or one fitted to all rows if there is time."""
        if self.member.bagged or (self.models and self.seconds_to_finish > seconds):
            return self.models
        return [fitted(self.member.estimator, X, Y, seed)]

    def leave_out(self, why: str) -> None:
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


def _can_be_stopped(estimator: Any) -> bool:
    return "callbacks" in estimator.get_params(deep=False)


def _with_time_limit(estimator: Any, seconds: float) -> Any:
    """A network that stops after so many seconds; what cannot be stopped stays as it is."""
    if np.isinf(seconds) or not _can_be_stopped(estimator):
        return estimator
    from labelweave.nn.callbacks import TimeLimit

    own = estimator.callbacks or ()
    return clone(estimator).set_params(callbacks=[*own, TimeLimit(seconds)])
