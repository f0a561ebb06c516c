"""`labelweave amalgamate`: one student of several trained models."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from labelweave.cli.options import (
    output_options,
    pop_reader_options,
    reader_options,
    stem_of,
)
from labelweave.cli.output import Output
from labelweave.exceptions import InputError

if TYPE_CHECKING:
    from labelweave.data import Dataset
    from labelweave.scattered.disagreement import Disagreement
    from labelweave.scattered.teacher import Teacher
    from labelweave.scattered.vocabulary import Vocabulary

_MOST_LINES = 10  # of a table that could be long
_KEEP_TEACHERS = ("union", "smoothed-union")  # they train no student


@click.command("amalgamate")
@click.argument("teachers", nargs=-1, required=True)
@click.option(
    "--data",
    required=True,
    help="Rows for the student to learn on, without labels: a file or a name of `datasets`.",
)
@click.option("--out", type=click.Path(), help="Model folder. [default: DATA-METHOD, numbered]")
@click.option(
    "-m", "--method", default="ant", show_default=True, help="See `methods --room scattered`."
)
@click.option(
    "-s",
    "--set",
    "settings",
    multiple=True,
    metavar="NAME=VALUE",
    help="A parameter of the method, such as integrate=mean-logit or student__hidden_size=128.",
)
@click.option("--student", metavar="METHOD", help="What the student is. [default: ofcc]")
@click.option(
    "--alias",
    "aliases",
    multiple=True,
    metavar="LABEL=NAME",
    help="A label that other teachers call otherwise; may be repeated.",
)
@click.option("--exact", is_flag=True, help="Labels that differ in case are different.")
@click.option(
    "--abstain",
    type=click.FloatRange(0, 0.5, max_open=True),
    default=0.0,
    show_default=True,
    help="Teachers have no say within this distance of one half.",
)
@click.option(
    "--known-labels",
    is_flag=True,
    help="Some rows of DATA are labelled (a blank is unknown): learn, weigh and calibrate by them.",
)
@click.option("--threshold", default="0.5", show_default=True, help="As for `train`.")
@click.option("--dry-run", is_flag=True, help="Report on the teachers and train nothing.")
@click.option(
    "--report",
    type=click.Path(dir_okay=False),
    help="FILE.csv for the disagreement of each pair and label; the rows go beside it.",
)
@click.option("--plot", type=click.Path(dir_okay=False), help="FILE.svg for a plot of it.")
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of everything random."
)
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
    """Make one student that knows the labels of all TEACHERS.

    TEACHERS are two or more model folders, or http addresses of models. They are asked about the
    rows of --data, which need no labels; where they contradict each other is reported before the
    student learns from them. Labels are joined by their names.
    """
    if len(teachers) < 2:
        raise click.UsageError("Amalgamation needs two models or more.")
    output = Output(as_json, quiet)
    reading = pop_reader_options(options)

    from labelweave.pipeline.model_folder import checked_folder
    from labelweave.scattered.opinions import join_teachers
    from labelweave.scattered.teacher import as_teachers

    match = "exact" if exact else "ignore-case"
    renamed = _parsed_aliases(aliases)
    model = _made(method, options, seed=seed, verbose=not quiet)
    folder = None if dry_run else checked_folder(out, f"{stem_of(data)}-{method}")
    rows, asked = _read(teachers, data, reading, abstain, known_labels)
    vocabulary = join_teachers(as_teachers(asked), aliases=renamed, match=match)
    _say_teachers(output, asked, vocabulary, rows)
    if dry_run:
        from labelweave.scattered.disagreement import disagreement

        found = disagreement(
            asked, rows.X, aliases=renamed, match=match, row_ids=rows.row_ids, verbose=not quiet
        )
        _show_disagreement(output, found)
        _write_report(output, found, report, plot)
        output.result(_as_result(vocabulary, asked, found))
        return
    assert folder is not None

    def listen(found: Disagreement) -> None:
        _show_disagreement(output, found)
        _write_report(output, _with_ids(found, rows.row_ids), report, plot)
        output.say(f"training {method}")

    model.set_params(teachers=asked, aliases=renamed, match=match)
    model._listener = listen
    result = _train_and_save(
        model, method, rows, folder, output, (data, reading), seed, known_labels
    )
    output.result(result)


def _parsed_aliases(aliases: Sequence[str]) -> dict[str, str]:
    found = {}
    for alias in aliases:
        label, equals, name = alias.partition("=")
        if not equals or not label.strip() or not name.strip():
            raise InputError(f"--alias takes LABEL=NAME, not {alias!r}")
        found[label.strip()] = name.strip()
    return found


def _made(method: str, options: dict[str, Any], *, seed: int, verbose: bool) -> Any:
    """The unfitted amalgamator; wrong names and values are refused before anything is read."""
    from labelweave.methods import get_class, list_methods, make
    from labelweave.pipeline.parameters import parse_settings, parse_value
    from labelweave.pipeline.recipe import Recipe, check_parameters
    from labelweave.thresholds import make_threshold

    get_class(method)
    able = [one.id for one in list_methods("scattered") if one.id not in _KEEP_TEACHERS]
    if method not in able:
        raise InputError(
            f"{method} does not learn from teachers: choose one of {', '.join(sorted(able))}"
        )
    parameters = parse_settings(options["settings"])
    check_parameters(method, parameters)
    if options["student"] is not None:
        parameters["student"] = make(options["student"])
    threshold = parse_value(options["threshold"])
    make_threshold(threshold)
    chosen = {"threshold": threshold, "random_state": seed, **parameters}
    # Nested parameters come last, when the student that they belong to is there.
    ordered = dict(sorted(chosen.items(), key=lambda item: "__" in item[0]))
    model = Recipe(method, ordered, verbose).make()
    model._validate_params()
    return model


def _read(
    sources: Sequence[str], data: str, reading: dict[str, Any], abstain: float, known: bool
) -> tuple[Dataset, list[Teacher]]:
    """The rows, and the teachers with the columns that each takes."""
    from labelweave.pipeline.model_folder import Origin, read_origin
    from labelweave.scattered.teacher import Teacher

    teachers = [Teacher(source, abstain=abstain) for source in sources]
    origins = [
        Origin() if source.startswith(("http://", "https://")) else read_origin(Path(source))
        for source in sources
    ]
    if not reading:
        reading = origins[0].reading_of(data, leave=() if known else ("labels", "label_column"))
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
    from labelweave.pipeline.protocol import check_finite
    from labelweave.rows import concatenate_features, count_rows

    if known or is_catalog_name(data):
        rows = load_dataset(data, **reading)
        if not rows.is_text and wanted is not None and rows.feature_names is not None:
            places = {name: j for j, name in enumerate(rows.feature_names)}
            if missing := [name for name in wanted if name not in places]:
                raise InputError(f"{data} has no feature {missing[0]!r}, which a teacher takes")
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


def _say_teachers(
    output: Output, teachers: Sequence[Teacher], vocabulary: Vocabulary, rows: Dataset
) -> None:
    from labelweave.scattered.teacher import unique_names

    names = unique_names(teachers)
    for name, teacher in zip(names, teachers, strict=True):
        told = "" if teacher.kind == "chain" else "; it can be told nothing, being no chain"
        output.say(f"{name}: {len(teacher.labels)} labels{told}")
    output.say(
        f"{len(vocabulary.names)} labels in all, {len(vocabulary.shared)} of them shared; "
        f"{len(rows):,} rows of {rows.name}"
    )
    joined = [spelt for spelt in vocabulary.spellings if len(spelt) > 1]
    for spelt in joined[:_MOST_LINES]:
        output.say(f"joined: {', '.join(spelt)}")
    for name, label in _orphans(vocabulary, names):
        output.say(f"only {name} knows: {label}")
    for one, other in vocabulary.near_misses()[:_MOST_LINES]:
        output.say(f"not joined, though alike: {one}, {other} (--alias '{one}={other}' joins them)")


def _orphans(vocabulary: Vocabulary, names: Sequence[str]) -> list[tuple[str, str]]:
    """For each teacher the labels that it alone knows, the first few by name."""
    known = vocabulary.known
    alone = known & (known.sum(axis=0) == 1)
    found = []
    for name, mask in zip(names, alone, strict=True):
        labels = [vocabulary.names[j] for j in mask.nonzero()[0].tolist()]
        if labels:
            more = f" and {len(labels) - _MOST_LINES} more" if len(labels) > _MOST_LINES else ""
            found.append((name, ", ".join(labels[:_MOST_LINES]) + more))
    return found


def _show_disagreement(output: Output, found: Disagreement) -> None:
    for line in found.summary():
        output.say(line)
    worst = found.table.sort_values("rate", ascending=False, kind="stable").head(_MOST_LINES)
    if len(worst):
        columns = ["first", "second", "label", "rate", "first_only", "second_only", "both"]
        lines = worst[columns].values.tolist()
        output.table(columns, lines, title="where teachers contradict each other most")


def _with_ids(found: Disagreement, ids: Sequence[Any] | None) -> Disagreement:
    """The report with the rows' own names in the place of their numbers."""
    from dataclasses import replace

    if ids is None or found.rows.empty:
        return found
    return replace(found, rows=found.rows.assign(row=[ids[i] for i in found.rows["row"]]))


def _write_report(
    output: Output, found: Disagreement, report: str | None, plot: str | None
) -> None:
    if report is not None:
        written = found.to_csv(report)
        output.say(f"disagreement written to {' and '.join(str(path) for path in written)}")
    if plot is not None:
        found.plot(plot)
        output.say(f"plot written to {plot}")


def _as_result(
    vocabulary: Vocabulary, teachers: Sequence[Teacher], found: Disagreement
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
        "disagreement": found.table.to_dict("records"),
    }


def _train_and_save(
    model: Any,
    method: str,
    rows: Dataset,
    folder: Path,
    output: Output,
    source: tuple[str, dict[str, Any]],
    seed: int,
    known: bool,
) -> dict[str, Any]:
    import time

    from labelweave.bench.running.measuring import versions
    from labelweave.pipeline.model_folder import save_model
    from labelweave.pipeline.protocol import Protocol, Source

    started = time.perf_counter()
    model.fit(rows.X, rows.Y if known else None)
    seconds = time.perf_counter() - started
    output.say(f"trained in {seconds:.1f} s")
    if model.notes_.get("told"):
        told, turned = model.notes_["told"], model.notes_["turned"]
        output.say(f"teachers were told a label {told:,} times, {turned:,} entries turned positive")
    fidelity = model.fidelity_
    output.table(
        list(fidelity.columns),
        fidelity.values.tolist(),
        title="how the student follows each teacher, on rows held out",
    )
    metrics = {
        "method": method,
        "teachers": model.teacher_labels_,
        "fidelity": fidelity.to_dict("records"),
        "disagreement": model.disagreement_.to_dict("records"),
        "notes": model.notes_,
        "threshold": model.threshold_.to_dict(),
        "seconds": {"fit": round(seconds, 3)},
        "versions": versions(),
    }
    save_model(
        model,
        folder,
        data=rows,
        source=Source(source[0], source[1]),
        parts=None,
        protocol=Protocol(seed=seed),
        scores={},
        metrics=metrics,
    )
    output.say(f"student and metrics.json written to {folder}")
    return {**metrics, "model": str(folder)}
