"""The figures that the papers published."""

from __future__ import annotations

import csv
from functools import cache
from importlib import resources
from typing import NamedTuple

from labelweave.bench.suite import Suite


class Figure(NamedTuple):
    """One cell of a published table; losses and accuracies are fractions."""

    paper: str
    table: str
    dataset: str
    setting: str
    method: str
    metric: str
    value: float
    std: float | None


@cache
def published_figures() -> tuple[Figure, ...]:
    """Read every published figure.

    >>> len(published_figures())
    1439
    """
    path = resources.files("labelweave.bench").joinpath("published/figures.csv")
    rows = csv.DictReader(path.read_text("utf-8").splitlines())
    return tuple(
        Figure(
            row["paper"],
            row["table"],
            row["dataset"],
            row["setting"],
            row["method"],
            row["metric"],
            float(row["value"]),
            float(row["std"]) if row["std"] else None,
        )
        for row in rows
    )


class Published:
    """The figures of one suite's table, by data set, setting, method and metric."""

    def __init__(self, suite: Suite, figures: tuple[Figure, ...] | None = None) -> None:
        wanted = published_figures() if figures is None else figures
        self._figures = {
            (one.dataset, one.setting, one.method, one.metric): one
            for one in wanted
            if suite.stand_in is None and (one.paper, one.table) == (suite.paper, suite.table)
        }
        self.suite = suite

    def __len__(self) -> int:
        return len(self._figures)

    def find(self, data: str, scenario: str, method: str, metric: str) -> Figure | None:
        """Find the published figure for a place of the table; names are those of the suite."""
        suite = self.suite
        entry = next(one for one in suite.methods if one.name == method)
        dataset = next(one for one in suite.data if one.name == data).published
        condition = next(one for one in suite.scenarios if one.name == scenario).setting
        setting = entry.setting or condition or suite.setting
        return self._figures.get((str(dataset), str(setting), str(entry.line), metric))
