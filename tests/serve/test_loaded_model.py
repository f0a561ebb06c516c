"""Saved zero-shot models in the service, and the service as a teacher."""

import os
from pathlib import Path

import numpy as np
import pytest
from serving import check_problem, labels_of, predict, running

import labelweave as lw

pytestmark = pytest.mark.filterwarnings("ignore:X does not have valid feature names")
TEXTS = ["sea and sun", "deep sea", "hot sun", "wet rain", "old blue sea", "sun and rain"] * 6
NAMES = [["sea", "sun"], ["sea"], ["sun"], ["rain"], ["sea"], ["sun", "rain"]] * 6
LABELS = "/v1/models/tagger/labels"
TEST_TEXTS = ["the old sea", "hot and wet", "sun"]


@pytest.fixture(scope="module", params=["xml0", "sbert", "tf-idf"])
def folder(request, tmp_path_factory):
    """A saved model; the sentence encoder is tiny, its weights are random."""
    more = {}
    if request.param != "tf-idf":
        encoder = request.getfixturevalue("tiny_encoder")
        more["encoder"] = lw.SentenceEmbedder(encoder, cache=False)
    model = lw.make(request.param, random_state=0, **more).fit(TEXTS, lw.as_labels(NAMES))
    path = tmp_path_factory.mktemp("models") / request.param
    model.save(path)
    return path


@pytest.fixture
def trusted(request, folder):
    """The encoders that the saved model needs."""
    return () if folder.name == "tf-idf" else (str(request.getfixturevalue("tiny_encoder")),)


def scores_of(served, texts=TEST_TEXTS):
    answer = predict(served, "tagger", inputs=texts, scores=True)
    assert answer.status_code == 200, answer.text
    return [{o["label"]: o["score"] for o in row["scores"]} for row in answer.json()["predictions"]]


def check_scores(served, model):
    expected = model.predict_proba(TEST_TEXTS)
    for row, p in zip(scores_of(served), expected, strict=True):
        wanted = dict(zip(model.label_names_.tolist(), p.tolist(), strict=True))
        assert row == pytest.approx(wanted, abs=2e-6)


def test_label_changes_equal_those_of_the_library(folder, trusted, sqlite):
    model = lw.load(folder, trusted=trusted)
    with running({"tagger": folder}, database=sqlite, trusted=trusted) as served:
        about = served.open.get("/v1/models/tagger").json()
        assert (about["input"], about["can_change_labels"]) == ("texts", True)
        check_scores(served, model)
        new = [{"name": "wet sun", "description": "the deep rain"}, {"name": "blue"}]
        assert served.client.post(LABELS, json={"labels": new}).json()["labels"] == 5
        model.add_labels(["wet sun", "blue"], ["the deep rain", ""])
        check_scores(served, model)
        served.client.patch(LABELS, json={"name": "blue", "new_name": "old blue"})
        served.client.delete(LABELS, params={"name": "rain"})
        model.rename_label("blue", "old blue").remove_labels(["rain"])
        check_scores(served, model)
        answer = served.client.post(LABELS, json={"labels": [{"name": "?!"}]})
        check_problem(answer, 422, "no text")
        near = served.open.get(f"{LABELS}/nearest", params={"name": "sun", "k": 9}).json()
        assert {one["label"] for one in near} == {"sea", "wet sun", "old blue"}
        assert len(served.open.get("/v1/models/tagger/map").json()["points"]) == 4
    with running({"tagger": folder}, database=sqlite, trusted=trusted) as served:
        check_scores(served, model)


def test_explanations_are_those_of_the_library(folder, trusted, sqlite):
    model = lw.load(folder, trusted=trusted)
    with running({"tagger": folder}, database=sqlite, trusted=trusted) as served:
        address = "/v1/models/tagger/explain"
        if not hasattr(model, "explain"):
            answer = served.open.post(address, json={"inputs": TEST_TEXTS, "top_k": 1}).json()
            assert answer["by"] == "words"
            best = model.predict_proba(TEST_TEXTS).max(axis=1)
            shown = [labels[0]["probability"] for labels in answer["explanations"]]
            assert shown == pytest.approx(best, abs=1e-5)
            return
        served.client.post(LABELS, json={"labels": [{"name": "wet sun"}]})
        expected = model.add_labels("wet sun").explain(TEST_TEXTS, 1)
        response = served.open.post(address, json={"inputs": TEST_TEXTS, "top_k": 1}).json()
        for row, (wanted,) in zip(response["explanations"], expected, strict=True):
            (one,) = row
            assert one["label"] == "wet sun"
            assert one["probability"] == pytest.approx(wanted.probability, abs=1e-6)
            assert one["fusion"] == pytest.approx(wanted.fusion, abs=1e-6)
            assert one["similarity"] == pytest.approx(wanted.similarity, abs=1e-6)
            assert [b["label"] for b in one["because_of"]] == [n for n, _ in wanted.because_of]


def test_texts_of_requests_are_not_stored_on_disk(folder, trusted, sqlite):
    cache = Path(os.environ["LABELWEAVE_CACHE"])
    before = {path: path.stat().st_mtime_ns for path in cache.rglob("*")}
    with running({"tagger": folder}, database=sqlite, trusted=trusted) as served:
        labels_of(predict(served, "tagger", inputs=["a text that nobody has sent before"]))
    assert {path: path.stat().st_mtime_ns for path in cache.rglob("*")} == before


def test_the_service_as_a_teacher(real, vectors_folder, texts_folder):
    from labelweave.scattered.teacher import Teacher

    X = np.random.default_rng(5).random((300, 3))
    teacher = Teacher(f"{real.url}/v2/models/shapes")
    assert teacher.labels == ("red", "blue", "round")
    np.testing.assert_allclose(
        teacher.probabilities(X), lw.load(vectors_folder).predict_proba(X), atol=1e-12
    )
    texts = ["deep sea", "hot sun"]
    probabilities = Teacher(f"{real.url}/v2/models/news").probabilities(texts)
    expected = lw.load(texts_folder).predict_proba(texts)
    np.testing.assert_allclose(probabilities, expected, atol=1e-12)
