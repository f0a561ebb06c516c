"""`labelweave train`: from a data set to a scored, saved model."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from labelweave.cli.config import config_option
from labelweave.cli.options import (
    corrections_option,
    count_option,
    hierarchy_option,
    method_options,
    output_options,
    pop_parameters,
    pop_protocol,
    pop_reader_options,
    protocol_options,
    reader_options,
    score_options,
    stem_of,
)
from labelweave.cli.output import Output


@click.command("train")
@click.argument("data", required=False)
@method_options("weave")
@click.option(
    "--metric",
    help="What to be good at: early stopping and threshold go by it, such as f1_micro, map.",
)
@click.option("--out", type=click.Path(), help="Model folder. [default: DATA-METHOD, numbered]")
@score_options
@count_option("--examples", 5, "Test rows to show with their true and predicted labels.", min=0)
@click.option(
    "--label-texts",
    type=click.Path(),
    help="File of label names and descriptions (.csv, .jsonl, or .txt with one name per line), for "
    "methods that read them; names that DATA does not have become unseen labels.",
)
@config_option
@corrections_option
@hierarchy_option
@protocol_options
@reader_options
@output_options
def command(
    data: str | None,
    method: str,
    metric: str | None,
    out: str | None,
    all_metrics: bool,
    per_label: bool,
    examples: int,
    corrections: str | None,
    hierarchy: str | None,
    label_texts: str | None,
    as_json: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Train a model on DATA (a name that `labelweave datasets` lists, or a file).

    Some of the training rows are held out for validation: they decide when to stop and which
    threshold is used (weave, cls+ and other methods with out-of-fold predictions are trained on
    them too, and choose by models that have not seen the row). The test rows are scored once.
    The model and metrics.json are written to one folder; an earlier model that --out names is
    replaced.
    """
    if data is None:
        raise click.UsageError("Missing argument 'DATA' (or [data] source in --config).")
    output = Output(as_json, quiet)
    parameters = pop_parameters(options)
    source_options = pop_reader_options(options)

    from labelweave.cli import training_run
    from labelweave.pipeline.data_parts import Source, SplitSettings, TrainingData
    from labelweave.pipeline.model_folder import checked_folder
    from labelweave.pipeline.recipe import Recipe
    from labelweave.top_labels import MANY_LABELS

    protocol = SplitSettings(**pop_protocol(options))
    checked = partial(Recipe.checked, seed=protocol.seed, metric=metric, verbose=not quiet)
    recipe = checked(method, parameters)
    folder = checked_folder(out, f"{stem_of(data)}-{method}")
    source = Source(data, source_options, corrections, hierarchy)
    loaded, before = source.load_corrected()
    if _is_default("method") and not parameters and loaded.Y.n_labels >= MANY_LABELS:
        method = "label-tree"
        if loaded.is_text:
            parameters = {"text__max_features": 200_000, "text__min_texts": 2}
        output.say(f"{loaded.Y.n_labels:,} labels: {method} instead of weave (-m names another)")
        recipe = checked(method, parameters)
        folder = checked_folder(out, f"{stem_of(data)}-{method}")
    if _is_default("validation"):
        protocol = protocol.for_many_labels(loaded)
    loaded = training_run.for_method(loaded, recipe, output)
    loaded, new_labels = training_run.with_label_texts(loaded, label_texts, method)
    parts = protocol.parts(loaded, source.reading, before)
    training = TrainingData(loaded, source, protocol, parts)
    training_run.say_data(output, training, parts, recipe.make(parts.train))
    adapted, fitted_parts = training_run.prepare_partial(recipe, training, parts, before, output)
    result = training_run.train_and_save(
        adapted.make(parts.train),
        recipe,
        training,
        parts,
        folder,
        output,
        all_metrics=all_metrics,
        per_label=per_label,
        examples=examples,
        new_labels=new_labels,
        fitted_parts=fitted_parts,
    )
    output.result(result)


def _is_default(option: str) -> bool:
    """Whether an option was given neither on the command line nor in a file."""
    source = click.get_current_context().get_parameter_source(option)
    return source is click.core.ParameterSource.DEFAULT
