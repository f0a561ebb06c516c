"""The API as a client sees it."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import labelweave as lw

pytestmark = pytest.mark.filterwarnings("ignore:X does not have valid feature names")


def predict(served, model, **body):
    return served.open.post(f"/v1/models/{model}/predict", json=body)


def labels_of(answer):
    assert answer.status_code == 200, answer.text
    return [[one["label"] for one in row["labels"]] for row in answer.json()["predictions"]]


def check_problem(answer, status, *words):
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    body = answer.json()
    assert set(body) == {"type", "title", "status", "detail"}
    assert body["status"] == status
    for word in words:
        assert word in body["detail"]


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


def test_vectors_and_records_get_the_labels_that_the_library_gives(real, vectors_folder):
    X = np.random.default_rng(3).random((7, 3))
    expected = lw.load(vectors_folder).predict_labels(X)
    found = labels_of(predict(real, "shapes", inputs=X.tolist()))
    assert [sorted(row) for row in found] == [sorted(row) for row in expected]
    records = [dict(zip(["f3", "f1", "f2"], row[[2, 0, 1]].tolist(), strict=True)) for row in X]
    assert labels_of(predict(real, "shapes", inputs=records)) == found


def test_threshold_top_k_and_a_subset(real, vectors_folder):
    row = [[0.9, 0.1, 0.8]]
    P = dict(
        zip(["red", "blue", "round"], lw.load(vectors_folder).predict_proba(row)[0], strict=True)
    )
    order = sorted(P, key=lambda name: -P[name])
    assert labels_of(predict(real, "shapes", inputs=row, threshold=0)) == [order]
    assert labels_of(predict(real, "shapes", inputs=row, top_k=1)) == [order[:1]]
    assert labels_of(predict(real, "shapes", inputs=row, top_k=3, threshold=1)) == [[]]
    assert labels_of(predict(real, "shapes", inputs=row, labels=["blue"], threshold=0)) == [
        ["blue"]
    ]
    scores = predict(real, "shapes", inputs=row, scores=True).json()["predictions"][0]["scores"]
    assert {one["label"]: one["score"] for one in scores} == pytest.approx(P, abs=1e-5)


def test_texts(real):
    assert labels_of(predict(real, "news", inputs=["sea and sun", "the sea"])) == [
        ["sea", "sun"],
        ["sea"],
    ]


def test_known_labels_stay_and_inform_the_others(sqlite, tmp_path):
    from serving import running

    X = np.random.default_rng(0).random((80, 2))
    Y = np.column_stack([X[:, 0] > 0.5, X[:, 0] > 0.5]).astype(int)
    model = lw.make("chain", random_state=0).fit(X, Y)
    model.save(tmp_path / "chained")
    names = [str(n) for n in model.label_names_]
    with running({"chained": tmp_path / "chained"}, database=sqlite) as served:
        row, known = [[0.5, 0.5]], [{names[0]: False}]
        answer = predict(served, "chained", inputs=row, known=known, scores=True).json()
        scores = {o["label"]: o["score"] for o in answer["predictions"][0]["scores"]}
        expected = model.predict_proba(row, known=np.array([[0, np.nan]]))[0]
        assert [scores[n] for n in names] == pytest.approx(expected, abs=1e-5)
        check_problem(predict(served, "chained", inputs=row, known=[{"x": True}]), 422, "'x'")


@pytest.mark.parametrize(
    ("model", "body", "words"),
    [
        ("shapes", {"inputs": [[1, 2]]}, ["inputs.0", "2 numbers", "takes 3"]),
        ("shapes", {"inputs": [[1, 2, "3"]]}, ["inputs.0.2"]),
        ("shapes", {"inputs": [[1, 2, True]]}, ["inputs.0.2"]),
        ("shapes", {"inputs": [[1, 2, None]]}, ["inputs.0.2"]),
        ("shapes", {"inputs": [[1, 2, 10**400]]}, ["inputs.0.2"]),
        ("shapes", {"inputs": ["text"]}, ["vectors"]),
        ("shapes", {"inputs": [{"f1": 1, "f2": 2}]}, ["lacks", "'f3'"]),
        ("shapes", {"inputs": [{"f1": 1, "f2": 2, "f3": 1, "f4": 1}]}, ["'f4'"]),
        ("shapes", {"inputs": []}, ["inputs"]),
        ("shapes", {"inputs": [[1, 2, 3]], "top_k": 0}, ["top_k"]),
        ("shapes", {"inputs": [[1, 2, 3]], "threshold": 2}, ["threshold"]),
        ("shapes", {"inputs": [[1, 2, 3]], "labels": ["green"]}, ["'green'"]),
        ("shapes", {"inputs": [[1, 2, 3]], "treshold": 0.4}, ["treshold"]),
        ("shapes", {"inputs": [[1, 2, 3]], "known": [{"red": True}]}, ["known"]),
        ("news", {"inputs": [[1.0]]}, ["texts"]),
        ("news", {"inputs": ["a", 3]}, ["inputs.1"]),
        ("news", {}, ["inputs"]),
    ],
)
def test_wrong_inputs_get_one_sentence(real, model, body, words):
    check_problem(predict(real, model, **body), 422, *words)


def test_unknown_addresses_methods_and_bodies(real):
    check_problem(real.open.get("/v1/models/none"), 404)
    check_problem(real.open.get("/nothing"), 404)
    check_problem(real.client.put("/v1/models"), 405)
    address = "/v1/models/shapes/predict"
    check_problem(real.open.post(address, content=b"{}"), 415)
    kind = {"Content-Type": "application/json"}
    for body in (b"", b"{", b"[" * 100_000, b'{"inputs": [[NaN, 1, 2]]}', b"\xff", b'"\\ud800"'):
        check_problem(real.open.post(address, content=body, headers=kind), 422)


def test_what_the_model_cannot_take_is_the_clients_error_and_a_crash_tells_nothing(fake):
    check_problem(predict(fake, "tags", inputs=["poison"]), 422, "poisonous")
    answer = predict(fake, "tags", inputs=["crash"])
    check_problem(answer, 500, answer.headers["x-request-id"])
    assert "secret" not in answer.text
    assert labels_of(predict(fake, "tags", inputs=["the sea"])) == [["sea"]]


def test_concurrent_requests_share_batches(fake):
    predict(fake, "tags", inputs=["warm"])
    model = fake.service.models.get("tags").current.model
    model.pause, model.batches = 0.05, []
    with ThreadPoolExecutor(16) as pool:
        answers = list(
            pool.map(lambda i: predict(fake, "tags", inputs=["sea"] * (1 + i % 2)), range(32))
        )
    assert [len(labels_of(a)) for a in answers] == [1 + i % 2 for i in range(32)]
    assert len(model.batches) < 16
    assert sum(model.batches) == 48


def test_a_full_queue_is_answered_429(monkeypatch, sqlite):
    from serving import running, use_fakes

    use_fakes(monkeypatch)
    with running({"tags": "x"}, database=sqlite, max_queue=1, max_batch=1) as served:
        predict(served, "tags", inputs=["warm"])
        served.service.models.get("tags").current.model.pause = 0.3
        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda _: predict(served, "tags", inputs=["sea"]), range(8)))
        refused = [a for a in answers if a.status_code != 200]
        assert refused
        assert len(refused) < 8
        for answer in refused:
            check_problem(answer, 429)
            assert answer.headers["retry-after"] == "1"


def test_a_stop_finishes_what_was_accepted(monkeypatch, sqlite):
    from serving import running, use_fakes

    use_fakes(monkeypatch)
    with running({"tags": "x"}, database=sqlite) as served, ThreadPoolExecutor(4) as pool:
        predict(served, "tags", inputs=["warm"])
        served.service.models.get("tags").current.model.pause = 0.5
        waiting = [pool.submit(predict, served, "tags", inputs=["sea"]) for _ in range(4)]
        import time

        time.sleep(0.2)
        served.server.should_exit = True
        assert [labels_of(one.result()) for one in waiting] == [[["sea"]]] * 4
        served.thread.join(10)
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


def test_explanations(fake):
    answer = fake.open.post("/v1/models/tags/explain", json={"inputs": ["x"], "top_k": 1})
    assert answer.json()["explanations"] == [
        [
            {
                "label": "sea",
                "probability": 0.9,
                "fusion": 0.5,
                "similarity": None,
                "because_of": [{"label": "sea", "score": 0.7}],
            }
        ]
    ]


def test_a_model_without_explanations_says_so(real):
    check_problem(real.open.post("/v1/models/shapes/explain", json={"inputs": [[1, 2, 3]]}), 409)


def test_a_damaged_folder_is_said_without_its_path(sqlite, vectors_folder, tmp_path):
    import shutil

    from serving import running

    folder = shutil.copytree(vectors_folder, tmp_path / "damaged")
    with running({"damaged": folder}, database=sqlite) as served:
        (next(folder.glob("*.safetensors"))).write_bytes(b"broken")
        answer = predict(served, "damaged", inputs=[[1, 2, 3]])
        check_problem(answer, 503)
        assert str(tmp_path) not in answer.text
        assert served.open.get("/v1/models").json()["models"][0]["state"] == "failed"
        check_problem(served.open.get("/v1/health/ready"), 503)


def test_health_and_metrics(real):
    assert real.open.get("/v1/health/live").json() == {"status": "live"}
    assert real.open.get("/v2/health/ready").json() == {"status": "ready"}
    predict(real, "shapes", inputs=[[0.1, 0.2, 0.3]] * 5)
    figures = real.open.get("/metrics").text
    assert 'labelweave_batch_rows_sum{model="shapes"} 5.0' in figures
    assert 'route="/v1/models/{model}/predict",status="200"} 1.0' in figures
