"""Labels that come and go on a live model, and stay through stops and between replicas."""

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
from serving import KEY, FakeZeroShot, free_port, running, use_fakes
from test_serve_api import check_problem, labels_of, predict

from labelweave.labels import as_labels
from labelweave.serve.cooccurrence import Cooccurrence

LABELS = "/v1/models/tags/labels"


def add(served, *names, **more):
    labels = [{"name": name, **more} for name in names]
    return served.client.post(LABELS, json={"labels": labels})


def names_of(served):
    return [label["name"] for label in served.open.get(LABELS).json()["labels"]]


def test_a_new_label_is_scored_at_once(fake):
    assert labels_of(predict(fake, "tags", inputs=["rain and sea"])) == [["sea"]]
    assert add(fake, "rain", description="water from above").json() == {"version": 1, "labels": 3}
    assert labels_of(predict(fake, "tags", inputs=["rain and sea"])) == [["sea", "rain"]]
    assert fake.open.get(LABELS).json()["labels"][2] == {
        "name": "rain",
        "description": "water from above",
    }


def test_rename_and_remove(fake):
    answer = fake.client.patch(LABELS, json={"name": "sea", "new_name": "ocean"})
    assert answer.json() == {"version": 1, "labels": 2}
    assert fake.open.get(LABELS).json()["labels"][0] == {
        "name": "ocean",
        "description": "salt water",
    }
    assert fake.client.delete(LABELS, params={"name": "sun"}).json()["labels"] == 1
    assert names_of(fake) == ["ocean"]
    check_problem(fake.client.delete(LABELS, params={"name": "ocean"}), 409, "last")


def test_what_does_not_fit_is_refused_and_changes_nothing(fake):
    check_problem(add(fake, "rain", "sea"), 409, "'sea'")
    check_problem(add(fake, "rain", "rain"), 409, "'rain'")
    check_problem(fake.client.delete(LABELS, params={"name": "none"}), 409, "'none'")
    check_problem(fake.client.patch(LABELS, json={"name": "sea", "new_name": "sun"}), 409, "'sun'")
    for name in ("", "a\x00b", "line\nbreak", "x" * 501, "\ud800"):
        body = b'{"labels": [{"name": "%s"}]}' % name.encode("unicode_escape").replace(
            b"\\x", b"\\u00"
        )
        kind = {"Content-Type": "application/json"}
        check_problem(fake.client.post(LABELS, content=body, headers=kind), 422)
    assert names_of(fake) == ["sea", "sun"]


def test_a_model_with_fixed_labels_says_so(real):
    answer = real.client.post("/v1/models/shapes/labels", json={"labels": [{"name": "x"}]})
    check_problem(answer, 409, "fixed")


def test_changes_outlive_a_restart_and_a_reload(monkeypatch, database):
    use_fakes(monkeypatch)
    with running({"tags": "x"}, database=database) as served:
        add(served, "rain", "snow")
        served.client.patch(LABELS, json={"name": "rain", "new_name": "hail", "description": "ice"})
        served.client.delete(LABELS, params={"name": "sun"})
        served.client.post("/v1/models/tags/reload")
        assert names_of(served) == ["sea", "hail", "snow"]
    with running({"tags": "x"}, database=database) as served:
        assert names_of(served) == ["sea", "hail", "snow"]
        assert served.open.get(LABELS).json()["version"] == 4


def test_a_model_trained_anew_with_such_a_label_still_loads(monkeypatch, sqlite):
    use_fakes(monkeypatch)
    with running({"tags": "x"}, database=sqlite) as served:
        add(served, "rain", "snow")
        served.client.delete(LABELS, params={"name": "sun"})
    use_fakes(monkeypatch, lambda: FakeZeroShot(("rain", "sea")))
    with running({"tags": "x"}, database=sqlite) as served:
        assert names_of(served) == ["rain", "sea", "snow"]


def test_replicas_see_each_others_changes_and_lose_none(monkeypatch, database):
    use_fakes(monkeypatch)
    with (
        running({"tags": "x"}, database=database) as one,
        running({"tags": "x"}, database=database) as two,
        ThreadPoolExecutor(6) as pool,
    ):
        names_of(one), names_of(two)
        answers = list(pool.map(lambda i: add((one, two)[i % 2], f"label {i}"), range(30)))
        kept = [f"label {i}" for i, answer in enumerate(answers) if answer.status_code == 200]
        assert all(a.status_code in (200, 409) for a in answers), [a.text for a in answers]
        assert len(kept) >= 25
        deadline = time.monotonic() + 10
        while not (names_of(one) == names_of(two) and set(kept) <= set(names_of(one))):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert len(names_of(one)) == 2 + len(kept)


def test_a_failing_database_leaves_no_label_behind(fake, monkeypatch):
    add(fake, "rain")

    def fail(*_):
        raise OSError("disk full at /secret")

    with monkeypatch.context() as broken:
        broken.setattr(fake.service.store, "add_changes", fail)
        answer = add(fake, "snow")
        check_problem(answer, 500)
        assert "secret" not in answer.text
    assert names_of(fake) == ["sea", "sun", "rain"]
    assert add(fake, "snow").json() == {"version": 2, "labels": 4}


def test_nearest_labels_and_map(fake):
    add(fake, "seas", "nus")
    near = fake.open.get(f"{LABELS}/nearest", params={"name": "sun", "k": 1}).json()
    assert near == [{"label": "nus", "score": 1.0}]
    check_problem(fake.open.get(f"{LABELS}/nearest", params={"name": "none"}), 404)
    points = {p["label"]: p for p in fake.open.get("/v1/models/tags/map").json()["points"]}
    assert set(points) == {"sea", "sun", "seas", "nus"}
    assert points["sea"]["nearest"][0]["label"] == "seas"
    assert (points["sun"]["x"], points["sun"]["y"]) == (points["nus"]["x"], points["nus"]["y"])
    assert all(-1 <= p["x"] <= 1 and -1 <= p["y"] <= 1 for p in points.values())


def test_labels_that_go_together(monkeypatch, sqlite):
    use_fakes(monkeypatch)
    Y = as_labels([["sea", "sun"], ["sea"], ["sun", "sky"], ["sea", "sun"]])
    with running({"tags": "x"}, database=sqlite, together=Cooccurrence(Y)) as served:
        assert served.open.get("/v1/models/tags/cooccurrence").json()["pairs"] == [
            {"first": "sea", "second": "sun", "rows": 2, "share": 0.5}
        ]


def test_without_data_nothing_goes_together(fake):
    check_problem(fake.open.get("/v1/models/tags/cooccurrence"), 409)


PROGRAM = """
import sys
from pathlib import Path
from serving import use_fakes
use_fakes()
from labelweave.serve.running import run
from labelweave.serve.service import Service
from labelweave.serve.settings import Settings
settings = Settings(port=int(sys.argv[1]), database=sys.argv[2])
run(Service({"tags": Path("x")}, settings), key=sys.argv[3])
"""


def start(port, database):
    paths = [str(Path(__file__).parent), *sys.path]
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(port), database, KEY],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in paths if p)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 240
    while True:
        try:
            httpx.get(f"http://127.0.0.1:{port}/v1/health/live")
            return process
        except httpx.TransportError:
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.1)


@pytest.mark.parametrize("after", [137])
def test_killed_amid_additions_every_acknowledged_one_is_there(sqlite, after):
    port = free_port()
    address = f"http://127.0.0.1:{port}{LABELS}"
    process = start(port, sqlite)
    acknowledged = []
    with httpx.Client(headers={"Authorization": f"Bearer {KEY}"}) as client:
        try:
            for i in range(1000):
                if i == after:
                    os.kill(process.pid, signal.SIGKILL)
                answer = client.post(address, json={"labels": [{"name": f"label {i}"}]})
                assert answer.status_code == 200
                acknowledged.append(f"label {i}")
        except httpx.TransportError:
            pass
    process.wait(10)
    assert after <= len(acknowledged) < 1000
    process = start(port, sqlite)
    try:
        found = httpx.get(address, params={"limit": 2000}).json()["labels"]
        assert set(acknowledged) <= {label["name"] for label in found}
        assert len(found) <= 2 + len(acknowledged) + 1
    finally:
        process.terminate()
        assert process.wait(30) in (0, -signal.SIGTERM)
