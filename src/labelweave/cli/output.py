"""What the commands print: narration, tables and machine-readable results, each to its stream."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TextIO

import click

from labelweave.files import json_ready

if TYPE_CHECKING:
    from labelweave.metrics import Scores

__all__ = ["Output", "show_examples", "show_scores"]


@dataclass(frozen=True)
class Output:
    """Where a command prints.

    Parameters
    ----------
    as_json : bool
        The result goes to stdout as JSON, all text for people to stderr.
    quiet : bool
        Leave out the narration; results are printed all the same.
    stdout_taken : bool
        The command writes data to stdout: text for people goes to stderr.
    """

    as_json: bool = False
    quiet: bool = False
    stdout_taken: bool = False

    @property
    def stream(self) -> TextIO:
        return sys.stderr if self.as_json or self.stdout_taken else sys.stdout

    def say(self, text: str = "") -> None:
        """One line of narration."""
        if not self.quiet:
            click.echo(text, file=self.stream)
            self.stream.flush()

    def show(self, text: str) -> None:
        """A line that belongs to the result; left out where the result is JSON."""
        if not self.as_json:
            click.echo(text, file=self.stream)

    def table(
        self, columns: Sequence[str], rows: Sequence[Sequence[Any]], *, title: str = ""
    ) -> None:
        """A table of the result; numbers stand to the right."""
        if self.as_json and self.quiet:
            return
        cells = [[_cell(value) for value in row] for row in rows]
        right = [
            bool(rows) and all(_is_number(row[j]) or row[j] is None for row in rows)
            for j in range(len(columns))
        ]
        if self.stream.isatty():
            self._rich_table(columns, cells, right, title)
        else:
            self._plain_table(columns, cells, right, title)

    def result(self, result: Any) -> None:
        """The machine-readable result, printed with `--json` only."""
        if self.as_json:
            click.echo(
                json.dumps(json_ready(result), indent=2, ensure_ascii=False, allow_nan=False)
            )

    def _plain_table(
        self,
        columns: Sequence[str],
        cells: Sequence[Sequence[str]],
        right: Sequence[bool],
        title: str,
    ) -> None:
        widths = [
            max([len(name), *(len(row[j]) for row in cells)]) for j, name in enumerate(columns)
        ]
        if title:
            click.echo(title, file=self.stream)
        for row in (columns, *cells):
            padded = (
                cell.rjust(width) if is_right else cell.ljust(width)
                for cell, width, is_right in zip(row, widths, right, strict=True)
            )
            click.echo("  ".join(padded).rstrip(), file=self.stream)

    def _rich_table(
        self,
        columns: Sequence[str],
        cells: Sequence[Sequence[str]],
        right: Sequence[bool],
        title: str,
    ) -> None:
        from rich.box import SIMPLE_HEAD
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        table = Table(title=title or None, box=SIMPLE_HEAD, title_justify="left", pad_edge=False)
        for name, is_right in zip(columns, right, strict=True):
            table.add_column(Text(name), justify="right" if is_right else "left", overflow="fold")
        for row in cells:
            table.add_row(*(Text(cell) for cell in row))
        Console(file=self.stream).print(table)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return "-" if value != value else f"{value:.4f}"
    return str(value)


def show_scores(
    output: Output, scores: Scores, title: str, *, everything: bool, per_label: bool
) -> None:
    """Show a table of the scores and, if asked for, one row per label."""
    from labelweave.pipeline.model_scores import MAIN_METRICS

    shown = [
        (metric.name, metric.label, value, "higher" if metric.greater_is_better else "lower")
        for metric, value in zip(scores.metrics, scores.values(), strict=True)
        if everything or metric.name in MAIN_METRICS
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
    """Show the true beside the predicted labels of a few rows."""
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
