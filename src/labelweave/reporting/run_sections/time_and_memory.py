"""The section on cost: time and memory of the methods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from labelweave.bench.storing.records import Record
from labelweave.bench.suite import Suite
from labelweave.plotting import draw, line_style, log_scale, shorten
from labelweave.reporting.report_content import Figure, Paragraph, Section, Table, slug
from labelweave.reporting.run_records import condition

__all__ = ["cost_section", "draw_costs"]


def cost_section(suite: Suite, records: Sequence[Record]) -> Section | None:
    """Return seconds and memory of each method, or None if no cell succeeded."""
    succeeded = [record for record in records if record["error"] is None]
    if not succeeded:
        return None
    methods = list(dict.fromkeys(record["method_name"] for record in succeeded))
    datasets = list(dict.fromkeys(map(condition, succeeded)))
    seconds = [record["seconds"]["fit"] for record in succeeded]
    memory = [record["memory"]["peak"] for record in succeeded]
    costs = {
        "seconds to fit": _medians(succeeded, methods, datasets, seconds),
        "peak memory, MB": _medians(succeeded, methods, datasets, memory),
    }
    rows = [_cost_row(method, succeeded) for method in methods]
    slowest = max(rows, key=lambda row: row[2])
    measured = {record["memory"]["how"] for record in succeeded}
    when = "during the cell" if measured == {"per cell"} else "since its start"
    columns = ["method", "cells", "fit, median s", "fit, longest s", "all cells, s"]
    columns += ["memory, median MB", "memory, largest MB"]
    stem = slug(f"cost-{suite.name}")
    return Section(
        "Time and memory",
        [
            Figure(
                stem,
                draw_costs(stem, costs, datasets),
                "Time and memory",
                f"The method with the longest median time is {slowest[0]}, {slowest[2]:.1f} s per "
                "fit.",
                "One marker per data set: the median over seeds and protocols.",
            ),
            Paragraph(
                f"Memory is the highest resident memory of the process {when}, libraries included."
            ),
            Table("Cost of the successful cells", columns, rows, digits=2),
        ],
    )


def _cost_row(method: str, records: Sequence[Record]) -> tuple[Any, ...]:
    of_method = [record for record in records if record["method_name"] == method]
    seconds = np.array([record["seconds"]["fit"] for record in of_method])
    memory = [record["memory"]["peak"] for record in of_method]
    return (
        method,
        len(of_method),
        float(np.median(seconds)),
        float(seconds.max()),
        float(sum(record["seconds"]["wall"] for record in of_method)),
        float(np.median(memory)),
        float(max(memory)),
    )


def _medians(
    records: Sequence[Record], methods: list[str], datasets: list[str], values: Sequence[float]
) -> dict[str, list[float]]:
    """Compute the median per method and data set; NaN where there is no cell."""
    grouped: dict[tuple[str, str], list[float]] = {}
    for record, value in zip(records, values, strict=True):
        grouped.setdefault((record["method_name"], condition(record)), []).append(value)
    return {
        method: [float(np.median(grouped.get((method, name), [np.nan]))) for name in datasets]
        for method in methods
    }


def draw_costs(
    name: str, costs: Mapping[str, Mapping[str, Sequence[float]]], datasets: Sequence[str]
) -> str:
    """Return one plot per cost, with one line per method and one marker per data set."""
    methods = list(next(iter(costs.values())))

    def paint(figure: Any) -> None:
        axes = np.ravel(figure.subplots(1, len(costs), sharey=True, squeeze=False))
        places = np.arange(len(methods))[::-1]
        for axis, (title, by_method) in zip(axes, costs.items(), strict=True):
            table = np.array([by_method[method] for method in methods], dtype=float)
            for place, values in zip(places, table, strict=True):
                if np.isfinite(values).any():
                    ends = np.nanmin(values), np.nanmax(values)
                    axis.hlines(place, *ends, color="#bbbbbb", linewidth=1)
            for k, dataset in enumerate(datasets):
                style = line_style(k)
                axis.plot(
                    table[:, k],
                    places,
                    linestyle="",
                    marker=style.marker,
                    color=style.color,
                    markerfacecolor=style.color if k < 7 else "none",
                    label=shorten(dataset),
                )
            known = table[np.isfinite(table) & (table > 0)]
            if len(known) and known.max() / known.min() > 20:
                log_scale(axis, "x")
            axis.set(xlabel=title, ylim=(-0.6, len(methods) - 0.4))
            axis.set_yticks(places, [shorten(method) for method in methods])
        axes[-1].legend(loc="center left", bbox_to_anchor=(1.01, 0.5), fontsize=8)

    return draw(name, 7.8, max(1.9, 0.9 + 0.28 * len(methods), 0.5 + 0.18 * len(datasets)), paint)
