"""The entry point of `labelweave`: finds commands lazily and turns errors into one clear line."""

from __future__ import annotations

import importlib
import re
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import click

from labelweave import __version__
from labelweave.exceptions import (
    InputError,
    LabelweaveError,
    ModelFolderError,
    NewValuesWarning,
)

# Name to what it does: known here so that `--help` imports no command.
COMMANDS = {
    "datasets": "List the known data sets, or describe one.",
    "methods": "List the methods, or describe one and its parameters.",
    "train": "Train a model on a data set, score it and save it.",
    "evaluate": "Score a saved model.",
    "predict": "Write the labels that a saved model predicts.",
    "explain": "Show which columns or words the labels of a saved model depend on.",
    "encode": "Write features of images by a frozen network.",
    "extend": "Add labels without examples to a saved model.",
    "amalgamate": "Make one student of several trained models, without labels.",
    "tune": "Search good parameters of a method (Optuna).",
    "audit": "List the labels that annotators may have missed.",
    "bench": "Run published tables or your own data, and compare.",
    "demo": "Tour the four conditions of labels in two minutes.",
    "report": "Write a page on a model or on a run of the bench.",
    "sign": "Sign a saved model, so that a service can check who made it.",
    "serve": "Answer requests for models over HTTP, with a page to try them.",
}

FAILED, WRONG_INPUT, INTERRUPTED = 1, 2, 130

# The options for parameters of readers and estimators that an error may name.
_OPTIONS = {
    "labels": "--labels",
    "label_column": "--label-column",
    "drop": "--drop",
    "kinds": "--kind",
    "encoding": "--encoding",
    "decimal": "--decimal",
    "separator": "--delimiter",
    "sheet": "--sheet",
    "group_column": "--groups",
    "weight_column": "--weight",
    "Y": "--drop",
    "format": "--format",
    "random_state": "--seed",
    "text_column": "--data-option text_column=",
    "id_column": "--data-option id_column=",
    "image_column": "--data-option image_column=",
    "on_error": "--skip-bad-images",
}


class _Failure(click.ClickException):
    """One line on stderr and an exit status."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(" ".join(message.split()))
        self.exit_code = status  # type: ignore[misc]  # click reads it from the instance

    def show(self, file: Any = None) -> None:
        click.echo(f"labelweave: {self.message}", file=file or sys.stderr)


class LazyGroup(click.Group):
    """A group whose commands live in `labelweave.cli.<name>`, imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        return importlib.import_module(f"labelweave.cli.{cmd_name}").command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            import difflib

            near = difflib.get_close_matches(args[0], COMMANDS, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"choose one of {', '.join(COMMANDS)}"
            raise click.UsageError(f"there is no command {args[0]!r}: {hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def invoke(self, ctx: click.Context) -> Any:
        ctx.ensure_object(dict)
        with warnings.catch_warnings():  # restores what shows warnings, too
            return _in_plain_words(lambda: super(LazyGroup, self).invoke(ctx), ctx)


def _in_plain_words(run: Callable[[], Any], ctx: click.Context) -> Any:
    """Run a command; an error becomes one line, or stays a trace with `--debug`."""
    lines = _WarningLines()
    if not ctx.params.get("debug"):
        warnings.showwarning = lines.show
        warnings.simplefilter("always", NewValuesWarning)
    try:
        return run()
    except click.UsageError as error:
        if hint := _hint_of_pattern(error.message):
            raise click.UsageError(error.message + hint, error.ctx) from None
        raise
    except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
        raise  # click says these in its own words; a closed pipe ends quietly
    except KeyboardInterrupt:
        _fail(ctx, "interrupted", INTERRUPTED)
    except MemoryError as error:
        _fail(ctx, f"out of memory: {error}", FAILED)
    except Exception as error:
        _fail(ctx, *_message_and_status(error))
    finally:
        lines.show_new_values()


def _hint_of_pattern(message: str) -> str:
    """What to do where the shell has made several arguments of a pattern of files."""
    further = re.search(r"unexpected extra arguments? \(([^\s)]+)", message)
    if further is None or not Path(further[1]).exists():
        return ""
    return ": several files are one argument, a pattern in quotes such as 'part-*.csv'"


def _fail(ctx: click.Context, message: str, status: int) -> NoReturn:
    if ctx.obj.get("debug"):
        import traceback

        traceback.print_exc()
    raise _Failure(message, status) from None


def _message_and_status(error: Exception) -> tuple[str, int]:
    if isinstance(error, InputError | ModelFolderError):
        return _with_options(error), WRONG_INPUT
    if isinstance(error, LabelweaveError):
        return str(error), FAILED
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{error.strerror or error}", FAILED
    if type(error).__name__ == "InvalidParameterError":  # scikit-learn's, clear as it stands
        return str(error), WRONG_INPUT
    return (
        f"unexpected {type(error).__name__}: {error} (add --debug to see where it comes from)",
        FAILED,
    )


def _with_options(error: InputError | ModelFolderError) -> str:
    """The message, and the options of the command line for the parameters that it is about.

    >>> _with_options(InputError("which are labels? use labels=", parameter="labels"))
    'which are labels? use labels= (option --labels)'
    >>> _with_options(InputError("there is no column of texts", parameter="text_column"))
    'there is no column of texts (option --data-option text_column=)'
    """
    names = error.parameters if isinstance(error, InputError) else ()
    options = ", ".join(_OPTIONS[name] for name in names if name in _OPTIONS)
    return f"{error} (option {options})" if options else str(error)


class _WarningLines:
    """Warnings as one line each, the same one only once.

    A table may be read in parts: new values of a column are said at the end, those of all parts.
    """

    def __init__(self) -> None:
        self._shown: set[str] = set()
        self._new_values: dict[str, dict[str, None]] = {}

    def show(self, message: Any, *_: Any, **__: Any) -> None:
        if isinstance(message, NewValuesWarning):
            self._new_values.setdefault(message.column, {}).update(dict.fromkeys(message.values))
        else:
            self._show_line(message)

    def show_new_values(self) -> None:
        for column, values in self._new_values.items():
            self._show_line(NewValuesWarning(column, list(values)))

    def _show_line(self, message: Any) -> None:
        line = " ".join(str(message).split())
        if line not in self._shown:
            self._shown.add(line)
            click.echo(f"warning: {line}", err=True)


def _set_debug(ctx: click.Context, _: click.Parameter, value: bool) -> bool:
    ctx.ensure_object(dict)["debug"] = value
    return value


@click.command(
    cls=LazyGroup,
    context_settings={
        "help_option_names": ["-h", "--help"],
        "max_content_width": 100,
        "show_default": True,
    },
    epilog="`labelweave COMMAND --help` explains a command.",
)
@click.version_option(__version__, "--version", prog_name="labelweave")
@click.option(
    "--debug",
    is_flag=True,
    expose_value=True,
    callback=_set_debug,
    is_eager=True,
    help="Show the whole trace of an error.",
)
def main(debug: bool) -> None:
    """Multi-label learning for the labels people really have."""


if __name__ == "__main__":
    main()
