"""Served models: loading, batches of several requests, a full queue, reloading and stopping."""

import shutil
from concurrent.futures import ThreadPoolExecutor

import pytest
from serving import check_problem, labels_of, predict, running, wait_until

import labelweave as lw
from labelweave.exceptions import ModelFolderError
from labelweave.persistence import new_key, sign
from labelweave.serve.model_process import ModelProcess

pytestmark = pytest.mark.filterwarnings("ignore:X does not have valid feature names")


def test_models_are_listed_and_loaded_only_when_needed(real):
    states = {m["name"]: m["state"] for m in real.open.get("/v1/models").json()["models"]}
    assert states == {"shapes": "not loaded", "news": "not loaded"}
    about = real.open.get("/v1/models/shapes").json()
    assert (about["input"], about["features"], about["feature_names"]) == (
        "vectors",
        3,
        ["f1", "f2", "f3"],
    )
    states = {m["name"]: m["state"] for m in real.open.get("/v1/models").json()["models"]}
    assert states == {"shapes": "ready", "news": "not loaded"}
    assert real.open.get("/v1/models/news").json()["input"] == "texts"


def hold_predictions(served):
    """Hold predictions back, occupy the thread of the model, and return the loaded model."""
    predict(served, "tags", inputs=["load the model"])
    loaded = served.service.models.get("tags").current
    loaded.host.model.may_predict.clear()
    loaded.host.model.batches.clear()
    return loaded


def test_concurrent_requests_share_a_batch(fake):
    loaded = hold_predictions(fake)
    with ThreadPoolExecutor(17) as pool:
        first = pool.submit(predict, fake, "tags", inputs=["sea"])
        wait_until(lambda: loaded.host.model.batches == [1])
        others = [pool.submit(predict, fake, "tags", inputs=["sea"] * n) for n in (1, 2) * 8]
        wait_until(lambda: loaded.batcher.depth == 16)
        loaded.host.model.may_predict.set()
        assert labels_of(first.result()) == [["sea"]]
        assert [len(labels_of(one.result())) for one in others] == [1, 2] * 8
    assert loaded.host.model.batches == [1, 24]


def test_a_full_queue_is_answered_429(running_fake):
    with (
        running_fake(max_queue=1, max_batch=1) as served,
        ThreadPoolExecutor(2) as pool,
    ):
        loaded = hold_predictions(served)
        first = pool.submit(predict, served, "tags", inputs=["sea"])
        wait_until(lambda: loaded.host.model.batches == [1])
        second = pool.submit(predict, served, "tags", inputs=["sea"])
        wait_until(lambda: loaded.batcher.depth == 1)
        refused = predict(served, "tags", inputs=["sea"])
        check_problem(refused, 429)
        assert refused.headers["retry-after"] == "1"
        loaded.host.model.may_predict.set()
        assert labels_of(first.result()) == labels_of(second.result()) == [["sea"]]


def test_a_stop_finishes_accepted_requests(running_fake):
    with running_fake() as served, ThreadPoolExecutor(4) as pool:
        loaded = hold_predictions(served)
        waiting = [pool.submit(predict, served, "tags", inputs=["sea"]) for _ in range(4)]
        wait_until(lambda: sum(loaded.host.model.batches) + loaded.batcher.depth == 4)
        served.server.should_exit = True
        wait_until(lambda: not any(s.is_serving() for s in served.server.servers))
        loaded.host.model.may_predict.set()
        assert [labels_of(one.result()) for one in waiting] == [[["sea"]]] * 4
        served.thread.join(300)
        assert not served.thread.is_alive()


def test_a_reload_drops_no_request(fake):
    predict(fake, "tags", inputs=["warm"])
    first = fake.service.models.get("tags").current
    with ThreadPoolExecutor(8) as pool:
        answers = [pool.submit(predict, fake, "tags", inputs=["sea"]) for _ in range(60)]
        for _ in range(3):
            assert fake.client.post("/v1/models/tags/reload").status_code == 204
        assert all(labels_of(one.result()) == [["sea"]] for one in answers)
    assert fake.service.models.get("tags").current is not first


def test_a_damaged_folder_is_reported_without_its_path(sqlite, vectors_folder, tmp_path):
    folder = shutil.copytree(vectors_folder, tmp_path / "damaged")
    with running({"damaged": folder}, database=sqlite, restart_delay=0.01) as served:
        next(folder.glob("*.safetensors")).write_bytes(b"broken")
        answer = predict(served, "damaged", inputs=[[1, 2, 3]])
        check_problem(answer, 503)
        assert str(tmp_path) not in answer.text
        assert served.open.get("/v1/models").json()["models"][0]["state"] == "failed"
        check_problem(served.open.get("/v1/health/ready"), 503)
        shutil.rmtree(folder)
        shutil.copytree(vectors_folder, folder)  # repaired: nobody has to ask for the model
        wait_until(lambda: served.open.get("/v1/health/ready").status_code == 200)
        assert predict(served, "damaged", inputs=[[1, 2, 3]]).status_code == 200


def test_a_reload_that_fails_leaves_the_service_ready(sqlite, vectors_folder, tmp_path):
    folder = shutil.copytree(vectors_folder, tmp_path / "shapes")
    with running({"shapes": folder}, database=sqlite, restart_delay=0.01) as served:
        assert predict(served, "shapes", inputs=[[1, 2, 3]]).status_code == 200
        next(folder.glob("*.safetensors")).write_bytes(b"broken")
        check_problem(served.client.post("/v1/models/shapes/reload"), 503)
        assert served.open.get("/v1/health/ready").status_code == 200
        assert predict(served, "shapes", inputs=[[1, 2, 3]]).status_code == 200


def test_health_and_metrics(real):
    assert real.open.get("/v1/health/live").json() == {"status": "live"}
    assert real.open.get("/v2/health/ready").json() == {"status": "ready"}
    predict(real, "shapes", inputs=[[0.1, 0.2, 0.3]] * 5)
    figures = real.open.get("/metrics").text
    assert 'labelweave_batch_rows_sum{model="shapes"} 5.0' in figures
    assert 'route="/v1/models/{model}/predict",status="200"} 1.0' in figures


@pytest.mark.parametrize("model_processes", [False, True])
def test_a_reload_checks_the_signature_again(sqlite, vectors_folder, tmp_path, model_processes):
    pytest.importorskip("cryptography", reason="needs labelweave[sign]")
    folder = shutil.copytree(vectors_folder, tmp_path / "shapes")
    public = new_key(tmp_path / "key.pem")
    sign(folder, tmp_path / "key.pem")
    settings = {"trusted_keys": (str(public),), "model_processes": model_processes}
    with running({"shapes": folder}, database=sqlite, **settings) as served:
        assert predict(served, "shapes", inputs=[[1, 2, 3]]).status_code == 200
        lw.load(folder).save(folder)  # the same model, no longer signed
        assert served.client.post("/v1/models/shapes/reload").status_code >= 400
        assert predict(served, "shapes", inputs=[[1, 2, 3]]).status_code == 200  # the old one
        sign(folder, tmp_path / "key.pem")
        assert served.client.post("/v1/models/shapes/reload").status_code == 204


def test_the_process_of_a_model_checks_the_signature_itself(vectors_folder, tmp_path):
    pytest.importorskip("cryptography", reason="needs labelweave[sign]")
    public = new_key(tmp_path / "key.pem")
    with pytest.raises(ModelFolderError, match="is not signed"):
        ModelProcess(vectors_folder, 1, (), (str(public),))
