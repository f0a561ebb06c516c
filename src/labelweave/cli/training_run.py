"""Training, scoring and saving a model: what `train` and `tune` share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from labelweave.capabilities import capabilities
from labelweave.cli.output import Output, show_examples, show_scores
from labelweave.data import Dataset
from labelweave.exceptions import InputError
from labelweave.labels import LabelMatrix
from labelweave.pipeline.data_parts import Parts, TrainingData, about_rows_together
from labelweave.pipeline.model_folder import save_model
from labelweave.pipeline.model_input import column_rows, texts_alone
from labelweave.pipeline.model_scores import (
    about_empty_rows,
    about_promise,
    about_unknown,
    example_rows,
    label_rows,
    score,
)
from labelweave.pipeline.recipe import Recipe, defaults, fit, threshold_in_words

__all__ = ["for_method", "prepare_partial", "say_data", "train_and_save", "with_label_texts"]

_MOST_COLUMNS = 30  # that have a line of their own


def prepare_partial(
    recipe: Recipe, training: TrainingData, parts: Parts, before: LabelMatrix, output: Output
) -> tuple[Recipe, Parts]:
    """Say what is unannotated for a method for partial labels; verdicts stay known entries.

    Which entries are unannotated is decided by the training labels before corrections (`before`).
    If these are the zeros, they become blank in the returned parts, so that a verdict "no" is a
    checked negative. A label that nobody annotated in the training rows keeps its zeros.
    """
    from labelweave.data.corrections import observed_labels
    from labelweave.unannotated import blank_unannotated, describe_rule, unannotated_rule

    if "unannotated" not in defaults(recipe.method):
        return recipe, parts
    data, source, protocol, _ = training
    chosen = recipe.parameters.get("unannotated", "auto")
    if source.corrections is None:
        output.say(describe_rule(parts.train.Y, chosen))
        return recipe, parts
    uncorrected = replace(data, Y=before)
    labels = protocol.parts(uncorrected, source.reading).train.Y
    rule = unannotated_rule(labels, chosen)
    output.say(f"before the corrections, {describe_rule(labels, chosen)}")
    if rule == "unknown" or before.has_unknown:
        return recipe.with_parameters({"unannotated": rule}), parts
    observed = observed_labels(uncorrected, source.corrections, rule)
    coded = replace(data, Y=source.completed(observed))
    train, validation, _ = protocol.parts(coded, source.reading, before)
    is_annotated = np.asarray(abs(train.Y.values).sum(axis=0)).ravel() > 0
    train = replace(train, Y=blank_unannotated(train.Y, is_annotated))
    validation = replace(validation, Y=blank_unannotated(validation.Y, is_annotated))
    blank = Parts(train, validation, parts.test)
    return recipe.with_parameters({"unannotated": "unknown"}), blank


def with_label_texts(
    data: Dataset, path: str | None, method: str
) -> tuple[Dataset, dict[str, str]]:
    """The data with the descriptions of a file, and the labels of it that the data do not have."""
    if path is None:
        return data, {}
    from labelweave.data.label_files import read_label_file
    from labelweave.labels import as_labels
    from labelweave.methods import make

    if not capabilities(make(method)).new_labels:
        raise InputError(f"--label-texts is for methods that read label texts: {method} does not")
    texts = read_label_file(path)
    known = {name: text for name, text in texts.items() if text and name in data.label_names}
    described = as_labels(data.Y, descriptions={**data.Y.descriptions, **known})
    names = set(data.label_names)
    return replace(data, Y=described), {n: text for n, text in texts.items() if n not in names}


def for_method(data: Dataset, recipe: Recipe, output: Output) -> Dataset:
    """The data in the form that the method takes: of a table, a method of texts takes the texts."""
    can = capabilities(recipe.make())
    if not data.is_table or not can.texts or can.vectors:
        return data
    data, left_out = texts_alone(data, recipe.method)
    output.say(left_out)
    return data


def say_data(output: Output, training: TrainingData, parts: Parts, model: Any) -> None:
    """What the data are, how they are divided, and what the method does with the parts."""
    data, protocol = training.data, training.protocol
    facts = data.summary()
    unit = "columns" if data.is_table else "features"
    width = "texts" if data.is_text else f"{facts['features']:,} {unit}"
    width = "images" if data.is_image else width
    if data.is_image or "image_encoder" in data.facts:
        from labelweave.images import ImageClassifier

        if isinstance(model, ImageClassifier):
            width += f" ({model.encoder.describe()}; features are computed once and cached)"
    unknown = f", {facts['unknown']:,} unknown entries" if facts["unknown"] else ""
    output.say(
        f"{data.name}: {facts['rows']:,} rows, {width}, {facts['labels']:,} labels, "
        f"{facts['cardinality']:.2f} labels per row{unknown}"
    )
    if not facts["cardinality"]:
        output.say(
            "no entry is positive, and nothing but no can be learnt: are these the label columns, "
            "with 1 for yes?"
        )
    sizes = parts.sizes()
    n_train, n_held = sizes["train"], sizes["validation"]
    if capabilities(model).out_of_fold:
        use = f"{n_train + n_held:,} rows to train, the threshold chosen out of fold"
    else:
        use = f"{n_train:,} rows to train, {n_held:,} for validation (early stopping, threshold)"
    output.say(f"{protocol.describe(data)}: {use}, {sizes['test']:,} to test once")
    for note in about_rows_together(data, parts):
        output.say(note)
    if data.is_table:
        say_columns(output, parts.train, model)
    if training.source.hierarchy is not None:
        output.say(f"labels completed by the hierarchy of {training.source.hierarchy}")
    if training.source.corrections is not None:
        from labelweave.data.corrections import read_verdicts

        verdicts = read_verdicts(training.source.corrections)
        counted = ", ".join(f"{n:,} {verdict}" for verdict, n in verdicts.counts().items())
        output.say(f"corrections of {training.source.corrections}: {counted}")


def say_columns(output: Output, data: Dataset, model: Any) -> None:
    """What becomes of each column of a table."""
    if output.quiet:
        return
    rows = column_rows(data, model)
    columns_of: dict[tuple[str, ...], list[str]] = {}
    for row in rows:
        fate = (row["kind"], row["made"] or f"left out: {row['left_out']}")
        key = fate if len(rows) > _MOST_COLUMNS else (*fate, row["column"])
        columns_of.setdefault(key, []).append(row["column"])
    table = [(_in_short(names), *fate[:2]) for fate, names in columns_of.items()]
    output.table(("column", "kind", "what is made of it"), table)
    if capabilities(model).passes_tables:
        output.say("(boosted trees inside it take categories as codes, and blanks as they are)")


def _in_short(names: list[str]) -> str:
    """Names of columns that have the same fate, the first three if there are many.

    >>> _in_short(["a", "b"]), _in_short(list("abcdef"))
    ('a, b', 'a, b, c, ... (6 columns)')
    """
    if len(names) <= 3:
        return ", ".join(names)
    return f"{', '.join(names[:3])}, ... ({len(names)} columns)"


def train_and_save(
    model: Any,
    recipe: Recipe,
    training: TrainingData,
    parts: Parts,
    folder: Path,
    output: Output,
    *,
    all_metrics: bool,
    per_label: bool,
    examples: int = 0,
    new_labels: Mapping[str, str] | None = None,
    fitted_parts: Parts | None = None,
) -> dict[str, Any]:
    """Fit, score the test rows once, save, show; the result as values for JSON.

    `model` is the estimator that `recipe` makes, for the parts `fitted_parts` of
    :func:`prepare_partial` where there are any. `new_labels` are added to it when the scores of
    the others are known.
    """
    from labelweave.measuring import Meter, versions

    data = training.data
    output.say(f"training {recipe.describe()}")
    with Meter() as meter:
        seconds = fit(model, fitted_parts or parts)
    output.say(f"trained in {seconds:.1f} s; {threshold_in_words(model)}")
    scores = score(model, parts.test, train_labels=parts.train.Y)
    few = example_rows(model, parts.test, examples)
    metrics = {
        "data": data.summary(),
        "method": recipe.method,
        "parameters": recipe.parameters,
        "protocol": {**asdict(training.protocol), "rows": parts.sizes()},
        "corrections": training.source.corrections,
        "hierarchy": training.source.hierarchy,
        "threshold": model.threshold_.to_dict(),
        "scores": {"test": scores.to_dict()},
        "per_label": label_rows(scores),
        "seconds": {"fit": round(seconds, 3)},
        "memory": {"peak_mb": round(meter.peak_mb, 1)},
        "versions": versions(),
    }
    if new_labels:
        model.add_labels(list(new_labels), dict(new_labels))
        output.say(f"{len(new_labels):,} labels without examples added")
    save_model(model, folder, training, scores=scores.to_dict(), metrics=metrics)
    title = f"scores on the {len(parts.test):,} test rows"
    show_scores(output, scores, title, everything=all_metrics, per_label=per_label)
    if note := about_promise(model, scores):
        output.show(note)
    for about in (about_unknown, about_empty_rows):
        if note := about(parts.test.Y):
            output.say(note)
    show_examples(output, few)
    output.say(f"model and metrics.json written to {folder}")
    return {**metrics, "examples": few, "model": str(folder)}
