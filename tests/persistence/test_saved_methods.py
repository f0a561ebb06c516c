"""The library's own methods through the disk, beyond what the contract asks of each."""

import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC, LinearSVC

import labelweave as lw
from labelweave.exceptions import InputError
from labelweave.persistence import load, model_info, save


def assert_same_through_disk(model, rows, tmp_path):
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_proba(rows), model.predict_proba(rows))
    np.testing.assert_array_equal(again.predict(rows), model.predict(rows))
    return again


@pytest.mark.parametrize(
    "estimator",
    [
        LogisticRegression(C=3),
        LinearSVC(),
        SGDClassifier(loss="log_loss"),
        SVC(),
        GaussianNB(),
        KNeighborsClassifier(3),
        RandomForestClassifier(3),
        HistGradientBoostingClassifier(max_iter=3),
        MLPClassifier((4,), max_iter=20),
        CalibratedClassifierCV(LinearSVC(), cv=2),
        make_pipeline(StandardScaler(), LogisticRegression()),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_binary_relevance_over_scikit_learn(rows, labels, tmp_path, estimator):
    labels = labels.copy()
    labels[:, 1] = 0  # a label without a classifier of its own
    model = lw.make("br", estimator=estimator, random_state=0).fit(rows, labels)
    again = assert_same_through_disk(model, rows, tmp_path)
    assert type(again.estimator) is type(estimator)
    again.fit(rows, labels)


def test_binary_relevance_over_code_is_refused(rows, labels, tmp_path):
    shout = make_pipeline(FunctionTransformer(lambda X: X), LogisticRegression())
    model = lw.make("br", estimator=shout).fit(rows, labels)
    with pytest.raises(InputError, match="the parameter 'estimator' cannot be saved"):
        save(model, tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("neighbors", "form"),
    [
        ("matrix", np.asarray),
        ("matrix", sp.csr_array),
        ("sklearn", np.asarray),
        ("sklearn", sp.csr_array),
        ("faiss", np.asarray),
    ],
)
def test_neighbours(rows, labels, tmp_path, neighbors, form):
    if neighbors == "faiss":
        pytest.importorskip("faiss")
    unknown = np.where(np.arange(120).reshape(40, 3) % 7 == 0, np.nan, labels)
    model = lw.make("mlknn", k=3, neighbors=neighbors).fit(form(rows), sp.csr_array(unknown))
    assert_same_through_disk(model, form(rows), tmp_path)


@pytest.mark.parametrize(
    "parameters",
    [
        {"hidden": (), "scale": "none"},
        {"hidden": [8, 4], "norm": "batch", "loss": "asl", "loss_params": {"gamma_neg": 2.0}},
        {"norm": "layer", "scale": "max-abs", "patience": None},
    ],
    ids=str,
)
def test_networks(rows, labels, tmp_path, parameters):
    chosen = {"hidden": (8,), "epochs": 3, "random_state": 0, **parameters}
    model = lw.make("mlp", **chosen).fit(rows, labels)
    again = assert_same_through_disk(model, rows, tmp_path)
    assert {name: getattr(again, name) for name in chosen} == chosen
    assert again.history_.equals(model.history_)
    assert again.best_epoch_ == model.best_epoch_


def test_what_belongs_to_a_run_is_not_saved_but_code_is_refused(rows, labels, tmp_path):
    from labelweave.nn.losses import bce

    model = lw.make("mlp", hidden=(4,), epochs=1, callbacks=[], verbose=1, random_state=0)
    again = assert_same_through_disk(model.fit(rows, labels), rows, tmp_path)
    assert again.callbacks is None
    model.set_params(loss=bce).fit(rows, labels)
    with pytest.raises(InputError, match="the parameter 'loss' cannot be saved"):
        save(model, tmp_path / "model")
    assert load(tmp_path / "model").loss == "bce"


@pytest.mark.parametrize("method", ["br", "mlknn"])
def test_methods_without_a_network_load_without_torch(rows, labels, tmp_path, method):
    lw.make(method).fit(rows, labels).save(tmp_path / "model")
    program = (
        "import sys, labelweave as lw\n"
        f"model = lw.load({str(tmp_path / 'model')!r})\n"
        "model.predict([[0.0] * 6])\n"
        "assert 'torch' not in sys.modules, 'torch was imported'"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_info_imports_neither_torch_nor_the_method(rows, labels, tmp_path):
    lw.make("mlp", hidden=(4,), epochs=1).fit(rows, labels).save(tmp_path / "model")
    assert model_info(tmp_path / "model").parameters["epochs"] == 1
    program = (
        "import sys\n"
        "from labelweave.persistence import model_info\n"
        f"print(model_info({str(tmp_path / 'model')!r}).method)\n"
        "assert 'torch' not in sys.modules, 'torch was imported'"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
