"""The Open Inference Protocol."""

import numpy as np
import pytest
from serving import check_problem

import labelweave as lw

pytestmark = pytest.mark.filterwarnings("ignore:X does not have valid feature names")


def infer(served, model, **tensor):
    body = {"id": "7", "inputs": [{"name": "X", **tensor}]}
    return served.open.post(f"/v2/models/{model}/infer", json=body)


def test_numbers_flat_and_nested(real, vectors_folder):
    X = np.random.default_rng(1).random((4, 3))
    expected = lw.load(vectors_folder).predict_proba(X)
    for data in (X.ravel().tolist(), X.tolist()):
        answer = infer(real, "shapes", datatype="FP64", shape=[4, 3], data=data).json()
        (output,) = answer["outputs"]
        assert (answer["id"], answer["model_name"], output["name"]) == (
            "7",
            "shapes",
            "probabilities",
        )
        assert output["shape"] == [4, 3]
        np.testing.assert_allclose(np.reshape(output["data"], (4, 3)), expected, atol=1e-12)


def test_texts_and_metadata(real):
    answer = infer(real, "news", datatype="BYTES", shape=[2], data=["sea", "sun"]).json()
    assert answer["outputs"][0]["shape"] == [2, 2]
    about = real.open.get("/v2/models/news").json()
    assert about["inputs"] == [{"name": "X", "datatype": "BYTES", "shape": [-1]}]
    assert about["outputs"][0]["parameters"]["labels"] == ["sea", "sun"]
    assert real.open.get("/v2/models/news/ready").json()["ready"]


@pytest.mark.parametrize(
    "tensor",
    [
        {"datatype": "FP64", "shape": [4, 3], "data": [1.0]},
        {"datatype": "FP64", "shape": [1, 2], "data": [1.0, 2.0]},
        {"datatype": "FP64", "shape": [3], "data": [1.0, 2.0, 3.0]},
        {"datatype": "FP64", "shape": [], "data": []},
        {"datatype": "FP64", "shape": [0, 3], "data": []},
        {"datatype": "FP64", "shape": [2, 0], "data": []},
        {"datatype": "BOOL", "shape": [1, 3], "data": [True] * 3},
        {"datatype": "BYTES", "shape": [1], "data": ["text"]},
        {"datatype": "FP64", "shape": [1, 3], "data": [[1.0, [2.0], 3.0]]},
        {"datatype": "FP64", "shape": [1, 3], "data": [1.0, 2.0, 1e39]},
    ],
)
def test_wrong_tensors(real, tensor):
    check_problem(infer(real, "shapes", **tensor), 422)
