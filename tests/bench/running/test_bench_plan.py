"""Names of cells: what changes them and what does not."""

from dataclasses import replace

from bench_data import small_suite

from labelweave.bench.running.plan import Quick, all_cells, make_plan
from labelweave.bench.suite import MethodEntry


def test_cells_are_the_product_of_what_the_suite_names(suite):
    cells = make_plan(suite).cells
    assert len(cells) == 2 * 2 * 2 * 2
    assert len({cell.name for cell in cells}) == len(cells)
    assert len({cell.identity for cell in cells}) == len(cells) / 2  # seeds share theirs


def test_a_name_depends_on_what_goes_in_and_on_nothing_else(suite):
    cell = all_cells(suite)[0]
    same = replace(cell, suite="other", method_name="my BR")
    assert same.name == cell.name
    for change in (
        {"settings": {"n_jobs": 1}},
        {"seed": 5},
        {"data_checksum": "1"},
        {"code_version": "1"},
        {"metrics": ("coverage",)},
        {"quick": Quick()},
        {"protocol": suite.protocols[1]},
        {"scenario": replace(cell.scenario, settings={"train_share": 0.5})},
    ):
        assert replace(cell, **change).name != cell.name
    assert replace(cell, data_checksum="1", code_version="1").identity == cell.identity


def test_the_place_of_a_file_is_not_part_of_its_cells(tmp_path):
    for part in ("a", "b"):
        (tmp_path / part).mkdir()
    names = [{cell.name for cell in all_cells(small_suite(tmp_path / part))} for part in ("a", "b")]
    assert names[0] == names[1]


def test_a_metric_beyond_the_panel_is_part_of_the_name(suite):
    more = replace(suite, metrics=("map", "coverage"))
    assert all_cells(more)[0].name != all_cells(suite)[0].name
    fewer = replace(suite, metrics=("map",))
    assert all_cells(fewer)[0].name == all_cells(suite)[0].name


def test_methods_that_do_not_exist_are_gaps(suite):
    plan = make_plan(replace(suite, methods=(*suite.methods, MethodEntry("New", "new-method"))))
    assert [(gap.what, gap.name) for gap in plan.gaps] == [("method", "New")]
    assert {cell.method for cell in plan.cells} == {"br", "mlknn"}
