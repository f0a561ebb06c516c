"""What :class:`~labelweave.dependent.weave.Weave` does with its time."""

from __future__ import annotations

from typing import Any

import numpy as np

from labelweave.dependent.weave_members import Member
from labelweave.dependent.weave_stacking import choose_members
from labelweave.dependent.weave_trials import Clock, Trial
from labelweave.labels import LabelMatrix
from labelweave.progress import ProgressBar

__all__ = ["Schedule", "draw_seed"]

MOST_RUNS = 4  # of a network over all folds, where there is time
FOR_THE_STACK = 0.1  # of the budget: weights and second layer
SHARE = 0.5  # of the time left, for a network while other members wait

ENOUGH = 1000  # positives, to choose weights on; of small data, half of them
SLOW = 0.1  # of the time of a fold, for all members
HELPFUL = 0.5  # of the weight, that stays when members are dropped for their time


def draw_seed(rng: np.random.RandomState) -> int:
    return int(rng.randint(np.iinfo(np.int32).max - 1000))


class Schedule:
    """Members tried fold by fold, against the clock.

    All members are tried on the first fold. Where the time will not do for the other folds,
    slow members go that do not help on the folds so far, and where these have few positives,
    those that help least for their time, as long as most of the weight stays. Where it will still
    not do for one more fold, the rows of the folds that are done must do for the choice of weights.
    Time that is left goes to more models of the networks that help.

    Parameters
    ----------
    plan : list of Member
    X, Y
        Rows to learn from.
    fold : ndarray of shape (n,)
    clock : Clock
    rng : RandomState
    n_jobs : int, optional
        Folds at a time.
    verbose : int

    Attributes
    ----------
    trials : list of Trial
        Of all members, in the order of the plan.
    running : list of Trial
        Of those that have predicted the rows of all folds in `done`.
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
        """Numbers of the rows that all members in the running have predicted."""
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
                for _ in range(MOST_RUNS - 1):
                    self._add_models(bar)

    def weights(self) -> np.ndarray:
        """Of the members in the running, by the rows so far."""
        rows = self.rows
        odds = np.stack([trial.odds(rows) for trial in self.running])
        return choose_members(odds, self._targets[rows], seed=draw_seed(self._rng))

    def time_left(self) -> float:
        """But for the stack's."""
        return max(self._clock.left() - FOR_THE_STACK * self._clock.seconds, 0.0)

    def _try_first_fold(self, trial: Trial, *, is_last: bool) -> None:
        seed, left = draw_seed(self._rng), self.time_left()
        share = left if is_last or not trial.can_be_stopped else left * SHARE
        if trial.can_be_stopped and self._has_few_positives():
            # a second fold will be needed, of this member and of those that are there
            share = min(share, max(left - self._cost(1), 0.0) / 2)
        must = not self.running  # the first: something has to predict
        if left <= 0 and not must:
            trial.leave_out("no time left")
        elif not must and self._is_too_slow(trial, seed, share):
            trial.leave_out("too slow for the budget")
        else:
            trial.run(self._X, self._Y, [0], seed, seconds=max(share, 1.0))
            self.running.append(trial)

    def _is_too_slow(self, trial: Trial, seed: int, seconds: float) -> bool:
        if np.isinf(seconds):
            return False
        if not trial.can_be_stopped:
            # Of large data one fold will do; of small data there is no use in fewer than all.
            folds = len(np.unique(self._fold))
            fits = folds + 1 if self._positives.sum() < ENOUGH * folds else 1
            return fits * trial.seconds_expected(self._X, self._Y, seed) > seconds
        plain = [t.seconds_of_a_fit for t in self.running if t.member.is_plain_network]
        return trial.member.least_seconds(max(plain, default=0.0)) > seconds

    def _try_folds(self, numbers: np.ndarray, bar: ProgressBar) -> None:
        jobs = self._n_jobs or 1
        at_a_time = jobs if jobs > 0 else len(numbers)
        batches = np.array_split(numbers, -(-len(numbers) // at_a_time))
        for k, batch in enumerate(batches):
            rounds = len(batches) - k
            self._drop_slow_idlers(rounds)
            if self._has_few_positives():
                self._drop_dearest()
            if self._cost(1) > self.time_left():
                return
            for trial in self.running:
                self._run(trial, batch.tolist())
                bar.advance(len(batch), trial.member.name)
            self.done += batch.tolist()

    def _has_few_positives(self) -> bool:
        """On the folds so far, to choose weights by."""
        return self._positives[self.rows].sum() < min(ENOUGH, self._positives.sum() / 2)

    def _cost(self, rounds: int, trials: list[Trial] | None = None) -> float:
        trials = self.running if trials is None else trials
        return sum(t.seconds_of_a_fit * rounds + t.seconds_to_finish for t in trials)

    def _drop_slow_idlers(self, rounds: int) -> None:
        """Where the time will not do for all: members without weight so far that cost much."""
        if self._cost(rounds) <= self.time_left():
            return
        slow = SLOW * sum(trial.seconds_of_a_fit for trial in self.running)
        for trial, weight in zip(list(self.running), self.weights(), strict=True):
            if weight == 0 and trial.seconds_of_a_fit > slow:
                trial.leave_out("slow, and does not help on the first folds")
                self.running.remove(trial)

    def _drop_dearest(self) -> None:
        """Few positives to choose weights by are worse than the loss of a slow member, but not
        than the loss of what helps most.
        """
        weights = dict(zip(self.running, self.weights(), strict=True))
        kept, total = list(self.running), sum(weights.values())
        while len(kept) > 1 and self._cost(1, kept) > self.time_left():
            kept.remove(max(kept, key=lambda t: t.seconds_of_a_fit * (total - weights[t])))
        if sum(weights[trial] for trial in kept) < HELPFUL * total:
            return
        for trial in set(self.running) - set(kept):
            trial.leave_out("too slow for more folds")
        self.running = kept

    def _add_models(self, bar: ProgressBar) -> None:
        for trial, weight in zip(self.running, self.weights(), strict=True):
            left, last_fits = self.time_left(), self._cost(0)
            if last_fits <= left:
                left -= last_fits
            cost = trial.seconds_of_a_fit * len(self.done)
            if trial.member.bagged and weight > 0 and cost < 0.8 * left:
                self._run(trial, self.done)
                bar.advance(1, trial.member.name)

    def _run(self, trial: Trial, folds: list[int]) -> None:
        """As long as on the first fold, at most: what was planned with must do."""
        seconds = 1.5 * trial.seconds_of_a_fit if np.isfinite(self._clock.left()) else np.inf
        trial.run(
            self._X,
            self._Y,
            folds,
            draw_seed(self._rng),
            seconds=max(seconds, 1.0),
            n_jobs=self._n_jobs,
        )
