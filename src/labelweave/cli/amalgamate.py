"""`labelweave amalgamate`: one model of several, a student of theirs or all of them together."""

from __future__ import annotations

from collections.abc import Sequence
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
@click.option(
    "-m",
    "--method",
    help="See `methods --room scattered`. [default: ant+, or smoothed-union with --keep-teachers]",
)
@click.option(
    "--keep-teachers",
    is_flag=True,
    help="Train no student: the model folder contains the teachers (or the addresses of those that "
    "are reached by http), which predict together.",
)
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
@click.option(
    "--labels-of",
    multiple=True,
    metavar="TEACHER=FILE",
    help="Labels of a teacher whose file does not name them: a file with one per line, or a,b,c.",
)
@click.option(
    "--trust",
    "trusted",
    multiple=True,
    metavar="FILE",
    help="Open this pickle (.pkl, .joblib), which can run any program: only if you trust whoever "
    "wrote it. May be repeated.",
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
    method: str | None,
    keep_teachers: bool,
    aliases: tuple[str, ...],
    exact: bool,
    abstain: float,
    known_labels: bool,
    labels_of: tuple[str, ...],
    trusted: tuple[str, ...],
    dry_run: bool,
    report: str | None,
    plot: str | None,
    seed: int,
    as_json: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Make one model for the labels of all TEACHERS.

    TEACHERS are two or more model folders, http addresses of models (or of a service: all its
    models), .onnx files, models of scikit-learn in .skops files (or, with --trust, in pickles), or
    .csv files of predictions of the rows of --data. They predict the rows of --data, which need no
    labels; where they contradict each other is reported before a student is trained on their
    predictions. Labels are joined by their names.
    """
    output = Output(as_json, quiet)
    reading = pop_reader_options(options)

    from labelweave.cli.amalgamate_input import parse_labels_of, read_input
    from labelweave.pipeline.data_parts import Source, SplitSettings, TrainingData
    from labelweave.pipeline.model_folder import checked_folder, save_model
    from labelweave.scattered._amalgamation.agreement import disagreement
    from labelweave.scattered._amalgamation.saved_teachers import saved_teachers
    from labelweave.scattered._amalgamation.teacher_predictions import joint_vocabulary
    from labelweave.scattered.teacher import as_teachers

    names: dict[str, Any] = {
        "aliases": _parse_aliases(aliases),
        "match": "exact" if exact else "ignore-case",
    }
    method = method or ("smoothed-union" if keep_teachers else "ant+")
    model = _make_model(method, keep_teachers, options, seed=seed, verbose=not quiet)
    folder = None if dry_run else checked_folder(out, f"{stem_of(data)}-{method}")
    rows, loaded, reading = read_input(
        teachers,
        data,
        reading,
        known_labels=known_labels,
        abstain=abstain,
        labels_of=parse_labels_of(labels_of),
        trusted=trusted,
    )
    if len(loaded) < 2:
        raise click.UsageError("Amalgamation needs two models or more.")
    if folder is not None and not _trains_student(method):
        saved_teachers(loaded)  # raises for one that cannot be kept
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
        output.say(f"fitting {method}")

    model.set_params(teachers=loaded, on_disagreement=on_disagreement, **names)
    metrics = _fit(model, method, rows, known_labels, output)
    training = TrainingData(rows, Source(data, reading), SplitSettings(seed=seed), None)
    save_model(model, folder, training, scores={}, metrics=metrics)
    what = "student" if _trains_student(method) else "teachers"
    output.say(f"{what} and metrics.json written to {folder}")
    output.result({**metrics, "model": str(folder)})


def _parse_aliases(aliases: Sequence[str]) -> dict[str, str]:
    names = {}
    for alias in aliases:
        label, equals, name = alias.partition("=")
        if not equals or not label.strip() or not name.strip():
            raise InputError(f"--alias takes LABEL=NAME, not {alias!r}")
        names[label.strip()] = name.strip()
    return names


def _trains_student(method: str) -> bool:
    from labelweave.methods import get_class
    from labelweave.scattered._amalgamation.student_method import StudentMethod

    return issubclass(get_class(method), StudentMethod)


def _make_model(
    method: str, keep_teachers: bool, options: dict[str, Any], *, seed: int, verbose: bool
) -> Any:
    """The unfitted method; wrong names and values are refused before any file is read."""
    from labelweave.methods import get_class, list_methods, make
    from labelweave.pipeline.parameters import parse_settings, parse_value
    from labelweave.pipeline.recipe import Recipe, check_parameters
    from labelweave.scattered._amalgamation.teacher_method import TeacherMethod
    from labelweave.thresholds import make_threshold

    is_union = not _trains_student(method)
    if not issubclass(get_class(method), TeacherMethod) or (keep_teachers and not is_union):
        ids = [one.id for one in list_methods("scattered")]
        if keep_teachers:
            ids = [id for id in ids if not _trains_student(id)]
        why = "does not keep teachers" if keep_teachers else "does not combine teachers"
        raise InputError(f"{method} {why}: choose one of {', '.join(sorted(ids))}")
    if is_union and options["student"] is not None:
        raise InputError(f"{method} trains no student: leave out --student, or choose ant+")
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
    renamed = [
        (name, [spelt for spelt in spellings if spelt != name])
        for name, spellings in zip(vocabulary.names, vocabulary.spellings, strict=True)
        if spellings != (name,)
    ]
    for name, spellings in renamed[:_MAX_LINES]:
        output.say(f"{', '.join(map(repr, spellings))} joined as {name!r}")
    if len(renamed) > _MAX_LINES:
        output.say(f"and {len(renamed) - _MAX_LINES} more labels of several spellings")
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
    worst = report.table[report.table["rate"] > 0]
    worst = worst.sort_values("rate", ascending=False, kind="stable").head(_MAX_LINES)
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


def _fit(model: Any, method: str, rows: Dataset, known: bool, output: Output) -> dict[str, Any]:
    """Fit the model, and return what is written about it."""
    import time

    from labelweave.measuring import versions

    started = time.perf_counter()
    model.fit(rows.X, rows.Y if known else None)
    seconds = time.perf_counter() - started
    output.say(f"fitted in {seconds:.1f} s")
    if n_transfers := model.notes_.get("transfers"):
        output.say(
            f"teachers transferred {n_transfers:,} predictions to each other; "
            f"{model.notes_['revised']:,} entries were revised to positive"
        )
    fidelity = model.fidelity_
    output.table(
        list(fidelity.columns),
        fidelity.values.tolist(),
        title="fidelity of the new model to each teacher, on held-out rows",
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
