"""Records of mixed columns: what a client sends, and what it is told about it."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from serving import check_problem, labels_of, predict, running
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import labelweave as lw
from product_table import product_columns, product_table

FRAME, LABELS = product_table()
RECORD = {"title": "the red lamp", "price": 3, "brand": "acme", "new": "yes", "added": "2024-02-01"}
MODELS = ("table", "pipeline", "encoder", "calibrated")


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Saved models of the table: an encoder inside, pipelines, and a calibrated pipeline."""
    folder = tmp_path_factory.mktemp("products")

    def br():
        return lw.BinaryRelevance(random_state=0)

    strict = make_column_transformer((OneHotEncoder(handle_unknown="error"), ["new"]))
    numbers = FRAME[["price"]].assign(weight=np.arange(60.0))
    models = {
        "table": br().fit(FRAME, LABELS),
        "pipeline": make_pipeline(product_columns(), br()).fit(FRAME, LABELS),
        "encoder": make_pipeline(lw.TableEncoder(), br()).fit(FRAME, LABELS),
        "calibrated": lw.CalibratedMultiLabel(make_pipeline(product_columns(), br()), cv=2).fit(
            FRAME, LABELS
        ),
        "strict": make_pipeline(strict, br()).fit(FRAME, LABELS),
        "blanks": lw.BoostedTrees(max_iter=3).fit(numbers, LABELS),
    }
    for name, model in models.items():
        lw.save(model, folder / name)
    return {name: folder / name for name in models}


@pytest.fixture(scope="module")
def served(folders, tmp_path_factory):
    state = tmp_path_factory.mktemp("state") / "state.sqlite"
    with running(folders, database=f"sqlite:///{state}") as service:
        yield service


def as_records(frame):
    return [
        {name: None if pd.isna(value) else value for name, value in row.items()}
        for row in frame.to_dict("records")
    ]


@pytest.mark.parametrize("model", MODELS)
def test_labels_are_those_of_the_library(served, folders, model):
    expected = lw.load(folders[model]).predict_labels(FRAME[:15])
    answer = predict(served, model, inputs=as_records(FRAME[:15]))
    assert [sorted(row) for row in labels_of(answer)] == [sorted(row) for row in expected]
    assert "warnings" not in answer.json()


@pytest.mark.parametrize("model", MODELS)
def test_blanks_are_null_or_left_out(served, model):
    blank = predict(served, model, inputs=[RECORD | {"price": None, "brand": None}], scores=True)
    short = {k: v for k, v in RECORD.items() if k not in ("price", "brand")}
    left_out = predict(served, model, inputs=[short], scores=True)
    assert blank.json()["predictions"] == left_out.json()["predictions"]
    full = predict(served, model, inputs=[RECORD], scores=True)
    assert full.json()["predictions"] != blank.json()["predictions"]


def test_a_column_that_had_no_blanks_may_be_null_but_not_left_out(served):
    short = {k: v for k, v in RECORD.items() if k != "new"}
    labels_of(predict(served, "table", inputs=[RECORD | {"new": None}]))
    check_problem(predict(served, "table", inputs=[short]), 422, "inputs.0 lacks the column 'new'")
    labels_of(predict(served, "table", inputs=[short], absent="blank"))


@pytest.mark.parametrize(
    ("model", "change", "words"),
    [
        ("table", {"price": "cheap"}, "inputs.1.price must be a number or null, not the text"),
        ("table", {"price": True}, "inputs.1.price must be a number or null, not the value true"),
        ("table", {"price": [1]}, "inputs.1.price must be a single value, not a list"),
        ("table", {"price": 10**400}, "inputs.1.price is not a number from -1e300 to 1e300"),
        (
            "table",
            {"added": "soon"},
            "inputs.1.added is 'soon', which is not a date of the form 20",
        ),
        ("table", {"added": 3}, "inputs.1.added must be a date as a text or null"),
        ("table", {"new": "maybe"}, "inputs.1.new must be yes or no or null, not the text 'maybe'"),
        ("table", {"title": 3}, "inputs.1.title must be a text or null, not the number 3"),
        ("table", {"colour": "red"}, "no column 'colour'; its columns are 'title', 'price'"),
        ("pipeline", {"price": "cheap"}, "inputs.1.price must be a number or null"),
        ("pipeline", {"title": None}, "inputs.1.title is null, but the column must not be blank"),
        ("pipeline", {"brand": 3}, "inputs.1.brand must be a text or null, not the number 3"),
        ("pipeline", {"colour": "red"}, "no column 'colour'; its columns are 'title', 'price'"),
        ("strict", {"new": "maybe"}, "'columntransformer' of the pipeline (ColumnTransformer) can"),
    ],
)
def test_a_wrong_value_is_named_in_one_sentence(served, model, change, words):
    answer = predict(served, model, inputs=[RECORD, RECORD | change])
    check_problem(answer, 422, words)
    assert "\n" not in answer.json()["detail"]


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({"inputs": [[1, 2]]}, 422, "inputs.0: this model predicts from records"),
        ({"inputs": ["a text"]}, 422, "inputs.0: this model predicts from records"),
        ({"inputs": [RECORD], "absent": "zero"}, 422, "absent='zero' is for models of numbers"),
        ({"inputs": [RECORD | {"title": "a" * 100_001}]}, 413, "The text inputs.0.title has 100"),
        ({"inputs": []}, 422, "inputs"),
    ],
)
def test_other_inputs_are_refused(served, body, status, words):
    check_problem(predict(served, "table", **body), status, words)


def test_a_wrong_request_does_not_harm_those_beside_it(served):
    def send(k):
        change = {"new": "maybe"} if k % 3 == 0 else {}
        return predict(served, "strict", inputs=[RECORD | change]).status_code

    with ThreadPoolExecutor(6) as threads:
        codes = list(threads.map(send, range(12)))
    assert codes == [422 if k % 3 == 0 else 200 for k in range(12)]


@pytest.mark.filterwarnings("ignore:the column 'brand' has")
@pytest.mark.parametrize("model", MODELS)
def test_new_categories_are_in_the_response(served, model):
    rows = [RECORD, RECORD | {"brand": "zeta"}, RECORD | {"brand": "eta"}]
    answer = predict(served, model, inputs=rows)
    assert len(labels_of(answer)) == 3
    assert answer.json()["warnings"] == ["inputs.1.brand and 1 more: no training row had 'zeta'"]


def test_and_not_in_the_log(folders, sqlite, capfd):
    chosen = {name: folders[name] for name in ("table", "encoder")}
    with running(chosen, database=sqlite, model_processes=True) as service:
        for brand in ("zeta", "eta"):
            for model in chosen:
                labels_of(predict(service, model, inputs=[RECORD | {"brand": brand}]))
    assert "Warning" not in capfd.readouterr().err


def test_the_columns_are_described(served):
    about = served.open.get("/v1/models/table").json()
    assert about["input"] == "records"
    kinds = {column["name"]: column["kind"] for column in about["columns"]}
    assert kinds == {
        "title": "text",
        "price": "number",
        "brand": "category",
        "new": "yes/no",
        "added": "date",
    }
    brand = about["columns"][2]
    assert sorted(brand["values"]) == ["acme", "bolt", "core"]
    assert (brand["may_be_blank"], brand["may_be_absent"]) == (True, True)
    used = served.open.get("/v1/models/pipeline").json()["columns"]
    assert [column["name"] for column in used] == ["title", "price", "brand", "new"]
    assert served.open.get("/v1/models/blanks").json()["columns"] is None


def test_open_inference_has_one_tensor_per_column(served, folders):
    about = served.open.get("/v2/models/table").json()
    assert [tensor["name"] for tensor in about["inputs"]] == list(FRAME.columns)
    assert [tensor["datatype"] for tensor in about["inputs"]][:2] == ["BYTES", "FP64"]
    rows = as_records(FRAME[:4])
    tensors = [
        {
            "name": tensor["name"],
            "datatype": tensor["datatype"],
            "shape": [4],
            "data": [row[tensor["name"]] for row in rows],
        }
        for tensor in about["inputs"]
    ]
    address = "/v2/models/table/infer"
    output = served.open.post(address, json={"inputs": tensors}).json()["outputs"][0]
    expected = lw.load(folders["table"]).predict_proba(FRAME[:4])
    np.testing.assert_allclose(np.reshape(output["data"], output["shape"]), expected)
    short = [tensors[0], tensors[1] | {"shape": [3], "data": [1, 2, 3]}]
    check_problem(served.open.post(address, json={"inputs": short}), 422, "'price' must have the")
    twice = [tensors[0], tensors[0]]
    check_problem(served.open.post(address, json={"inputs": twice}), 422, "two tensors named")
    other = [tensors[0] | {"name": "colour"}]
    check_problem(served.open.post(address, json={"inputs": other}), 422, "no column 'colour'")
    odd = [tensors[0] | {"datatype": "FP8"}]
    check_problem(served.open.post(address, json={"inputs": odd}), 422, "unknown datatype 'FP8'")


def test_blanks_of_a_model_of_numbers(served, folders):
    model = lw.load(folders["blanks"])
    row = pd.DataFrame({"price": [np.nan], "weight": [5.0]})
    expected = [sorted(labels) for labels in model.predict_labels(row)]
    for inputs in ([[None, 5]], [{"price": None, "weight": 5}]):
        assert [sorted(row) for row in labels_of(predict(served, "blanks", inputs=inputs))] == (
            expected
        )
    check_problem(predict(served, "blanks", inputs=[["x", 5]]), 422, "inputs.0.0")
