"""Results as one file and back: nothing that a table needs is lost, mistakes name their line."""

import json
from dataclasses import replace

import pytest
from bench_data import make_record, small_suite

from labelweave.bench.comparing.comparison import compare
from labelweave.bench.running.plan import all_cells
from labelweave.bench.running.pool import Pool
from labelweave.bench.running.runner import run_suite
from labelweave.bench.storing.exchange import export_cells, import_cells
from labelweave.bench.storing.records import Record
from labelweave.bench.storing.store import Store, read_results
from labelweave.bench.suite import MethodEntry
from labelweave.exceptions import DataFileError, InputError

SCORES = {"f1_micro": 0.123456789012, "map": None}


def fill(folder, suite, **changes):
    """A folder of results with a made-up record for every cell."""
    store = Store(folder)
    store.create()
    store.write_suite(suite)
    records = [
        make_record(
            cell,
            {"f1_micro": 0.5 + i / 77, "map": 1 / (3 + i)},
            rows={"train": 40, "test": 20},
            thresholds={"f1_micro": 0.2 + i / 300},
            **changes,
        )
        for i, cell in enumerate(all_cells(suite))
    ]
    for record in records:
        store.write(record)
    return records


@pytest.fixture
def results(suite, tmp_path):
    fill(tmp_path / "results", suite)
    return tmp_path / "results"


@pytest.fixture
def file(results, tmp_path):
    export_cells(results, tmp_path / "cells.jsonl")
    return tmp_path / "cells.jsonl"


def lines_of(path):
    return path.read_text().splitlines()


def first_cell(lines):
    return next(i for i, line in enumerate(lines) if line.startswith("["))


def test_a_run_comes_back_and_goes_on(suite, tmp_path):
    run_suite(suite, tmp_path / "ran", pool=Pool(1))
    done = export_cells(tmp_path / "ran", tmp_path / "cells.jsonl")
    assert (done.n_cells, done.suites, done.n_older) == (16, ("small",), 0)
    back = import_cells([tmp_path / "cells.jsonl"], tmp_path / "back")
    assert (back.n_read, back.n_written) == (16, 16)

    first, second = (compare(read_results(tmp_path / one), suite) for one in ("ran", "back"))
    for one, other in zip(first.rows, second.rows, strict=True):
        assert other.values == pytest.approx(one.values, abs=1e-7)
        assert replace(other, values=(), mean=0, std=0, low=0, high=0) == replace(
            one, values=(), mean=0, std=0, low=0, high=0
        )
    assert second.rankings == first.rankings

    again = run_suite(suite, tmp_path / "back", pool=Pool(1))
    assert again.n_run == 0
    more = run_suite(replace(suite, seeds=(0, 1, 2)), tmp_path / "back", pool=Pool(1))
    assert more.n_run == 8


def test_every_field_comes_back(suite, tmp_path):
    cells = all_cells(suite)
    scored = make_record(
        cells[0],
        SCORES,
        rows={"train": 40, "validation": 2, "test": 18},
        thresholds={"f1_micro": 0.25, "cf1": 0.25},
        seconds={"fit": 0.1, "wall": 0.2, "cpu": 0.3},
        memory={"peak": 2.5, "before": 1.5, "how": "per cell"},
        warnings=["a line\u2028of a package"],
        history={"epoch": [1, 2]},
        artifacts={"label_similarity": {"names": ["a"], "values": [[1.0]]}},
    )
    error = {"type": "ValueError", "message": "no", "trace": "/home/somebody/secret.py"}
    failed = make_record(cells[1], {}, error=error)
    store = Store(tmp_path / "results")
    store.create()
    for record in (scored, failed):
        store.write(record)
    for full in (True, False):
        path, folder = tmp_path / f"{full}.jsonl", tmp_path / f"back-{full}"
        export_cells(store.folder, path, full=full)
        assert "somebody" not in path.read_text()
        assert scored["machine"]["host"] not in path.read_text().split('"')
        import_cells([path], folder)
        back = {record["cell"]: record for record in read_results(folder)}
        machine = {name: v for name, v in scored["machine"].items() if name != "host"}
        heavy = {} if full else {"history": None, "artifacts": {}}
        scores = {"f1_micro": 0.12345679, "map": None}
        assert back[scored["cell"]] == {**scored, "machine": machine, "scores": scores, **heavy}
        assert back[failed["cell"]] == {
            **failed,
            "machine": machine,
            "error": {**error, "trace": ""},
        }
        assert list(back[scored["cell"]]) == list(Record.__annotations__)


def test_the_same_cells_are_the_same_bytes(file, tmp_path):
    import_cells([file], tmp_path / "back")
    export_cells(tmp_path / "back", tmp_path / "again.jsonl")
    assert (tmp_path / "again.jsonl").read_bytes() == file.read_bytes()


def test_one_more_seed_is_one_more_line_a_figure(suite, file, results, tmp_path):
    fill(results, replace(suite, seeds=(0, 1, 2)))
    export_cells(results, tmp_path / "more.jsonl")
    before, after = set(lines_of(file)), set(lines_of(tmp_path / "more.jsonl"))
    cells = [line for line in after - before if line.startswith("[")]
    # the definition of this suite, which is not one of the package, names its seeds
    assert len(after - before) - len(cells) == 1
    assert {json.loads(line)[5] for line in cells} >= {2}
    assert len(after) == len(before) + 8


def test_a_cell_is_a_few_hundred_bytes(tmp_path):
    from labelweave.bench.evaluation_protocol import PANEL

    many = small_suite(tmp_path, seeds=range(20))
    records = fill(tmp_path / "results", many)
    store = Store(tmp_path / "results")
    for i, record in enumerate(records):
        scores = {name: (i + 1) / (k + 190) for k, name in enumerate(PANEL)}
        store.write({**record, "scores": scores, "history": {"epoch": list(range(500))}})
    done = export_cells(tmp_path / "results", tmp_path / "cells.jsonl")
    assert done.n_bytes / done.n_cells < 400


def test_only_the_newest_of_a_cell_is_kept(suite, results, tmp_path):
    fill(results, suite, code_version="", finished="2026-02-01T00:00:00+00:00")
    newer = replace(all_cells(suite)[0], code_version="changed")
    Store(results).write(make_record(newer, SCORES, finished="2026-03-01T00:00:00+00:00"))
    done = export_cells(results, tmp_path / "cells.jsonl")
    assert (done.n_cells, done.n_older) == (16, 1)
    import_cells([tmp_path / "cells.jsonl"], tmp_path / "back")
    comparisons = [compare(read_results(one), suite) for one in (results, tmp_path / "back")]
    assert comparisons[0].n_old == comparisons[1].n_old == 1


def test_cells_of_a_suite_are_those_it_asks_for_whoever_ran_them(suite, results, tmp_path):
    part = replace(suite, name="part", methods=suite.methods[:1])
    done = export_cells(results, tmp_path / "part.jsonl", [part])
    assert (done.n_cells, done.suites) == (8, ("part",))
    import_cells([tmp_path / "part.jsonl"], tmp_path / "back")
    assert [one.name for one in Store(tmp_path / "back").suites()] == ["part"]
    other = replace(suite, name="other", methods=(MethodEntry("BR", "br", settings={"n_jobs": 2}),))
    with pytest.raises(InputError, match="no finished cell of other"):
        export_cells(results, tmp_path / "x.jsonl", [part, other])
    assert not (tmp_path / "x.jsonl").exists()


def test_a_suite_of_the_package_is_known_again(tmp_path):
    from labelweave.bench.suite import load_suite

    suite = load_suite("mulsupcon-5")
    fill(tmp_path / "results", suite)
    export_cells(tmp_path / "results", tmp_path / "cells.jsonl")
    assert "suite definition" not in (tmp_path / "cells.jsonl").read_text()
    import_cells([tmp_path / "cells.jsonl"], tmp_path / "back")
    assert Store(tmp_path / "back").suites() == [suite]


def test_an_empty_folder_has_nothing_to_export(tmp_path):
    Store(tmp_path / "results").create()
    with pytest.raises(InputError, match="nothing to export"):
        export_cells(tmp_path / "results", tmp_path / "cells.jsonl")


@pytest.mark.parametrize(
    ("there", "error", "is_replaced"),
    [
        ("2025-01-01T00:00:00+00:00", None, True),
        ("2026-01-01T00:00:00+00:00", None, False),
        ("2027-01-01T00:00:00+00:00", None, False),
        ("2027-01-01T00:00:00+00:00", {"type": "E", "message": "", "trace": ""}, True),
    ],
)
def test_of_a_cell_that_is_there_the_newer_stays(suite, file, tmp_path, there, error, is_replaced):
    cell = all_cells(suite)[0]
    store = Store(tmp_path / "out")
    store.create()
    held = make_record(cell, {} if error else SCORES, finished=there, error=error)
    store.write(held)
    done = import_cells([file, file], store.folder)
    assert (done.n_read, done.n_written) == (16, 15 + is_replaced)
    assert (store.read(cell.name) != held) == is_replaced


def change(index, edit):
    """Edit the first cell, or a column of it, of a list of lines."""

    def changed(lines):
        place = first_cell(lines)
        cell = json.loads(lines[place])
        cell[index] = edit
        return [*lines[:place], json.dumps(cell), *lines[place + 1 :]], place + 1

    return changed


def with_header(**facts):
    return lambda lines: ([json.dumps({**json.loads(lines[0]), **facts}), *lines[1:]], 1)


def cut_short(lines):
    return [*lines[:-1], lines[-1][:40]], len(lines)


def without_shared(lines):
    place = next(i for i, line in enumerate(lines) if '"shared":"environment"' in line)
    return [*lines[:place], *lines[place + 1 :]], first_cell(lines)


def twice_shared(lines):
    place = next(i for i, line in enumerate(lines) if '"shared":"method"' in line)
    return [*lines[:place], lines[place], *lines[place:]], place + 2


def strange_shared(**stated):
    return lambda lines: ([lines[0], json.dumps(stated), *lines[1:]], 2)


BAD = {
    "empty": (lambda lines: ([], 1), "this is not a file of cells"),
    "foreign": (lambda lines: (['{"a": 1}'], 1), "this is not a file of cells"),
    "older schema": (with_header(schema=0), r"another version .* \(schema 0, here 1\)"),
    "other columns": (with_header(cell=["suite"]), "another version"),
    "suites": (with_header(suites="small"), "list of names"),
    "cut short": (cut_short, "not a complete line of JSON"),
    "not a number": (change(12, [float("nan"), 1.0]), "not a complete line of JSON"),
    "columns": (lambda lines: ([*lines, "[1]"], len(lines) + 1), "15 columns, this one 1"),
    "neither": (lambda lines: ([*lines, '"x"'], len(lines) + 1), "neither a cell nor"),
    "reference": (change(3, "who"), "defines method 'who'"),
    "unsaid": (without_shared, "defines environment '"),
    "twice": (twice_shared, "occurs twice"),
    "table": (strange_shared(shared="luck", key="a", value={}), "no shared values called 'luck'"),
    "fields": (strange_shared(shared="data", key="a", value={}), "must have dataset, "),
    "suite": (strange_shared(shared="suite definition", key="a", value={}), "not a suite"),
    "seconds": (change(9, [1, 2]), "seconds must be 3 numbers"),
    "scores": (change(12, [1.0, "high"]), "scores must be numbers, not 'high'"),
    "more": (change(14, 3), "not a cell of this format"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_mistake_is_told_with_its_line_and_nothing_is_written(file, tmp_path, name):
    edit, message = BAD[name]
    lines, number = edit(lines_of(file))
    bad = tmp_path / "bad.jsonl"
    bad.write_text("".join(line + "\n" for line in lines))
    with pytest.raises(DataFileError, match=message) as told:
        import_cells([file, bad], tmp_path / "out")
    assert told.value.line == number
    assert not (tmp_path / "out").exists()


def test_a_file_cannot_name_other_folders(suite, file, tmp_path):
    lines = lines_of(file)
    stated = json.loads(lines[1])
    assert stated["shared"] == "suite definition"
    assert stated["value"]["data"][0]["source"] == "one.csv"
    stated["value"]["name"] = "../../elsewhere"
    file.write_text("\n".join([lines[0], json.dumps(stated), *lines[2:]]))
    with pytest.raises(DataFileError, match="cannot be the name of a suite"):
        import_cells([file], tmp_path / "out")


def test_what_is_no_text_or_not_there_is_told(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataFileError, match="not text in UTF-8"):
        import_cells([tmp_path / "a.jsonl"], tmp_path / "out")
    with pytest.raises(DataFileError, match="no such file"):
        import_cells([tmp_path / "b.jsonl"], tmp_path / "out")
