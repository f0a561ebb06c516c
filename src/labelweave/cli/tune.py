"""`labelweave tune`: search the parameters of a method by their validation score."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from labelweave.cli.config import OPTIONS, config_option
from labelweave.cli.options import (
    READER_OPTIONS,
    count_option,
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

if TYPE_CHECKING:
    from labelweave.pipeline.data_parts import SplitSettings
    from labelweave.pipeline.recipe import Recipe


@click.command("tune")
@click.argument("data", required=False)
@method_options("mlp")
@count_option("--trials", 30, "Finished trials that the study shall have, earlier ones included.")
@click.option("--timeout", type=click.FloatRange(min=0), help="Begin no trial after these seconds.")
@click.option(
    "--metric",
    default="f1_example",
    help="What is made best on the validation rows.",
)
@click.option(
    "--space",
    "spaces",
    multiple=True,
    metavar="NAME=RANGE",
    help="Search NAME over low:high, low:high:log or the values a,b,c; NAME=none leaves it out. "
    "May be repeated. [default: the method's own space]",
)
@click.option("--storage", help="Optuna storage URL. [default: study.db in the output folder]")
@click.option("--study", help="Name of the study. [default: DATA-METHOD]")
@click.option(
    "--resume/--no-resume",
    default=True,
    help="Go on with a study that exists, or refuse it.",
)
@click.option(
    "--search-only", is_flag=True, help="Do not train, test and save the best at the end."
)
@click.option("--out", type=click.Path(), help="Output folder. [default: DATA-METHOD-tune]")
@score_options
@config_option
@protocol_options
@reader_options
@output_options
def command(
    data: str | None,
    method: str,
    trials: int,
    timeout: float | None,
    metric: str,
    spaces: tuple[str, ...],
    storage: str | None,
    study: str | None,
    resume: bool,
    search_only: bool,
    out: str | None,
    all_metrics: bool,
    per_label: bool,
    as_json: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Search good parameters of a method for DATA with Optuna.

    Every trial trains on the training rows and is scored on the validation rows. The test
    rows are scored once, at the end, with the best parameters. Stop it at any time: the same
    command goes on where it stopped, and several processes may share one --storage.

    The folder gets study.db, best.toml (for `labelweave train --config`) and the best model.
    """
    if data is None:
        raise click.UsageError("Missing argument 'DATA' (or [data] source in --config).")
    output = Output(as_json, quiet)
    parameters = pop_parameters(options)
    reading = pop_reader_options(options)

    from labelweave.cli import parameter_search, training_run
    from labelweave.exceptions import InputError, require
    from labelweave.files import atomic_write_text
    from labelweave.methods import get_class
    from labelweave.metrics import get_metric
    from labelweave.pipeline.data_parts import Source, SplitSettings, TrainingData
    from labelweave.pipeline.model_folder import checked_folder, fingerprint
    from labelweave.pipeline.model_scores import validation_score
    from labelweave.pipeline.recipe import Recipe, check_parameters, defaults, fit

    require("optuna", "tune")
    goal = get_metric(metric)
    protocol = SplitSettings(**pop_protocol(options))
    recipe = Recipe.checked(method, parameters, seed=protocol.seed, metric=metric)
    space = parameter_search.make_space(get_class(method), spaces)
    check_parameters(method, space)
    space = {name: values for name, values in space.items() if name not in parameters}
    if not space:
        raise InputError(f"{method} has nothing to search: name parameters with --space")
    name = f"{stem_of(data)}-{method}"
    folder = Path(out or f"{name}-tune")
    model_folder = checked_folder(str(folder / "model"), "model")
    url = storage or parameter_search.database_url(folder)

    source = Source(data, reading)
    loaded = training_run.for_method(source.load(), recipe, output)
    parts = protocol.parts(loaded, reading)
    training = TrainingData(loaded, source, protocol, parts)
    training_run.say_data(output, training, parts, recipe.make(parts.train))
    training_run.prepare_partial(recipe, training, parts, loaded.Y, output)
    folder.mkdir(parents=True, exist_ok=True)
    opened = parameter_search.open_study(
        url,
        study or name,
        maximize=goal.greater_is_better,
        seed=protocol.seed,
        resume=resume,
        identity={
            "data": fingerprint(loaded),
            "method": method,
            "metric": goal.name,
            "parameters": {key: repr(value) for key, value in recipe.parameters.items()},
            "protocol": asdict(protocol),
            "space": [str(values) for values in space.values()],
        },
    )
    output.say(f"searching {method} by {goal.label} on the validation rows; study in {url}")
    for values in space.values():
        output.say(f"  {values}")

    def objective(tried: dict[str, Any]) -> float:
        model = recipe.with_parameters(tried).make(parts.train)
        fit(model, parts)
        return validation_score(model, parts.validation, goal)

    parameter_search.search(
        opened,
        space,
        objective,
        output,
        n_trials=trials,
        timeout=timeout,
        first=defaults(method),
    )
    best = parameter_search.best_parameters(opened, space)
    chosen = recipe.with_parameters(best)
    atomic_write_text(
        folder / "best.toml",
        _config(data, reading, chosen, protocol, goal.name),
    )
    output.show(f"best {goal.label} on the validation rows: {opened.best_value:.4f} with")
    for key, value in best.items():
        output.show(f"  {key} = {value}")
    output.say(f"written to {folder / 'best.toml'}, for `labelweave train --config`")
    result = {
        "study": opened.study_name,
        "storage": url,
        "metric": goal.name,
        "trials": parameter_search.trial_rows(opened, space),
        "best": {"validation": opened.best_value, "parameters": best},
        "config": str(folder / "best.toml"),
    }
    if not search_only:
        result["final"] = training_run.train_and_save(
            chosen.make(parts.train),
            chosen,
            training,
            parts,
            model_folder,
            output,
            all_metrics=all_metrics,
            per_label=per_label,
        )
    output.result(result)


def _config(
    data: str, reading: dict[str, Any], recipe: Recipe, protocol: SplitSettings, metric: str
) -> str:
    """The best parameters as a file that `labelweave train --config` reads."""
    from labelweave.pipeline.parameters import to_toml

    keys = {option: key for key, option in OPTIONS["data"].items()}
    direct = {keys[name]: reading[name] for name in READER_OPTIONS if name in reading}
    if "kinds" in direct:
        direct["kinds"] = ",".join(f"{name}={kind}" for name, kind in direct["kinds"].items())
    more = [f"{key}={value}" for key, value in reading.items() if key not in READER_OPTIONS]
    parameters = dict(recipe.parameters)
    threshold = parameters.pop("threshold")
    parameters.pop("random_state")
    rows = {key: value for key, value in asdict(protocol).items() if value is not None}
    test = rows.pop("test", None)
    return to_toml(
        {
            "data": {
                "source": data,
                **direct,
                **({"options": more} if more else {}),
                **({"test": test} if test else {}),
            },
            "method": {"name": recipe.method, "threshold": threshold},
            "parameters": parameters,
            "protocol": {**rows, "metric": metric},
        }
    )
