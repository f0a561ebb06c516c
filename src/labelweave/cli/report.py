"""`labelweave report`: one page on a model or on a run of the bench."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from labelweave.cli.options import (
    count_option,
    output_options,
    part_option,
    pop_reader_options,
    reader_options_without_format,
)
from labelweave.cli.output import Output


@click.command("report")
@click.argument("path")
@click.option("--data", help="Rows to score: a file or a name. [default: the training's own]")
@part_option
@click.option("--out", type=click.Path(), help="File to write. [default: NAME-report.html]")
@click.option(
    "--format",
    "chosen_format",
    type=click.Choice(["html", "md"]),
    help="One HTML page, or Markdown with its plots beside it. [default: by --out, else html]",
)
@count_option("--top", 30, "The most labels that a heat map shows.", min=2)
@reader_options_without_format
@output_options
def command(
    path: str,
    data: str | None,
    part: str | None,
    out: str | None,
    chosen_format: str | None,
    top: int,
    as_json: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Write a report on PATH: a model folder, or a folder of results of the bench.

    A model folder that `labelweave train` wrote names its data and is scored on the test rows
    of its training; other rows are given with --data. (A file whose format has to be named
    takes --data-option format=NAME.)
    """
    output = Output(as_json, quiet)
    reading = pop_reader_options(options)

    from labelweave.reporting import report

    if out is None:
        out = f"{Path(path).resolve().name}-report.{chosen_format or 'html'}"
    written = report(path, data, out, format=chosen_format, part=part, n_shown=top, reading=reading)
    output.say(f"report written to {written}")
    output.result({"report": str(written), "about": path})
