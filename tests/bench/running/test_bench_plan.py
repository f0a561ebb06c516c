"""Names of cells: what changes them and what does not."""

from dataclasses import replace

import pytest
from bench_data import small_suite

from labelweave import methods
from labelweave.bench.running import fitting, method_settings
from labelweave.bench.running.plan import Quick, all_cells, make_plan
from labelweave.bench.suite import MethodEntry
from labelweave.dependent.mlp import MLP
from labelweave.exceptions import InputError
from labelweave.pipeline import recipe


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


@pytest.mark.parametrize(
    ("method", "settings", "resolved"),
    [
        ("mlknn", {"k": 10}, {}),  # the default
        ("mlknn", {"k": 3, "text__min_texts": 2}, {"k": 3, "text__min_texts": 2}),
        ("mlp", {"hidden": [8], "threshold": 0.5}, {"hidden": [8], "threshold": 0.5}),
        ("co-teaching", {"base": "mlp"}, {}),
    ],
)
def test_settings_that_differ_from_the_defaults_decide(suite, method, settings, resolved):
    cell = replace(all_cells(suite)[0], method=method, settings=settings)
    assert cell.resolved == resolved
    assert cell.identity == replace(cell, settings=resolved).identity


class Published(MLP):
    """A method with published settings, one of them an estimator."""

    def __init__(self, k=1, base=None, threshold=0.5, random_state=None):
        self.k = k
        self.base = base
        self.threshold = threshold
        self.random_state = random_state

    def default_part(self, parameter):
        return MLP() if parameter == "base" else None

    @classmethod
    def published(cls, dataset=None, *, source="program"):
        k = {"one": 5}.get(dataset, 1)
        return cls(k, MLP(lr=0.5 if source == "text" else 0.1, epochs=50), threshold="tuned")


@pytest.fixture
def published_method(monkeypatch):
    for module in (method_settings, recipe, methods):
        monkeypatch.setattr(module, "get_class", lambda id: Published, raising=False)
    method_settings._resolved.cache_clear()
    yield "mlknn"
    method_settings._resolved.cache_clear()


def test_published_settings_come_first_and_those_of_the_suite_on_top(suite, published_method):
    entry = MethodEntry("P", published_method, published=True)
    data = tuple(replace(one, source=one.name) for one in suite.data)

    def resolved(**changes):
        cells = all_cells(replace(suite, data=data, methods=(replace(entry, **changes),)))
        return {cell.data.name: cell.resolved for cell in cells}

    general = {"base": "MLP", "base__lr": 0.1, "base__epochs": 50}
    assert resolved() == {"one": {**general, "k": 5}, "two": general}
    assert resolved(published="text")["two"] == {**general, "base__lr": 0.5}
    assert resolved(settings={"k": 7, "base__lr": 0.2})["one"] == {
        **general,
        "k": 7,
        "base__lr": 0.2,
    }
    # The same settings written in the suite, and the same cells.
    written = {"base__lr": 0.1, "base__epochs": 50}
    assert resolved(published=False, settings=written)["two"] == general
    cell = all_cells(replace(suite, data=data, methods=(entry,)))[0]
    settings = fitting._settings(cell)
    assert (settings["k"], settings["base"].epochs) == (5, 50)
    assert settings.keys() == {"k", "base"}  # the bench sets threshold and seed itself
    assert fitting._settings(replace(cell, quick=Quick()))["base__epochs"] == Quick().epochs


def test_a_method_without_published_settings_is_one_clear_error(suite):
    entry = MethodEntry("trees", "extra-trees", published=True)
    with pytest.raises(InputError, match="extra-trees has no published settings"):
        make_plan(replace(suite, methods=(entry,)))


def test_a_method_with_one_published_form_has_no_source(suite, published_method, monkeypatch):
    make = classmethod(lambda cls, dataset=None: cls())
    monkeypatch.setattr(Published, "published", make)
    for published, what in {"text": "source", "linear-probe": "form"}.items():
        entry = MethodEntry("P", published_method, published=published)
        with pytest.raises(InputError, match=f"has one published {what}, not {published!r}"):
            make_plan(replace(suite, methods=(entry,)))


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
