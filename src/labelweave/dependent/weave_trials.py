"""The cross-validation of the members of :class:`~labelweave.dependent.weave.Weave`."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone

from labelweave.base import Pair
from labelweave.dependent.weave_members import Member, fit_clone
from labelweave.dependent.weave_plan import Plan
from labelweave.dependent.weave_stacking import LOGIT_EPS, weights_of
from labelweave.exceptions import InputError
from labelweave.input_checks import check_weight
from labelweave.labels import LabelMatrix
from labelweave.metrics import get_metric
from labelweave.probabilities import log_odds
from labelweave.progress import ProgressBar
from labelweave.rows import concatenate_features, concatenate_labels
from labelweave.threads import bounded_threads

__all__ = [
    "Clock",
    "Trial",
    "fit_in_one_thread",
    "fit_to_all_rows",
    "mean_probability",
    "rows_to_try",
    "run_trials",
    "seconds_of",
    "seed_of",
    "with_validation_rows",
]

_UNITS = {"s": 1, "sec": 1, "min": 60, "h": 3600}
_FINAL = 2**16  # in place of the number of a fold, for the seed of the last fit


class Clock:
    """The remaining time of a budget; infinite without one."""

    def __init__(self, seconds: float | None) -> None:
        self.is_set = seconds is not None
        self.ends = np.inf if seconds is None else time.monotonic() + seconds

    def left(self) -> float:
        """Seconds that remain."""
        return max(self.ends - time.monotonic(), 0.0)


def seconds_of(budget: str | float | None) -> float | None:
    """Seconds of a budget such as "10min".

    >>> seconds_of("10min"), seconds_of(90), seconds_of(None)
    (600.0, 90.0, None)
    """
    if budget is None or not isinstance(budget, str):
        return None if budget is None else float(budget)
    match = re.fullmatch(r"\s*([\d.]+)\s*([a-z]+)\s*", budget.lower())
    if match is None or match[2] not in _UNITS or not float(match[1]) > 0:
        raise InputError(
            f"budget must be None, seconds, or a text like '30s', '10min', '1h': {budget!r}"
        )
    return float(match[1]) * _UNITS[match[2]]


def seed_of(base: int, member: int, run: int, fold: int) -> int:
    """The seed of one fit: it depends on what is fitted, not on when or where."""
    sequence = np.random.SeedSequence((base, member, run, fold))
    return int(sequence.generate_state(1)[0] >> 1)


def mean_probability(models: list[Any], X: Any) -> np.ndarray:
    """The mean of the probabilities that several models predict."""
    total = models[0].predict_proba(X)
    for model in models[1:]:
        total = total + model.predict_proba(X)
    return total / len(models)


def with_validation_rows(
    X: Any,
    Y: LabelMatrix,
    validation: Pair,
    row_weight: np.ndarray | None,
    validation_weight: Any,
) -> tuple[Any, LabelMatrix, np.ndarray | None]:
    """Training and validation rows together, and their weights if the training rows have any.

    Validation rows of weight 0 are left out; without weights all have the mean of the others.
    """
    X_held, Y_held = validation
    if row_weight is not None:
        weights = check_weight(validation_weight, len(Y_held))
        if weights is None:
            weights = np.full(len(Y_held), row_weight.mean())
        counted = np.flatnonzero(weights)
        X_held, Y_held = X_held[counted], Y_held[counted]
        row_weight = np.concatenate([row_weight, weights[counted]])
    return concatenate_features([X, X_held]), concatenate_labels([Y, Y_held]), row_weight


def rows_to_try(n_rows: int, number: int, seed: int) -> np.ndarray | None:
    """Numbers of a random sample of the rows, in ascending order; None for all rows."""
    if number >= n_rows:
        return None
    return np.sort(np.random.RandomState(seed).permutation(n_rows)[:number])


class Trial:
    """Out-of-fold predictions of one member.

    Parameters
    ----------
    member : Member
    fold : ndarray of shape (n,)
        The fold of each row.
    n_labels : int
    predicted_seconds : float, optional
        Predicted seconds per fit.
    """

    def __init__(
        self,
        member: Member,
        fold: np.ndarray,
        n_labels: int,
        predicted_seconds: float | None = None,
    ) -> None:
        self.member = member
        self.fold = fold
        self.models: list[Any] = []
        self.n_models = np.zeros(int(fold.max()) + 1, dtype=int)  # per fold
        self.seconds = 0.0
        self.predicted_seconds = predicted_seconds
        self.note = ""
        self._sum = np.zeros((len(fold), n_labels), dtype=np.float32)

    @property
    def seconds_per_fit(self) -> float:
        """Seconds of a fit so far, or the predicted ones."""
        n_fits = int(self.n_models.sum())
        return self.seconds / n_fits if n_fits else self.predicted_seconds or 0.0

    def add(self, number: int, model: Any, probabilities: np.ndarray, seconds: float) -> None:
        """Add the predictions of a fold; those of several models are averaged."""
        self._sum[self.fold == number] += probabilities
        self.n_models[number] += 1
        self.seconds += seconds
        if model is not None:
            self.models.append(model)

    def odds(self, rows: np.ndarray) -> np.ndarray:
        """Out-of-fold log-odds of rows whose folds were predicted."""
        mean = self._sum[rows] / self.n_models[self.fold[rows], None]
        return log_odds(mean, LOGIT_EPS, np.float32)

    def mean_average_precision(self, Y: LabelMatrix, rows: np.ndarray) -> float:
        """Mean average precision of these rows out of fold."""
        return get_metric("map")(Y[rows], Y_score=self.odds(rows))


@dataclass(frozen=True)
class _Task:
    """One fit: a member, a run and a fold, with the seconds that it is predicted to take."""

    member: int
    run: int
    fold: int


def run_trials(
    plan: Plan,
    X: Any,
    Y: LabelMatrix,
    fold: np.ndarray,
    seed: int,
    clock: Clock,
    *,
    row_weight: np.ndarray | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> tuple[list[Trial], np.ndarray]:
    """Predict the planned folds by models fitted to the other folds.

    The models do not depend on `n_jobs`: every fit has a seed of its own and uses one thread. If
    the budget ends, the remaining fits are left out, first further runs, then the last folds.

    Returns
    -------
    trials : list of Trial
        In the order of the plan. A trial without a prediction has a note.
    rows : ndarray
        Numbers of the rows that all other trials have predicted.
    """
    trials = [
        Trial(member, fold, Y.n_labels, seconds)
        for member, seconds in zip(plan.members, plan.seconds, strict=True)
    ]
    tasks = [
        _Task(k, run, number)
        for run in range(max(plan.runs))
        for number in range(plan.n_folds)
        for k in range(len(plan.members))
        if run < plan.runs[k]
    ]
    started: list[_Task] = []

    def within_budget() -> Iterator[Any]:
        for task in tasks:
            trial = trials[task.member]
            left = clock.left()
            if started and (left <= 0 or trial.seconds_per_fit > left):
                continue
            started.append(task)
            # A model of the first fold may have to do if there is no time for a last fit.
            keeps = trial.member.bagged or (clock.is_set and task.run == task.fold == 0)
            estimator = _with_time_limit(trial.member.estimator, left)
            fit_seed = seed_of(seed, task.member, task.run, task.fold)
            one_fold = (fold, task.fold, fit_seed, keeps, row_weight)
            yield delayed(_one_fold)(estimator, X, Y, *one_fold)

    # Progress is counted in predicted seconds: the bar moves evenly, and only forwards.
    work = [plan.seconds[task.member] or 1.0 for task in tasks]
    with ProgressBar("weaving", sum(work), verbose=verbose) as bar:
        results = Parallel(n_jobs=n_jobs, return_as="generator", pre_dispatch="n_jobs")(
            within_budget()
        )
        for number, result in enumerate(results):
            task = started[number]
            trials[task.member].add(task.fold, *result)
            bar.advance(plan.seconds[task.member] or 1.0, trials[task.member].member.name)
    running = [trial for trial in trials if trial.n_models[0]]
    done = np.flatnonzero(np.all([trial.n_models > 0 for trial in running], axis=0))
    _note_cuts(plan, trials, len(done))
    return trials, np.flatnonzero(np.isin(fold, done))


def _note_cuts(plan: Plan, trials: list[Trial], n_done: int) -> None:
    for trial, runs in zip(trials, plan.runs, strict=True):
        if not trial.n_models[0]:
            trial.note = "left out: the budget was too short"
        elif n_done < plan.n_folds:
            trial.note = f"{n_done} of {plan.n_folds} folds: the budget was too short"
        elif trial.n_models.sum() < runs * plan.n_folds:
            trial.note = "fewer runs: the budget was too short"


def fit_to_all_rows(
    trials: list[tuple[int, Trial]],
    X: Any,
    Y: LabelMatrix,
    seed: int,
    clock: Clock,
    *,
    sampled: bool,
    row_weight: np.ndarray | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> list[list[Any]]:
    """The final models of each trial: those of its folds, or one that is fitted to all rows.

    Parameters
    ----------
    trials : list of (int, Trial)
        The number of the member, and its trial.
    X, Y
        All rows.
    seed : int
    clock : Clock
        If the remaining time is too short for a fit, the model of the first fold is used.
    sampled : bool
        Whether the trials saw a sample of the rows: then networks are fitted again as well.
    row_weight : ndarray, optional
        How much each row counts.
    n_jobs : int, optional
    verbose : int
    """
    models = [trial.models for _, trial in trials]
    again: list[int] = []
    for place, (_, trial) in enumerate(trials):
        factor = len(Y) / max(len(trial.fold), 1)
        if trial.member.bagged and not sampled:
            continue
        if trial.models and trial.seconds_per_fit * factor > clock.left():
            trial.note = "not fitted to all rows: the budget was too short"
            trial.models = models[place] = trial.models[:1]
            continue
        again.append(place)
    tasks = (
        delayed(fit_in_one_thread)(
            trials[place][1].member.estimator,
            X,
            Y,
            seed_of(seed, trials[place][0], 0, _FINAL),
            row_weight,
        )
        for place in again
    )
    with ProgressBar("fitting to all rows", len(again), verbose=verbose) as bar:
        results = Parallel(n_jobs=n_jobs, return_as="generator", pre_dispatch="n_jobs")(tasks)
        for place, (model, seconds) in zip(again, results, strict=True):
            models[place] = [model]
            trials[place][1].seconds += seconds
            bar.advance(1, trials[place][1].member.name)
    return models


def _one_fold(
    estimator: Any,
    X: Any,
    Y: LabelMatrix,
    fold: np.ndarray,
    number: int,
    seed: int,
    keeps_model: bool,
    row_weight: np.ndarray | None,
) -> tuple[Any, np.ndarray, float]:
    train, test = fold != number, fold == number
    weight = weights_of(row_weight, train)
    model, seconds = fit_in_one_thread(estimator, X[train], Y[train], seed, weight)
    with bounded_threads(1):
        probabilities = model.predict_proba(X[test])
    return model if keeps_model else None, probabilities, seconds


def fit_in_one_thread(
    estimator: Any, X: Any, Y: LabelMatrix, seed: int, row_weight: np.ndarray | None
) -> tuple[Any, float]:
    """A fitted copy of the estimator, and the seconds that it took."""
    started = time.monotonic()
    with bounded_threads(1):
        model = fit_clone(estimator, X, Y, seed, row_weight)
    return model, time.monotonic() - started


def _with_time_limit(estimator: Any, seconds: float) -> Any:
    """A network that stops after so many seconds; other estimators are returned unchanged."""
    if np.isinf(seconds) or "callbacks" not in estimator.get_params(deep=False):
        return estimator
    from labelweave.nn.callbacks import TimeLimit

    callbacks = [*(estimator.callbacks or ()), TimeLimit(max(seconds, 1.0))]
    return clone(estimator).set_params(callbacks=callbacks)
