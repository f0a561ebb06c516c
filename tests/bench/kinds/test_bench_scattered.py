"""Cells of scattered labels: who sees which rows, and the columns beside the students."""

import numpy as np
import pytest
from bench_data import small_suite, write_data

from labelweave.bench.evaluation_protocol import EvaluationProtocol
from labelweave.bench.kinds import kind_module, scattered
from labelweave.bench.running.cell_data import load
from labelweave.bench.running.plan import make_plan
from labelweave.bench.suite import MethodEntry, ScenarioEntry, load_suite
from labelweave.exceptions import InputError

QUICK = {"student__epochs": 5, "student__hidden_size": 8}


@pytest.fixture(autouse=True)
def fresh_memory():
    scattered._memory.clear()
    yield
    scattered._memory.clear()


def suite_of(folder, *methods, **settings):
    write_data(folder / "one.csv", n_rows=200)
    scenario = {"n_teachers": 2, "teacher_settings": {"epochs": 5, "hidden_size": 8}, **settings}
    return small_suite(
        folder,
        seeds=(0,),
        names=("one",),
        kind="scattered",
        methods=methods,
        scenarios=(ScenarioEntry("s", settings=scenario),),
        protocols=(
            EvaluationProtocol("honest", split="random", test_size=0.25),
            EvaluationProtocol("as-published", split="random", test_size=0.25, threshold=0.5),
        ),
    )


def run_all(suite):
    cells = make_plan(suite).cells
    return [kind_module("scattered").run(cell, load(cell.data)) for cell in cells]


def test_a_student_is_fitted_without_labels_and_once_for_both_protocols(tmp_path, monkeypatch):
    from labelweave.scattered.ant import ANT

    seen = []
    fit = ANT.fit

    def watched(self, X, y=None, *, validation=None):
        seen.append((X, y, validation))
        return fit(self, X, y, validation=validation)

    monkeypatch.setattr(ANT, "fit", watched)
    honest, published = run_all(suite_of(tmp_path, MethodEntry("ANT", "ant", settings=QUICK)))
    ((X, y, validation),) = seen
    assert y is None
    assert not hasattr(validation, "Y")
    assert honest.rows == {"teachers": 140, "train": len(X), "validation": 9, "test": 15}
    assert honest.scores["map"] == published.scores["map"]
    assert set(published.thresholds.values()) == {0.5}
    assert honest.artifacts["amalgamation"]["fidelity"][0]["rows"] == 9


def test_rows_of_teachers_student_and_test_do_not_meet(tmp_path):
    suite = suite_of(tmp_path, MethodEntry("ANT", "ant", settings=QUICK))
    cell = make_plan(suite).cells[0]
    taught = scattered._teach(cell, load(cell.data))
    of_student = [set(map(bytes, part.X)) for part in taught.parts]
    train, validation, test = of_student
    assert not train & validation
    assert not (train | validation) & test
    known = set(map(bytes, taught.all_rows.X))
    assert train < known
    assert not known & (validation | test)
    of_teachers = np.array([x for x in taught.all_rows.X if bytes(x) not in train])
    assert np.allclose(of_teachers.mean(axis=0), 0, atol=1e-9)
    assert np.allclose(of_teachers.std(axis=0), 1, atol=1e-9)


def test_the_other_columns(tmp_path):
    nothing, teachers, union, oracle, bound = run_all(
        suite_of(
            tmp_path,
            MethodEntry("no labels", "union", options={"role": "nothing"}),
            MethodEntry("teachers", "union", options={"role": "teachers"}),
            MethodEntry("union", "union"),
            MethodEntry("oracle", "br", options={"role": "oracle"}),
            MethodEntry("bound", "br", options={"role": "bound"}),
        )
    )[::2]
    assert nothing.scores["f1_micro"] == 0
    assert len(teachers.artifacts["teachers"]) == 2
    assert teachers.scores["map"] == pytest.approx(
        np.mean([scores["map"] for scores in teachers.artifacts["teachers"]])
    )
    for outcome in (union, oracle, bound):
        assert outcome.scores["map"] > 0.5


def test_the_attainable_bound_sees_what_the_teachers_saw_and_nothing_else(tmp_path, monkeypatch):
    from labelweave.dependent.br import BinaryRelevance

    entry = MethodEntry("attainable bound", "br", options={"role": "attainable"})
    cell = make_plan(suite_of(tmp_path, entry, overlap=0.5)).cells[0]
    data = load(cell.data)
    taught = scattered._teach(cell, data)
    seen = []
    fit = BinaryRelevance.fit

    def watched(self, X, y, *, validation=None, **more):
        seen.append((X, np.asarray(y), validation))
        return fit(self, X, y, validation=validation, **more)

    monkeypatch.setattr(BinaryRelevance, "fit", watched)
    outcome = scattered.run(cell, data)
    ((X, Y, validation),) = seen
    assert validation is None
    assert len(X) == outcome.rows["teachers"]
    of_student = set().union(*(map(bytes, part.X) for part in taught.parts))
    assert not of_student & set(map(bytes, X))
    # All rows of one teacher have its labels, and the others are unknown.
    own = {tuple(np.isin(data.label_names, teacher.labels)) for teacher in taught.teachers}
    assert {tuple(row) for row in ~np.isnan(Y)} == own
    assert len(own) == 2
    rows, true = taught.all_rows.X, np.asarray(taught.all_rows.Y)
    truth = {bytes(x): y for x, y in zip(rows, true, strict=True)}
    full = np.array([truth[bytes(x)] for x in X])
    assert (np.isnan(Y) | (full == Y)).all()


def test_a_teacher_may_be_of_another_method(tmp_path):
    suite = suite_of(tmp_path, MethodEntry("union", "union"), teacher="br", teacher_settings={})
    assert run_all(suite)[0].scores["map"] > 0.5


def test_unknown_settings_are_refused():
    with pytest.raises(InputError, match="'n_pupils'"):
        scattered.check_scenario({"n_pupils": 2})
    with pytest.raises(InputError, match="role is one of"):
        scattered.check_options({"role": "spectator"})


@pytest.mark.parametrize(
    "name", ["ant-2", "ant-2-text", "ant-2-plus", "ant-3", "ant-4", "ant-4-stand-in"]
)
def test_the_suites_of_the_paper_can_be_planned(name):
    suite = load_suite(name)
    for scenario in suite.scenarios:
        scattered.check_scenario(scenario.settings)
    for method in suite.methods:
        scattered.check_options(method.options)


def test_the_suite_of_ant_plus_has_every_role():
    suite = load_suite("ant-2-plus")
    roles = {method.options.get("role", "student") for method in suite.methods}
    assert roles == set(scattered.ROLES)
    assert len(suite.seeds) == 10


def test_the_large_set_has_the_columns_that_a_share_of_the_gap_needs():
    suite, full_suite = load_suite("ant-2-large"), load_suite("ant-2-plus")
    names = {method.name for method in suite.methods}
    assert {"union, mean logit", "union, smoothed", "attainable bound", "bound"} <= names
    assert names <= {method.name for method in full_suite.methods}
    assert {entry.name for entry in suite.data} <= {entry.name for entry in full_suite.data}


@pytest.mark.parametrize("name", ["ant-2", "ant-3", "ant-4", "ant-4-stand-in"])
def test_the_published_tables_have_published_teachers_and_students(name):
    suite = load_suite(name)
    assert all(scenario.settings["teacher_published"] for scenario in suite.scenarios)
    lines = ("BL", "AKA", "FKA", "CFL", "TC", "ANT")
    methods = [method for method in suite.methods if method.line in lines]
    assert len(methods) == len(lines)
    assert all(method.published for method in methods)


def test_published_teachers_differ_in_size(tmp_path):
    from labelweave.dependent.ofcc import OFCC

    settings = {"teacher_published": True, "teacher_settings": {"epochs": 2}}
    (cell, _) = make_plan(suite_of(tmp_path, MethodEntry("U", "union"), **settings)).cells
    first, second = scattered._teach(cell, load(cell.data)).teachers
    sizes = [OFCC.published(role=role).hidden_size for role in ("teacher-1", "teacher-2")]
    assert [first.model.hidden_size, second.model.hidden_size] == sizes
