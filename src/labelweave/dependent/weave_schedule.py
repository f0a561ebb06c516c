"""How :class:`~labelweave.dependent.weave.Weave` spends its time budget."""

from __future__ import annotations

from typing import Any

import numpy as np

from labelweave.dependent.weave_members import Clock, Member, Trial
from labelweave.dependent.weave_stacking import choose_members
from labelweave.labels import LabelMatrix
from labelweave.progress import ProgressBar

__all__ = ["Schedule", "draw_seed"]

MAX_RUNS = 4  # of a network over all folds, if time allows
STACKING_SHARE = 0.1  # of the budget, for weights and second layer
NETWORK_SHARE = 0.5  # of the remaining time, for a network that is not the last member

ENOUGH = 1000  # positives for the choice of weights; of small data, half of them
SLOW = 0.1  # share of the time per fold of all members
MIN_WEIGHT = 0.5  # share of the weight that must remain when slow members are dropped


def draw_seed(rng: np.random.RandomState) -> int:
    return int(rng.randint(np.iinfo(np.int32).max - 1000))


class Schedule:
    """Cross-validates the members fold by fold within the budget.

    All members are tried on the first fold. If the time is not sufficient for the other folds, slow
    members without weight are dropped. If the folds so far have few positives, the members that
    help least for their time are dropped too, as long as half of the weight remains. If the time is
    still not sufficient for one more fold, weights are chosen on the folds that are done. Remaining
    time is spent on more models of the networks that help.

    Parameters
    ----------
    plan : list of Member
    X, Y
        Training rows.
    fold : ndarray of shape (n,)
    clock : Clock
    rng : RandomState
    n_jobs : int, optional
        Number of folds fitted in parallel.
    verbose : int

    Attributes
    ----------
    trials : list of Trial
        One trial per member, in the order of the plan.
    running : list of Trial
        The trials that have predicted the rows of all folds in `done`.
    done : list of int
    """

    def __init__(
        self,
        plan: list[Member],
        X: Any,
        Y: LabelMatrix,
        fold: np.ndarray,
        clock: Clock,
        rng: np.random.RandomState,
        *,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.trials = [Trial(member, fold, Y.n_labels) for member in plan]
        self.running: list[Trial] = []
        self.done = [0]
        self._X, self._Y = X, Y
        self._targets = Y.to_numpy()
        self._positives = (self._targets == 1).sum(axis=1)
        self._fold = fold
        self._clock = clock
        self._rng = rng
        self._n_jobs = n_jobs
        self._verbose = verbose

    @property
    def rows(self) -> np.ndarray:
        """Indices of the rows that all remaining members have predicted."""
        return np.flatnonzero(np.isin(self._fold, self.done))

    def run(self) -> None:
        others = np.arange(1, int(self._fold.max()) + 1)
        with ProgressBar("weaving", len(self.trials), verbose=self._verbose) as bar:
            for number, trial in enumerate(self.trials):
                self._try_first_fold(trial, is_last=number + 1 == len(self.trials))
                bar.advance(1, trial.member.name)
        with ProgressBar("weaving", len(others) * len(self.running), verbose=self._verbose) as bar:
            self._try_folds(others, bar)
        if np.isfinite(self._clock.left()):
            with ProgressBar("bagging", verbose=self._verbose) as bar:
                for _ in range(MAX_RUNS - 1):
                    self._add_models(bar)

    def weights(self) -> np.ndarray:
        """Weights of the remaining members, chosen on the rows predicted so far."""
        rows = self.rows
        odds = np.stack([trial.odds(rows) for trial in self.running])
        return choose_members(odds, self._targets[rows], seed=draw_seed(self._rng))

    def time_left(self) -> float:
        """Remaining time without the share for stacking."""
        return max(self._clock.left() - STACKING_SHARE * self._clock.seconds, 0.0)

    def _try_first_fold(self, trial: Trial, *, is_last: bool) -> None:
        seed, left = draw_seed(self._rng), self.time_left()
        share = left if is_last or not trial.can_stop_early else left * NETWORK_SHARE
        if trial.can_stop_early and self._has_few_positives():
            # a second fold will be needed, by this member and by those before it
            share = min(share, max(left - self._cost(1), 0.0) / 2)
        is_first = not self.running  # never left out
        if left <= 0 and not is_first:
            trial.leave_out("no time left")
        elif not is_first and self._is_too_slow(trial, seed, share):
            trial.leave_out("too slow for the budget")
        else:
            trial.run(self._X, self._Y, [0], seed, seconds=max(share, 1.0))
            self.running.append(trial)

    def _is_too_slow(self, trial: Trial, seed: int, seconds: float) -> bool:
        if np.isinf(seconds):
            return False
        if not trial.can_stop_early:
            # Large data need one fold only; small data need all of them.
            folds = len(np.unique(self._fold))
            fits = folds + 1 if self._positives.sum() < ENOUGH * folds else 1
            return fits * trial.seconds_expected(self._X, self._Y, seed) > seconds
        of_mlp = [t.seconds_per_fit for t in self.running if t.member.is_mlp]
        return trial.member.min_seconds(max(of_mlp, default=0.0)) > seconds

    def _try_folds(self, numbers: np.ndarray, bar: ProgressBar) -> None:
        jobs = self._n_jobs or 1
        batch_size = jobs if jobs > 0 else len(numbers)
        batches = np.array_split(numbers, -(-len(numbers) // batch_size))
        for k, batch in enumerate(batches):
            self._drop_slow_members(len(batches) - k)
            if self._has_few_positives():
                self._drop_costly_members()
            if self._cost(1) > self.time_left():
                return
            for trial in self.running:
                self._run(trial, batch.tolist())
                bar.advance(len(batch), trial.member.name)
            self.done += batch.tolist()

    def _has_few_positives(self) -> bool:
        """Whether the folds so far have too few positives for the choice of weights."""
        return self._positives[self.rows].sum() < min(ENOUGH, self._positives.sum() / 2)

    def _cost(self, rounds: int, trials: list[Trial] | None = None) -> float:
        trials = self.running if trials is None else trials
        return sum(t.seconds_per_fit * rounds + t.seconds_to_finish for t in trials)

    def _drop_slow_members(self, rounds: int) -> None:
        """If the time is not sufficient for all, drop slow members without weight."""
        if self._cost(rounds) <= self.time_left():
            return
        slow = SLOW * sum(trial.seconds_per_fit for trial in self.running)
        for trial, weight in zip(list(self.running), self.weights(), strict=True):
            if weight == 0 and trial.seconds_per_fit > slow:
                trial.leave_out("slow, and does not help on the first folds")
                self.running.remove(trial)

    def _drop_costly_members(self) -> None:
        """Drop members until one more fold fits into the time, unless too much weight is lost."""
        weights = dict(zip(self.running, self.weights(), strict=True))
        kept, total = list(self.running), sum(weights.values())
        while len(kept) > 1 and self._cost(1, kept) > self.time_left():
            kept.remove(max(kept, key=lambda t: t.seconds_per_fit * (total - weights[t])))
        if sum(weights[trial] for trial in kept) < MIN_WEIGHT * total:
            return
        for trial in set(self.running) - set(kept):
            trial.leave_out("too slow for more folds")
        self.running = kept

    def _add_models(self, bar: ProgressBar) -> None:
        for trial, weight in zip(self.running, self.weights(), strict=True):
            left, last_fits = self.time_left(), self._cost(0)
            if last_fits <= left:
                left -= last_fits
            cost = trial.seconds_per_fit * len(self.done)
            if trial.member.bagged and weight > 0 and cost < 0.8 * left:
                self._run(trial, self.done)
                bar.advance(1, trial.member.name)

    def _run(self, trial: Trial, folds: list[int]) -> None:
        """Run these folds, with a time limit close to the time per fit so far."""
        seconds = 1.5 * trial.seconds_per_fit if np.isfinite(self._clock.left()) else np.inf
        trial.run(
            self._X,
            self._Y,
            folds,
            draw_seed(self._rng),
            seconds=max(seconds, 1.0),
            n_jobs=self._n_jobs,
        )
