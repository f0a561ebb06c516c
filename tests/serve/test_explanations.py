"""Explanations by columns and words over HTTP."""

import json
import shutil

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from serving import PredictsBrightness, check_problem, running, use_fakes

import labelweave as lw
from labelweave.explaining import explain_row, reference_rows
from labelweave.explaining.reference import reference_to_plain
from product_table import product_table

NAMES = ["f1", "f2", "f3"]


def save_with_reference(model, folder, X):
    reference = json.dumps(reference_to_plain(reference_rows(X))).encode()
    lw.save(model, folder, extra_files={"reference.json": reference})
    return folder


@pytest.fixture(scope="module")
def folders(tmp_path_factory, texts_folder):
    """Models of an array, a frame of numbers and sparse rows, with typical values."""
    folder = tmp_path_factory.mktemp("explained")
    X = np.random.default_rng(0).random((120, 3))
    Y = pd.DataFrame(X > 0.5, columns=["red", "blue", "round"]).astype(int)
    frame = pd.DataFrame(X, columns=NAMES)
    wide = sp.csr_array(np.eye(30)[np.arange(120) % 30])
    zeros = lw.as_labels(wide.toarray()[:, :2], names=["a", "b"])
    models = {
        "array": (lw.BinaryRelevance().fit(X, Y), X),
        "frame": (lw.BinaryRelevance().fit(frame, Y), frame),
        "sparse": (lw.BinaryRelevance().fit(wide, zeros), wide),
    }
    saved = {name: save_with_reference(m, folder / name, X) for name, (m, X) in models.items()}
    models["frame"][0].save(folder / "plain")
    return {**saved, "plain": folder / "plain", "texts": texts_folder}


@pytest.fixture(scope="module", params=[False, True], ids=["in the service", "in processes"])
def served(request, folders, tmp_path_factory):
    database = f"sqlite:///{tmp_path_factory.mktemp('state') / 'state.sqlite'}"
    options = {"database": database, "model_processes": request.param, "max_explained_rows": 200}
    with running(folders, **options) as service:
        yield service


def explain(served, model, **body):
    return served.open.post(f"/v1/models/{model}/explain", json=body)


def explained(served, model, **body):
    answer = explain(served, model, **body)
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.mark.parametrize("name", ["array", "frame"])
def test_columns_for_and_against(served, folders, name):
    row = [0.9, 0.1, 0.5]
    inputs = [row] if name == "array" else [dict(zip(NAMES, row, strict=True))]
    answer = explained(served, name, inputs=inputs, top_k=3)
    assert answer["by"] == "columns"
    assert answer["not_measured"] == [0]
    (labels,) = answer["explanations"]
    by_label = {one["label"]: one for one in labels}
    features = NAMES if name == "frame" else ["x0", "x1", "x2"]
    strongest = {label: one["features"][0] for label, one in by_label.items()}
    assert strongest["red"]["feature"] == features[0]
    assert strongest["red"]["value"] == 0.9
    assert strongest["red"]["change"] > 0.2
    assert strongest["blue"]["feature"] == features[1]
    assert strongest["blue"]["change"] < -0.2
    assert by_label["red"]["predicted"] is True
    X = np.random.default_rng(0).random((120, 3))
    expected = explain_row(lw.load(folders["array"]), row, reference_rows(X)).to_dict(
        [one["label"] for one in labels], 10
    )
    assert [[f["change"] for f in one["features"]] for one in labels] == [
        pytest.approx([f["change"] for f in one["features"]]) for one in expected["labels"]
    ]


def test_labels_columns_and_background_of_the_request(served):
    background = np.random.default_rng(1).random((20, 3))
    body = {"inputs": [[0.9, 0.1, 0.5]], "labels": ["round", "red"], "columns": ["f1"]}
    answer = explained(served, "plain", **body, background=background.tolist())
    labels = answer["explanations"][0]
    assert [one["label"] for one in labels] == ["round", "red"]
    assert {f["feature"] for one in labels for f in one["features"]} <= {"f1"}
    short = explained(served, "frame", inputs=[[0.9, 0.1, 0.5]], top_k=1, features=1)
    assert [len(one["features"]) for one in short["explanations"][0]] == [1]


def test_words(served):
    answer = explained(served, "texts", inputs=["the hot sun", "deep sea"], top_k=1)
    assert answer["by"] == "words"
    first, second = (labels[0] for labels in answer["explanations"])
    assert (first["label"], second["label"]) == ("sun", "sea")
    assert "sun" in [f["feature"] for f in first["features"] if f["change"] > 0]
    long = " ".join(f"word{k}" for k in range(300))
    answer = explained(served, "texts", inputs=[long])
    assert answer["not_measured"] == [100]


def test_only_what_is_not_zero_counts_in_sparse_rows(served):
    row = np.eye(30)[1].tolist()
    answer = explained(served, "sparse", inputs=[row], labels=["b"])
    (one,) = answer["explanations"][0]
    assert [f["feature"] for f in one["features"]] == ["x1"]
    check_problem(explain(served, "sparse", inputs=[[1.0] * 30] * 7), 413, "210 predictions")


def test_the_cost_is_limited(served):
    row = [0.9, 0.1, 0.5]
    check_problem(explain(served, "array", inputs=[row] * 20), 413, "300 predictions", "200")
    check_problem(explain(served, "array", inputs=[row] * 41), 413)
    assert explain(served, "array", inputs=[row] * 20, columns=["x1"]).status_code == 200
    background = [row] * 201
    check_problem(explain(served, "array", inputs=[row], background=background), 413)


def test_wrong_requests(served):
    row = [0.9, 0.1, 0.5]
    check_problem(explain(served, "plain", inputs=[row]), 409, "typical values", "background")
    check_problem(explain(served, "array", inputs=[row], labels=["green"]), 422, "'green'")
    check_problem(explain(served, "array", inputs=[row], columns=["x7"]), 422, "'x7'")
    check_problem(
        explain(served, "array", inputs=[row], background=[[1]]), 422, "background.0 has 1 number"
    )
    check_problem(explain(served, "array", inputs=[[1]]), 422, "inputs.0 has 1 number")
    check_problem(explain(served, "array", inputs=[row], background=[]), 422, "background")


def test_models_say_how_they_explain(served):
    def how(name):
        return served.open.get(f"/v1/models/{name}").json()["explains_by"]

    assert [how(name) for name in ("array", "texts", "plain")] == ["columns", "words", None]


def test_a_zero_shot_model_explains_words_if_asked_for_labels(fake):
    answer = explained(fake, "tags", inputs=["the sea"], labels=["sea"])
    assert answer["by"] == "words"
    (one,) = answer["explanations"][0]
    assert [(f["feature"], round(f["change"], 6)) for f in one["features"]] == [("sea", 0.8)]
    assert explained(fake, "tags", inputs=["the sea"])["by"] == "labels"


def test_images_are_not_explained(monkeypatch, sqlite):
    use_fakes(monkeypatch, PredictsBrightness)
    with running({"tags": "x"}, database=sqlite) as service:
        check_problem(explain(service, "tags", inputs=["x"]), 409, "images")


@pytest.fixture(scope="module")
def products(tmp_path_factory):
    """A model of a mixed table, with typical values of its columns."""
    frame, labels = product_table(120)
    model = lw.BoostedTrees(random_state=0).fit(frame, labels)
    return model, save_with_reference(model, tmp_path_factory.mktemp("products") / "p", frame)


def test_records_of_a_mixed_table(products, sqlite):
    model, folder = products
    record = {
        "title": "the blue lamp",
        "price": 5.0,
        "brand": "acme",
        "new": "yes",
        "added": "2024-02-01",
    }
    with running({"products": folder}, database=sqlite) as service:
        answer = explained(service, "products", inputs=[record], labels=["cheap"])
        blank = explained(service, "products", inputs=[record | {"price": None}], labels=["cheap"])
    (cheap,) = answer["explanations"][0]
    assert answer["by"] == "columns"
    assert (cheap["features"][0]["feature"], cheap["features"][0]["value"]) == ("price", 5.0)
    assert cheap["features"][0]["change"] > 0.2
    frame = pd.DataFrame([record])
    assert cheap["probability"] == pytest.approx(model.predict_proba(frame)[0, 1], abs=1e-5)
    expected = explain_row(model, frame, reference_rows(product_table(120)[0]), labels=["cheap"])
    changes = {f["feature"]: f["change"] for f in cheap["features"]}
    assert changes == pytest.approx(
        {name: change for name, _, change in expected.strongest("cheap")}, abs=1e-5
    )
    values = {f["feature"]: f["value"] for f in blank["explanations"][0][0]["features"]}
    assert values.get("price") is None


@pytest.mark.parametrize(
    ("columns", "status"),
    [
        ({"f1": ["x"], "f2": [0.5], "f3": [0.5]}, 409),  # words in a column of numbers
        ({"f1": [], "f2": [], "f3": []}, 503),
        ({"f1": "word", "f2": [0.5], "f3": [0.5]}, 503),
        ({"f1": {"a": 0.5}, "f2": {"b": 0.5}, "f3": {"c": 0.5}}, 503),
        ({"f1": [0.5, 1], "f2": [0.5], "f3": [0.5]}, 503),
        ({"f1": [1e300], "f2": [0.5], "f3": [0.5]}, 422),
    ],
    ids=["words", "no rows", "a text", "objects", "lengths", "large"],
)
def test_changed_typical_values_are_no_internal_error(sqlite, folders, tmp_path, columns, status):
    folder = shutil.copytree(folders["frame"], tmp_path / "model")
    (folder / "reference.json").write_text(json.dumps({"kind": "table", "columns": columns}))
    with running({"model": folder}, database=sqlite) as served:
        answer = explain(served, "model", inputs=[[0.9, 0.1, 0.5]], top_k=1)
        check_problem(answer, status)
