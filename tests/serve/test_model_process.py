"""Models in processes of their own: the same answers, and crashes that harm no other model."""

import os
import pickle
import signal
from operator import methodcaller

import numpy as np
import pytest
from serving import check_problem, labels_of, predict, running, wait_until

import labelweave as lw
from labelweave.exceptions import LabelweaveError
from labelweave.serve.model_process import ModelCrashedError, ModelProcess, _send, disable_caches

pytestmark = pytest.mark.filterwarnings("ignore:X does not have valid feature names")
LABELS = "/v1/models/tagger/labels"


@pytest.fixture(scope="module")
def tagger(tmp_path_factory):
    texts = ["sea and sun", "deep sea", "hot sun", "wet rain"] * 5
    labels = lw.as_labels([["sea", "sun"], ["sea"], ["sun"], ["rain"]] * 5)
    folder = tmp_path_factory.mktemp("models") / "tagger"
    lw.make("tf-idf").fit(texts, labels).save(folder)
    return folder


@pytest.fixture
def served(sqlite, vectors_folder, tagger):
    folders = {"shapes": vectors_folder, "tagger": tagger}
    with running(folders, database=sqlite, model_processes=None) as service:  # the default
        yield service


def pid(served, name):
    return served.service.models.get(name).current.host.pid


def test_several_models_have_processes_and_answer_as_the_library_does(served, vectors_folder):
    X = np.random.default_rng(0).random((5, 3))
    expected = lw.load(vectors_folder).predict_proba(X)
    tensor = {"name": "X", "datatype": "FP64", "shape": [5, 3], "data": X.tolist()}
    answer = served.open.post("/v2/models/shapes/infer", json={"inputs": [tensor]}).json()
    np.testing.assert_allclose(np.reshape(answer["outputs"][0]["data"], (5, 3)), expected)
    check_problem(predict(served, "shapes", inputs=[[1, 2]]), 422, "expects 3")

    predict(served, "tagger", inputs=["sea"])
    assert len({os.getpid(), pid(served, "shapes"), pid(served, "tagger")}) == 3
    new = {"labels": [{"name": "deep rain", "description": "wet and deep"}]}
    assert served.client.post(LABELS, json=new).json() == {"version": 1, "labels": 4}
    answer = predict(served, "tagger", inputs=["wet and deep"], top_k=1)
    assert labels_of(answer) == [["deep rain"]]
    check_problem(served.client.post(LABELS, json={"labels": [{"name": "?!"}]}), 422, "no text")
    near = served.open.get(f"{LABELS}/nearest", params={"name": "deep rain"}).json()
    assert {one["label"] for one in near} == {"sea", "sun", "rain"}
    assert len(served.open.get("/v1/models/tagger/map").json()["points"]) == 4


def test_a_crash_harms_no_other_model_and_loses_no_label(served):
    new = {"labels": [{"name": "deep rain", "description": "wet and deep"}]}
    served.client.post(LABELS, json=new)
    predict(served, "shapes", inputs=[[1, 2, 3]])
    crashed, other = pid(served, "tagger"), pid(served, "shapes")
    os.kill(crashed, signal.SIGKILL)
    answer = predict(served, "tagger", inputs=["sea"])
    check_problem(answer, 503)
    assert int(answer.headers["retry-after"]) >= 1
    assert predict(served, "shapes", inputs=[[1, 2, 3]]).status_code == 200
    wait_until(lambda: served.service.models.get("tagger").state == "ready")
    assert pid(served, "tagger") != crashed
    assert pid(served, "shapes") == other
    assert labels_of(predict(served, "tagger", inputs=["wet and deep"], top_k=1)) == [["deep rain"]]


def test_a_model_that_crashes_again_and_again_is_loaded_less_and_less_often(served):
    tagger = served.service.models.get("tagger")
    delays = []
    for _ in range(3):
        predict(served, "tagger", inputs=["sea"])
        loaded = tagger.current
        os.kill(loaded.host.pid, signal.SIGKILL)
        check_problem(predict(served, "tagger", inputs=["sea"]), 503)
        delays.append(tagger._failures)
        wait_until(lambda: tagger.state == "ready")
    assert delays == [1, 2, 3]


def test_a_reload_ends_the_old_process(served):
    predict(served, "tagger", inputs=["sea"])
    old = served.service.models.get("tagger").current
    assert served.client.post("/v1/models/tagger/reload").status_code == 204
    wait_until(lambda: old.host._process.poll() is not None)
    assert labels_of(predict(served, "tagger", inputs=["sea"], top_k=1)) == [["sea"]]


def test_a_stop_ends_the_processes(sqlite, vectors_folder):
    with running({"shapes": vectors_folder}, database=sqlite, model_processes=True) as served:
        predict(served, "shapes", inputs=[[1, 2, 3]])
        process = served.service.models.get("shapes").current.host._process
        os.kill(process.pid, signal.SIGTERM)  # sent to all processes: the service decides when
        assert predict(served, "shapes", inputs=[[1, 2, 3]]).status_code == 200
    assert process.poll() == 0


def test_errors_and_crashes_of_a_process(vectors_folder, tmp_path):
    with pytest.raises(LabelweaveError, match="nowhere"):
        ModelProcess(tmp_path / "nowhere", 1)
    host = ModelProcess(vectors_folder, 1)
    with pytest.raises(ValueError, match="1 features"):
        host.ask(methodcaller("predict_proba", [[1.0]]))
    with pytest.raises(AttributeError):
        host.ask(methodcaller("no_method"))
    assert host.ask(methodcaller("predict_proba", np.zeros((2, 3)))).shape == (2, 3)
    host._process.kill()
    with pytest.raises(ModelCrashedError):
        host.ask(methodcaller("predict_proba", np.zeros((2, 3))))
    host.close()


def test_an_error_that_cannot_be_read_again_is_sent_as_a_plain_one(tmp_path):
    class LocalError(Exception):
        pass

    with (tmp_path / "sent").open("wb") as stream:
        _send(stream, (None, LocalError("why")))
    _, error = pickle.loads((tmp_path / "sent").read_bytes())
    assert str(error) == "LocalError: why"


def test_no_encoder_of_a_served_model_keeps_what_it_encodes():
    from sklearn.pipeline import make_pipeline

    from labelweave.images import ImageEncoder
    from labelweave.text import SentenceEmbedder

    model = make_pipeline(ImageEncoder("random"), SentenceEmbedder())
    disable_caches(model)
    assert [step.cache for _, step in model.steps] == [False, False]
