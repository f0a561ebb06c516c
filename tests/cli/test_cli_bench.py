"""`labelweave bench`: list, run, compare, export, import, and mistakes told in one line."""

import json

import pytest

SUITE = """
title = "shapes under two protocols"
kind = "supervised"
metrics = ["f1_micro"]
seeds = [0, 1]

[[data]]
name = "shapes"
source = "my-shapes"
external = "made-up rows"
options = { labels = 3 }

[methods]
BR = "br"
New = "not-built-yet"

[protocols.honest]
"""


def test_list_names_every_suite_and_marks_stand_ins(run):
    suites = {one["suite"]: one for one in json.loads(run("bench", "list", "--json").stdout)}
    assert suites["ant-3"]["table"] == "3"
    assert suites["cls-2-stand-in"]["stand_in"] == "cls-2"
    assert "c-gmvae-figure-3" in run("bench", "list").output


def run_own(run, csv_file, *more):
    return run(
        "bench", "run", "--data", csv_file, "--labels", 3, "--methods", "br,mlknn", "-j", 1, *more
    )


def test_own_data_get_the_same_table(run, csv_file):
    output = run_own(run, csv_file, "--seeds", 2).output
    assert "example F1 (f1_example, higher is better)" in output
    assert "4 cells run, 0 existed, 0 failed" in output
    assert "mlknn" in output
    again = run_own(run, csv_file, "--seeds", 3).output
    assert "2 cells run, 4 existed" in again
    compared = json.loads(run("bench", "compare", "own-shapes", "--json", "-q").stdout)
    assert {row["method"] for row in compared["rows"]} == {"br", "mlknn"}
    assert all(len(row["values"]) == 3 for row in compared["rows"])


def test_a_set_parameter_is_part_of_the_cells(run, csv_file):
    arguments = ("--seeds", 1, "--set", "mlknn:k=3")
    assert "2 cells run, 0 existed" in run_own(run, csv_file, "--seeds", 1).output
    assert "1 cells run, 1 existed" in run_own(run, csv_file, *arguments).output
    assert "0 cells run, 2 existed" in run_own(run, csv_file, *arguments).output
    compared = run("bench", "compare", "own-shapes", "--set", "mlknn:k=3", "--json", "-q").stdout
    assert all(row["n_seeds"] == 1 for row in json.loads(compared)["rows"])


def test_all_methods_means_those_that_learn_from_labelled_rows(run, csv_file):
    from labelweave.bench.suite_selection import own_suite
    from labelweave.methods import list_methods

    suite = own_suite([str(csv_file)], ["all"])
    assert [one.id for one in suite.methods] == [one.id for one in list_methods("dependent")]


def test_results_are_compared_and_written(run, csv_file, workdir):
    run_own(run, csv_file, "--seeds", 2, "--out", "found")
    run(
        "bench", "compare", "own-shapes", "--results", "found",
        "--out", "table.md", "--out", "table.csv", "--out", "table.json",
    )  # fmt: skip
    assert "| shapes | br |" in (workdir / "table.md").read_text()
    assert (workdir / "table.csv").read_text().startswith("suite,dataset,scenario,method")
    assert json.loads((workdir / "table.json").read_text())["suite"] == "own-shapes"


def test_results_are_exported_and_imported(run, csv_file, workdir):
    run_own(run, csv_file, "--seeds", 2)
    told = run("bench", "export", "cells.jsonl").output
    assert "4 cells of bench-results written to cells.jsonl, " in told
    assert "bytes per cell" in told
    assert run("bench", "export", "again.jsonl", "--suite", "own-shapes", "-q").output == ""
    assert (workdir / "again.jsonl").read_bytes() == (workdir / "cells.jsonl").read_bytes()
    exported = json.loads(run("bench", "export", "full.jsonl", "--full", "--json").stdout)
    assert (exported["cells"], exported["suites"], exported["older"]) == (4, ["own-shapes"], 0)

    told = run("bench", "import", "cells.jsonl", "again.jsonl", "--out", "back").output
    assert told == "4 cells read, 4 written, 0 existed; results in back\n"
    imported = json.loads(run("bench", "import", "cells.jsonl", "--out", "back", "--json").stdout)
    assert (imported["cells"], imported["written"], imported["out"]) == (4, 0, "back")
    tables = [
        run("bench", "compare", "own-shapes", "--results", folder).output
        for folder in ("bench-results", "back")
    ]
    assert tables[0] == tables[1]
    assert "0 cells run, 4 existed" in run_own(run, csv_file, "--seeds", 2, "--out", "back").output


def test_a_suite_of_ones_own_runs_once_its_data_are_there(run, workdir, monkeypatch):
    from cli_data import make_rows, write_csv

    monkeypatch.setenv("LABELWEAVE_DATA", str(workdir / "data"))
    (workdir / "mine.toml").write_text(SUITE)
    output = run("bench", "run", "mine.toml", "-j", 1).output
    assert "0 cells run" in output
    assert "not available: data shapes (made-up rows: put " in output
    assert "into a folder my-shapes under LABELWEAVE_DATA" in output
    folder = workdir / "data" / "my-shapes"
    folder.mkdir(parents=True)
    write_csv(folder / "all.csv", *make_rows(80))
    output = run("bench", "run", "mine.toml", "-j", 1).output
    assert "not available: method New (there is no method 'not-built-yet' yet)" in output
    assert "2 cells run" in output
    (workdir / "mine.toml").unlink()  # the folder of results knows it by its name
    assert "shapes" in run("bench", "compare", "mine").output


def test_outdated_cells_are_counted_and_run_again(run, workdir, monkeypatch):
    from cli_data import make_rows, write_csv

    monkeypatch.setenv("LABELWEAVE_DATA", str(workdir / "data"))
    folder = workdir / "data" / "my-shapes"
    folder.mkdir(parents=True)
    write_csv(folder / "all.csv", *make_rows(80))
    (workdir / "mine.toml").write_text(SUITE)
    run("bench", "run", "mine.toml", "-j", 1)
    run("bench", "export", "cells.jsonl")
    listed = json.loads(run("bench", "outdated", "cells.jsonl", "--check", "--json").stdout)
    assert listed["cells"] == [
        {
            "file": "cells",
            "method": "BR",
            "data": "shapes",
            "current": 2,
            "older code": 0,
            "other data": 0,
            "no such cell now": 0,
        }
    ]
    assert listed["checks"] == []
    text = (workdir / "cells.jsonl").read_text()
    before = next(line for line in text.splitlines() if '"shared":"method"' in line)
    changed = json.loads(before)["value"]["code_version"]
    (workdir / "cells.jsonl").write_text(text.replace(changed, "0" * len(changed)))
    output = run("bench", "outdated", "cells.jsonl", "--check").output
    assert "BR on shapes, seed 0, honest: equal to the last stored digit" in output or (
        "BR on shapes, seed 1, honest: equal to the last stored digit" in output
    )
    assert "1 cells run again, 1 equal to the last stored digit" in output


def test_a_file_of_means_has_no_outdated_cells(run, workdir):
    header = {"labelweave": "bench figures", "schema": 1, "suite": "ant-2"}
    (workdir / "means.jsonl").write_text(json.dumps(header) + "\n")
    assert "means.jsonl has means only, no cells" in run("bench", "outdated", "means.jsonl").output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run"], "either a SUITE or --data"),
        (["run", "ant-2", "--data", "x.csv"], "either a SUITE or --data"),
        (["run", "ant-22"], "did you mean 'ant-2'"),
        (["run", "ant-2", "--methods", "br"], "--methods goes with --data"),
        (["run", "ant-2", "--only", "nothing"], "called 'nothing'"),
        (["run", "ant-2", "--seeds", "a"], "--seeds is a number"),
        (["run", "ant-2", "--seeds", "0-20261117"], "asks for 20261118 seeds, more than 1000"),
        (["run", "ant-2", "--backend", "dask"], "dask backend"),
        (["compare", "ant-2"], "is not a folder of results"),
        (["run", "missing.toml"], "no such file"),
        (["export", "cells.jsonl"], "is not a folder of results"),
        (["export"], "Missing argument 'FILE'"),
        (["export", "cells.jsonl", "--suite", "ant-22"], "did you mean 'ant-2'"),
        (["import"], "Missing argument 'FILES...'"),
        (["import", "cells.jsonl"], "cells.jsonl: there is no such file"),
        (["outdated", "cells.jsonl"], "cells.jsonl: there is no such file"),
    ],
)
def test_mistakes_are_told_in_one_line(run, arguments, message):
    assert message in run("bench", *arguments, status=2).output


def test_a_suite_of_what_is_not_here_runs_and_says_so(run, workdir):
    (workdir / "later.toml").write_text(
        'title = "later"\nkind = "dreams"\ndata = ["scene"]\nmetrics = ["map"]\nseeds = [0]\n'
        '[methods]\nBR = "br"\n[protocols.honest]\nsplit = "auto"\n'
    )
    output = run("bench", "run", "later.toml", "-j", 1).output
    assert "0 cells run" in output
    assert "not available: kind dreams" in output


def test_a_smoke_run_goes_to_a_folder_of_its_own(run, csv_file, workdir):
    output = run_own(run, csv_file, "--quick").output
    assert "SMOKE RUN" in output
    assert (workdir / "bench-results" / "quick" / "cells").is_dir()
    assert not (workdir / "bench-results" / "cells").exists()


def test_progress_tells_cells_done_and_time_left(run, csv_file):
    output = run_own(run, csv_file, "--seeds", 1).output
    assert "[1/2, " in output
    assert " left] br on shapes, seed 0, honest: f1_example 0." in output


def test_the_growing_table_is_drawn_on_a_terminal(run, csv_file, workdir):
    import io

    from labelweave.bench.running.pool import Pool
    from labelweave.bench.running.runner import run_suite
    from labelweave.bench.suite_selection import own_suite
    from labelweave.cli.bench_display import Display
    from labelweave.cli.output import Output

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    class Screen(Output):
        stream = Terminal()

    suite = own_suite([str(csv_file)], ["br", "mlknn"], reading={"labels": 3}, seeds=(0,))
    run_suite(suite, "out", pool=Pool(1), listener=Display(Screen()))
    drawn = Screen.stream.getvalue()
    assert "f1_example so far" in drawn
    assert "[2/2, 0.0 s left] cells" in drawn
