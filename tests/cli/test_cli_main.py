"""The group: quick help, one clear line an error, exit statuses."""

import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from labelweave import __version__
from labelweave.cli import methods
from labelweave.cli.main import COMMANDS, main
from labelweave.cli.options import READER_OPTIONS
from labelweave.exceptions import InputError, MissingExtraError, ModelFolderError


def run(*arguments, **options):
    return CliRunner().invoke(main, arguments, **options)


def run_python(code):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=500, check=False
    )


def every_command(group, name=""):
    for part, command in (
        (part, group.get_command(None, part)) for part in group.list_commands(None)
    ):
        yield f"{name}{part}", command
        if isinstance(command, click.Group):
            yield from every_command(command, f"{name}{part} ")


def test_every_option_is_explained():
    options = [(name, option) for name, one in every_command(main) for option in one.params]
    shown = [(n, o) for n, o in options if isinstance(o, click.Option) and not o.hidden]
    assert len(shown) > 100
    assert [(name, option.name) for name, option in shown if not option.help] == []


def test_all_commands_that_read_data_have_the_same_options():
    own = {"report": {"format"}, "extend": {"labels"}}  # which mean something else there
    named = {"data", "input", "sources", "name"}
    commands = {
        name: {option.name for option in one.params}
        for name, one in every_command(main)
        if name != "methods" and any(option.name in named for option in one.params)
    }
    assert set(commands) == {
        *("datasets", "train", "evaluate", "predict", "explain", "encode", "extend", "amalgamate"),
        *("tune", "audit", "bench run", "report", "serve"),
    }
    for name, options in commands.items():
        assert {*READER_OPTIONS, "data_options"} - options == own.get(name, set()), name


@pytest.mark.parametrize(
    "arguments", [["--help"], ["--version"], ["train", "--help"], ["bench", "run", "--help"]]
)
def test_help_imports_nothing_heavy_and_no_other_command(arguments):
    code = (
        "import sys\n"
        "from labelweave.cli.main import main\n"
        f"main({arguments!r}, standalone_mode=False)\n"
        "print('MODULES', *sys.modules)\n"
    )
    modules = set(run_python(code).stdout.rpartition("MODULES")[2].split())
    assert "labelweave.cli.main" in modules
    assert not modules & {"numpy", "scipy", "sklearn", "torch", "pandas", "rich", "optuna"}
    if arguments == ["--help"]:
        commands = {name for name in modules if name.startswith("labelweave.cli.")}
        assert commands == {"labelweave.cli.main"}


def test_help_lists_every_command():
    shown = run("--help").output
    assert all(f"  {name} " in shown for name in COMMANDS)


@pytest.mark.parametrize(
    "name", [name for name, one in every_command(main) if not isinstance(one, click.Group)]
)
def test_every_command_has_help(name):
    result = run(*name.split(), "--help")
    assert result.exit_code == 0
    assert "--json" in result.output
    assert "--quiet" in result.output


def test_version():
    assert __version__ in run("--version").output


def test_unknown_command_names_the_nearest():
    result = run("trian")
    assert result.exit_code == 2
    assert "did you mean 'train'?" in result.stderr


@pytest.mark.parametrize(
    ("error", "status", "shown"),
    [
        (InputError("two\n  lines"), 2, "labelweave: two lines"),
        (ModelFolderError("damaged"), 2, "labelweave: damaged"),
        (MissingExtraError("install it"), 1, "labelweave: install it"),
        (PermissionError(13, "Permission denied", "/x"), 1, "labelweave: /x: Permission denied"),
        (OSError(28, "No space left on device"), 1, "labelweave: No space left on device"),
        (KeyboardInterrupt(), 130, "labelweave: interrupted"),
        (MemoryError("of 5 GiB"), 1, "labelweave: out of memory: of 5 GiB"),
        (ZeroDivisionError("oops"), 1, "labelweave: unexpected ZeroDivisionError: oops"),
    ],
)
def test_errors_are_one_line_and_a_status(monkeypatch, error, status, shown):
    def fail(room):
        raise error

    monkeypatch.setattr(methods, "list_methods", fail)
    result = run("methods")
    assert result.exit_code == status
    assert result.stderr.startswith(shown)
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""


@pytest.mark.parametrize("arguments", [["--debug", "methods"], ["methods", "--debug"]])
def test_debug_shows_the_trace(monkeypatch, arguments):
    monkeypatch.setattr(methods, "list_methods", lambda room: 1 / 0)
    result = run(*arguments)
    assert result.exit_code == 1
    assert "Traceback" in result.stderr
    assert "ZeroDivisionError" in result.stderr


def test_a_warning_is_one_line_said_once():
    code = (
        "import warnings\n"
        "from labelweave.cli import main, methods\n"
        "warnings.simplefilter('always')\n"
        "def warn_twice(room):\n"
        "    return [warnings.warn('look\\nhere') for _ in range(2)][:0]\n"
        "methods.list_methods = warn_twice\n"
        "main.main(['methods'])\n"
    )
    assert run_python(code).stderr == "warning: look here\n"


def test_closed_pipe_ends_quietly():
    done = subprocess.run(
        f"{sys.executable} -m labelweave.cli.main methods | true",
        shell=True,
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert "Traceback" not in done.stderr


def test_click_errors_pass_through(monkeypatch):
    def fail(room):
        raise click.UsageError("by click")

    monkeypatch.setattr(methods, "list_methods", fail)
    assert run("methods").exit_code == 2
