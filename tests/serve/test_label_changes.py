"""Changing labels of a running service: they survive restarts and reach all replicas."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
from serving import (
    KEY,
    FakeZeroShot,
    check_problem,
    labels_of,
    predict,
    running,
    use_fakes,
    wait_until,
)
from sqlalchemy.exc import OperationalError

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


def test_impossible_changes_are_refused_and_change_nothing(fake):
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


def test_a_model_with_fixed_labels_refuses_changes(real):
    answer = real.client.post("/v1/models/shapes/labels", json={"labels": [{"name": "x"}]})
    check_problem(answer, 409, "fixed")


def test_changes_survive_a_restart_and_a_reload(monkeypatch, database):
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


def test_a_model_trained_again_with_an_added_label_still_loads(monkeypatch, sqlite):
    use_fakes(monkeypatch)
    with running({"tags": "x"}, database=sqlite) as served:
        add(served, "rain", "snow")
        served.client.delete(LABELS, params={"name": "sun"})
    use_fakes(monkeypatch, lambda: FakeZeroShot(("rain", "sea")))
    with running({"tags": "x"}, database=sqlite) as served:
        assert names_of(served) == ["rain", "sea", "snow"]


def test_replicas_see_each_others_changes_and_lose_none(monkeypatch, database):
    use_fakes(monkeypatch)

    def add_as_clients_do(replica, name):
        while (answer := add(replica, name)).status_code != 200:
            check_problem(answer, 409, "try again")

    with (
        running({"tags": "x"}, database=database) as one,
        running({"tags": "x"}, database=database) as two,
        ThreadPoolExecutor(6) as pool,
    ):
        names_of(one), names_of(two)
        names = [f"label {i}" for i in range(30)]
        list(pool.map(add_as_clients_do, [one, two] * 15, names))
        wait_until(lambda: names_of(one) == names_of(two))
        assert sorted(names_of(one)) == sorted(["sea", "sun", *names])


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


def test_a_database_that_cannot_be_written_or_read_leaves_no_label_behind(fake, monkeypatch):
    add(fake, "rain")

    def fail(*_):
        raise OperationalError("INSERT", {}, Exception("disk full"))

    with monkeypatch.context() as broken:
        # The file can be read until the change is written, then no more.
        def fail_from_now_on(*_):
            broken.setattr(fake.service.store, "changes", fail)
            fail()

        broken.setattr(fake.service.store, "add_changes", fail_from_now_on)
        for _ in range(2):
            check_problem(add(fake, "snow"), 503, "database")
            assert names_of(fake) == ["sea", "sun", "rain"]
            assert labels_of(predict(fake, "tags", inputs=["rain, snow"])) == [["rain"]]
    assert add(fake, "snow").json() == {"version": 2, "labels": 4}


SERVICE = """
import sys
from serving import running, use_fakes
use_fakes()
with running({"tags": "x"}, database=sys.argv[1]) as served:
    print(served.url, flush=True)
    served.thread.join()
"""


def test_acknowledged_labels_survive_a_kill(monkeypatch, sqlite):
    path = os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)])
    process = subprocess.Popen(
        [sys.executable, "-c", SERVICE, sqlite],
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        text=True,
    )
    address = process.stdout.readline().strip() + LABELS
    after, acknowledged = 37, []
    with httpx.Client(headers={"Authorization": f"Bearer {KEY}"}, timeout=300) as client:
        try:
            for i in range(1000):
                if i == after:
                    process.kill()
                answer = client.post(address, json={"labels": [{"name": f"label {i}"}]})
                assert answer.status_code == 200
                acknowledged.append(f"label {i}")
        except httpx.TransportError:
            pass
    process.communicate()
    assert after <= len(acknowledged) < 1000
    use_fakes(monkeypatch)
    with running({"tags": "x"}, database=sqlite) as served:
        labels = {
            label["name"]
            for label in served.open.get(LABELS, params={"limit": 2000}).json()["labels"]
        }
    assert set(acknowledged) <= labels
    assert len(labels) <= 2 + len(acknowledged) + 1
