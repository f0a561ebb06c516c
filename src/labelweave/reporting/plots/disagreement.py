"""Bars of how often pairs of teachers contradict each other, label by label."""

from __future__ import annotations

from typing import Any

import numpy as np

from labelweave.reporting.plots.style import draw, line, short

__all__ = ["disagreement_bars"]

_MOST_BARS = 40


def disagreement_bars(table: Any, name: str = "disagreement") -> str:
    """One bar a pair and label, the worst first; its two parts tell who alone was positive.

    Parameters
    ----------
    table : DataFrame
        Of a :class:`labelweave.scattered.disagreement.Disagreement`.
    name : str
        Of the drawing.
    """
    shown = table.sort_values("rate", ascending=False, kind="stable").head(_MOST_BARS)
    places = np.arange(len(shown))
    per_row = np.maximum(shown["rows"].to_numpy(dtype=float), 1)
    first = shown["first_only"].to_numpy(dtype=float) / per_row
    second = shown["second_only"].to_numpy(dtype=float) / per_row

    def paint(figure: Any) -> None:
        axis = figure.subplots()
        axis.barh(places, first, color=line(0).color, label="the first alone is positive")
        axis.barh(
            places,
            second,
            left=first,
            color=line(5).color,
            hatch="//",
            edgecolor="white",
            label="the second alone is positive",
        )
        pairs = zip(shown["label"], shown["first"], shown["second"], strict=True)
        axis.set_yticks(
            places, [f"{short(x)} ({short(a, 12)}, {short(b, 12)})" for x, a, b in pairs]
        )
        axis.invert_yaxis()
        left_out = len(table) - len(shown)
        more = f", the worst {len(shown)} of {len(table)}" if left_out else ""
        axis.set(xlabel=f"share of the rows on which two teachers contradict each other{more}")
        axis.legend(loc="lower right")

    return draw(name, 7.5, float(np.clip(1.2 + 0.25 * len(shown), 2.0, 12.0)), paint)
