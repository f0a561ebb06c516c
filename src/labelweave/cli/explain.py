"""`labelweave explain`: which columns or words the labels of a model, or of one row, depend on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from labelweave.cli.options import (
    Names,
    count_option,
    output_options,
    part_option,
    pop_reader_options,
    reader_options,
    seed_option,
    trusted_option,
)
from labelweave.cli.output import Output
from labelweave.exceptions import InputError

if TYPE_CHECKING:
    from labelweave.data import Dataset
    from labelweave.explaining import FeatureImportance, RowExplanation
    from labelweave.pipeline.model_folder import Origin


_BATCH_ROWS = 4096
_LEAST_SHOWN = 0.0005  # smaller numbers would be shown as zero


@click.command("explain")
@click.argument("model")
@click.argument("data")
@click.option(
    "--row",
    help="Explain the labels of this row of DATA: its id, or its number (the first is 0) if no row "
    "has this id.",
)
@click.option("--only", type=Names(), help="Only these labels, separated by commas.")
@count_option("--top", 5, "The most columns or words to show per label.")
@click.option(
    "--metric",
    type=click.Choice(["ap", "auc"]),
    default="ap",
    help="The score of each label: average precision, or area under the ROC curve.",
)
@count_option("--repeats", 5, "Permutations of each column.")
@count_option("--max-rows", 1000, "Held-out rows to use; of more rows, this many are drawn.")
@count_option("--max-columns", 200, "Columns or words to measure, if there are more.")
@part_option
@click.option(
    "--out", type=click.Path(), help="CSV file of all numbers: one row per label and column."
)
@seed_option
@reader_options
@trusted_option
@output_options
def command(
    model: str,
    data: str,
    row: str | None,
    only: list[str] | None,
    top: int,
    metric: str,
    repeats: int,
    max_rows: int,
    max_columns: int,
    part: str | None,
    out: str | None,
    seed: int,
    trusted: tuple[str, ...],
    as_json: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Show which columns or words the labels of MODEL depend on, measured on DATA.

    The values of one column at a time are permuted among held-out rows: the more the score of a
    label drops, the more it depends on the column. Of texts, one word at a time is left out. What
    the model states itself (weights, gains of trees) is shown beside it.

    With --row, the columns or words that speak for and against each predicted label of one row:
    by how much its probability is higher than with the values of other rows, or without the word.
    DATA needs no labels then.
    """
    output = Output(as_json, quiet)
    reading = pop_reader_options(options)
    if out is not None and not out.lower().endswith(".csv"):
        raise click.UsageError(f"--out {out}: the ending must be .csv.")

    from labelweave.pipeline.model_folder import open_model

    fitted, origin = open_model(model, trusted)
    loaded, held_out, how = _read(fitted, origin, data, part, reading, needs_labels=row is None)
    names = loaded.feature_names or origin.feature_names
    output.say(f"{len(held_out):,} rows of {loaded.name} {how}")
    if row is not None:
        from labelweave.explaining import explain_row

        position = _position(loaded, row)
        if loaded.row_ids is not None and str(loaded.row_ids[position]) != row:
            output.say(f"no row has the id {row}: this is row number {row}, the first being 0")
            row = str(loaded.row_ids[position])
        x = loaded[[position]]
        explanation = explain_row(
            fitted,
            x.X,
            None if loaded.is_text else held_out.X,
            labels=only,
            max_columns=max_columns,
            feature_names=None if loaded.is_text else names,
            random_state=seed,
        )
        _show_row(output, explanation, row, only, top)
        _write(output, explanation, out)
        return
    from labelweave.explaining import feature_importance

    importance = feature_importance(
        fitted,
        held_out.X,
        held_out.Y,
        metric=metric,
        n_repeats=repeats,
        labels=only,
        max_rows=max_rows,
        max_columns=max_columns,
        feature_names=None if loaded.is_text else names,
        random_state=seed,
    )
    stated = _stated_importance(fitted, importance, names)
    _show_importance(output, importance, stated, top)
    _write(output, importance, out, stated)


def _read(
    model: Any,
    origin: Origin,
    data: str,
    part: str | None,
    reading: dict[str, Any],
    *,
    needs_labels: bool,
) -> tuple[Dataset, Dataset, str]:
    """All rows of the data, the held-out rows among them, and in words which these are.

    The values of held-out rows take the place of those of a row, for which labels are not needed:
    of data without labels, all rows are held out.
    """
    from labelweave.pipeline.data_parts import Source, with_labels
    from labelweave.pipeline.model_input import input_of_model
    from labelweave.pipeline.model_scores import rows_to_score, verdict_on

    options = origin.reading_of(data, reading)
    try:
        loaded = input_of_model(model, Source(data, options).load_for(model)[0])
    except InputError as error:
        if needs_labels or part is not None or not {"labels", "label_column"} & {*error.parameters}:
            raise
        options = origin.reading_of(data, reading, leave=("labels", "label_column"))
        loaded = _read_features(model, origin, data, options)
        rows, how = loaded, "without labels"
    else:
        chosen = rows_to_score(loaded, part, origin, options)
        rows, how = with_labels(chosen.rows, list(model.label_names_)), chosen.how
    if loaded.is_image:
        raise InputError("the labels of images cannot be explained by columns or words")
    return loaded, rows, f"({how}): {verdict_on(origin.count_seen(rows), len(rows))}"


def _read_features(model: Any, origin: Origin, data: str, reading: dict[str, Any]) -> Dataset:
    from dataclasses import replace
    from pathlib import Path

    from labelweave.cli.predict import feature_batches
    from labelweave.data.dataset import no_labels
    from labelweave.rows import concatenate_features

    batches = list(feature_batches(model, origin, Path(data), data, _BATCH_ROWS, reading))
    X = concatenate_features([batch.X for batch in batches])
    ids = [id for batch in batches for id in batch.row_ids or ()] or None
    n_rows = sum(len(batch) for batch in batches)
    return replace(batches[0], X=X, Y=no_labels(n_rows), row_ids=ids)


def _position(data: Dataset, row: str) -> int:
    """The number of the row with this id, or with this number if no row has the id."""
    ids = [str(id) for id in data.row_ids or ()]
    if row in ids:
        return ids.index(row)
    if row.isdigit() and int(row) < len(data):
        return int(row)
    of_ids = f", with ids such as {ids[0]!r}" if ids else ""
    raise InputError(f"--row {row}: {data.name} has the rows 0 to {len(data) - 1:,}{of_ids}")


def _stated_importance(
    model: Any, measured: FeatureImportance, names: Any
) -> FeatureImportance | None:
    from dataclasses import replace

    from labelweave.capabilities import capabilities
    from labelweave.explaining import native_importance

    if not capabilities(model).feature_importance:
        return None
    stated = native_importance(model).select_labels(measured.labels)
    if names is not None and len(names) == len(stated.features):
        stated = replace(stated, features=[str(name) for name in names])
    return stated


def _show_importance(
    output: Output, importance: FeatureImportance, stated: FeatureImportance | None, top: int
) -> None:
    assert importance.scores is not None
    best = importance.top(top)
    rows = [
        (label, float(score), _joined(best[label]))
        for label, score in zip(importance.labels, importance.scores, strict=True)
    ]
    title = f"{importance.kind}, {importance.n_rows:,} rows"
    output.table(("label", "score", "depends on"), rows, title=title)
    _say_limits(output, importance.not_measured)
    if stated is None:
        return
    output.show("")
    title = f"what the model states: {stated.kind}"
    if stated.direction is None:
        stated_rows = [(label, _joined(found)) for label, found in stated.top(top).items()]
        output.table(("label", "depends on"), stated_rows, title=title)
        return
    signed = []
    for j, label in enumerate(stated.labels):
        sides = [_joined(_of_direction(stated, j, sign, top)) for sign in (1, -1)]
        signed.append((label, *sides))
    output.table(
        ("label", "more of it speaks for", "more of it speaks against"), signed, title=title
    )


def _of_direction(
    stated: FeatureImportance, label: int, sign: int, top: int
) -> list[tuple[str, float]]:
    """The most important features of one direction."""
    assert stated.direction is not None
    is_side = stated.direction[label] == sign
    values = stated.values[label] * is_side
    order = sorted(range(len(values)), key=lambda j: -values[j])[:top]
    return [(stated.features[j], float(values[j])) for j in order if values[j] > 0]


def _joined(features: list[tuple[str, float]]) -> str:
    shown = [f"{name} {value:.3f}" for name, value in features if value >= _LEAST_SHOWN]
    return ", ".join(shown) or "-"


def _show_row(
    output: Output,
    explanation: RowExplanation,
    row: str,
    only: list[str] | None,
    top: int,
) -> None:
    labels = only or explanation.chosen_labels()
    probability = dict(zip(explanation.labels, explanation.probabilities.tolist(), strict=True))
    is_predicted = explanation.predicted is not None and explanation.predicted.any()
    if not is_predicted and not only:
        output.say("no label is predicted: the most probable one is shown")
    rows = []
    for label in labels:
        strongest = explanation.strongest(label, len(explanation.features))
        sides = [
            [one for one in strongest if one[2] * sign >= _LEAST_SHOWN][:top] for sign in (1, -1)
        ]
        texts = [", ".join(_change_in_words(*one) for one in side) or "-" for side in sides]
        rows.append((label, probability[label], *texts))
    title = f"row {row}: change of the probability by each column or word"
    output.table(("label", "probability", "for", "against"), rows, title=title)
    _say_limits(output, explanation.not_measured)


def _change_in_words(name: str, value: Any, change: float) -> str:
    if value is None or value != value:
        return f"{name} blank {change:+.3f}"
    shown = f"{value:.4g}" if isinstance(value, float) else str(value)
    return f"{name}={shown[:30]} {change:+.3f}"


def _say_limits(output: Output, not_measured: Any) -> None:
    if not_measured:
        output.say(
            f"{len(not_measured):,} columns or words were not measured (--max-columns): "
            f"{', '.join(list(not_measured)[:3])}, ..."
        )


def _write(
    output: Output,
    explanation: FeatureImportance | RowExplanation,
    out: str | None,
    stated: FeatureImportance | None = None,
) -> None:
    if out is not None:
        from labelweave.files import atomic_write_text

        atomic_write_text(out, explanation.to_frame().to_csv(index=False))
        output.say(f"written to {out}")
    result = explanation.to_dict()
    if stated is not None:
        result["stated"] = stated.to_dict()
    output.result(result)
