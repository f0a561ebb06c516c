"""Stored cells of older code or data are found, and running them again tells equal from changed."""

from dataclasses import replace

import pytest
from bench_data import small_suite

from labelweave.bench.running import outdated
from labelweave.bench.running.pool import Pool
from labelweave.bench.running.runner import run_suite
from labelweave.exceptions import InputError


@pytest.fixture
def ran(tmp_path):
    """A suite, and the records of all its cells."""
    suite = small_suite(tmp_path, seeds=(0,))
    return suite, run_suite(suite, tmp_path / "ran", pool=Pool(1)).records


def states(cells):
    return sorted({one.state for one in cells})


def of_older_code(records):
    return [{**record, "code_version": "before"} for record in records]


def test_cells_of_this_code_are_current(ran):
    suite, records = ran
    cells = outdated.stored_cells(records, [suite])
    assert len(cells) == 8
    assert states(cells) == ["current"]
    assert outdated.quickest_outdated(cells) == []


def test_cells_of_other_code_data_and_settings_are_told_apart(ran):
    suite, records = ran
    assert states(outdated.stored_cells(of_older_code(records), [suite])) == ["older code"]
    other = {"two": {"data_checksum": "of other rows"}, "one": {}}
    mixed = [{**one, **other[one["dataset"]]} for one in records]
    counted = outdated.count_by_method(outdated.stored_cells(mixed, [suite]))
    assert {(row["data"], row["current"], row["other data"]) for row in counted} == {
        ("one", 2, 0),
        ("two", 0, 2),
    }
    changed = replace(suite, methods=(replace(suite.methods[1], settings={"k": 5}),))
    assert states(outdated.stored_cells(records, [changed])) == ["no such cell now"]


def test_a_seed_that_the_suite_does_not_have_is_a_cell_too(ran):
    suite, records = ran
    assert states(outdated.stored_cells(records, [replace(suite, seeds=(5,))])) == ["current"]


def test_the_quickest_cell_of_each_place_is_run_again(ran):
    suite, records = ran
    seconds = {"fit": 1.0, "wall": 1.0}
    timed = [
        {**one, "seconds": {**seconds, "cpu": 1.0 + (one["protocol"] == "honest")}}
        for one in of_older_code(records)
    ]
    chosen = outdated.quickest_outdated(outdated.stored_cells(timed, [suite]))
    assert len(chosen) == 4
    assert {one.record["protocol"] for one in chosen} == {"as-published"}
    checks = list(outdated.measure_again(chosen))
    assert all(one.is_equal for one in checks)
    assert "equal to the last stored digit" in checks[0].describe()


def test_a_changed_score_is_named(ran):
    suite, records = ran
    record = {**of_older_code(records)[0]}
    record["scores"] = {**record["scores"], "map": record["scores"]["map"] + 0.01}
    (check,) = outdated.measure_again(outdated.stored_cells([record], [suite]))
    assert not check.is_equal
    assert check.metric == "map"
    assert check.now == pytest.approx(check.before - 0.01)
    assert "differs, map" in check.describe()


def test_a_cell_that_fails_now_is_not_equal(ran):
    suite, records = ran
    (cell,) = outdated.stored_cells(of_older_code(records)[:1], [suite])
    broken = replace(cell, cell=replace(cell.cell, data_checksum="of other rows"))
    (check,) = outdated.measure_again([broken])
    assert not check.is_equal
    assert "is not the same here" in check.describe()


def test_records_are_selected_by_names(ran):
    _, records = ran
    kept = outdated.only(records, ["one", "ML*", "honest"])
    assert [(one["dataset"], one["method_name"], one["protocol"]) for one in kept] == [
        ("one", "MLkNN", "honest")
    ]
    assert outdated.only(records, []) == records
    with pytest.raises(InputError, match="called 'three'"):
        outdated.only(records, ["one", "three"])
