"""The library's own methods through the disk, beyond what the contract asks of each."""

import os
import subprocess
import sys
from pathlib import Path

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
from labelweave.exceptions import InputError, ModelFolderError
from labelweave.persistence import load, save


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


def test_rows_of_another_form_than_the_training_rows(rows, labels, tmp_path):
    lw.make("br", estimator=SVC()).fit(rows, labels).save(tmp_path / "model")
    with pytest.raises(ModelFolderError, match=r"cannot predict these rows .* dense or sparse"):
        load(tmp_path / "model").predict_proba(sp.csr_array(rows))


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


def test_torch_is_imported_only_for_networks(rows, labels, saved, tmp_path):
    """A model without tensors must be usable where torch takes too long to import."""
    lw.make("mlp", hidden=(4,), epochs=1).fit(rows, labels).save(tmp_path / "mlp")
    for method in ("br", "mlknn"):
        lw.make(method).fit(rows, labels).save(tmp_path / method)
    program = (
        "import sys\n"
        "from labelweave.persistence import load, model_info\n"
        "assert model_info(sys.argv[1]).parameters['epochs'] == 1\n"
        "for folder in sys.argv[2:]:\n"
        "    load(folder).predict([[0.0] * 6])\n"
        "    assert 'torch' not in sys.modules, folder\n"
    )
    path = [str(Path(sys.modules["weave_frequency"].__file__).parent), *sys.path]
    subprocess.run(
        [
            sys.executable,
            "-c",
            program,
            *(tmp_path / name for name in ("mlp", "br", "mlknn")),
            saved,
        ],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, path))},
        check=True,
    )
