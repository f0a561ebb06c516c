"""Exported graphs compute the probabilities of the model, without this library."""

import json

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from sklearn.datasets import make_multilabel_classification

import labelweave as lw
from labelweave.exceptions import InputError
from labelweave.export import export_onnx, export_torch, serving_module
from labelweave.methods import get_class, list_methods
from labelweave.nn.estimator import NeuralClassifier
from labelweave.testing import test_instance
from labelweave.testing.text_and_image_checks import takes_texts

NEURAL = [
    method.id
    for method in list_methods()
    if issubclass(method.load(), NeuralClassifier)
    # What a loss or a strategy trains is another method's network: one for each form will do.
    and (method.room != "partial" or method.id in ("an", "cls"))
    and not takes_texts(test_instance(method.load()))  # a graph takes features
]


@pytest.fixture(scope="module")
def data():
    X, Y = make_multilabel_classification(120, 12, n_classes=3, random_state=0)
    return X.astype(np.float64) * 7 + 3, Y


def fitted(id, data, **changes):
    cls = get_class(id)
    epochs = "base__epochs" if "base" in cls._get_param_names() else "epochs"
    model = cls(**cls._test_params()).set_params(**{epochs: 3}, random_state=0, **changes)
    return model.fit(*data)


def load_torch(path):
    """Return a function from rows to probabilities, and the names of the labels."""
    files = {"labels": ""}
    module = torch.export.load(path, extra_files=files).module()

    def predict(X):
        with torch.inference_mode():
            return module(torch.as_tensor(X, dtype=torch.float32)).numpy()

    return predict, json.loads(files["labels"])


def load_onnx(path):
    """Return a function from rows to probabilities, and the names of the labels."""
    session = pytest.importorskip("onnxruntime").InferenceSession(path)

    def predict(X):
        return session.run(["probabilities"], {"features": X.astype(np.float32)})[0]

    return predict, json.loads(session.get_modelmeta().custom_metadata_map["labels"])


FORMS = {
    "torch": (export_torch, load_torch, "model.pt2"),
    "onnx": (export_onnx, load_onnx, "m.onnx"),
}
# Every network as ONNX, which torch.export traces first; what trains the network of MLP, and the
# settings of two networks, in the form that is quick to write.
VARIANTS = [
    *((id, {}, "torch" if id in ("an", "asl", "cls") else "onnx") for id in NEURAL),
    ("mlp", {}, "torch"),
    ("mlp", {"scale": "none"}, "torch"),
    ("mlp", {"norm": "batch"}, "torch"),
    ("mlp", {"scale": "max-abs", "norm": "layer"}, "torch"),
    ("c-gmvae", {"skip": False}, "torch"),
]


@pytest.mark.parametrize(("id", "changes", "form"), VARIANTS)
def test_equal_probabilities_for_any_number_of_rows(data, tmp_path, id, changes, form):
    export, load, name = FORMS[form]
    if form == "onnx":
        pytest.importorskip("onnxscript")
    X, _ = data
    model = fitted(id, data, **changes)
    export(model, tmp_path / name)
    predict, labels = load(tmp_path / name)
    assert labels == list(model.label_names_)
    for n_rows in (1, 2, 120):
        np.testing.assert_allclose(predict(X[:n_rows]), model.predict_proba(X[:n_rows]), atol=1e-6)


@pytest.mark.parametrize("form", FORMS)
def test_a_single_label_and_sparse_training(data, tmp_path, form):
    export, load, name = FORMS[form]
    if form == "onnx":
        pytest.importorskip("onnxscript")
    X, Y = data
    model = fitted("mlp", (sp.csr_array(X), Y.argmax(1)))
    export(model, tmp_path / name)
    probabilities = load(tmp_path / name)[0](X)
    np.testing.assert_allclose(probabilities, model.predict_proba(X), atol=1e-6)
    np.testing.assert_allclose(probabilities.sum(1), 1, atol=1e-5)


def test_the_model_is_not_changed(data):
    model = fitted("mlp", data)
    module = serving_module(model)
    before = model.predict_proba(data[0])
    for parameter in module.parameters():
        parameter.data.zero_()
    np.testing.assert_array_equal(model.predict_proba(data[0]), before)


def test_a_method_without_network_is_refused(data, tmp_path):
    with pytest.raises(InputError, match="MLkNN has no network"):
        export_torch(lw.make("mlknn").fit(*data), tmp_path / "model.pt2")
