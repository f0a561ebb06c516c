"""The suites of the package: one a published table, readable, and pointing at its figures."""

import pytest

from labelweave.bench.comparing.published import Published, published_figures
from labelweave.bench.evaluation_protocol import EvaluationProtocol
from labelweave.bench.kinds import kind_module, why_no_kind
from labelweave.bench.running.plan import all_cells, find_gaps, make_plan
from labelweave.bench.suite import Suite, list_suites, load_suite
from labelweave.data.catalog import list_datasets
from labelweave.exceptions import InputError
from labelweave.metrics import get_metric

SUITES = {suite.name: suite for suite in list_suites()}


def test_every_published_table_has_one_suite():
    tables = {(figure.paper, figure.table) for figure in published_figures()}
    covered = [(s.paper, s.table) for s in SUITES.values() if s.paper and s.stand_in is None]
    assert tables <= set(covered)
    assert len(covered) == len(set(covered))
    figures = {("CLS", f"Figure {n}") for n in range(4, 9)} | {("C-GMVAE", "Figure 3")}
    assert figures <= set(covered)


@pytest.mark.parametrize("name", SUITES)
def test_names_metrics_and_data_are_known(name):
    suite = SUITES[name]
    catalog = {entry.name for entry in list_datasets()}
    for entry in suite.data:
        assert entry.source in catalog or entry.external
    for metric in suite.metrics:
        assert get_metric(metric).name == metric
    # Rankings have no threshold and stand-ins no published rows: the cells would be the same.
    is_both = suite.paper and not (suite.stand_in and suite.kind == "unseen")
    protocols = ["honest", "as-published"] if is_both else ["honest"]
    assert [protocol.name for protocol in suite.protocols] == protocols
    assert len(suite.seeds) >= 3 or suite.table == "Figure 3"
    if why_no_kind(suite.kind) is None:
        for scenario in suite.scenarios:
            kind_module(suite.kind).check_scenario(scenario.settings)
        for method in suite.methods:
            kind_module(suite.kind).check_options(method.options)


@pytest.mark.parametrize("name", [n for n, one in SUITES.items() if one.stand_in is None])
def test_every_published_figure_stands_beside_a_cell(name):
    suite = SUITES[name]
    published = Published(suite)
    figures = {
        published.find(data.name, scenario.name, method.name, metric)
        for data in suite.data
        for scenario in suite.scenarios
        for method in suite.methods
        for metric in suite.metrics
    }
    assert len(figures - {None}) == len(published)


def test_stand_ins_need_no_external_data_and_show_no_published_figure():
    for suite in SUITES.values():
        if suite.stand_in:
            assert suite.stand_in in SUITES
            assert not any(entry.external for entry in suite.data)
            assert len(Published(suite)) == 0
        elif all(entry.external for entry in suite.data):
            assert f"{suite.name}-stand-in" in SUITES


def test_settings_are_parameters_of_methods_that_exist():
    assert sum(bool(cell.resolved) for suite in SUITES.values() for cell in all_cells(suite)) > 20


def test_what_is_not_built_is_listed_and_does_not_fail():
    plan = make_plan(SUITES["xml0-ii"])
    assert plan.cells == ()
    assert {"mag-cs"} <= {gap.name for gap in plan.gaps if gap.what == "data"}
    gaps = find_gaps(SUITES["c-gmvae-1"])
    assert all(gap.reason for gap in gaps)


def test_a_suite_survives_json():
    import json

    for suite in SUITES.values():
        assert Suite.from_dict(json.loads(json.dumps(suite.to_dict()))) == suite


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ('colour = "red"', "unknown key 'colour'"),
        ('metrics = ["f1_sample"]', "did you mean 'f1_example'"),
        ('data = ["sceen"]', "did you mean 'scene'"),
        ('seeds = ["a"]', "seeds must be whole numbers"),
        ('protocols = { honest = { threshold = "test" } }', "not honest"),
        ("protocols = { honest = { thresholds = 0.5 } }", "a protocol has split"),
        ("protocols = { best = {} }", "honest or as-published"),
        ('extends = "nothing"', "extends 'nothing'"),
        ('methods = { BR = { name = "br" } }', "the method BR has id"),
        ('methods = { BR = { id = "br", published = "yes" } }', "published of the method BR is"),
    ],
)
def test_mistakes_in_a_file_are_told(tmp_path, change, message):
    key = change.partition(" ")[0]
    values = {
        "title": '"t"',
        "kind": '"supervised"',
        "data": '["scene"]',
        "metrics": '["map"]',
        "seeds": "[0]",
        "methods": '{ BR = "br" }',
        "protocols": "{ honest = {} }",
    }
    lines = [f"{name} = {value}" for name, value in values.items() if name != key]
    path = tmp_path / "mine.toml"
    path.write_text("\n".join(lines))
    if key in values:
        with pytest.raises(InputError, match=f"has no {key}"):
            load_suite(path)
    path.write_text("\n".join([change, *lines]))
    with pytest.raises(InputError, match=message):
        load_suite(path)


def test_a_file_may_extend_a_suite_of_the_package(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('extends = "c-gmvae-1"\ntitle = "mine"\ndata = ["emotions"]\n')
    suite = load_suite(path)
    assert [entry.name for entry in suite.data] == ["emotions"]
    assert suite.methods == SUITES["c-gmvae-1"].methods


def test_honest_protocols_cannot_look_at_test_rows():
    with pytest.raises(InputError, match="not honest"):
        EvaluationProtocol("honest", threshold="test")
