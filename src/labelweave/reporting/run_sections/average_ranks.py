"""The section on ranks: average ranks of the methods and critical-difference diagrams."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from labelweave.bench.comparing.comparison import Comparison
from labelweave.bench.comparing.method_ranks import Ranking, friedman_in_words
from labelweave.plotting import draw, shorten
from labelweave.reporting.report_content import Block, Figure, Paragraph, Section, Table, slug

__all__ = ["draw_critical_difference", "ranks_section"]

_LINE = 0.3  # inches between two names
_BAR = 0.16


def ranks_section(comparison: Comparison) -> Section | None:
    """Return a table of average ranks, and one diagram per metric and protocol."""
    rankings = comparison.rankings
    if not rankings:
        return None
    methods = dict.fromkeys(method for ranking in rankings for method in ranking.average_ranks)
    blocks: list[Block] = [
        Table(
            "Average ranks over the data sets that all methods of a column have; 1 is the best",
            ("method", *map(_ranking_name, rankings)),
            [
                (method, *(ranking.average_ranks.get(method) for ranking in rankings))
                for method in methods
            ],
            digits=2,
        )
    ]
    for ranking in rankings:
        blocks += _ranking_blocks(ranking, comparison.suite.name)
    return Section("Ranks", blocks)


def _ranking_blocks(ranking: Ranking, suite: str) -> list[Block]:
    name = _ranking_name(ranking)
    text = f"{friedman_in_words(ranking)}."
    if ranking.left_out:
        text += f" Left out for lack of scores: {', '.join(ranking.left_out)}."
    if ranking.critical_difference is None:
        return [Paragraph(f"{name}: {text}")]
    stem = slug(f"ranks-{suite}-{ranking.metric}-{ranking.protocol}")
    ranks = ", ".join(f"{method} {rank:.2f}" for method, rank in ranking.average_ranks.items())
    blocks: list[Block] = [
        Figure(
            stem,
            draw_critical_difference(
                stem, ranking.average_ranks, ranking.groups, ranking.critical_difference
            ),
            f"Critical differences, {name}",
            f"Average ranks: {ranks}. Critical difference {ranking.critical_difference:.2f}.",
            f"{text} The best method is on the left; a thick bar connects methods whose ranks "
            f"do not differ significantly (Nemenyi, {ranking.alpha:.0%}).",
        )
    ]
    if ranking.pairs:
        keys = ("first", "second", "wins", "losses", "ties", "p", "p_holm", "different")
        rows = [[pair[key] for key in keys] for pair in ranking.pairs]
        title = f"Wilcoxon's signed-rank tests with Holm's correction, {name}"
        blocks.append(Table(title, keys, rows, folded=True))
    return blocks


def _ranking_name(ranking: Ranking) -> str:
    return f"{ranking.label}, {ranking.protocol}"


def draw_critical_difference(
    name: str,
    ranks: Mapping[str, float],
    groups: Sequence[Sequence[str]],
    difference: float | None,
) -> str:
    """Return a diagram of average ranks; a bar connects methods that do not differ significantly.

    * `groups`: The groups of :func:`labelweave.metrics.significance.nemenyi_groups`.
    * `difference`: The critical difference, drawn as a ruler.
    """
    order = sorted(ranks.items(), key=lambda item: item[1])
    half = (len(order) + 1) // 2  # names on the left; the others are on the right
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
            _draw_ruler(axis, lowest, min(difference, highest - lowest), difference)
        for k, group in enumerate(groups):
            ends = [ranks[method] for method in group]
            axis.hlines(-(k + 0.8) * _BAR, min(ends) - 0.03, max(ends) + 0.03, color="black", lw=4)
        for k, (method, rank) in enumerate(order):
            on_left = k < half
            level = -bars - ((k if on_left else len(order) - 1 - k) + 0.6) * _LINE
            edge = lowest - gap if on_left else highest + gap
            axis.plot([rank, rank, edge], [0, level, level], color="#444444", linewidth=0.9)
            axis.plot([rank], [0], marker="o", color="black", markersize=4)
            label = (
                f"{shorten(method)}  {rank:.2f}" if on_left else f"{rank:.2f}  {shorten(method)}"
            )
            axis.annotate(
                label,
                (edge, level),
                xytext=(-4 if on_left else 4, 0),
                textcoords="offset points",
                ha="right" if on_left else "left",
                va="center",
            )

    return draw(name, 7.4, height, paint)


def _draw_ruler(axis: Any, start: float, length: float, difference: float) -> None:
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
