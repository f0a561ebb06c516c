"""`labelweave amalgamate`: train one student on the predictions of several models."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from labelweave.cli.options import (
    output_options,
    pop_reader_options,
    reader_options,
    seed_option,
    set_option,
    stem_of,
)
from labelweave.cli.output import Output
from labelweave.exceptions import InputError

if TYPE_CHECKING:
    from labelweave.data import Dataset
    from labelweave.scattered._amalgamation.agreement import Disagreement
    from labelweave.scattered._amalgamation.vocabulary import Vocabulary
    from labelweave.scattered.teacher import Teacher

_MAX_LINES = 10  # of a list that could be long


@click.command("amalgamate")
@click.argument("teachers", nargs=-1, required=True)
@click.option(
    "--data",
    required=True,
    help="Unlabelled rows to train the student on: a file or a name of `datasets`.",
)
@click.option("--out", type=click.Path(), help="Model folder. [default: DATA-METHOD, numbered]")
@click.option("-m", "--method", default="ant+", help="See `methods --room scattered`.")
@set_option("A parameter of the method, such as integrate=mean-logit or student__hidden_size=128.")
@click.option("--student", metavar="METHOD", help="Method of the student. [default: ofcc]")
@click.option(
    "--alias",
    "aliases",
    multiple=True,
    metavar="LABEL=NAME",
    help="The common name of a label that teachers name differently; may be repeated.",
)
@click.option("--exact", is_flag=True, help="Labels that differ in case are different labels.")
@click.option(
    "--abstain",
    type=click.FloatRange(0, 0.5, max_open=True),
    default=0.0,
    help="Teachers abstain where a probability is within this distance of one half.",
)
@click.option(
    "--known-labels",
    is_flag=True,
    help="Some rows of DATA are labelled (a blank is unknown): use these labels.",
)
@click.option("--threshold", default="0.5", help="As for `train`.")
@click.option("--dry-run", is_flag=True, help="Report on the teachers without training.")
@click.option(
    "--report",
    type=click.Path(dir_okay=False),
    help="FILE.csv for the disagreement per pair and label; FILE-rows.csv lists the rows.",
)
@click.option(
    "--plot", type=click.Path(dir_okay=False), help="FILE.svg for a plot of the disagreement."
)
@seed_option
@reader_options
@output_options
def command(
    teachers: tuple[str, ...],
    data: str,
    out: str | None,
    method: str,
    aliases: tuple[str, ...],
    exact: bool,
    abstain: float,
    known_labels: bool,
    dry_run: bool,
    report: str | None,
    plot: str | None,
    seed: int,
    as_json: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Train one student for the labels of all TEACHERS.

    TEACHERS are two or more model folders, or http addresses of models. They predict the rows of
    --data, which need no labels; where they contradict each other is reported before the student is
    trained on their predictions. Labels are joined by their names.
    """
    if len(teachers) < 2:
        raise click.UsageError("Amalgamation needs two models or more.")
    output = Output(as_json, quiet)
    reading = pop_reader_options(options)

    from labelweave.pipeline.data_parts import Source, SplitSettings, TrainingData
    from labelweave.pipeline.model_folder import checked_folder, save_model
    from labelweave.scattered._amalgamation.agreement import disagreement
    from labelweave.scattered._amalgamation.teacher_predictions import joint_vocabulary
    from labelweave.scattered.teacher import as_teachers

    names: dict[str, Any] = {
        "aliases": _parse_aliases(aliases),
        "match": "exact" if exact else "ignore-case",
    }
    model = _make_model(method, options, seed=seed, verbose=not quiet)
    folder = None if dry_run else checked_folder(out, f"{stem_of(data)}-{method}")
    rows, loaded = _read(teachers, data, reading, abstain, known_labels)
    vocabulary = joint_vocabulary(as_teachers(loaded), **names)
    _describe_teachers(output, loaded, vocabulary, rows)
    if folder is None:
        contradictions = disagreement(
            loaded, rows.X, row_ids=rows.row_ids, verbose=not quiet, **names
        )
        _show_disagreement(output, contradictions)
        _write_report(output, contradictions, report, plot)
        output.result(_as_result(vocabulary, loaded, contradictions))
        return

    def on_disagreement(contradictions: Disagreement) -> None:
        _show_disagreement(output, contradictions)
        _write_report(output, _with_row_ids(contradictions, rows.row_ids), report, plot)
        output.say(f"training {method}")

    model.set_params(teachers=loaded, on_disagreement=on_disagreement, **names)
    metrics = _train(model, method, rows, known_labels, output)
    training = TrainingData(rows, Source(data, reading), SplitSettings(seed=seed), None)
    save_model(model, folder, training, scores={}, metrics=metrics)
    output.say(f"student and metrics.json written to {folder}")
    output.result({**metrics, "model": str(folder)})


def _parse_aliases(aliases: Sequence[str]) -> dict[str, str]:
    names = {}
    for alias in aliases:
        label, equals, name = alias.partition("=")
        if not equals or not label.strip() or not name.strip():
            raise InputError(f"--alias takes LABEL=NAME, not {alias!r}")
        names[label.strip()] = name.strip()
    return names


def _make_model(method: str, options: dict[str, Any], *, seed: int, verbose: bool) -> Any:
    """The unfitted method; wrong names and values are refused before any file is read."""
    from labelweave.methods import get_class, list_methods, make
    from labelweave.pipeline.parameters import parse_settings, parse_value
    from labelweave.pipeline.recipe import Recipe, check_parameters
    from labelweave.scattered._amalgamation.student_method import StudentMethod
    from labelweave.thresholds import make_threshold

    def trains_student(id: str) -> bool:
        return issubclass(get_class(id), StudentMethod)

    if not trains_student(method):
        ids = sorted(one.id for one in list_methods("scattered") if trains_student(one.id))
        raise InputError(f"{method} does not train a student: choose one of {', '.join(ids)}")
    parameters = parse_settings(options["settings"])
    check_parameters(method, parameters)
    if options["student"] is not None:
        parameters["student"] = make(options["student"])
    threshold = parse_value(options["threshold"])
    make_threshold(threshold)
    parameters = {"threshold": threshold, "random_state": seed, **parameters}
    # Nested parameters come last, after the student that they belong to.
    ordered = dict(sorted(parameters.items(), key=lambda item: "__" in item[0]))
    model = Recipe(method, ordered, verbose).make()
    model._validate_params()
    return model


def _read(
    sources: Sequence[str], data: str, reading: dict[str, Any], abstain: float, known: bool
) -> tuple[Dataset, list[Teacher]]:
    """The rows, and the teachers with the columns that each uses."""
    from labelweave.pipeline.model_folder import Origin, read_origin
    from labelweave.scattered.teacher import Teacher

    teachers = [Teacher(source, abstain=abstain) for source in sources]
    origins = [
        Origin() if source.startswith(("http://", "https://")) else read_origin(Path(source))
        for source in sources
    ]
    leave = () if known else ("labels", "label_column")
    reading = origins[0].reading_of(data, reading, leave=leave)
    wanted: list[str] = []
    for origin in origins:
        wanted += [name for name in origin.feature_names or () if name not in wanted]
    rows = _rows(data, reading, wanted or None, teachers, known)
    if wanted and not rows.is_text:
        for teacher, origin in zip(teachers, origins, strict=True):
            names = origin.feature_names
            if names is not None and list(names) != wanted:
                teacher.columns = [wanted.index(name) for name in names]
    return rows, teachers


def _rows(
    data: str,
    reading: dict[str, Any],
    wanted: Sequence[str] | None,
    teachers: Sequence[Teacher],
    known: bool,
) -> Dataset:
    from dataclasses import replace

    from labelweave.data import Dataset
    from labelweave.data.catalog import is_catalog_name, load_dataset
    from labelweave.data.dataset import no_labels
    from labelweave.data.reading import iter_batches
    from labelweave.pipeline.data_parts import check_finite
    from labelweave.rows import concatenate_features, count_rows

    if known or is_catalog_name(data):
        rows = load_dataset(data, **reading)
        if not rows.is_text and wanted is not None and rows.feature_names is not None:
            places = {name: j for j, name in enumerate(rows.feature_names)}
            if missing := [name for name in wanted if name not in places]:
                raise InputError(f"{data} has no feature {missing[0]!r}, which a teacher uses")
            columns = [places[name] for name in wanted]
            rows = replace(rows, X=rows.X[:, columns], feature_names=list(wanted))
    else:
        width = None if wanted else getattr(teachers[0].model, "n_features_in_", None)
        batches = list(iter_batches(data, feature_names=wanted, n_features=width, **reading))
        if not batches:
            raise InputError(f"{data} has no rows")
        ids = [i for one in batches for i in one.row_ids or ()] or None
        X = concatenate_features([one.X for one in batches])
        rows = Dataset(
            X, no_labels(count_rows(X)), batches[0].name, feature_names=wanted, row_ids=ids
        )
    check_finite(rows, data, names=wanted)
    return rows


def _describe_teachers(
    output: Output, teachers: Sequence[Teacher], vocabulary: Vocabulary, rows: Dataset
) -> None:
    from labelweave.scattered.teacher import unique_names

    names = unique_names(teachers)
    for name, teacher in zip(names, teachers, strict=True):
        note = "" if teacher.can_revise else "; cannot revise its predictions, not being a chain"
        low, high = teacher.thresholds.min(), teacher.thresholds.max()
        threshold = f"{low:.3g}" if low == high else f"{low:.3g} to {high:.3g}"
        output.say(f"{name}: {len(teacher.labels)} labels, predicted from {threshold} on{note}")
    output.say(
        f"{len(vocabulary.names)} labels in all, {len(vocabulary.shared)} of them shared; "
        f"{len(rows):,} rows of {rows.name}"
    )
    joined = [spellings for spellings in vocabulary.spellings if len(spellings) > 1]
    for spellings in joined[:_MAX_LINES]:
        output.say(f"joined: {', '.join(spellings)}")
    orphans = set(vocabulary.orphans)
    for name, columns in zip(names, vocabulary.columns, strict=True):
        labels = sorted(orphans.intersection(vocabulary.names[j] for j in columns.tolist()))
        if labels:
            more = f" and {len(labels) - _MAX_LINES} more" if len(labels) > _MAX_LINES else ""
            output.say(f"only {name} predicts: {', '.join(labels[:_MAX_LINES])}{more}")
    for one, other in vocabulary.near_misses()[:_MAX_LINES]:
        output.say(f"similar, but not joined: {one}, {other} (--alias '{one}={other}' joins them)")


def _show_disagreement(output: Output, report: Disagreement) -> None:
    for line in report.summary():
        output.say(line)
    worst = report.table.sort_values("rate", ascending=False, kind="stable").head(_MAX_LINES)
    if len(worst):
        columns = ["first", "second", "label", "rate", "first_only", "second_only", "both"]
        lines = worst[columns].values.tolist()
        output.table(columns, lines, title="where teachers contradict each other most")


def _with_row_ids(report: Disagreement, ids: Sequence[Any] | None) -> Disagreement:
    """The report with the ids of the rows in place of their numbers."""
    from dataclasses import replace

    if ids is None or report.rows.empty:
        return report
    return replace(report, rows=report.rows.assign(row=[ids[i] for i in report.rows["row"]]))


def _write_report(
    output: Output, report: Disagreement, table: str | None, plot: str | None
) -> None:
    if table is not None:
        written = report.to_csv(table)
        output.say(f"disagreement written to {' and '.join(str(path) for path in written)}")
    if plot is not None:
        report.plot(plot)
        output.say(f"plot written to {plot}")


def _as_result(
    vocabulary: Vocabulary, teachers: Sequence[Teacher], report: Disagreement
) -> dict[str, Any]:
    from labelweave.scattered.teacher import unique_names

    return {
        "labels": list(vocabulary.names),
        "shared": list(vocabulary.shared),
        "orphans": list(vocabulary.orphans),
        "near_misses": vocabulary.near_misses(),
        "teachers": [
            {"name": name, "kind": teacher.kind, "labels": list(teacher.labels)}
            for name, teacher in zip(unique_names(teachers), teachers, strict=True)
        ],
        "disagreement": report.table.to_dict("records"),
    }


def _train(model: Any, method: str, rows: Dataset, known: bool, output: Output) -> dict[str, Any]:
    """Fit the student, and return what is written about it."""
    import time

    from labelweave.measuring import versions

    started = time.perf_counter()
    model.fit(rows.X, rows.Y if known else None)
    seconds = time.perf_counter() - started
    output.say(f"trained in {seconds:.1f} s")
    if n_transfers := model.notes_.get("transfers"):
        output.say(
            f"teachers transferred {n_transfers:,} predictions to each other; "
            f"{model.notes_['revised']:,} entries were revised to positive"
        )
    fidelity = model.fidelity_
    output.table(
        list(fidelity.columns),
        fidelity.values.tolist(),
        title="fidelity of the student to each teacher, on held-out rows",
    )
    return {
        "method": method,
        "teachers": model.teacher_labels_,
        "fidelity": fidelity.to_dict("records"),
        "disagreement": model.disagreement_.to_dict("records"),
        "notes": model.notes_,
        "threshold": model.threshold_.to_dict(),
        "seconds": {"fit": round(seconds, 3)},
        "versions": versions(),
    }
