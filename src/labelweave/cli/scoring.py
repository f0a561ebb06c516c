"""How scores and examples are shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from labelweave.cli.output import Output
from labelweave.metrics import Scores
from labelweave.pipeline.scoring import MAIN

__all__ = ["show_examples", "show_scores"]


def show_scores(
    output: Output, scores: Scores, title: str, *, everything: bool, per_label: bool
) -> None:
    """A table of the scores and, if asked for, one of the labels."""
    shown = [
        (metric.name, metric.label, value, "higher" if metric.greater_is_better else "lower")
        for metric, value in zip(scores.metrics, scores.values(), strict=True)
        if everything or metric.name in MAIN
    ]
    output.table(("name", "metric", "value", "better"), shown, title=title)
    if len(shown) < len(scores):
        output.say(f"({len(scores) - len(shown)} more with --all-metrics)")
    if per_label:
        table = scores.per_label()
        output.show("")
        output.table(
            list(table.columns), [tuple(row) for row in table.itertuples(index=False, name=None)]
        )


def show_examples(output: Output, rows: Sequence[dict[str, Any]]) -> None:
    """True beside predicted labels."""
    if not rows or output.quiet:
        return
    cells = [
        (
            str(row["row"]),
            _label_list(row["true"]) + _unknown(len(row["unknown"])),
            _label_list(row["predicted"]),
        )
        for row in rows
    ]
    output.say()
    output.table(("test row", "true labels", "predicted labels"), cells)
    output.say()


def _label_list(names: Sequence[str]) -> str:
    return ", ".join(names) or "(none)"


def _unknown(count: int) -> str:
    """What stands behind the true labels of a row that was not annotated in full."""
    return f" (+ {count} unknown)" if count else ""
