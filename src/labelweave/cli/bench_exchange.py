"""`labelweave bench export` and `import`: results as one small file, and back."""

from __future__ import annotations

import click

from labelweave.cli.bench_options import DEFAULT_OUT, results_option, suite_of
from labelweave.cli.options import output_options
from labelweave.cli.output import Output

__all__ = ["export_command", "import_command"]


@click.command("export")
@click.argument("file", type=click.Path(dir_okay=False))
@click.option(
    "--suite",
    "suites",
    multiple=True,
    metavar="NAME",
    help="Only the cells of this suite; may be repeated. [default: all]",
)
@click.option(
    "--full", is_flag=True, help="Also histories and what suites keep for plots: many times larger."
)
@results_option
@output_options
def export_command(
    file: str, suites: tuple[str, ...], full: bool, results: str, as_json: bool, quiet: bool
) -> None:
    """Write finished cells to FILE (.jsonl), a line a cell, to be kept or handed on.

    The newest of each cell is written, without the names of machines. `labelweave bench import`
    makes a folder of results of it again.
    """
    output = Output(as_json, quiet)

    from labelweave.bench.storing.exchange import export_cells

    chosen = [suite_of(name, results) for name in dict.fromkeys(suites)]
    done = export_cells(results, file, chosen, full=full)
    older = f"; {done.n_older:,} of older code or data left out" if done.n_older else ""
    output.say(
        f"{done.n_cells:,} cells of {results} written to {file}, "
        f"{done.n_bytes / done.n_cells:,.0f} bytes a cell{older}"
    )
    output.result(
        {
            "file": file,
            "suites": list(done.suites),
            "cells": done.n_cells,
            "older": done.n_older,
            "bytes": done.n_bytes,
        }
    )


@click.command("import")
@click.argument("files", nargs=-1, required=True, type=click.Path(dir_okay=False))
@click.option(
    "--out",
    type=click.Path(file_okay=False),
    default=DEFAULT_OUT,
    show_default=True,
    help="Folder of results; what it holds stays.",
)
@output_options
def import_command(files: tuple[str, ...], out: str, as_json: bool, quiet: bool) -> None:
    """Put the cells of FILES, which `labelweave bench export` wrote, into a folder of results.

    `bench run` then goes on where they end, and `bench compare`, `bench document` and `report`
    show them. Of a cell that is there already the newer one stays.
    """
    output = Output(as_json, quiet)

    from labelweave.bench.storing.exchange import import_cells

    done = import_cells(files, out)
    output.say(
        f"{done.n_read:,} cells read, {done.n_written:,} written, "
        f"{done.n_read - done.n_written:,} were there; results in {out}"
    )
    output.result(
        {"files": list(files), "cells": done.n_read, "written": done.n_written, "out": out}
    )
