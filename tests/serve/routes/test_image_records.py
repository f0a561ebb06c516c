"""Records with images beside numbers: sent in base64, and never read from a path of a request."""

import base64
import json
import sys

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from serving import check_problem, encode_image, labels_of, predict, running
from sklearn.pipeline import make_pipeline

import labelweave as lw

SIDE = 12
LIMITS = {"max_pixels": 400, "max_pixels_in_flight": 400}
KINDS = {"photo": "image"}
NOISE = np.random.default_rng(0).integers(0, 256, (SIDE, SIDE, 3), dtype=np.uint8)
MODELS = ("table", "pipeline")
NOT_AN_IMAGE = "inputs.0.photo is not a complete PNG, JPEG or WebP image"


def coded(content):
    return base64.b64encode(content).decode()


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """Red and blue images beside a price."""
    folder = tmp_path_factory.mktemp("photos")
    random = np.random.default_rng(0)
    is_red = np.arange(30) % 2 == 0
    for k, red in enumerate(is_red):
        pixels = random.integers(0, 60, (SIDE, SIDE, 3), dtype=np.uint8)
        pixels[..., 0 if red else 2] += 180
        Image.fromarray(pixels).save(folder / f"{k}.png")
    price = random.normal(size=30)
    frame = pd.DataFrame({"price": price, "photo": [str(folder / f"{k}.png") for k in range(30)]})
    return frame, pd.DataFrame({"red": is_red.astype(int), "dear": (price > 0).astype(int)})


@pytest.fixture(scope="module")
def folders(photos, tmp_path_factory):
    """A model with its encoder inside, and a pipeline, with typical values that name files."""
    frame, labels = photos
    folder = tmp_path_factory.mktemp("models")
    encoder = lw.TableEncoder(KINDS)
    models = {
        "table": lw.BinaryRelevance().fit(lw.Table(frame, encoder), labels),
        "pipeline": make_pipeline(encoder, lw.BinaryRelevance()).fit(frame, labels),
    }
    columns = {"price": [-1.0, 1.0], "photo": [frame["photo"][0], None]}
    for name, model in models.items():
        lw.save(model, folder / name)
        reference = json.dumps({"kind": "table", "columns": columns})
        (folder / name / "reference.json").write_text(reference)
    return {name: folder / name for name in models}


@pytest.fixture(scope="module")
def served(folders, tmp_path_factory):
    state = tmp_path_factory.mktemp("state") / "state.sqlite"
    with running(folders, database=f"sqlite:///{state}", **LIMITS) as service:
        yield service


def as_record(row):
    with open(row["photo"], "rb") as file:  # noqa: PTH123
        return {"price": row["price"], "photo": coded(file.read())}


@pytest.mark.parametrize("model", MODELS)
def test_labels_are_those_of_the_files(served, folders, photos, model):
    frame, labels = photos
    expected = lw.load(folders[model]).predict_proba(frame[:2])
    records = [as_record(row) for row in frame[:2].to_dict("records")]
    answer = predict(served, model, inputs=records, scores=True)
    scores = [
        [{one["label"]: one["score"] for one in row["scores"]}[name] for name in labels]
        for row in answer.json()["predictions"]
    ]
    np.testing.assert_allclose(scores, expected, atol=1e-5)
    assert ["red" in row for row in labels_of(answer)] == [True, False]
    about = served.open.get(f"/v1/models/{model}").json()["columns"]
    assert [(column["name"], column["kind"]) for column in about] == [
        ("price", "number"),
        ("photo", "image"),
    ]


@pytest.mark.parametrize("kind", ["jpeg", "png", "webp"])
def test_data_urls_and_wrapped_base64(served, kind):
    red = encode_image(np.full((SIDE, SIDE, 3), (240, 30, 30), np.uint8), kind)
    url = f"data:image/{kind};base64,{coded(red)}"
    wrapped = base64.encodebytes(red).decode()
    for photo in (url, wrapped):
        assert (
            "red" in labels_of(predict(served, "table", inputs=[{"price": 0, "photo": photo}]))[0]
        )


@pytest.fixture
def opened():
    """The names of all files that this process opens."""
    names, watching = [], [True]

    def watch(event, arguments):
        if event == "open" and watching:
            names.append(str(arguments[0]))

    sys.addaudithook(watch)
    yield names
    watching.clear()  # a hook cannot be removed


@pytest.mark.parametrize("model", MODELS)
def test_a_path_on_the_server_is_refused_and_not_read(served, photos, model, opened):
    path = photos[0]["photo"][0]
    with open(path, "rb"):  # noqa: PTH123
        assert opened.pop() == path  # the watch works
    answers = set()
    for name in (path, path.removesuffix(".png"), "/etc/passwd", "/etc/host", "data:,a", "a\0b"):
        body = {"inputs": [{"price": 1, "photo": name}]}
        tensors = [
            {"name": "price", "datatype": "FP64", "shape": [1], "data": [1.0]},
            {"name": "photo", "datatype": "BYTES", "shape": [1], "data": [name]},
        ]
        for address, sent in (
            (f"/v1/models/{model}/predict", body),
            (f"/v1/models/{model}/explain", body),
            (f"/v2/models/{model}/infer", {"inputs": tensors}),
        ):
            answer = served.open.post(address, json=sent)
            check_problem(answer, 422, NOT_AN_IMAGE)
            answers.add(answer.json()["detail"])
        background = {"inputs": [{"price": 1, "photo": None}], "background": body["inputs"]}
        answer = served.open.post(f"/v1/models/{model}/explain", json=background)
        check_problem(answer, 422, NOT_AN_IMAGE.replace("inputs", "background"))
        assert not {name, path} & set(opened)
    assert len(answers) <= 2  # none says whether there is such a file


@pytest.mark.parametrize(
    ("photo", "status", "words"),
    [
        (coded(b"no image"), 422, NOT_AN_IMAGE),
        (coded(encode_image(NOISE)[:300]), 422, NOT_AN_IMAGE),
        (coded(encode_image(np.zeros((9, 9, 3), np.uint8), "gif")), 422, NOT_AN_IMAGE),
        ("", 422, NOT_AN_IMAGE),
        (3, 422, "inputs.0.photo must be an image, encoded in base64"),
        ([[0, 0], [0, 0]], 422, "inputs.0.photo must be an image, encoded in base64"),
        (coded(encode_image(np.zeros((21, 20, 3), np.uint8))), 413, "more than 400 pixels"),
    ],
)
def test_a_wrong_image_is_answered_with_one_sentence(served, photo, status, words):
    answer = predict(served, "table", inputs=[{"price": 1, "photo": photo}])
    check_problem(answer, status, words)
    assert "\n" not in answer.json()["detail"]


def test_the_images_of_a_request_share_its_limits(served):
    small = coded(encode_image(np.zeros((10, 10, 3), np.uint8)))
    record = {"price": 1, "photo": small}
    labels_of(predict(served, "table", inputs=[record] * 4))
    answer = predict(served, "table", inputs=[record] * 5)
    check_problem(answer, 413, "images of the request together have more than 400 pixels")
    check_problem(predict(served, "table", inputs=[record] * 1025), 413, "at most 1,024")
    assert served.service.images._budget.left == LIMITS["max_pixels_in_flight"]


@pytest.mark.parametrize("model", MODELS)
def test_blanks_and_explanations(served, photos, model):
    red = as_record(photos[0].iloc[0])
    labels_of(predict(served, model, inputs=[red | {"photo": None}, red]))
    body = {"inputs": [red], "labels": ["red"]}
    answer = served.open.post(f"/v1/models/{model}/explain", json=body)
    assert answer.status_code == 200, answer.text
    features = answer.json()["explanations"][0][0]["features"]
    assert (features[0]["feature"], features[0]["value"]) == ("photo", "image")
    assert features[0]["change"] > 0  # of the typical values the paths are not read
    blue = as_record(photos[0].iloc[1])
    answer = served.open.post(f"/v1/models/{model}/explain", json=body | {"background": [blue]})
    assert answer.json()["explanations"][0][0]["features"][0]["feature"] == "photo"


def test_images_reach_a_model_in_a_process_of_its_own(folders, photos, tmp_path):
    database = f"sqlite:///{tmp_path / 'state.sqlite'}"
    with running(folders, database=database, model_processes=True) as service:
        answer = predict(service, "table", inputs=[as_record(photos[0].iloc[0])])
        assert "red" in labels_of(answer)[0]
