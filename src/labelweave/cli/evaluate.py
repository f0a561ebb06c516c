"""`labelweave evaluate`: score a saved model, and say what the score is worth."""

from __future__ import annotations

from typing import Any

import click

from labelweave.cli.options import (
    Names,
    corrections_option,
    hierarchy_option,
    output_options,
    part_option,
    pop_reader_options,
    reader_options,
    score_options,
    trusted_option,
)
from labelweave.cli.output import Output, show_scores
from labelweave.exceptions import InputError


@click.command("evaluate")
@click.argument("model")
@click.argument("data")
@part_option
@click.option("--metrics", type=Names(), help="Only these, separated by commas.")
@score_options
@click.option(
    "--unseen",
    is_flag=True,
    help="Also score the labels with and without training examples apart from each other.",
)
@corrections_option
@hierarchy_option
@reader_options
@trusted_option
@output_options
def command(
    model: str,
    data: str,
    part: str | None,
    metrics: list[str] | None,
    all_metrics: bool,
    per_label: bool,
    unseen: bool,
    corrections: str | None,
    hierarchy: str | None,
    trusted: tuple[str, ...],
    as_json: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Score the model in folder MODEL on DATA (a name of `labelweave datasets`, or a file).

    On the data it was trained on, the parts are those of the training. It is said whether
    the model has seen the rows that are scored. A file of the same kind as the training's is
    read with the same options; those that are given take their place. With --hierarchy the
    true labels are completed, and hierarchical precision and recall are shown too.
    """
    output = Output(as_json, quiet)
    reading = pop_reader_options(options)

    from labelweave.capabilities import capabilities
    from labelweave.metrics import get_metric
    from labelweave.pipeline.data_parts import Source, with_labels
    from labelweave.pipeline.model_folder import open_model
    from labelweave.pipeline.model_input import input_of_model
    from labelweave.pipeline.model_scores import (
        MAIN_METRICS,
        about_empty_rows,
        about_promise,
        about_unknown,
        group_table,
        hierarchical_scores,
        label_rows,
        rows_to_score,
        score,
        scores_by_group,
        verdict_on,
    )

    for name in metrics or ():
        get_metric(name)  # a wrong name is said before anything is read
    fitted, origin = open_model(model, trusted)
    reading = origin.reading_of(data, reading)
    loaded, before = Source(data, reading, corrections, hierarchy).load_for(fitted)
    loaded = input_of_model(fitted, loaded)
    chosen = rows_to_score(loaded, part, origin, reading, before)
    how = chosen.how
    if unseen and not (capabilities(fitted).new_labels and fitted.unseen_labels_):
        raise InputError(f"all labels of {model} have training examples: leave out --unseen")
    rows = with_labels(chosen.rows, list(fitted.label_names_))
    seen = origin.count_seen(rows)
    verdict = verdict_on(seen, len(rows))
    output.say(f"scoring {len(rows):,} rows of {loaded.name} ({how}): {verdict}")
    scores = score(fitted, rows, train_labels=chosen.train_labels, metrics=metrics)
    everything = all_metrics or metrics is not None
    title = f"scores on {loaded.name}: {how}"
    show_scores(output, scores, title, everything=everything, per_label=per_label)
    groups = scores_by_group(fitted, scores) if unseen else {}
    if groups:
        counted = group_table(groups, None if everything else MAIN_METRICS)
        header = ["name", "metric", *groups, "better"]
        output.show("")
        output.table(header, counted, title="labels with training examples, without, and both")
    hierarchical = hierarchical_scores(scores, hierarchy)
    for name, value in hierarchical.items():
        output.show(f"{name}  {value:.4f}")
    if note := about_promise(fitted, scores):
        output.show(note)
    if note := about_unknown(rows.Y):
        output.say(note)
    if "f1_example" in scores and (note := about_empty_rows(rows.Y)):
        output.say(note)
    output.result(
        {
            "model": model,
            "data": loaded.name,
            "trained_on": origin.data,
            "part": how,
            "rows": len(rows),
            "rows_seen_in_training": seen,
            "verdict": verdict,
            "scores": scores.to_dict(),
            **({"groups": {k: one.to_dict() for k, one in groups.items()}} if unseen else {}),
            **({"hierarchical": hierarchical} if hierarchical else {}),
            **({"per_label": label_rows(scores)} if per_label else {}),
        }
    )
