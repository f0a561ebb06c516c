"""`labelweave audit`: the labels that annotators are most likely to have missed."""

from __future__ import annotations

from typing import Any

import click

from labelweave.cli.options import (
    corrections_option,
    count_option,
    output_options,
    pop_reader_options,
    reader_options,
    seed_option,
    set_option,
    stem_of,
)
from labelweave.cli.output import Output


@click.command("audit")
@click.argument("data")
@click.option("-m", "--method", default="br", help="What scores the rows, out of fold.")
@set_option("A parameter of the method; may be repeated.")
@click.option(
    "--scores",
    type=click.Path(),
    help="Out-of-fold scores of your own (.npz with an array `scores`, or .npy), in place of "
    "--method.",
)
@click.option(
    "--out",
    "files",
    type=click.Path(),
    multiple=True,
    help="File to write: .csv, .jsonl or .html; may be repeated. [default: NAME-audit.html and "
    "NAME-audit.csv]",
)
@count_option("--top", 1000, "Entries to list.")
@count_option("--folds", 5, "Parts of the rows; each is scored by a model of the others.", min=2)
@click.option(
    "--suspects",
    type=click.Choice(["missing", "wrong"]),
    default="missing",
    help="Missing positives, or annotated positives that look wrong.",
)
@click.option(
    "--unannotated",
    type=click.Choice(["auto", "zeros", "unknown"]),
    default="auto",
    help="Which entries nobody annotated. auto: the blanks if there are any, else the zeros.",
)
@seed_option
@count_option("--show", 10, "Entries to print.", min=0)
@corrections_option
@reader_options
@output_options
def command(
    data: str,
    method: str,
    settings: tuple[str, ...],
    scores: str | None,
    files: tuple[str, ...],
    seed: int,
    show: int,
    corrections: str | None,
    as_json: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """List the entries of DATA that nobody annotated and that are most likely positive.

    Every row is scored by a model that has not seen it. The page (.html) is for a reviewer, who
    says yes, no or unsure and exports the verdicts; `labelweave train DATA --corrections
    verdicts.csv` learns from them, and `labelweave audit DATA --corrections verdicts.csv` lists
    the next entries.
    """
    output = Output(as_json, quiet)
    reading = pop_reader_options(options)

    import labelweave as lw
    from labelweave.auditing.findings import check_target
    from labelweave.pipeline.data_parts import Source
    from labelweave.pipeline.parameters import parse_settings
    from labelweave.pipeline.recipe import Recipe
    from labelweave.unannotated import describe_rule

    targets = [check_target(path) for path in files or _default_files(data)]
    recipe = Recipe.checked(
        method, {"threshold": 0.5, **parse_settings(settings)}, seed=seed, verbose=False
    )
    loaded = Source(data, reading).load()
    how = f"{options['folds']} folds of {method}" if scores is None else f"scores of {scores}"
    output.say(f"{loaded.name}: {len(loaded):,} rows, {loaded.Y.n_labels:,} labels; {how}")
    output.say(describe_rule(loaded.Y, options["unannotated"]))
    report = lw.audit(
        loaded,
        method=recipe.make(loaded),
        scores=scores,
        corrections=corrections,
        random_state=seed,
        verbose=not quiet,
        name=method if scores is None else scores,
        **options,
    )
    written = report.write(*targets)
    among = f" of {report.n_unannotated:,} unannotated" if report.suspects == "missing" else ""
    output.say(
        f"about {report.annotated_share:.0%} of the positives seem to be annotated; "
        f"{len(report):,} entries to review{among}"
    )
    columns = ("", "score", "annotated", "label", "row", "known labels")
    rows = [
        (f.rank, f.score, f.annotated, f.label, f.id or f.row, "; ".join(f.known_labels))
        for f in report.findings[:show]
    ]
    output.table(columns, rows)
    for path in written:
        output.say(f"written to {path}")
    output.result(
        {
            "data": loaded.name,
            "method": report.method,
            "suspects": report.suspects,
            "unannotated": report.n_unannotated,
            "annotated_share": report.annotated_share,
            "files": [str(path) for path in written],
            "entries": [finding.to_dict() for finding in report.findings[:show]],
        }
    )


def _default_files(data: str) -> list[str]:
    return [f"{stem_of(data)}-audit{ending}" for ending in (".html", ".csv")]
