"""What :class:`~labelweave.dependent.weave.Weave` tries, by the size of the data and the effort."""

from __future__ import annotations

from dataclasses import dataclass

from labelweave.dependent.weave_costs import DataSize, seconds_per_fit
from labelweave.dependent.weave_members import Member

__all__ = ["EFFORTS", "Effort", "Plan", "make_plan", "seconds_to_spend"]


@dataclass(frozen=True)
class Effort:
    """How much is tried.

    Parameters
    ----------
    seconds : float
        Predicted seconds on one core.
    max_folds : int
        Largest number of folds.
    n_trees : int
        Trees of each forest.
    max_runs : int
        Largest number of runs of a network over the folds.
    max_stacked : int
        Largest number of entries of the label matrix that the second layer is fitted to.
    """

    seconds: float
    max_folds: int
    n_trees: int
    max_runs: int
    max_stacked: int


EFFORTS = {
    "quick": Effort(7.0, 3, 100, 1, 200_000),
    "standard": Effort(70.0, 5, 300, 2, 1_000_000),
    "best": Effort(600.0, 10, 500, 4, 4_000_000),
}
FEW = 10_000  # positives: with fewer, all folds of all rows are predicted
N_FIRST = 4  # of the members at the head of the list
N_CHEAPEST = 2  # are always tried if there are more positives: folds and rows go by them
FIRST_SHARE = 0.5  # of the seconds, at most, for these
MIN_ROWS = 5000  # of a sample on which members are tried
ENTRIES = 500_000  # of the label matrix: with more, the seconds grow in proportion,
MAX_GROWTH = 10.0  # but at most by this factor


def seconds_to_spend(effort: Effort, size: DataSize) -> float:
    """Predicted seconds on one core that the plan may take, and the last fits to all rows.

    >>> small, large = (DataSize(n, 50, 50.0, 20, 10_000) for n in (1000, 100_000))
    >>> seconds_to_spend(EFFORTS["standard"], small), seconds_to_spend(EFFORTS["standard"], large)
    (70.0, 280.0)
    """
    growth = size.rows * size.labels / ENTRIES
    return effort.seconds * min(max(growth, 1.0), MAX_GROWTH)


@dataclass(frozen=True)
class Plan:
    """Which members are tried, on how many rows, in how many folds, and how often.

    Parameters
    ----------
    members : list of Member
    seconds : list of float or None
        Predicted seconds per fit of each member; None if there is no formula for it.
    runs : list of int
        How often each member is cross-validated; more often than once only for networks.
    left_out : list of (Member, str)
        Members that are not tried, and why.
    n_folds : int
        Number of folds that are predicted, of those into which the rows are split.
    n_rows : int
        Number of rows on which members are tried; all rows if they are few.
    refit_seconds : list of float or None
        Predicted seconds of the last fit of each member to all rows; 0 for members that keep the
        models of their folds.
    """

    members: list[Member]
    seconds: list[float | None]
    runs: list[int]
    left_out: list[tuple[Member, str]]
    n_folds: int
    n_rows: int
    refit_seconds: list[float | None]

    @property
    def trial_seconds(self) -> float:
        """Predicted seconds on one core to try the members that have a formula."""
        costs = zip(self.seconds, self.runs, strict=True)
        return sum((per_fit or 0.0) * runs * self.n_folds for per_fit, runs in costs)

    def describe(self, n_rows: int) -> str:
        """One line about what will be done."""
        unknown = sum(per_fit is None for per_fit in self.seconds)
        rows = f"{self.n_rows:,} of {n_rows:,} rows" if self.n_rows < n_rows else "all rows"
        folds = f"{self.n_folds} fold{'' if self.n_folds == 1 else 's'}"
        text = f"{len(self.members)} members, {folds} of {rows}"
        if len(self.members) > unknown:
            last = sum(seconds or 0.0 for seconds in self.refit_seconds)
            text += (
                f": about {_rounded(self.trial_seconds)} s on one core, then at most "
                f"{_rounded(last)} s to fit the chosen ones to all rows"
            )
        if unknown:
            text += f" ({unknown} without a prediction of their time)"
        return text


def make_plan(
    members: list[Member], size: DataSize, effort: Effort, n_folds: int, *, chosen: bool
) -> Plan:
    """Plan the cross-validation by predicted costs.

    Data with few positives need all folds. For others the cheapest of the first members decide how
    many folds are predicted, and on a sample of how many rows if even one fold would take too long.
    More members are added in their order as long as the predicted time suffices, and then more runs
    of networks.

    Parameters
    ----------
    members : list of Member
    size : DataSize
    effort : Effort
    n_folds : int
        Number of folds into which the rows are split.
    chosen : bool
        Whether the caller chose the members: then all of them are tried.
    """
    limit = seconds_to_spend(effort, size)
    is_small = size.positives < FEW
    to_all_rows = {member.name: seconds_per_fit(member, size) or 0.0 for member in members}
    if chosen:
        required = {member.name for member in members}
    elif is_small:
        required = {members[0].name}
    else:
        heads = [member.name for member in members[:N_FIRST]]
        required = set(sorted(heads, key=lambda name: to_all_rows[name])[:N_CHEAPEST])

    def cost(member: Member, n_rows: int, folds: int) -> float:
        per_fit = seconds_per_fit(member, size.with_rows(n_rows * (n_folds - 1) // n_folds)) or 0.0
        is_bagged = member.bagged and n_rows == size.rows
        last = 0.0 if is_bagged else seconds_per_fit(member, size.with_rows(n_rows)) or 0.0
        return per_fit * folds + last

    def total_of_required(n_rows: int, folds: int) -> float:
        return sum(cost(member, n_rows, folds) for member in members if member.name in required)

    n_rows, folds = size.rows, n_folds
    if not is_small:
        while folds > 1 and total_of_required(n_rows, folds) > FIRST_SHARE * limit:
            folds -= 1
        while n_rows > MIN_ROWS and total_of_required(n_rows, folds) > FIRST_SHARE * limit:
            n_rows = max(n_rows * 4 // 5, MIN_ROWS)
    total = total_of_required(n_rows, folds)
    kept, left_out = [], []
    for member in members:
        added, last = cost(member, n_rows, folds), to_all_rows[member.name]
        if member.name in required:
            kept.append(member)
        elif total + added <= limit and last <= limit:
            kept.append(member)
            total += added
        else:
            reason = f"about {_rounded(max(added, last))} s more, beyond the effort"
            left_out.append((member, reason))
    trained = size.with_rows(n_rows * (n_folds - 1) // n_folds)
    seconds = [seconds_per_fit(member, trained) for member in kept]
    runs = [1] * len(kept)
    for run in range(2, effort.max_runs + 1):
        for k, (member, per_fit) in enumerate(zip(kept, seconds, strict=True)):
            if member.bagged and per_fit is not None and total + per_fit * folds <= limit:
                runs[k] = run
                total += per_fit * folds
    refits = [
        0.0 if member.bagged and n_rows == size.rows else seconds_per_fit(member, size)
        for member in kept
    ]
    return Plan(kept, seconds, runs, left_out, folds, n_rows, refits)


def _rounded(seconds: float) -> str:
    """Two significant digits: 0.34, 5.1, 48, 1,300."""
    if seconds < 10:
        return f"{seconds:.2g}"
    return f"{float(f'{seconds:.2g}'):,.0f}"
