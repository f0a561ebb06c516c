"""A bar on a terminal, a line every few seconds elsewhere, nothing if not verbose."""

import io
import subprocess
import sys

import pytest

from labelweave.progress import ProgressBar, track


class Terminal(io.StringIO):
    def isatty(self):
        return True


def terminal_of(monkeypatch):
    """An error stream that says it is a terminal (set within the test: pytest resets it)."""
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    return stream


def test_a_terminal_shows_description_note_and_amount(monkeypatch):
    terminal = terminal_of(monkeypatch)
    with ProgressBar("training", total=4) as bar:
        for _ in range(4):
            bar.advance(note="loss 0.25")
    drawn = terminal.getvalue()
    assert "training" in drawn
    assert "loss 0.25" in drawn
    assert "4/4" in drawn


def test_sizes_in_bytes_and_an_unknown_total(monkeypatch):
    terminal = terminal_of(monkeypatch)
    with ProgressBar("fetching", unit="bytes") as bar:
        bar.advance(2_000_000)
    assert "2.0" in terminal.getvalue()


def test_nothing_is_shown_if_not_verbose(monkeypatch):
    terminal = terminal_of(monkeypatch)
    with ProgressBar("training", total=2, verbose=0) as bar:
        bar.advance(2)
    assert terminal.getvalue() == ""
    assert bar.done == 2


def test_quick_work_writes_no_line_without_a_terminal(capsys):
    assert list(track([1, 2, 3], "counting")) == [1, 2, 3]
    assert capsys.readouterr().err == ""


def test_long_work_writes_a_line_every_few_seconds_without_a_terminal(capsys, monkeypatch):
    now = 0.0
    monkeypatch.setattr("labelweave.progress.time.monotonic", lambda: now)
    with ProgressBar("training", total=40) as bar:
        for now in range(1, 13):
            bar.advance(note=f"epoch {now}/40")
    written = capsys.readouterr()
    assert written.out == ""
    assert written.err == "training: 12%, epoch 5/40\ntraining: 25%, epoch 10/40\n"


@pytest.mark.parametrize(("unit", "line"), [("", "rows: 2,000,000"), ("bytes", "rows: 2.0 MB")])
def test_a_line_of_an_unknown_total(unit, line, capsys, monkeypatch):
    monkeypatch.setattr("labelweave.progress._LINE_SECONDS", 0.0)
    with ProgressBar("rows", unit=unit) as bar:
        bar.advance(2_000_000)
    assert capsys.readouterr().err == f"{line}\n"


def test_the_bar_is_closed_after_an_error(monkeypatch):
    terminal_of(monkeypatch)
    bar = ProgressBar("training", total=2)
    with pytest.raises(KeyError), bar:
        raise KeyError
    assert bar._bar is None


def test_rich_is_not_imported_without_a_terminal():
    code = (
        "import sys; from labelweave.progress import track; list(track('ab', 'x'));"
        "print('rich' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
