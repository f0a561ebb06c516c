"""Names of cells: what changes them and what does not."""

from dataclasses import replace

import pytest
from bench_data import small_suite

from labelweave.bench.running import code_version as versions
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


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Two modules that stand for labelweave's: one imports the other."""
    files = {
        "labelweave.method": '"""Doc."""\nimport labelweave.helper\n\nX = 1\n',
        "labelweave.helper": "Y = 1  # why\n",
        "labelweave.other": "Z = 1\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)

    def source(module):
        path = tmp_path / module
        return path if path.is_file() else None

    monkeypatch.setattr(versions, "_source", source)
    versions._facts.cache_clear()
    yield tmp_path
    versions._facts.cache_clear()


def version_after(package, module, text):
    (package / module).write_text(text)
    versions._facts.cache_clear()
    return versions.code_version(["labelweave.method"])


def test_code_counts_with_what_it_imports_and_without_comments(package):
    first = versions.code_version(["labelweave.method"])
    assert version_after(package, "labelweave.helper", "Y = 1\n\n# because\n") == first
    said = '"""Other."""\nimport labelweave.helper\nX = 1\n'
    assert version_after(package, "labelweave.method", said) == first
    assert version_after(package, "labelweave.other", "Z = 2\n") == first
    assert version_after(package, "labelweave.helper", "Y = 2\n") != first


def test_modules_that_compute_no_score_do_not_count(package, monkeypatch):
    monkeypatch.setattr(versions, "HARMLESS", ("labelweave.helper",))
    first = versions.code_version(["labelweave.method"])
    assert version_after(package, "labelweave.helper", "Y = 2\n") == first


def test_a_method_made_by_its_id_counts(package, monkeypatch):
    """In the code of a room, or among the settings; in other modules a word is but a word."""
    monkeypatch.setattr(versions, "_modules_by_id", lambda: {"other": "labelweave.other"})
    before = "MEMBERS = ['other']\n"
    for module in ("labelweave.dependent.stack", "labelweave.plumbing"):
        (package / module).write_text(before)

    def found(module):
        versions._facts.cache_clear()
        return versions.code_version([module])

    stack, plumbing = found("labelweave.dependent.stack"), found("labelweave.plumbing")
    (package / "labelweave.other").write_text("Z = 2\n")
    assert found("labelweave.dependent.stack") != stack
    assert found("labelweave.plumbing") == plumbing
    assert versions.methods_named_in({"a": {"b": ["x", "other"]}}) == ("labelweave.other",)


def test_weave_depends_on_its_members_and_a_setting_on_the_method_it_names(suite):
    from labelweave.bench.running.runner import prepare

    _, named = versions._facts("labelweave.dependent.weave_members")
    assert {"labelweave.dependent.mlp", "labelweave.dependent.extra_trees"} <= set(named)
    entries = (
        MethodEntry("plain", "weave"),
        MethodEntry("same", "weave", {"members": ["mlp"]}),
        MethodEntry("more", "weave", {"members": ["haram"]}),
    )
    plan = prepare(make_plan(replace(suite, methods=entries)))
    found = {cell.method_name: cell.code_version for cell in plan.cells}
    assert found["plain"] == found["same"] != found["more"]


def test_the_modules_listed_as_harmless_exist():
    from labelweave.bench.running.code_version import HARMLESS, _source

    missing = [name for name in HARMLESS if _source(name) is None]
    assert missing in ([], ["labelweave.reporting"])
