"""Images by upload."""

import io
import struct
import zlib
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image
from serving import FakeZeroShot, running, use_fakes
from test_serve_api import check_problem, labels_of

ADDRESS = "/v1/models/tags/predict/image"


class Bright(FakeZeroShot):
    """ "sun" for bright images, "sea" for dark ones."""

    def predict_proba(self, X):
        bright = np.array([image.mean() / 255 for image in X])
        return np.column_stack([1 - bright, bright])

    def __sklearn_tags__(self):
        return SimpleNamespace(input_tags=SimpleNamespace(string=False, three_d_array=True))


def encoded(array, kind="PNG"):
    stream = io.BytesIO()
    Image.fromarray(array).save(stream, kind)
    return stream.getvalue()


@pytest.fixture
def served(monkeypatch, sqlite):
    use_fakes(monkeypatch, Bright)
    with running({"tags": "x"}, database=sqlite, max_pixels=10_000) as service:
        yield service


def send(served, content, kind="image/png"):
    return served.open.post(ADDRESS, content=content, headers={"Content-Type": kind})


def test_an_image_is_labelled_in_each_format_and_mode(served):
    white, black = np.full((20, 30, 3), 255, np.uint8), np.zeros((40, 10), np.uint8)
    for kind in ("png", "jpeg", "webp"):
        assert labels_of(send(served, encoded(white, kind), f"image/{kind}")) == [["sun"]]
    assert labels_of(send(served, encoded(black))) == [["sea"]]


def test_damaged_strange_and_huge_images_are_refused(served):
    whole = encoded(np.random.default_rng(0).integers(0, 255, (50, 50, 3), np.uint8))
    for content in (b"", b"no image", whole[:200], b"GIF89a" + whole):
        check_problem(send(served, content), 422)
    check_problem(send(served, whole, "image/tiff"), 415)
    check_problem(send(served, encoded(np.zeros((101, 100), np.uint8))), 413, "10,000 pixels")
    size = struct.pack(">IIBBBBB", 60_000, 60_000, 8, 2, 0, 0, 0)  # a bomb: small, but says so
    head = b"IHDR" + size
    bomb = whole[:8] + struct.pack(">I", 13) + head + struct.pack(">I", zlib.crc32(head))
    check_problem(send(served, bomb + whole[33:]), 413)
    assert served.open.get("/v1/models/tags").json()["input"] == "images"


def test_other_models_take_no_images(fake):
    answer = fake.open.post(ADDRESS, content=b"x", headers={"Content-Type": "image/png"})
    check_problem(answer, 409)
