"""Similar labels, the map of labels, and pairs of labels that occur together."""

from serving import check_problem

from labelweave.labels import as_labels
from labelweave.serve.label_relations import Cooccurrence

LABELS = "/v1/models/tags/labels"


def test_nearest_labels_and_map(fake):
    new = {"labels": [{"name": "seas"}, {"name": "nus"}]}
    assert fake.client.post(LABELS, json=new).status_code == 200
    near = fake.open.get(f"{LABELS}/nearest", params={"name": "sun", "k": 1}).json()
    assert near == [{"label": "nus", "score": 1.0}]
    check_problem(fake.open.get(f"{LABELS}/nearest", params={"name": "none"}), 404)
    points = {p["label"]: p for p in fake.open.get("/v1/models/tags/map").json()["points"]}
    assert set(points) == {"sea", "sun", "seas", "nus"}
    assert points["sea"]["nearest"][0]["label"] == "seas"
    assert (points["sun"]["x"], points["sun"]["y"]) == (points["nus"]["x"], points["nus"]["y"])
    assert all(-1 <= p["x"] <= 1 and -1 <= p["y"] <= 1 for p in points.values())


def test_labels_that_occur_together(running_fake):
    Y = as_labels([["sea", "sun"], ["sea"], ["sun", "sky"], ["sea", "sun"]])
    with running_fake(cooccurrence=Cooccurrence(Y)) as served:
        assert served.open.get("/v1/models/tags/cooccurrence").json()["pairs"] == [
            {"first": "sea", "second": "sun", "rows": 2, "share": 0.5}
        ]


def test_cooccurrence_needs_data(fake):
    check_problem(fake.open.get("/v1/models/tags/cooccurrence"), 409)
