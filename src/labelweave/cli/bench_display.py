"""The progress of a run: finished cells, time left, and the table as it grows."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from typing import Any

from labelweave.bench.running.plan import Plan
from labelweave.bench.running.pool import Pool
from labelweave.bench.running.runner import Listener
from labelweave.bench.storing.records import Record
from labelweave.cli.output import Output

__all__ = ["Display", "duration", "seconds_left"]

_LINE_EVERY = 1.0  # seconds between two lines where there is no terminal


class Display(Listener):
    """Shows a live table on a terminal, or prints a line now and then elsewhere.

    Parameters
    ----------
    output : Output
    """

    def __init__(self, output: Output) -> None:
        self.output = output
        self._live: Any = None
        self._said_at = 0.0

    def begin(self, plan: Plan, finished: Sequence[Record], pool: Pool) -> None:
        self.plan, self.workers = plan, pool.workers()
        self.places = {cell.name: cell for cell in plan.cells}
        self.records = list(finished)
        self.seconds: list[tuple[str, float]] = [
            (record["method"], record["seconds"]["wall"]) for record in finished
        ]
        self.n_before = len(finished)
        before = f", {self.n_before} of them finished before" if self.n_before else ""
        self.output.say(f"{len(plan.cells)} cells{before}; {pool.describe()}")
        if self.output.stream.isatty() and not self.output.quiet:
            from rich.console import Console
            from rich.live import Live

            console = Console(file=self.output.stream)
            self._live = Live(console=console, refresh_per_second=2, get_renderable=self._drawn)
            self._live.start()

    def cell(self, record: Record) -> None:
        self.records.append(record)
        self.seconds.append((record["method"], record["seconds"]["wall"]))
        if self._live is not None:
            return
        failed = record["error"] is not None
        if failed or time.monotonic() - self._said_at >= _LINE_EVERY:
            self._said_at = time.monotonic()
            self.output.say(self._line(record))

    def end(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def _line(self, record: Record) -> str:
        """Describe one finished cell."""
        if record["error"] is not None:
            text = f"FAILED, {record['error']['type']}: {record['error']['message']}"
        else:
            metric = self.plan.suite.metrics[0]
            value = record["scores"].get(metric)
            text = f"{metric} {value:.4f}" if value is not None else f"{metric} undefined"
            text += f" in {duration(record['seconds']['wall'])}"
        return f"{self._counts()} {self.places[record['cell']].describe()}: {text}"

    def _counts(self) -> str:
        left = seconds_left(
            [cell.method for cell in self.plan.cells if cell.name not in self._done()],
            self.seconds,
            self.workers,
        )
        time_left = "" if left is None else f", {duration(left)} left"
        return f"[{len(self.records)}/{len(self.plan.cells)}{time_left}]"

    def _done(self) -> set[str]:
        return {record["cell"] for record in self.records}

    def _drawn(self) -> Any:
        """Draw the table of the first metric so far, and the state of the run."""
        from rich.box import SIMPLE_HEAD
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        metric = self.plan.suite.metrics[0]
        methods = list(dict.fromkeys(cell.method_name for cell in self.plan.cells))
        means = growing_table(self.plan, self.records, metric)
        table = Table(title=f"{metric} so far", box=SIMPLE_HEAD, title_justify="left")
        for name in ("data", "protocol", *methods):
            table.add_column(Text(name), overflow="fold")
        for (condition, protocol), row in means.items():
            table.add_row(condition, protocol, *(row.get(method, "") for method in methods))
        n_failed = sum(record["error"] is not None for record in self.records)
        state = f"{self._counts()} cells" + (f", {n_failed} failed" if n_failed else "")
        return Group(table, Text(state))


def growing_table(
    plan: Plan, records: Sequence[Record], metric: str
) -> dict[tuple[str, str], dict[str, str]]:
    """Return mean and number of seeds so far, by data set with scenario, protocol and method."""
    places = {cell.name: cell for cell in plan.cells}
    values: dict[tuple[str, str], dict[str, list[float]]] = {}
    for record in records:
        cell = places[record["cell"]]
        scenario = f", {cell.scenario.name}" if cell.scenario.name else ""
        row = values.setdefault((f"{cell.data.name}{scenario}", cell.protocol.name), {})
        value = record["scores"].get(metric)
        row.setdefault(cell.method_name, []).extend([] if value is None else [value])
    return {
        place: {
            method: f"{statistics.fmean(scores):.4f} ({len(scores)})" if scores else "failed"
            for method, scores in row.items()
        }
        for place, row in values.items()
    }


def seconds_left(
    methods: Sequence[str], seconds: Sequence[tuple[str, float]], workers: int
) -> float | None:
    """Estimate the time of the cells that are left from the finished ones; None without any.

    >>> seconds_left(["br", "mlp"], [("br", 1.0), ("br", 3.0)], workers=2)
    2.0
    """
    if not seconds:
        return None
    by_method: dict[str, list[float]] = {}
    for method, spent in seconds:
        by_method.setdefault(method, []).append(spent)
    typical = {method: statistics.fmean(spent) for method, spent in by_method.items()}
    overall = statistics.fmean(spent for _, spent in seconds)
    return sum(typical.get(method, overall) for method in methods) / workers


def duration(seconds: float) -> str:
    """Write a time in words.

    >>> duration(0.25), duration(75), duration(7300)
    ('0.2 s', '1 min 15 s', '2 h 1 min')
    """
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"
