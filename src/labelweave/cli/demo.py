"""`labelweave demo`: the four conditions of labels in about two minutes."""

from __future__ import annotations

import time
from importlib.util import find_spec
from pathlib import Path

import click

from labelweave.cli.options import output_options
from labelweave.cli.output import Output


@click.command("demo")
@click.option(
    "--out",
    type=click.Path(file_okay=False),
    default="labelweave-demo",
    help="Folder for the report and the model.",
)
@click.option("--quick", is_flag=True, help="A few epochs and texts only: to see that all works.")
@output_options
def command(out: str, quick: bool, as_json: bool, quiet: bool) -> None:
    """Tour the four conditions of labels on real data, without network.

    Labels that depend on each other, are partly missing, lie scattered over trained models, or
    were never seen: each with the method made for them beside a plain baseline. Methods have
    their defaults and one seed, and test rows are scored once; where the baseline wins the
    table says so. `scene` and `cooking-se` are used where LABELWEAVE_DATA names a folder that
    has them, else `yeast` (which comes with `labelweave[demo]`) and made-up texts.
    """
    output = Output(as_json, quiet)

    from labelweave.demo.tour import conditions, table_rows

    started = time.perf_counter()
    tour = list(conditions(output.say, n_texts=600 if quick else 4000, quick=quick))
    output.say()
    columns = ("labels are", "", "method", "scores", "first", "second", "what it is")
    output.table(columns, table_rows(tour), title="on test rows, which nothing was chosen on")
    output.say()
    for condition in tour:
        output.say(f"{condition.name} ({condition.description}): {condition.verdict()}")
    folder = Path(out)
    model = tour[0].trials[-1].model
    model.save(folder / "model")
    report = _report(model, tour[0].test, folder, output)
    output.say(
        f"one seed each, {time.perf_counter() - started:.0f} s; `labelweave bench run vectors` "
        "and the other suites measure with several"
    )
    output.say(f"the model is in {folder / 'model'}")
    if report:
        output.say(f"open {report.resolve().as_uri()}")
    output.result(
        {
            "conditions": [
                {
                    "labels": condition.name,
                    "data": condition.description,
                    "verdict": condition.verdict(),
                    "trials": [
                        {"method": trial.method, "scores": trial.scores, "seconds": trial.seconds}
                        for trial in condition.trials
                    ],
                }
                for condition in tour
            ],
            "model": str(folder / "model"),
            "report": None if report is None else str(report),
        }
    )


def _report(model: object, test: object, folder: Path, output: Output) -> Path | None:
    if find_spec("matplotlib") is None:
        output.say("a report with plots needs matplotlib: pip install 'labelweave[report]'")
        return None
    from labelweave.reporting import report

    return report(model, test, folder / "report.html")
