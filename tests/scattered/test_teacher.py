"""Teachers of every kind, and errors for wrong ones."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scattered_data import easy_data
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import labelweave as lw
from labelweave.exceptions import InputError
from labelweave.scattered.teacher import Teacher, as_teachers

NAMES = ["a", "b", "c", "d", "e"]


@pytest.fixture(scope="module")
def data():
    return easy_data(150)


@pytest.mark.parametrize(
    "model",
    [
        MultiOutputClassifier(LogisticRegression()),
        OneVsRestClassifier(LogisticRegression()),
        ClassifierChain(LogisticRegression()),
        RandomForestClassifier(10, random_state=0),
        make_pipeline(StandardScaler(), RandomForestClassifier(10, random_state=0)),
    ],
    ids=lambda model: type(model).__name__,
)
def test_any_shape_of_predict_proba(data, model):
    X, Y = data
    model.fit(X, Y)
    p = Teacher(model, NAMES).probabilities(X)
    assert p.shape == Y.shape
    # Whatever the shape, the column of a label is that of its being 1.
    assert ((p > 0.5) == model.predict(X)).mean() > 0.99


def test_a_constant_label_of_a_forest_has_one_class(data):
    X, Y = data
    Y = Y.copy()
    Y[:, 2], Y[:, 3] = 0, 1
    p = Teacher(RandomForestClassifier(5, random_state=0).fit(X, Y), NAMES).probabilities(X)
    assert (p[:, 2] == 0).all()
    assert (p[:, 3] == 1).all()


def test_decision_values_become_probabilities_and_can_be_calibrated(data):
    X, Y = data
    model = OneVsRestClassifier(LinearSVC(C=10)).fit(X[:60], Y[:60])
    teacher = Teacher(model, NAMES)
    assert np.allclose(teacher.probabilities(X), 1 / (1 + np.exp(-model.decision_function(X))))
    better = teacher.calibrated(X[60:], Y[60:], "sigmoid")

    def log_loss(p):
        return -np.log(np.where(Y[60:] == 1, p, 1 - p) + 1e-12).mean()

    assert log_loss(better.probabilities(X[60:])) < log_loss(teacher.probabilities(X[60:]))
    assert teacher.calibrator is None


def test_a_model_that_only_predicts_votes(data):
    class Voter:
        def predict(self, X):
            return (X[:, :2] > 3).astype(int)

    X, _ = data
    p = Teacher(Voter(), ["x", "y"]).probabilities(X)
    assert np.array_equal(p, X[:, :2] > 3)
    assert np.isfinite(Teacher(Voter(), ["x", "y"]).logits(X)).all()


def test_one_binary_classifier_is_a_teacher_of_one_label(data):
    X, Y = data
    model = LogisticRegression().fit(X, Y[:, 0])
    assert np.allclose(Teacher(model, ["a"]).probabilities(X)[:, 0], model.predict_proba(X)[:, 1])
    ridge = RidgeClassifier().fit(X, Y[:, 0])
    assert Teacher(ridge, ["a"]).probabilities(X).shape == (len(X), 1)


def test_a_classifier_of_one_class_per_row_lists_its_labels(data):
    X, Y = data
    model = LogisticRegression(max_iter=1000).fit(X, np.array(NAMES)[Y.argmax(axis=1)])
    teacher = Teacher(model)
    assert teacher.labels == tuple(model.classes_)
    assert np.allclose(teacher.probabilities(X), model.predict_proba(X))


def test_an_estimator_and_its_folder_predict_the_same(data, tmp_path):
    X, Y = data
    model = lw.make("mlknn").fit(X, lw.as_labels(Y, names=NAMES))
    model.save(tmp_path / "model")
    fitted, saved = Teacher(model), Teacher(tmp_path / "model")
    assert fitted.labels == saved.labels == tuple(NAMES)
    assert saved.name == "model"
    assert np.array_equal(fitted.probabilities(X), saved.probabilities(X))
    assert np.array_equal(fitted.prevalence, np.mean(Y, axis=0))
    assert np.array_equal(saved.prevalence, fitted.prevalence)


def test_prevalence_is_the_models_or_is_passed(data):
    X, Y = data
    partial = lw.make("an", base=lw.make("mlp", epochs=1, hidden=(4,)))
    assert Teacher(partial.fit(X, Y)).prevalence is None  # its zeros may be blanks
    texts = lw.TextClassifier(partial).fit(["sun", "rain", "snow"] * 4, Y[:12])
    assert Teacher(texts).prevalence is None
    assert Teacher(len, ["x", "y"]).prevalence is None
    assert Teacher(len, ["x", "y"], prevalence=[0.1, np.nan]).prevalence.tolist()[0] == 0.1


def test_the_threshold_is_the_models_or_is_passed(data):
    X, Y = data
    model = lw.MLkNN(threshold="per-label", random_state=0).fit(X, Y)
    teacher = Teacher(model, NAMES)
    p, thresholds = model.predict_proba(X), model.threshold_.values_
    assert np.array_equal(teacher.thresholds, thresholds)
    # A logit above 0 is a label that the model predicts; single precision cannot tell ties.
    clear = np.abs(p - thresholds) > 1e-5
    assert clear.mean() > 0.5
    assert np.array_equal((teacher.logits(X) > 0)[clear], (model.predict(X) == 1)[clear])
    low = Teacher(model, NAMES, threshold=0.1)
    clear = np.abs(p - 0.1) > 1e-5
    assert np.array_equal((low.logits(X) > 0)[clear], (p > 0.1)[clear])
    assert (Teacher(lw.MLkNN(threshold="top-2").fit(X, Y)).thresholds == 0.5).all()
    with pytest.raises(InputError, match="one probability, or 5, one per label"):
        Teacher(model, NAMES, threshold=[0.1, 0.2])


def test_a_calibrated_teacher_predicts_what_its_model_predicts(data):
    X, Y = data
    model = lw.MLkNN(threshold=0.3, random_state=0).fit(X[:80], Y[:80])
    teacher = Teacher(model, NAMES).calibrated(X[80:], Y[80:])
    clear = np.abs(model.predict_proba(X) - 0.3) > 1e-3
    assert np.array_equal((teacher.logits(X) > 0)[clear], (model.predict(X) == 1)[clear])


def test_texts(data):
    texts = ["sun and sea", "snow", "sun", "cold snow"] * 10
    model = make_pipeline(TfidfVectorizer(), OneVsRestClassifier(LogisticRegression(C=100)))
    model.fit(texts, np.array([[1, 0], [0, 1], [1, 0], [0, 1]] * 10))
    p = Teacher(model, ["warm", "cold"]).probabilities(["sea sun", "snow"])
    assert p.argmax(axis=1).tolist() == [0, 1]


@pytest.mark.parametrize("form", ["frame", "mapping", "sparse", "stacked"])
def test_functions_may_return_many_forms(data, form):
    X, _ = data
    p = np.abs(np.sin(X[:, :2]))

    def function(X):
        if form == "frame":
            return pd.DataFrame({"y": p[:, 1], "x": p[:, 0]})  # by name, not by place
        if form == "mapping":
            return {"y": p[:, 1], "other": p[:, 0], "x": p[:, 0]}
        if form == "sparse":
            return sp.csr_array(p)
        return np.stack([np.stack([1 - p[:, j], p[:, j]], axis=1) for j in range(2)])

    assert np.allclose(Teacher(function, ["x", "y"]).probabilities(X), p)


def bad(output, labels=("x", "y")):
    return lambda: Teacher(lambda X: output, list(labels), name="t").probabilities(np.zeros((2, 1)))


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (bad([[0.1, np.nan], [0.2, 0.3]]), "teacher 't' returned NaN for row 0, label 'y'"),
        (bad([[0.1, 0.2], [1.5, 0.3]]), "returned 1.5 for row 1, label 'x'"),
        (bad([[0.1, -0.2], [0.5, 0.3]]), "returned -0.2 for row 0, label 'y'"),
        (bad([[0.1, 0.2, 0.3]] * 2), "3 columns for 2 rows for 2 rows and its 2 labels"),
        (bad([[0.1, 0.2]] * 3), "2 columns for 3 rows"),
        (bad([0.1, 0.2]), r"the shape \(2,\)"),
        (bad({"x": [0.1, 0.2]}), "no column for its label 'y'"),
        (bad([["q", "r"], ["s", "t"]]), "does not hold numbers"),
        (bad(None), "does not hold numbers|the shape"),
        (lambda: Teacher(len, ["x", "y", "x"], name="t"), "'t' has the label 'x' twice"),
        (lambda: Teacher(len, []), "has no labels"),
        (lambda: Teacher(len, "xy"), "not the text 'xy'"),
        (lambda: Teacher(len), "does not list its labels"),
        (lambda: Teacher(3, ["x"]), "3 cannot be a teacher"),
        (lambda: Teacher(LogisticRegression, ["x"]), "cannot be a teacher"),
        (lambda: Teacher(len, ["x"], abstain=0.7), "abstain must be"),
        (lambda: Teacher(len, ["x"], prevalence=[0.1, 0.2]), "must be 1 shares from 0 to 1"),
        (lambda: Teacher(len, ["x"], prevalence=[1.5]), "must be 1 shares from 0 to 1"),
        (lambda: as_teachers([Teacher(len, ["x"])]), "at least two teachers, not 1"),
        (lambda: as_teachers(Teacher(len, ["x"])), "a sequence of at least two"),
        (lambda: as_teachers([Teacher(len, ["x"])] * 2), "are the same model"),
    ],
)
def test_bad_teachers_get_one_sentence(call, said):
    with pytest.raises(InputError, match=said) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_a_model_of_another_width_is_named(data):
    X, Y = data
    teacher = Teacher(OneVsRestClassifier(LogisticRegression()).fit(X, Y), NAMES, name="old")
    with pytest.raises(InputError, match=r"teacher 'old' cannot score these rows: .* features"):
        teacher.probabilities(X[:, :3])
    with pytest.raises(InputError, match="was given 2 labels, but its model has 5"):
        Teacher(lw.make("mlknn").fit(X, Y), ["x", "y"])


# -- remote models ----------------------------------------------------------------------


class Service(BaseHTTPRequestHandler):
    broken = None

    def do_GET(self):
        self._reply({"name": "m", "outputs": [{"name": "p", "parameters": {"labels": ["x", "y"]}}]})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        tensor = body["inputs"][0]
        if tensor["datatype"] == "BYTES":
            rows = np.array([[len(text) / 10, 0.5] for text in tensor["data"]])
        else:
            rows = np.reshape(tensor["data"], tensor["shape"])[:, :2]
        output = {
            "name": "p",
            "datatype": "FP64",
            "shape": rows.shape,
            "data": rows.ravel().tolist(),
        }
        self._reply({"outputs": [output]} if self.broken is None else self.broken)

    def _reply(self, response):
        content = json.dumps(response).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        pass


@pytest.fixture
def address():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Service)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/v2/models/m"
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_remote_model_predicts_in_batches(address):
    rows = np.random.default_rng(0).random((600, 3))
    teacher = Teacher(address)
    assert teacher.labels == ("x", "y")
    assert np.allclose(teacher.probabilities(rows), rows[:, :2])
    assert np.allclose(teacher.probabilities(sp.csr_array(rows)), rows[:, :2])
    assert Teacher(address, ["p", "q"]).probabilities(["abc"]).tolist() == [[0.3, 0.5]]


@pytest.mark.parametrize("response", [{}, {"outputs": []}, [], {"outputs": [{"name": "p"}]}])
def test_a_remote_model_with_a_wrong_response(address, monkeypatch, response):
    monkeypatch.setattr(Service, "broken", response)
    with pytest.raises(InputError, match="something other than an inference"):
        Teacher(address, ["x", "y"]).probabilities(np.zeros((1, 2)))


def test_a_remote_model_that_is_not_there():
    with pytest.raises(InputError, match="cannot be reached"):
        Teacher("http://127.0.0.1:9/v2/models/m", ["x"]).probabilities(np.zeros((1, 2)))
