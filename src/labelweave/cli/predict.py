"""`labelweave predict`: label sets for the rows of a file, a batch at a time."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from labelweave.cli.options import (
    count_option,
    output_options,
    pop_reader_options,
    reader_options,
    trusted_option,
)
from labelweave.cli.output import Output
from labelweave.exceptions import DataFileError, InputError

if TYPE_CHECKING:
    from labelweave.data import Dataset
    from labelweave.pipeline.model_folder import Origin

STANDARD = "-"


@click.command("predict")
@click.argument("model")
@click.argument("input")
@click.option(
    "--out",
    default=STANDARD,
    help="FILE.csv, FILE.jsonl or FILE.parquet; - is stdout.",
)
@click.option(
    "--as",
    "kind",
    type=click.Choice(["csv", "csv-columns", "jsonl", "parquet"]),
    help="csv: lists of labels; csv-columns: 0 or 1 per label. [default: by the ending, or jsonl]",
)
@click.option("--top", type=click.IntRange(min=1), help="The K most probable labels of each row.")
@click.option("--threshold", help="Another threshold than the model's: a number, or top-3.")
@click.option(
    "--proba",
    type=click.Choice(["chosen", "all"]),
    default="chosen",
    help="Probabilities of the predicted labels, or of every label.",
)
@click.option(
    "--known",
    metavar="FILE",
    help="CSV of known labels: one column per label, 1, 0 or empty; rows as in INPUT.",
)
@click.option(
    "--hierarchy",
    type=click.Path(),
    metavar="FILE",
    help="File of labels with a column `broader`: a label becomes at least as probable as the "
    "narrower ones.",
)
@click.option("--separator", "between", default="|", help="Between labels in CSV.")
@count_option("--batch-rows", 4096, "Rows in memory at a time.")
@reader_options
@trusted_option
@output_options
def command(
    model: str,
    input: str,
    out: str,
    kind: str | None,
    top: int | None,
    threshold: str | None,
    proba: str,
    known: str | None,
    hierarchy: str | None,
    between: str,
    batch_rows: int,
    trusted: tuple[str, ...],
    as_json: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Predict the labels of the rows of INPUT.

    INPUT is a file of any known format, a name of `labelweave datasets`, or - for stdin.

    Labels in INPUT are not needed and not used. Columns are matched by name where both the
    model and the file have names. INPUT is read --batch-rows rows at a time, with the reader
    options of the training if it is a file of the same kind; those that are given take their
    place.

    With --known, labels that are known already stay as they are, and the others are predicted
    given them. Chains, C-Tran, LaMP and others that predict a label from the rest can do that.
    """
    if top is not None and threshold is not None:
        raise click.UsageError("--top and --threshold exclude each other.")
    kind = kind or _kind_of(out)
    if kind == "parquet" and out == STANDARD:
        raise click.UsageError("--as parquet needs --out FILE.")
    if known is not None and hierarchy is not None:
        raise click.UsageError("--known and --hierarchy exclude each other.")
    if as_json and out == STANDARD:
        raise click.UsageError("--json needs --out FILE: stdout cannot hold both.")
    output = Output(as_json, quiet, stdout_taken=out == STANDARD)
    reading = pop_reader_options(options)

    import numpy as np

    from labelweave.cli.known_labels_file import KnownLabelsFile
    from labelweave.cli.prediction_writing import make_writer
    from labelweave.hierarchy import LabelHierarchy
    from labelweave.labels import as_labels
    from labelweave.pipeline.model_folder import open_model
    from labelweave.progress import ProgressBar
    from labelweave.top_labels import TOP_LABELS, predicts_top_labels

    fitted, origin = open_model(model, trusted)
    given = None if known is None else KnownLabelsFile(known, fitted)
    broader = None if hierarchy is None else LabelHierarchy.read(hierarchy)
    reading = origin.reading_of(input, reading, leave=("labels", "label_column"))
    rule = _rule(fitted, top, threshold)
    names = [str(name) for name in fitted.label_names_]
    has_many = predicts_top_labels(fitted)
    if has_many and (proba == "all" or kind == "csv-columns" or broader is not None):
        raise InputError(
            f"the model predicts the {TOP_LABELS} best of its {len(names):,} labels: leave out "
            "--proba all, --as csv-columns and --hierarchy, which need all of them"
        )
    shown = "stdin" if input == STANDARD else input
    n_rows = 0
    with (
        _readable(input) as path,
        _writable(out, binary=kind == "parquet") as file,
        ProgressBar("predicting", verbose=not quiet) as bar,
    ):
        writer = make_writer(kind, file, names, every_label=proba == "all", separator=between)
        for batch in feature_batches(fitted, origin, path, shown, batch_rows, reading):
            if given is None:
                if has_many:
                    probabilities = fitted.predict_top_k(batch.X, max(top or 0, TOP_LABELS))
                else:
                    probabilities = fitted.predict_proba(batch.X)
                if broader is not None:
                    probabilities = broader.consistent(probabilities, names)
                chosen = rule.apply(probabilities)
                if broader is not None:  # a label may have a higher threshold than a narrower one
                    chosen = broader.complete(as_labels(chosen, names=names)).to_numpy(np.int8)
            else:
                probabilities, chosen = given.predict(batch, n_rows, rule)
            ids = batch.row_ids
            ids = range(n_rows, n_rows + len(batch)) if ids is None else [_plain(id) for id in ids]
            writer.write(ids, probabilities, chosen)
            n_rows += len(batch)
            bar.advance(len(batch))
        if given is not None:
            given.check_end(n_rows)
        writer.finish()
    where = "stdout" if out == STANDARD else out
    output.say(f"{n_rows:,} rows predicted, written to {where} as {kind}")
    output.result({"rows": n_rows, "out": out, "format": kind, "threshold": rule.to_dict()})


def _plain(id: Any) -> Any:
    return id.item() if hasattr(id, "item") else id


def _kind_of(out: str) -> str:
    if out == STANDARD:
        return "jsonl"
    from labelweave.cli.prediction_writing import KINDS

    ending = Path(out).suffix.lower()
    kind = next((kind for kind, usual in KINDS.items() if usual == ending), None)
    if kind is None:
        raise click.UsageError(
            f"--out {out}: the ending must be .csv, .jsonl or .parquet, or say which by --as."
        )
    return kind


def _rule(model: Any, top: int | None, threshold: str | None) -> Any:
    """What turns probabilities into label sets: the model's own rule, unless another is given."""
    from labelweave.pipeline.parameters import parse_value
    from labelweave.thresholds import make_threshold

    if top is None and threshold is None:
        return model.threshold_
    rule = make_threshold(f"top-{top}" if threshold is None else parse_value(threshold))
    if rule.needs_validation:
        raise InputError(
            f"--threshold {threshold} has to be tuned on labelled rows: train with it instead"
        )
    rule._validate_params()
    return rule


def feature_batches(
    model: Any,
    origin: Origin,
    path: Path,
    shown: str,
    batch_rows: int,
    reading: dict[str, Any],
) -> Iterator[Dataset]:
    """Yield the features of a file or data set in the form that a model takes."""
    from labelweave.data.catalog import is_catalog_name, load_dataset
    from labelweave.data.reading import iter_batches
    from labelweave.data.several_files import folder_of, resolve_files
    from labelweave.pipeline.data_parts import check_finite
    from labelweave.pipeline.model_input import (
        input_of_model,
        is_of_tables,
        takes_features_of_images,
        with_located_images,
    )

    n_rows = 0
    width = getattr(model, "n_features_in_", None)
    is_table = is_of_tables(model)
    names = origin.feature_names
    if is_table and names is None:
        names = [str(name) for name in model.feature_names_in_]
    if is_catalog_name(shown):
        data = input_of_model(model, load_dataset(shown, **reading))
        batches: Iterator[Dataset] = (
            data[at : at + batch_rows] for at in range(0, len(data), batch_rows)
        )
    else:
        batches = iter_batches(
            path,
            batch_rows=batch_rows,
            n_features=width,
            feature_names=names,
            is_table=is_table,
            not_features=[*map(str, model.label_names_), str(origin.reading.get("label_column"))],
            **reading,
        )
    for batch in batches:
        is_input = batch.is_text or batch.is_image or takes_features_of_images(model)
        if width is None and not is_input:
            raise InputError(f"the model was trained on texts, but {shown} holds feature columns")
        if width is not None and batch.is_text and not is_table:
            raise InputError(f"the model takes {width:,} features, but {shown} holds texts")
        if not is_table:
            check_finite(batch, shown, first_row=n_rows, names=names)
        if is_table and not is_catalog_name(shown):
            folder = folder_of(resolve_files(path))
            batch = with_located_images(model, batch, folder, first_row=n_rows)
        n_rows += len(batch)
        yield batch


@contextmanager
def _readable(input: str) -> Iterator[Path]:
    """The path of the input; what comes through stdin is put into a temporary file first."""
    if input != STANDARD:
        yield Path(input)
        return
    with tempfile.NamedTemporaryFile(prefix="stdin-") as spooled:
        shutil.copyfileobj(sys.stdin.buffer, spooled)
        spooled.flush()
        try:
            yield Path(spooled.name)
        except DataFileError as error:  # the user knows no file of this name
            raise DataFileError(
                error.message, path="stdin", line=error.line, parameter=error.parameters
            ) from None


@contextmanager
def _writable(out: str, *, binary: bool) -> Iterator[IO[Any]]:
    """The output as a text or binary file; a file appears under its name only when it is whole."""
    from labelweave.files import atomic_path

    if out == STANDARD:
        yield sys.stdout
        return
    target = Path(out)
    if target.is_dir():
        raise InputError(f"--out {out} is a folder: name a file in it")
    with atomic_path(target) as path:
        opened: IO[Any] = (
            path.open("wb") if binary else path.open("w", encoding="utf-8", newline="")
        )
        with opened as file:
            yield file
