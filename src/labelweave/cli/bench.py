"""`labelweave bench`: run the tables of the papers, or your own data, and compare."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from labelweave.cli.bench_files import (
    DEFAULT_OUT,
    export_command,
    import_command,
    outdated_command,
    results_option,
    suite_in,
)
from labelweave.cli.options import (
    Names,
    Share,
    count_option,
    output_options,
    pop_reader_options,
    reader_options,
)
from labelweave.cli.output import Output

_QUICK_SECONDS = 40.0  # no cell is started later; those started are finished

set_option = click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="[METHOD:]NAME=VALUE",
    help="Set a parameter of this method, or of all that have it; may be repeated.",
)


@click.group("bench")
def command() -> None:
    """Run the tables of the papers, or your own data, and compare with what was published."""


@command.command("list")
@output_options
def list_command(as_json: bool, quiet: bool) -> None:
    """List the suites: one per published table, and stand-ins where data are not available."""
    from labelweave.bench.suite import list_suites

    output = Output(as_json, quiet)
    suites = list_suites()
    output.result(
        [
            {
                "suite": one.name,
                "paper": one.paper,
                "table": one.table,
                "title": one.title,
                "kind": one.kind,
                "stand_in": one.stand_in,
            }
            for one in suites
        ]
    )
    if not as_json:
        output.table(("suite", "labels", "what"), [(s.name, s.kind, s.title) for s in suites])


@command.command("run")
@click.argument("suite", required=False)
@click.option("--data", "sources", multiple=True, help="A file or named data set; may be repeated.")
@click.option(
    "--methods", type=Names(), help="With --data: ids separated by commas, or all. [default: all]"
)
@click.option("--metrics", type=Names(), help="With --data: what to show, separated by commas.")
@click.option(
    "--split",
    type=click.Choice(["auto", "official", "stratified", "random"]),
    default="auto",
    help="With --data: how to find the test rows.",
)
@click.option("--test-size", type=Share(), help="With --data: share of the rows to test on.")
@click.option("--seeds", help="How many (3), a list (4,7) or a range (5-8).")
@click.option(
    "--only",
    multiple=True,
    metavar="NAME",
    help="Only this data set, method, scenario or protocol; wildcards; may be repeated.",
)
@set_option
@click.option("--quick", is_flag=True, help="A smoke run within a minute, into OUT/quick.")
@click.option(
    "-j", "--jobs", type=int, default=-1, show_default="one per core", help="Cells at a time."
)
@count_option("--threads", 1, "Threads per cell.")
@click.option(
    "--backend",
    type=click.Choice(["loky", "dask"]),
    default="loky",
    help="Processes of this machine, or workers of a Dask cluster.",
)
@click.option("--address", help="Address of a Dask scheduler, such as tcp://10.0.0.5:8786.")
@click.option("--retry-failed", is_flag=True, help="Run cells again that failed before.")
@click.option(
    "--out",
    type=click.Path(file_okay=False),
    default=DEFAULT_OUT,
    help="Folder of results; several runs and machines may share it.",
)
@reader_options
@output_options
def run_command(
    suite: str | None,
    seeds: str | None,
    only: tuple[str, ...],
    settings: tuple[str, ...],
    quick: bool,
    jobs: int,
    threads: int,
    backend: str,
    address: str | None,
    retry_failed: bool,
    out: str,
    as_json: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Run SUITE (a name that `labelweave bench list` shows, or a .toml file).

    Cells that are in the folder already are not run again: a run that was stopped continues when
    you repeat the command. With --data in place of SUITE you get the same table for your own data.
    """
    output = Output(as_json, quiet)
    reading = pop_reader_options(options)

    from labelweave.bench.comparing.comparison import compare
    from labelweave.bench.running.plan import Quick
    from labelweave.bench.running.pool import Pool
    from labelweave.bench.running.runner import run_suite
    from labelweave.bench.suite_selection import quick_suite, select, with_settings
    from labelweave.cli.bench_display import Display

    chosen = select(_suite_to_run(suite, seeds, reading, **options), only)
    chosen = with_settings(chosen, settings)
    pool = Pool(jobs, threads, backend, address)
    if quick:
        chosen, out = quick_suite(chosen), str(Path(out) / "quick")
    output.say(f"{chosen.name}: {chosen.title}")
    result = run_suite(
        chosen,
        out,
        pool=pool,
        retry_failed=retry_failed,
        quick=Quick() if quick else None,
        seconds=_QUICK_SECONDS if quick else None,
        listener=Display(output),
    )
    comparison = compare(result.records, chosen)
    _show(comparison, output)
    left = f", {result.n_left} not started in time" if result.n_left else ""
    output.say(
        f"\n{result.n_run} cells run, {len(result.records) - result.n_run} existed, "
        f"{len(result.failed)} failed{left}; results in {out}"
    )
    output.result({**comparison.to_dict(), "run": result.n_run, "left": result.n_left, "out": out})


def _suite_to_run(
    suite: str | None,
    seeds: str | None,
    reading: dict[str, Any],
    *,
    sources: tuple[str, ...],
    methods: list[str] | None,
    metrics: list[str] | None,
    split: str,
    test_size: float | None,
) -> Any:
    from dataclasses import replace

    from labelweave.bench.suite import load_suite
    from labelweave.bench.suite_selection import OWN_METRICS, own_suite, parse_seeds
    from labelweave.metrics import get_metric

    if (suite is None) == (not sources):
        raise click.UsageError("give either a SUITE or --data.")
    numbers = None if seeds is None else parse_seeds(seeds)
    if suite is None:
        return own_suite(
            sources,
            methods or ["all"],
            reading=reading,
            metrics=[get_metric(name).name for name in metrics or OWN_METRICS],
            seeds=numbers or (0, 1, 2),
            split=split,
            test_size=test_size,
        )
    for name, value in {
        "--methods": methods,
        "--metrics": metrics,
        "--test-size": test_size,
    }.items():
        if value is not None:
            raise click.UsageError(f"{name} goes with --data; a suite has its own.")
    chosen = load_suite(suite)
    return chosen if numbers is None else replace(chosen, seeds=numbers)


@command.command("compare")
@click.argument("suite")
@click.option("--only", multiple=True, metavar="NAME", help="As in `bench run`.")
@set_option
@click.option(
    "--out",
    "files",
    type=click.Path(dir_okay=False),
    multiple=True,
    help="Also write to this .md, .csv or .json file; may be repeated.",
)
@click.option(
    "--alpha",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.05,
    help="Significance level of the tests.",
)
@results_option
@output_options
def compare_command(
    suite: str,
    only: tuple[str, ...],
    settings: tuple[str, ...],
    files: tuple[str, ...],
    alpha: float,
    results: str,
    as_json: bool,
    quiet: bool,
) -> None:
    """Compare the results of SUITE with the published figures.

    Shows mean, deviation and bootstrap interval beside the published figure, each protocol in its
    own column, and average ranks with the tests of Friedman, Nemenyi and Wilcoxon-Holm.
    """
    output = Output(as_json, quiet)

    from labelweave.bench.comparing.comparison import compare
    from labelweave.bench.storing.store import read_results
    from labelweave.bench.suite_selection import select, with_settings

    records = read_results(results, full=False)
    chosen = with_settings(select(suite_in(suite, results), only), settings)
    comparison = compare(records, chosen, alpha=alpha)
    _show(comparison, output)
    for path in files:
        _write(comparison, path)
        output.say(f"written to {path}")
    output.result(comparison.to_dict())


def _write(comparison: Any, path: str) -> None:
    import json

    from labelweave.bench.comparing.comparison_tables import to_csv, to_markdown
    from labelweave.files import atomic_write_text, json_ready

    writers = {
        ".md": to_markdown,
        ".csv": to_csv,
        ".json": lambda one: json.dumps(json_ready(one.to_dict()), indent=1, allow_nan=False),
    }
    writer = writers.get(Path(path).suffix)
    if writer is None:
        raise click.UsageError(f"{path} must end in {', '.join(writers)}.")
    atomic_write_text(path, writer(comparison))


def _show(comparison: Any, output: Output) -> None:
    """Print tables, ranks and gaps."""
    from labelweave.bench.comparing.comparison_tables import (
        figure_tables,
        gap_lines,
        heading_lines,
        ranking_lines,
    )

    for line in heading_lines(comparison):
        output.say(line)
    for table in figure_tables(comparison):
        if table.rows:
            output.show("")
            output.table(table.columns, table.rows, title=table.title)
    for ranking in comparison.rankings:
        output.show("")
        for line in ranking_lines(ranking):
            output.show(line)
    output.say()
    for line in gap_lines(comparison):
        output.say(line)


for _one in (export_command, import_command, outdated_command):
    command.add_command(_one)
