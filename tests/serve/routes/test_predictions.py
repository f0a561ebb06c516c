"""Predictions and explanations as a client sees them."""

import struct
import zlib

import numpy as np
import pytest
from serving import (
    PredictsBrightness,
    check_problem,
    encode_image,
    labels_of,
    predict,
    running,
    use_fakes,
)

import labelweave as lw

pytestmark = pytest.mark.filterwarnings("ignore:X does not have valid feature names")


def test_vectors_and_records_get_the_labels_of_the_library(real, vectors_folder):
    X = np.random.default_rng(3).random((7, 3))
    expected = lw.load(vectors_folder).predict_labels(X)
    labels = labels_of(predict(real, "shapes", inputs=X.tolist()))
    assert [sorted(row) for row in labels] == [sorted(row) for row in expected]
    records = [dict(zip(["f3", "f1", "f2"], row[[2, 0, 1]].tolist(), strict=True)) for row in X]
    assert labels_of(predict(real, "shapes", inputs=records)) == labels


def test_threshold_top_k_and_a_subset(real, vectors_folder):
    row = [[0.9, 0.1, 0.8]]
    probabilities = lw.load(vectors_folder).predict_proba(row)[0]
    P = dict(zip(["red", "blue", "round"], probabilities, strict=True))
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


def test_known_labels_are_returned_and_change_the_others(sqlite, tmp_path):
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
        ("shapes", {"inputs": [[1, 2]]}, ["inputs.0", "2 numbers", "expects 3"]),
        ("shapes", {"inputs": [[1, 2, "3"]]}, ["inputs.0.2"]),
        ("shapes", {"inputs": [[1, 2, True]]}, ["inputs.0.2"]),
        ("shapes", {"inputs": [[1, 2, None]]}, ["inputs.0.2"]),
        ("shapes", {"inputs": [[1, 2, 10**400]]}, ["inputs.0.2"]),
        ("shapes", {"inputs": [[1, 2, 1e39]]}, ["row 0, column 2", "too large to compute with"]),
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
def test_invalid_inputs_are_named(real, model, body, words):
    check_problem(predict(real, model, **body), 422, *words)


def test_unknown_addresses_methods_and_bodies(real):
    check_problem(real.open.get("/v1/models/none"), 404)
    check_problem(real.open.get("/nothing"), 404)
    check_problem(real.client.put("/v1/models"), 405)
    address = "/v1/models/shapes/predict"
    check_problem(real.open.post(address, content=b"{}"), 415)
    kind = {"Content-Type": "application/json"}
    for body in (b"", b"{", b"[" * 4000, b'{"inputs": [[NaN, 1, 2]]}', b"\xff", b'"\\ud800"'):
        check_problem(real.open.post(address, content=body, headers=kind), 422)
    check_problem(real.open.post(address, content=b"[" * 100_000, headers=kind), 413)


def test_input_errors_are_reported_and_crashes_reveal_nothing(fake):
    check_problem(predict(fake, "tags", inputs=["poison"]), 422, "poisonous")
    answer = predict(fake, "tags", inputs=["crash"])
    check_problem(answer, 500, answer.headers["x-request-id"])
    assert "secret" not in answer.text
    assert labels_of(predict(fake, "tags", inputs=["the sea"])) == [["sea"]]


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


def test_a_model_without_explanations(real):
    check_problem(real.open.post("/v1/models/shapes/explain", json={"inputs": [[1, 2, 3]]}), 409)


IMAGE_ADDRESS = "/v1/models/tags/predict/image"


@pytest.fixture
def brightness(monkeypatch, sqlite):
    use_fakes(monkeypatch, PredictsBrightness)
    with running({"tags": "x"}, database=sqlite, max_pixels=10_000) as service:
        yield service


def send_image(served, content, kind="image/png"):
    return served.open.post(IMAGE_ADDRESS, content=content, headers={"Content-Type": kind})


def test_an_image_is_labelled_in_each_format_and_mode(brightness):
    white, black = np.full((20, 30, 3), 255, np.uint8), np.zeros((40, 10), np.uint8)
    for kind in ("png", "jpeg", "webp"):
        assert labels_of(send_image(brightness, encode_image(white, kind), f"image/{kind}")) == [
            ["sun"]
        ]
    assert labels_of(send_image(brightness, encode_image(black))) == [["sea"]]


def test_damaged_unsupported_and_huge_images_are_refused(brightness):
    image = encode_image(np.random.default_rng(0).integers(0, 255, (50, 50, 3), np.uint8))
    for content in (b"", b"no image", image[:200], b"GIF89a" + image):
        check_problem(send_image(brightness, content), 422)
    check_problem(send_image(brightness, image, "image/tiff"), 415)
    check_problem(
        send_image(brightness, encode_image(np.zeros((101, 100), np.uint8))), 413, "10,000 pixels"
    )
    size = struct.pack(">IIBBBBB", 60_000, 60_000, 8, 2, 0, 0, 0)  # a decompression bomb
    head = b"IHDR" + size
    bomb = image[:8] + struct.pack(">I", 13) + head + struct.pack(">I", zlib.crc32(head))
    check_problem(send_image(brightness, bomb + image[33:]), 413)
    assert brightness.open.get("/v1/models/tags").json()["input"] == "images"


def test_other_models_refuse_images(fake):
    answer = fake.open.post(IMAGE_ADDRESS, content=b"x", headers={"Content-Type": "image/png"})
    check_problem(answer, 409)
