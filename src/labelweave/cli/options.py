"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from labelweave.exceptions import InputError

F = TypeVar("F", bound=Callable[..., Any])
READER_OPTIONS = (
    "format",
    "labels",
    "label_column",
    "drop",
    "kinds",
    "group_column",
    "weight_column",
    "encoding",
    "decimal",
    "separator",
    "sheet",
    "on_error",
)


class LabelColumns(click.ParamType):
    """A number of columns, a pattern, or names separated by commas."""

    name = "columns"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        if not isinstance(value, str):
            return value
        if value.removeprefix("-").isdigit():
            return int(value)
        names = [name.strip() for name in value.split(",")]
        return names if len(names) > 1 else value


class Names(click.ParamType):
    """Names separated by commas."""

    name = "names"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        if not isinstance(value, str):
            return value
        return [name.strip() for name in value.split(",") if name.strip()]


class Kinds(click.ParamType):
    """Kinds of columns, column=kind, separated by commas."""

    name = "column=kind"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        if not isinstance(value, str):
            return value
        kinds = {}
        for pair in value.split(","):
            column, equals, kind = pair.rpartition("=")
            if not equals or not column.strip() or not kind.strip():
                self.fail(f"{pair.strip()!r} is not column=kind", param, ctx)
            kinds[column.strip()] = kind.strip()
        return kinds


class Delimiter(click.ParamType):
    """One character, or the word tab."""

    name = "character"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        return "\t" if value in ("tab", r"\t") else value


class Sheet(click.ParamType):
    """The name of a sheet, or its number."""

    name = "sheet"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        return int(value) if isinstance(value, str) and value.isdecimal() else value


class Share(click.ParamType):
    """A share of the rows between 0 and 1, or a number of rows."""

    name = "share"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        try:
            number = float(value)
        except (TypeError, ValueError):
            self.fail(f"{value!r} is no number", param, ctx)
        if 0 < number < 1:
            return number
        if number >= 1 and number.is_integer():
            return int(number)
        return self.fail(f"{value} is no share between 0 and 1 nor a number of rows", param, ctx)


def _all_of(*options: Callable[[F], F]) -> Callable[[F], F]:
    """One decorator for several options; `--help` shows them in this order."""

    def add(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return add


def count_option(name: str, default: int | None, help: str, *, min: int = 1) -> Callable[[F], F]:
    """An option that takes a whole number from `min` on."""
    return click.option(
        name,
        type=click.IntRange(min=min),
        default=default,
        help=help,
    )


def set_option(help: str) -> Callable[[F], F]:
    """`--set NAME=VALUE`, which may be repeated; commands get it as `settings`."""
    return click.option("-s", "--set", "settings", multiple=True, metavar="NAME=VALUE", help=help)


def _debug(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        ctx.ensure_object(dict)["debug"] = True


# Which every command has.
output_options = _all_of(
    click.option(
        "--json", "as_json", is_flag=True, help="Result as JSON on stdout, the rest on stderr."
    ),
    click.option("-q", "--quiet", is_flag=True, help="Print the result only."),
    click.option("--debug", is_flag=True, expose_value=False, callback=_debug, hidden=True),
)

trusted_option = click.option(
    "--trusted",
    multiple=True,
    metavar="NAME",
    help="Folder or hub name of a sentence encoder, address of a teacher, or pattern of words that "
    "the model may use; may be repeated.",
)

seed_option = count_option("--seed", 0, "Random seed.", min=0)

split_option = click.option(
    "--split",
    type=click.Choice(["auto", "official", "stratified", "random"]),
    default="auto",
    help="auto: the official split where there is one, else a stratified one.",
)

corrections_option = click.option(
    "--corrections",
    type=click.Path(),
    help="Verdicts on a list of `labelweave audit` (.csv or .jsonl): yes makes an entry positive, "
    "no negative.",
)

hierarchy_option = click.option(
    "--hierarchy",
    type=click.Path(),
    metavar="FILE",
    help="File of labels with a column `broader`: a label that a row has gives it the broader "
    "ones, one that it is known not to have takes the narrower ones away.",
)

part_option = click.option(
    "--part",
    type=click.Choice(["train", "validation", "test", "all"]),
    help="Which rows to score. [default: test where there is such a part, else all]",
)

score_options = _all_of(
    click.option("--all-metrics", is_flag=True, help="Show every metric."),
    click.option("--per-label", is_flag=True, help="Show the scores of each label."),
)

_format_option = click.option(
    "--format", metavar="NAME", help="File format, if the file does not tell."
)
_labels_option = click.option(
    "--labels",
    type=LabelColumns(),
    help="Label columns: names separated by commas, a pattern such as 'tag_*', or how many of "
    "the last columns (negative: of the first).",
)
_other_options = _all_of(
    click.option(
        "--label-column", metavar="NAME", help="The column that holds separated label names."
    ),
    click.option("--drop", type=Names(), help="Columns to leave out, separated by commas."),
    click.option(
        "--kind",
        "kinds",
        type=Kinds(),
        help="Kinds of columns that are not to be found by themselves, such as "
        "price=number,brand=category; also yes/no, date, text, image (paths to files), and id to "
        "leave one out.",
    ),
    click.option(
        "--groups",
        "group_column",
        metavar="COLUMN",
        help="Rows with the same value in this column stay in one part.",
    ),
    click.option(
        "--weight", "weight_column", metavar="COLUMN", help="The column of weights of the rows."
    ),
    click.option("--encoding", metavar="NAME", help="Of a text file, such as cp1252.  [UTF-8]"),
    click.option(
        "--decimal", type=click.Choice([".", ","]), help="Before the decimals of numbers in CSV."
    ),
    click.option(
        "--delimiter",
        "separator",
        type=Delimiter(),
        help="Between the cells of a CSV file: one character, or tab.  [as in the first line]",
    ),
    click.option("--sheet", type=Sheet(), help="Of an Excel file: its name, or number from 0."),
    click.option(
        "--skip-bad-images",
        "on_error",
        flag_value="skip",
        help="Leave out rows whose image is missing or damaged, and list them.",
    ),
    click.option(
        "--data-option",
        "data_options",
        multiple=True,
        metavar="NAME=VALUE",
        help="Another option of the reader or of the named data set; may be repeated.",
    ),
)

# How to read a data file; for a command whose `--format` or `--labels` is its own, all the others.
reader_options = _all_of(_format_option, _labels_option, _other_options)
reader_options_without_format = _all_of(_labels_option, _other_options)
reader_options_without_labels = _all_of(_format_option, _other_options)

# How the rows are divided into train, validation and test parts.
protocol_options = _all_of(
    click.option(
        "--test", type=click.Path(), help="File of the test rows; DATA then holds no test rows."
    ),
    split_option,
    click.option(
        "--test-size",
        type=Share(),
        help="Share of the rows to test on. [default: the official part, else 0.3]",
    ),
    click.option(
        "--validation",
        type=Share(),
        default=0.2,
        help="Share of the training rows for early stopping and thresholds.",
    ),
    seed_option,
)


def method_options(default: str) -> Callable[[F], F]:
    """The method, its parameters and its threshold; `default` is the method without `-m`."""
    return _all_of(
        click.option("-m", "--method", default=default, help="See `labelweave methods`."),
        set_option(
            "A parameter of the method; may be repeated. VALUE is a number, true, false, none, a "
            "text or a list such as [256,128]. text__max_words=2 and the like say how texts "
            "become features, image__weights=FILE or image__network=efficientnet-lite1 how images "
            "do (image__network=pixels: not at all)."
        ),
        click.option(
            "--threshold",
            help="How probabilities become label sets: a number, tuned, per-label, top-3, "
            "cardinality. [default: the rule that the method brings; cardinality for partial "
            "labels; else tuned on the validation rows]",
        ),
    )


def pop_reader_options(options: dict[str, Any]) -> dict[str, Any]:
    """Take the reader options out of a command's options; only those given."""
    from labelweave.pipeline.parameters import parse_settings

    given = {name: options.pop(name, None) for name in READER_OPTIONS}
    more = parse_settings(options.pop("data_options"), "--data-option")
    return {name: value for name, value in given.items() if value is not None} | more


def check_reading_has_data(reading: dict[str, Any], data: str | None) -> None:
    """Refuse options for reading a file where `--data` names none."""
    if reading and data is None:
        raise InputError(
            "options for reading a file are given, but no file: name it with --data",
            parameter=tuple(reading),
        )


def pop_parameters(options: dict[str, Any]) -> dict[str, Any]:
    """Take `--config`, `--set` and `--threshold` out: the parameters of the method."""
    from labelweave.pipeline.parameters import parse_settings, parse_value

    parameters = {**options.pop("config"), **parse_settings(options.pop("settings"))}
    threshold = options.pop("threshold")
    if threshold is not None:
        parameters["threshold"] = parse_value(threshold)
    return parameters


def pop_protocol(options: dict[str, Any]) -> dict[str, Any]:
    """Take the options of `protocol_options` out."""
    names = ("split", "test_size", "validation", "seed", "test")
    protocol = {name: options.pop(name) for name in names}
    if protocol["test"] is not None and Path(protocol["test"]).exists():
        protocol["test"] = str(Path(protocol["test"]).resolve())  # read again from other folders
    return protocol


def stem_of(data: str) -> str:
    """A short name of a data set for folders: no directories, no endings."""
    return Path(data).name.partition(".")[0] or "data"
