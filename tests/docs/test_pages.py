"""Every block of code in the README and on the pages runs, and every command exists."""

import doctest
import shlex
import sys

import click
import pytest
from page_blocks import ROOT, blocks, pages

import labelweave as lw
from labelweave.cli.main import main

NAMES = [str(page.relative_to(ROOT)) for page in pages()]
WITH_CODE = [
    name
    for name in NAMES
    if any(
        block.language == "python" or block.note == "run"
        for block in blocks((ROOT / name).read_text(encoding="utf-8"))
    )
]


def parse(arguments):
    """Let click read the arguments; unknown commands and options are refused, nothing is run."""
    command, context = main, click.Context(main)
    while isinstance(command, click.Group):
        name, command, arguments = command.resolve_command(context, list(arguments))
        context = click.Context(command, info_name=name, parent=context)
    command.make_parser(context).parse_args(list(arguments))


@pytest.mark.parametrize("name", NAMES)
def test_commands_exist(name):
    for block in blocks((ROOT / name).read_text(encoding="utf-8")):
        for line in block.commands:
            try:
                parse(shlex.split(line, comments=True)[1:])
            except click.ClickException as error:
                pytest.fail(f"{name}, block at line {block.line}: {line}: {error.message}")


@pytest.fixture
def own_names():
    """What a page sets in the package is gone after it."""
    before = set(vars(lw))
    yield
    for name in set(vars(lw)) - before:
        if not hasattr(vars(lw)[name], "__path__"):
            delattr(lw, name)


@pytest.mark.usefixtures("own_names")
@pytest.mark.parametrize("name", WITH_CODE)
def test_blocks_run(name, tmp_path, monkeypatch, request):
    text = (ROOT / name).read_text(encoding="utf-8")
    if "<!-- data -->" in text:
        request.getfixturevalue("data_home")
    if not any(">>>" in block.code for block in blocks(text)):  # what it prints is compared
        request.getfixturevalue("short_training")
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "__page__"}
    for block in blocks(text):
        where = f"{name}:{block.line}"
        if block.language == "python":
            run_python(block, names, where)
        elif block.note == "run":
            run_commands(block, where, monkeypatch)


def run_python(block, names, where):
    if block.note.startswith("not run:"):
        compile(block.code, where, "exec")
    elif ">>>" in block.code:
        test = doctest.DocTestParser().get_doctest(block.code, names, where, where, block.line)
        said = []
        runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
        failures = runner.run(test, out=said.append, clear_globs=False).failed
        names.update(test.globs)
        assert not failures, "".join(said)
    else:
        code = compile("\n" * block.line + block.code, where, "exec")
        exec(code, names)


def run_commands(block, where, monkeypatch):
    for line in block.commands:
        monkeypatch.setattr(sys, "argv", shlex.split(line, comments=True))
        try:
            main(sys.argv[1:], standalone_mode=False)
        except SystemExit as stop:
            if stop.code:
                pytest.fail(f"{where}: {line} ended with {stop.code}")
        except click.ClickException as error:
            pytest.fail(f"{where}: {line}: {error.message}")


def test_a_block_that_is_not_run_says_why():
    for name in NAMES:
        for block in blocks((ROOT / name).read_text(encoding="utf-8")):
            if block.note.startswith("not run"):
                assert len(block.note.removeprefix("not run:").strip()) > 10, (name, block.line)
