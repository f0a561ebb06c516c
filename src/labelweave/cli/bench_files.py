"""`labelweave bench export`, `import` and `outdated`: results as files of cells."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from labelweave.cli.options import output_options
from labelweave.cli.output import Output

DEFAULT_OUT = "bench-results"

results_option = click.option(
    "--results",
    type=click.Path(file_okay=False),
    default=DEFAULT_OUT,
    help="Folder that `bench run` wrote to.",
)


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
    """Write finished cells to FILE (.jsonl), one line per cell.

    The newest record of each cell is written, without the names of machines. `labelweave bench
    import` reads the file again.
    """
    output = Output(as_json, quiet)

    from labelweave.bench.storing.exchange import export_cells

    chosen = [suite_in(name, results) for name in dict.fromkeys(suites)]
    done = export_cells(results, file, chosen, full=full)
    older = f"; {done.n_older:,} of older code or data left out" if done.n_older else ""
    output.say(
        f"{done.n_cells:,} cells of {results} written to {file}, "
        f"{done.n_bytes / done.n_cells:,.0f} bytes per cell{older}"
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
    help="Folder of results; its cells are kept.",
)
@output_options
def import_command(files: tuple[str, ...], out: str, as_json: bool, quiet: bool) -> None:
    """Put the cells of FILES, which `labelweave bench export` wrote, into a folder of results.

    `bench run` then runs only what is missing, and `bench compare` and `report` show the cells. A
    newer record of a cell replaces an older one.
    """
    output = Output(as_json, quiet)

    from labelweave.bench.storing.exchange import import_cells

    done = import_cells(files, out)
    output.say(
        f"{done.n_read:,} cells read, {done.n_written:,} written, "
        f"{done.n_read - done.n_written:,} existed; results in {out}"
    )
    output.result(
        {"files": list(files), "cells": done.n_read, "written": done.n_written, "out": out}
    )


@click.command("outdated")
@click.argument("files", nargs=-1, required=True, type=click.Path(dir_okay=False))
@click.option("--only", multiple=True, metavar="NAME", help="As in `bench run`.")
@click.option(
    "--check",
    is_flag=True,
    help="Run the quickest outdated cell of each data set and method again, and compare.",
)
@output_options
def outdated_command(
    files: tuple[str, ...], only: tuple[str, ...], check: bool, as_json: bool, quiet: bool
) -> None:
    """List which cells of FILES, which `labelweave bench export` wrote, are of older code or data.

    Much of the code that a method imports changes no score: --check says whether today's code
    gives the stored scores to the last digit. FILES are not changed.
    """
    output = Output(as_json, quiet)

    from labelweave.bench.comparing.stored_results import holds_figures
    from labelweave.bench.running import outdated
    from labelweave.bench.storing.cell_file import unpack
    from labelweave.bench.suite import list_suites

    shipped = {suite.name: suite for suite in list_suites()}
    counts, checks = [], []
    for file in files:
        if holds_figures(file):
            output.say(f"{file} has means only, no cells")
            continue
        packed = unpack(file)
        records = outdated.only(packed.records, only)
        names = dict.fromkeys([*packed.names, *(record["suite"] for record in records)])
        suites = [*packed.suites, *(shipped[name] for name in names if name in shipped)]
        cells = outdated.stored_cells(records, suites)
        counts += [{"file": Path(file).stem, **row} for row in outdated.count_by_method(cells)]
        if check:
            for one in outdated.measure_again(outdated.quickest_outdated(cells)):
                output.say(one.describe())
                checks.append({"file": Path(file).stem, **one.to_dict()})
    if counts and not as_json:
        output.table(tuple(counts[0]), [tuple(row.values()) for row in counts])
    if check:
        n_equal = sum(one["equal"] for one in checks)
        output.say(f"{len(checks)} cells run again, {n_equal} equal to the last stored digit")
    output.result({"cells": counts, "checks": checks})


def suite_in(suite: str, results: str) -> Any:
    """Load a suite of the package, of a file, or one that was run into this folder."""
    from labelweave.bench.suite import list_suites, load_suite

    stored = Path(results) / "suites" / f"{suite}.json"
    if suite not in {one.name for one in list_suites()} and stored.is_file():
        return load_suite(stored)
    return load_suite(suite)
