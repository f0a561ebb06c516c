"""`labelweave extend`: add, remove and rename labels of a saved model."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from labelweave.cli.options import (
    Names,
    check_reading_has_data,
    output_options,
    pop_reader_options,
    reader_options_without_labels,
    set_option,
    trusted_option,
)
from labelweave.cli.output import Output
from labelweave.exceptions import InputError

if TYPE_CHECKING:
    from labelweave.data import Dataset
    from labelweave.pipeline.model_folder import Origin


_MAX_SHOWN = 10  # names in a message


@click.command("extend")
@click.argument("model")
@click.option(
    "--labels",
    "new_labels",
    type=click.Path(),
    help="File of the new labels: .csv or .jsonl with label and description, or one name per line.",
)
@click.option(
    "--update",
    is_flag=True,
    help="Labels of the file that the model has already get the descriptions of the file.",
)
@click.option("--remove", type=Names(), help="Labels to remove, separated by commas.")
@click.option("--rename", multiple=True, metavar="OLD=NEW", help="Rename a label; may be repeated.")
@click.option("--out", type=click.Path(), help="Folder of the new model. [default: MODEL itself]")
@click.option(
    "--data",
    help="Labelled documents that the model was not trained on, to fit the combination of scores; "
    "only for a model that cannot predict unseen labels itself. [default: the validation rows of "
    "its training, if the data are still there]",
)
@set_option("A parameter of XML0+, which extends such a model; may be repeated.")
@reader_options_without_labels
@trusted_option
@output_options
def command(
    model: str,
    new_labels: str | None,
    update: bool,
    remove: list[str] | None,
    rename: tuple[str, ...],
    out: str | None,
    data: str | None,
    settings: tuple[str, ...],
    trusted: tuple[str, ...],
    as_json: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Add, remove and rename labels of the model in folder MODEL, without training.

    `labelweave predict` then predicts the new labels too. A classifier of texts for seen labels is
    extended by XML0+. The options for reading files are about --data; if its labels have one
    column each, --data-option labels='tag_*' names them.
    """
    if not (new_labels or remove or rename):
        raise click.UsageError("Nothing to do: give --labels, --remove or --rename.")
    output = Output(as_json, quiet)
    reading = pop_reader_options(options)
    check_reading_has_data(reading, data)

    from labelweave.capabilities import capabilities
    from labelweave.data.label_files import read_label_file
    from labelweave.persistence import save
    from labelweave.pipeline.model_folder import checked_folder, open_model
    from labelweave.pipeline.parameters import parse_settings

    pairs = [_pair(text) for text in rename]
    added = read_label_file(new_labels) if new_labels else {}
    folder = checked_folder(out or model, "model")
    fitted, origin = open_model(model, trusted)
    if not capabilities(fitted).new_labels:
        if data is not None:
            reading = origin.reading_of(data, reading)
        fitted = _extended(fitted, origin, data, reading, parse_settings(settings), output)
    elif data or settings:
        raise InputError(f"{model} predicts unseen labels itself: omit --data and --set")
    before = len(fitted.label_names_)
    for name in remove or ():
        fitted.remove_labels(name)
    for old, new in pairs:
        fitted.rename_label(old, new)
    known = {name: text for name, text in added.items() if name in set(fitted.label_names_)}
    added = {name: text for name, text in added.items() if name not in known}
    updated = {name: text for name, text in known.items() if update and text}
    for name, text in updated.items():
        fitted.rename_label(name, name, text)
    if kept := [name for name in known if name not in updated]:
        shown = ", ".join(kept[:_MAX_SHOWN]) + (" and others" if len(kept) > _MAX_SHOWN else "")
        why = "" if update else " (--update gives them the descriptions of the file)"
        output.say(f"{len(kept):,} labels of {new_labels} are there already: {shown}{why}")
    if added:
        fitted.add_labels(list(added), added)
    save(fitted, folder, extra_files=_kept_files(Path(model)))
    output.say(
        f"{before:,} labels before, {len(fitted.label_names_):,} now "
        f"({len(fitted.unseen_labels_):,} without examples); model written to {folder}"
    )
    output.result(
        {
            "model": str(folder),
            "added": list(added),
            "updated": list(updated),
            "known": list(known),
            "removed": list(remove or ()),
            "renamed": dict(pairs),
            "labels": len(fitted.label_names_),
            "unseen": len(fitted.unseen_labels_),
        }
    )


def _pair(text: str) -> tuple[str, str]:
    old, equals, new = text.partition("=")
    if not equals or not old or not new:
        raise InputError(f"--rename takes OLD=NEW, not {text!r}")
    return old, new


def _extended(
    model: Any,
    origin: Origin,
    data: str | None,
    reading: dict[str, Any],
    settings: dict[str, Any],
    output: Output,
) -> Any:
    """Extend a fitted classifier of texts by XML0+."""
    from labelweave.pipeline.data_parts import Source, with_labels
    from labelweave.pipeline.recipe import check_parameters
    from labelweave.unseen.xml0_plus import XML0Plus

    if getattr(model, "n_features_in_", None) is not None:
        raise InputError(
            "the model was trained on features, not on texts, which XML0+ compares with labels"
        )
    check_parameters("xml0+", settings)
    if data is not None:
        rows = with_labels(Source(data, reading).load(), list(model.label_names_))
        output.say(f"fitting the combination of scores on {len(rows):,} documents")
        return XML0Plus.from_fitted(model, X=rows.X, Y=rows.Y, **settings)
    validation = _validation_rows(model, origin)
    if validation is not None:
        output.say(
            f"fitting the combination of scores on the {len(validation):,} validation rows of "
            f"{origin.source}, which was found again"
        )
        return XML0Plus.from_fitted(model, X=validation.X, Y=validation.Y, **settings)
    extended = XML0Plus.from_fitted(model, **settings)
    expected = extended.expected_prevalence_
    if expected is None:
        output.say("no --data and few labels: probabilities of new labels are not calibrated")
    else:
        output.say(
            "no --data, and no labelled validation rows in "
            f"{origin.source or 'the training data'}: a new label is expected in {expected:.1%} of "
            "the documents, as often as the labels of the model"
        )
    return extended


def _validation_rows(model: Any, origin: Origin) -> Dataset | None:
    """The validation rows of the training, if its data are still where they were."""
    from labelweave.data.catalog import is_catalog_name
    from labelweave.exceptions import LabelweaveError
    from labelweave.pipeline.data_parts import Source, with_labels

    if origin.protocol is None or not origin.source:
        return None
    if not is_catalog_name(origin.source) and not Path(origin.source).exists():
        return None
    try:
        data = Source(origin.source, dict(origin.reading)).load()
        if not data.is_text or not origin.is_trained_on(data):
            return None
        parts = origin.protocol.parts(data, origin.reading)
        rows = with_labels(parts.validation, list(model.label_names_))
    except LabelweaveError:  # other data have taken their place
        return None
    return rows if len(rows) else None


def _kept_files(folder: Path) -> dict[str, bytes]:
    """Files of the command line in the model folder, which still hold for the seen labels."""
    from labelweave.persistence import plain_file

    names = ("training.json", "rows-seen.npy", "metrics.json", "reference.json")
    present = [name for name in names if os.path.lexists(folder / name)]
    return {name: plain_file(folder, name).read_bytes() for name in present}
