"""Average ranks and what they are worth."""

from __future__ import annotations

from labelweave.bench.comparing.comparison import Comparison
from labelweave.bench.comparing.method_ranks import Ranking, friedman_in_words
from labelweave.reporting.document import Block, Figure, Paragraph, Section, Table, slug
from labelweave.reporting.plots.critical_difference import critical_difference_plot

__all__ = ["ranks_section"]


def ranks_section(comparison: Comparison) -> Section | None:
    """A table of average ranks and a critical-difference diagram a metric and protocol."""
    rankings = comparison.rankings
    if not rankings:
        return None
    methods = dict.fromkeys(method for one in rankings for method in one.average_ranks)
    table = Table(
        "Average ranks over the data sets that all methods of a column have; 1 is the best",
        ("method", *map(_name, rankings)),
        [(method, *(one.average_ranks.get(method) for one in rankings)) for method in methods],
        digits=2,
    )
    blocks: list[Block] = [table]
    for ranking in rankings:
        blocks += _one(ranking, comparison.suite.name)
    return Section("Ranks", blocks)


def _one(ranking: Ranking, suite: str) -> list[Block]:
    name = _name(ranking)
    left_out = f" Left out, for lack of scores: {', '.join(ranking.left_out)}." * bool(
        ranking.left_out
    )
    text = f"{friedman_in_words(ranking)}.{left_out}"
    if ranking.critical_difference is None:
        return [Paragraph(f"{name}: {text}")]
    stem = slug(f"ranks-{suite}-{ranking.metric}-{ranking.protocol}")
    ranks = ", ".join(f"{method} {rank:.2f}" for method, rank in ranking.average_ranks.items())
    found: list[Block] = [
        Figure(
            stem,
            critical_difference_plot(
                stem, ranking.average_ranks, ranking.groups, ranking.critical_difference
            ),
            f"Critical differences, {name}",
            f"Average ranks: {ranks}. Critical difference {ranking.critical_difference:.2f}.",
            f"{text} The best method stands to the left; a thick bar joins methods whose ranks "
            f"do not differ (Nemenyi, {ranking.alpha:.0%}).",
        )
    ]
    if ranking.pairs:
        keys = ("first", "second", "wins", "losses", "ties", "p", "p_holm", "different")
        rows = [[pair[key] for key in keys] for pair in ranking.pairs]
        title = f"Wilcoxon's signed-rank tests with Holm's correction, {name}"
        found.append(Table(title, keys, rows, folded=True))
    return found


def _name(ranking: Ranking) -> str:
    return f"{ranking.label}, {ranking.protocol}"
