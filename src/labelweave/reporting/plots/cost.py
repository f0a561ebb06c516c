"""Time and memory of methods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from labelweave.reporting.plots.style import draw, line, log_scale, short

__all__ = ["cost_plot"]


def cost_plot(
    name: str, costs: Mapping[str, Mapping[str, Sequence[float]]], datasets: Sequence[str]
) -> str:
    """A plot a cost, a line a method, a marker a data set (nan where there is none).

    Parameters
    ----------
    name : str
    costs : mapping of axis title to mapping of method to one number a data set
    datasets : sequence of str
    """
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
                look = line(k)
                axis.plot(
                    table[:, k],
                    places,
                    linestyle="",
                    marker=look.marker,
                    color=look.color,
                    markerfacecolor=look.color if k < 7 else "none",
                    label=short(dataset),
                )
            known = table[np.isfinite(table) & (table > 0)]
            if len(known) and known.max() / known.min() > 20:
                log_scale(axis, "x")
            axis.set(xlabel=title, ylim=(-0.6, len(methods) - 0.4))
            axis.set_yticks(places, [short(method) for method in methods])
        axes[-1].legend(loc="center left", bbox_to_anchor=(1.01, 0.5), fontsize=8)

    return draw(name, 7.8, max(1.9, 0.9 + 0.28 * len(methods), 0.5 + 0.18 * len(datasets)), paint)
