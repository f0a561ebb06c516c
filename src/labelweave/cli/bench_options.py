"""Where the commands of `labelweave bench` find results and suites."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

__all__ = ["DEFAULT_OUT", "results_option", "suite_of"]

DEFAULT_OUT = "bench-results"

results_option = click.option(
    "--results",
    type=click.Path(file_okay=False),
    default=DEFAULT_OUT,
    show_default=True,
    help="Folder that `bench run` wrote to.",
)


def suite_of(suite: str, results: str) -> Any:
    """A suite of the package, a file, or one of the user's own that was run into this folder."""
    from labelweave.bench.suite import list_suites, load_suite

    stored = Path(results) / "suites" / f"{suite}.json"
    if suite not in {one.name for one in list_suites()} and stored.is_file():
        return load_suite(stored)
    return load_suite(suite)
