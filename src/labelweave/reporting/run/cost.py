"""What the methods cost."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from labelweave.bench.storing.records import Record
from labelweave.bench.suite import Suite
from labelweave.reporting.document import Figure, Paragraph, Section, Table, slug
from labelweave.reporting.plots.cost import cost_plot
from labelweave.reporting.run.selection import condition

__all__ = ["cost_section"]


def cost_section(suite: Suite, records: Sequence[Record]) -> Section | None:
    """Seconds and memory of each method."""
    done = [one for one in records if one["error"] is None]
    if not done:
        return None
    methods = list(dict.fromkeys(one["method_name"] for one in done))
    datasets = list(dict.fromkeys(map(condition, done)))
    fit = _medians(done, methods, datasets, [one["seconds"]["fit"] for one in done])
    peak = _medians(done, methods, datasets, [one["memory"]["peak"] for one in done])
    rows = []
    for method in methods:
        own = [one for one in done if one["method_name"] == method]
        seconds = np.array([one["seconds"]["fit"] for one in own])
        rows.append(
            (
                method,
                len(own),
                float(np.median(seconds)),
                float(seconds.max()),
                float(sum(one["seconds"]["wall"] for one in own)),
                float(np.median([one["memory"]["peak"] for one in own])),
                float(max(one["memory"]["peak"] for one in own)),
            )
        )
    slowest = max(rows, key=lambda row: row[2])
    ways = {one["memory"]["how"] for one in done}
    how = "of the process during the cell" if ways == {"per cell"} else "of the process so far"
    columns = ["method", "cells", "fit, median s", "fit, longest s", "all cells, s"]
    columns += ["memory, median MB", "memory, most MB"]
    stem = slug(f"cost-{suite.name}")
    return Section(
        "Time and memory",
        [
            Figure(
                stem,
                cost_plot(stem, {"seconds to fit": fit, "peak memory, MB": peak}, datasets),
                "Time and memory",
                f"The slowest method in the median is {slowest[0]} with {slowest[2]:.1f} s a fit.",
                "A marker a data set, median over seeds and protocols.",
            ),
            Paragraph(f"Memory is the highest resident memory {how}, libraries included."),
            Table("Cost of the cells that ended well", columns, rows, digits=2),
        ],
    )


def _medians(
    records: Sequence[Record], methods: list[str], datasets: list[str], values: Sequence[float]
) -> dict[str, list[float]]:
    """Median by method and data set; nan where there is no cell."""
    found: dict[tuple[str, str], list[float]] = {}
    for record, value in zip(records, values, strict=True):
        found.setdefault((record["method_name"], condition(record)), []).append(value)
    return {
        method: [float(np.median(found.get((method, name), [np.nan]))) for name in datasets]
        for method in methods
    }
