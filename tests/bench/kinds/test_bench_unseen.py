"""The kind of training with labels that have no examples."""

import json

import numpy as np
import pytest

import labelweave as lw
from labelweave.bench.evaluation_protocol import EvaluationProtocol
from labelweave.bench.kinds import kind_module
from labelweave.bench.kinds.unseen import capped_rows
from labelweave.bench.running import fitting
from labelweave.bench.running.cell_data import load
from labelweave.bench.running.plan import Quick, make_plan
from labelweave.bench.suite import DataEntry, MethodEntry, ScenarioEntry, Suite, load_suite
from labelweave.exceptions import InputError

WORDS = ("sea", "sun", "rain", "snow", "wind", "fog")


def text_suite(folder, method="tf-idf", settings=None, **scenario):
    path = folder / "weather.jsonl"
    random = np.random.default_rng(0)
    rows = []
    for i in range(90):
        labels = [word for word in WORDS if random.random() < 0.4] or ["sea"]
        rows.append({"id": i, "text": " ".join([*labels, "today"]), "labels": labels})
    path.write_text("\n".join(map(json.dumps, rows)) + "\n")
    return Suite(
        name="texts",
        title="texts",
        kind="unseen",
        data=(DataEntry("weather", source=str(path)),),
        methods=(MethodEntry("M", method, settings=settings or {}),),
        metrics=("precision@1", "recall@10"),
        seeds=(0,),
        protocols=(EvaluationProtocol("honest", test_size=0.3),),
        scenarios=(ScenarioEntry("s", settings=scenario),),
    )


def run_first(suite):
    cell = make_plan(suite).cells[0]
    return kind_module("unseen").run(cell, load(cell.data))


def test_unseen_labels_are_ranked_without_an_example(tmp_path, monkeypatch):
    fitted_parts = []
    fit = fitting.fit

    def watched(cell, parts, **more):
        fitted_parts.append(parts)
        return fit(cell, parts, **more)

    monkeypatch.setattr(fitting, "fit", watched)
    outcome = run_first(text_suite(tmp_path, unseen=2, rank="unseen"))
    assert outcome.scores["precision@1"] == 1  # each text names its labels
    assert fitted_parts[0].train.Y.n_labels == fitted_parts[0].validation.Y.n_labels == 4
    every = run_first(text_suite(tmp_path, unseen=2, rank="all"))
    assert every.rows["test"] > outcome.rows["test"]
    assert every.scores["precision@3"] > 0.5
    assert "f1_micro" not in every.scores


def test_as_many_rows_take_part_as_the_scenario_says(tmp_path):
    suite = text_suite(tmp_path, unseen=2, rank="all", train_rows=40, test_rows=10)
    outcome = run_first(suite)
    assert sum(outcome.rows.values()) == 50  # no official parts: of all rows together


def test_official_parts_keep_their_own_rows_whatever_the_seed():
    texts = [f"text {i}" for i in range(60)]
    part = ["train"] * 30 + ["validation"] * 10 + ["test"] * 20
    data = lw.Dataset(texts, np.eye(60), part=part)
    capped = capped_rows(data, 12, 5)
    assert (capped.part == "test").sum() == 5
    assert len(capped) == 17
    assert list(capped_rows(data, 12, 5).X) == list(capped.X)
    assert len(capped_rows(data, 99, 99)) == 60


@pytest.mark.parametrize("method", ["xml0", "xml0+", "xml0-lf", "conse", "sbert", "zestxml"])
def test_every_method_of_the_suite_runs(tmp_path, method):
    settings = {} if method == "zestxml" else {"encoder": "tfidf"}
    outcome = run_first(text_suite(tmp_path, method, settings, unseen=0.4))
    assert 0 <= outcome.scores["precision@1"] <= 1
    assert outcome.rows["test"] > 0


def test_other_methods_and_settings_are_refused(tmp_path):
    with pytest.raises(InputError, match="br cannot predict labels without examples"):
        run_first(text_suite(tmp_path, "br", unseen=2))
    for wrong, message in (
        ({"unseen": 2, "rank": "some"}, "rank is one of"),
        ({}, "how many labels are unseen"),
        ({"unseen": 2, "odd": 1}, "'odd'"),
        ({"unseen": 2, "train_rows": 9}, "two numbers of rows"),
        ({"unseen": 2, "train_rows": 9, "test_rows": 0}, "two numbers of rows"),
    ):
        with pytest.raises(InputError, match=message):
            make_plan(text_suite(tmp_path, **wrong))


def test_the_suites_have_all_methods():
    table_ii = {"zestxml", "tf-idf", "conse", "sbert", "xml0-lf", "xml0"}
    for name, ids in (("xml0-ii", table_ii), ("xml0-ii-stand-in", {*table_ii, "xml0+"})):
        assert {method.id for method in load_suite(name).methods} == ids
    stand_in = load_suite("xml0-ii-stand-in")
    assert len(stand_in.seeds) >= 3
    assert "recall@10" in stand_in.metrics


@pytest.mark.data
def test_a_quick_cell_of_the_stand_in_runs(data_home):
    plan = make_plan(load_suite("xml0-ii-stand-in"), quick=Quick())
    cell = next(c for c in plan.cells if c.method == "tf-idf" and c.data.name == "cooking-se")
    outcome = kind_module("unseen").run(cell, load(cell.data))
    assert outcome.scores["ndcg@5"] > 0.1
