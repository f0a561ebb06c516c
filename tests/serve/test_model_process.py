"""Models in processes of their own: the same answers, and crashes that harm no other model."""

import os
import pickle
import signal
import subprocess
import sys
from operator import methodcaller

import numpy as np
import pandas as pd
import pytest
from serving import FakeZeroShot, check_problem, labels_of, predict, running, use_fakes, wait_until

import labelweave as lw
from labelweave.exceptions import LabelweaveError
from labelweave.serve import model_process
from labelweave.serve.backoff import Backoff
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


@pytest.fixture(scope="module")
def served(tmp_path_factory, vectors_folder, tagger):
    """Both models, each in a process of its own; the tests share it, as starting takes long."""
    folders = {"shapes": vectors_folder, "tagger": tagger}
    database = f"sqlite:///{tmp_path_factory.mktemp('state') / 'state.sqlite'}"
    with (
        pytest.MonkeyPatch.context() as patch,
        running(folders, database=database, model_processes=None, restart_delay=0.01) as service,
    ):
        patch.setattr(model_process, "_STOP_SECONDS", 300)  # none is killed on a busy machine
        new = {"labels": [{"name": "deep rain", "description": "wet and deep"}]}
        answer = service.client.post(LABELS, json=new)
        assert answer.json() == {"version": 1, "labels": 4}
        assert predict(service, "shapes", inputs=[[1, 2, 3]]).status_code == 200
        yield service
        processes = [model.current.host._process for model in service.service.models]
    assert [process.poll() for process in processes] == [0, 0]  # they end with the service


def pid(served, name):
    return served.service.models.get(name).current.host.pid


def test_several_models_have_processes_and_answer_as_the_library_does(served, vectors_folder):
    assert len({os.getpid(), pid(served, "shapes"), pid(served, "tagger")}) == 3
    X = np.random.default_rng(0).random((5, 3))
    expected = lw.load(vectors_folder).predict_proba(X)
    tensor = {"name": "X", "datatype": "FP64", "shape": [5, 3], "data": X.tolist()}
    answer = served.open.post("/v2/models/shapes/infer", json={"inputs": [tensor]}).json()
    np.testing.assert_allclose(np.reshape(answer["outputs"][0]["data"], (5, 3)), expected)
    check_problem(predict(served, "shapes", inputs=[[1, 2]]), 422, "expects 3")

    answer = predict(served, "tagger", inputs=["wet and deep"], top_k=1)
    assert labels_of(answer) == [["deep rain"]]
    check_problem(served.client.post(LABELS, json={"labels": [{"name": "?!"}]}), 422, "no text")
    near = served.open.get(f"{LABELS}/nearest", params={"name": "deep rain"}).json()
    assert {one["label"] for one in near} == {"sea", "sun", "rain"}
    assert len(served.open.get("/v1/models/tagger/map").json()["points"]) == 4


def test_a_crash_harms_no_other_model_and_loses_no_label(served):
    tagger = served.service.models.get("tagger")
    crashed, other = tagger.current, pid(served, "shapes")
    os.kill(crashed.host.pid, signal.SIGKILL)
    # Nobody has to ask for the model: that its process has ended is noticed.
    wait_until(lambda: tagger.current not in (crashed, None))
    assert predict(served, "shapes", inputs=[[1, 2, 3]]).status_code == 200
    assert pid(served, "shapes") == other
    assert labels_of(predict(served, "tagger", inputs=["wet and deep"], top_k=1)) == [["deep rain"]]


def test_a_reload_ends_the_old_process(served):
    old = served.service.models.get("tagger").current
    assert served.client.post("/v1/models/tagger/reload").status_code == 204
    wait_until(lambda: old.host._process.poll() is not None)
    assert labels_of(predict(served, "tagger", inputs=["sea"], top_k=1)) == [["sea"]]


class Crashing(FakeZeroShot):
    """Its process has ended, as soon as a text says so."""

    n_loaded = 0

    def __init__(self):
        super().__init__()
        Crashing.n_loaded += 1

    def predict_proba(self, X):
        if "end" in X:
            raise ModelCrashedError("the process has ended")
        return super().predict_proba(X)


def test_a_model_that_crashes_is_not_loaded_again_before_its_time(monkeypatch, sqlite):
    use_fakes(monkeypatch, Crashing)
    with running({"tags": "nowhere"}, database=sqlite, restart_delay=50, poll=0.01) as served:
        tags = served.service.models.get("tags")
        assert labels_of(predict(served, "tags", inputs=["sea"])) == [["sea"]]
        n_loaded = Crashing.n_loaded
        for inputs in (["end"], ["sea"], ["sea"]):
            answer = predict(served, "tags", inputs=inputs)
            check_problem(answer, 503, "log of the service has the reason")
            assert 1 <= int(answer.headers["retry-after"]) <= 51
        check_problem(served.open.get("/v1/health/ready"), 503)
        assert Crashing.n_loaded == n_loaded
        tags._backoff = Backoff(0.01)  # as if the time had passed
        wait_until(lambda: served.open.get("/v1/health/ready").status_code == 200)
        assert labels_of(predict(served, "tags", inputs=["sea"])) == [["sea"]]
        assert Crashing.n_loaded == n_loaded + 1


def test_errors_signals_and_crashes_of_a_process(vectors_folder, tmp_path):
    with pytest.raises(LabelweaveError, match="nowhere"):
        ModelProcess(tmp_path / "nowhere", 1)
    host = ModelProcess(vectors_folder, 1)
    with pytest.raises(ValueError, match="1 features"):
        host.ask(methodcaller("predict_proba", [[1.0]]))
    with pytest.raises(AttributeError):
        host.ask(methodcaller("no_method"))
    os.kill(host.pid, signal.SIGTERM)  # sent to all processes: the service decides when to end
    assert host.ask(methodcaller("predict_proba", np.zeros((2, 3)))).shape == (2, 3)
    assert host.is_alive
    host._process.kill()
    with pytest.raises(ModelCrashedError):
        host.ask(methodcaller("predict_proba", np.zeros((2, 3))))
    wait_until(lambda: not host.is_alive)
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

    model = make_pipeline(ImageEncoder("resnet18", weights="random"), SentenceEmbedder())
    disable_caches(model)
    assert [step.cache for _, step in model.steps] == [False, False]
    frame = pd.DataFrame({"photo": [np.zeros((8, 8), np.uint8), np.ones((8, 8), np.uint8)]})
    columns = lw.TableEncoder(
        {"photo": "image"}, image=ImageEncoder("resnet18", weights="random")
    ).fit(frame)
    model = make_pipeline(columns, "passthrough")
    assert columns.columns_[0].encoder.cache
    disable_caches(model)
    assert not columns.columns_[0].encoder.cache


def test_the_process_of_a_model_of_images_writes_no_files(tmp_path, monkeypatch):
    """Neither features that its encoder would keep, nor temporary files of torch."""
    from labelweave.images import ImageClassifier, ImageEncoder, ResNet

    images = np.random.default_rng(0).integers(0, 256, (8, 8, 8, 3), dtype=np.uint8)
    encoder = ImageEncoder(ResNet(size=8, width=4), weights="random", cache=False)
    model = ImageClassifier(lw.MLkNN(k=1), encoder=encoder).fit(images, [["sea"], ["sun"]] * 4)
    model.save(tmp_path / "model")
    for variable in ("TMPDIR", "HOME", "XDG_CACHE_HOME", "LABELWEAVE_CACHE"):
        (tmp_path / variable).mkdir()
        monkeypatch.setenv(variable, str(tmp_path / variable))
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR", raising=False)  # torch sets it while it fits
    host = ModelProcess(tmp_path / "model", 1)
    assert host.ask(methodcaller("predict_proba", images)).shape == (8, 2)
    host.close()
    assert not list(tmp_path.glob("[A-Z]*/*"))


def test_the_process_of_a_model_imports_no_web_framework():
    code = "import sys, labelweave.serve.model_process as _; print({'fastapi'} & {*sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
