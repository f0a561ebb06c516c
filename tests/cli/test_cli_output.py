"""Tables, JSON and the streams they go to."""

import json

import numpy as np
import pytest

from labelweave.cli.output import Output
from labelweave.files import json_ready


def test_plain_table_lines_up(capsys):
    Output().table(("name", "rows"), [("a", 1200), ("longer", 5)], title="sets")
    assert capsys.readouterr().out == "sets\nname     rows\na       1,200\nlonger      5\n"


def test_empty_table_has_its_header(capsys):
    Output().table(("name", "rows"), [])
    assert capsys.readouterr().out == "name  rows\n"


def test_cells_in_plain_words(capsys):
    Output().table(("x", "y", "z"), [(0.123456, None, True), (float("nan"), 2, False)])
    assert capsys.readouterr().out.splitlines()[1:] == ["0.1235  -  yes", "     -  2  no"]


def test_json_takes_stdout_and_text_goes_to_stderr(capsys):
    output = Output(as_json=True)
    output.say("working")
    output.result({"a": 1})
    shown = capsys.readouterr()
    assert json.loads(shown.out) == {"a": 1}
    assert shown.err == "working\n"


def test_without_json_no_result_object(capsys):
    Output().result({"a": 1})
    assert capsys.readouterr().out == ""


def test_quiet_leaves_the_result(capsys):
    output = Output(quiet=True)
    output.say("narration")
    output.table(("a",), [("b",)])
    output.show("result")
    assert capsys.readouterr().out == "a\nb\nresult\n"


def test_data_on_stdout_moves_text_to_stderr(capsys):
    Output(stdout_taken=True).say("working")
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("", "working\n")


def test_terminal_gets_a_drawn_table(monkeypatch, capsys):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    Output().table(("name", "[bold]"), [("[red]a", 1)])
    shown = capsys.readouterr().out
    assert "[red]a" in shown  # names are never read as markup
    assert "[bold]" in shown


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.float32(0.5), 0.5),
        (np.int64(3), 3),
        (np.array([[1, 2]]), [[1, 2]]),
        (float("nan"), None),
        (np.array([np.inf]), [None]),
        ({1: (2, "x")}, {"1": [2, "x"]}),
        (np.dtype("int8"), "int8"),
        (True, True),
    ],
)
def test_plain_values(value, expected):
    assert json_ready(value) == expected
