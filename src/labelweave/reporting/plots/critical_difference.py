"""Critical-difference diagrams of average ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from labelweave.reporting.plots.style import draw, short

__all__ = ["critical_difference_plot"]

_LINE = 0.3  # inches between two names
_BAR = 0.16


def critical_difference_plot(
    name: str,
    ranks: Mapping[str, float],
    groups: Sequence[Sequence[str]],
    difference: float | None,
) -> str:
    """Average ranks, the best to the left; a bar joins methods that do not differ.

    Parameters
    ----------
    name : str
    ranks : mapping of method to average rank
    groups : sequence of sequences of methods
        As :func:`labelweave.metrics.significance.nemenyi_groups` finds them.
    difference : float or None
        The critical difference, drawn as a ruler.
    """
    order = sorted(ranks.items(), key=lambda item: item[1])
    half = (len(order) + 1) // 2  # as many names on the left, the others on the right
    lowest, highest = 1.0, float(max(len(order), 2))
    bars = len(groups) * _BAR
    height = 0.9 + bars + half * _LINE

    def paint(figure: Any) -> None:
        axis = figure.subplots()
        margin, gap = 0.32 * (highest - lowest), 0.04 * (highest - lowest)
        axis.set(xlim=(lowest - margin, highest + margin), ylim=(-bars - half * _LINE - 0.15, 0.75))
        axis.set_axis_off()
        axis.hlines(0, lowest, highest, color="black", linewidth=1.2)
        for tick in range(int(lowest), int(highest) + 1):
            axis.vlines(tick, 0, 0.08, color="black", linewidth=1.2)
            axis.text(tick, 0.12, str(tick), ha="center", va="bottom")
        if difference is not None:
            _ruler(axis, lowest, min(difference, highest - lowest), difference)
        for k, group in enumerate(groups):
            ends = [ranks[method] for method in group]
            axis.hlines(-(k + 0.8) * _BAR, min(ends) - 0.03, max(ends) + 0.03, color="black", lw=4)
        for k, (method, rank) in enumerate(order):
            on_left = k < half
            level = -bars - ((k if on_left else len(order) - 1 - k) + 0.6) * _LINE
            edge = lowest - gap if on_left else highest + gap
            axis.plot([rank, rank, edge], [0, level, level], color="#444444", linewidth=0.9)
            axis.plot([rank], [0], marker="o", color="black", markersize=4)
            label = f"{short(method)}  {rank:.2f}" if on_left else f"{rank:.2f}  {short(method)}"
            axis.annotate(
                label,
                (edge, level),
                xytext=(-4 if on_left else 4, 0),
                textcoords="offset points",
                ha="right" if on_left else "left",
                va="center",
            )

    return draw(name, 7.4, height, paint)


def _ruler(axis: Any, start: float, length: float, difference: float) -> None:
    axis.hlines(0.5, start, start + length, color="black", linewidth=2)
    for end in (start, start + length):
        axis.vlines(end, 0.45, 0.55, color="black", linewidth=1.2)
    axis.text(
        start + length / 2,
        0.56,
        f"critical difference {difference:.2f}",
        ha="center",
        va="bottom",
        fontsize=8,
    )
