"""Images of requests: a bound on the pixels that are decoded at the same time."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image
from serving import (
    PredictsBrightness,
    check_problem,
    encode_image,
    labels_of,
    running,
    use_fakes,
    wait_until,
)

from labelweave.data.images.decoding import decode
from labelweave.exceptions import InputError
from labelweave.serve import image_requests
from labelweave.serve.image_requests import PixelBudget, count_pixels, decode_all
from labelweave.serve.settings import Settings

ADDRESS = "/v1/models/tags/predict/image"
WHITE = encode_image(np.full((100, 100), 255, np.uint8))


def send(served, content):
    return served.open.post(ADDRESS, content=content, headers={"Content-Type": "image/png"})


@contextmanager
def clients_of_a_slow_model(monkeypatch, database, n_clients, **limits):
    """Yield a service, threads for clients, and two events of its model.

    The first is set once the model has been asked; the model answers once the second is set, at the
    latest at the end of the block, so that a test that fails does not wait for it.
    """
    asked, may_answer = threading.Event(), threading.Event()

    class Slow(PredictsBrightness):
        def predict_proba(self, X):
            asked.set()
            assert may_answer.wait(300)
            return super().predict_proba(X)

    use_fakes(monkeypatch, Slow)
    with (
        running({"tags": "x"}, database=database, max_pixels=10_000, **limits) as served,
        ThreadPoolExecutor(n_clients) as clients,
    ):
        try:
            yield served, clients, asked, may_answer
        finally:
            may_answer.set()


def test_images_wait_until_others_are_predicted(sqlite, monkeypatch):
    decoded = []

    def count_and_decode(contents):
        decoded.append(1)
        return decode_all(contents)

    monkeypatch.setattr(image_requests, "decode_all", count_and_decode)
    slow = clients_of_a_slow_model(monkeypatch, sqlite, 8, max_pixels_in_flight=20_000)
    with slow as (served, clients, _, may_answer):
        answers = [clients.submit(send, served, WHITE) for _ in range(8)]
        budget = served.service.images._budget
        wait_until(lambda: len(decoded) + len(budget._waiting) == 8)
        assert len(decoded) == 2
        assert served.open.get("/v1/health/ready").status_code == 200
        may_answer.set()
        assert [labels_of(answer.result()) for answer in answers] == [[["sun"]]] * 8
        assert len(decoded) == 8
        assert budget.left == 20_000


def test_an_image_that_waits_too_long_is_refused(sqlite, monkeypatch):
    slow = clients_of_a_slow_model(monkeypatch, sqlite, 2, max_pixels_in_flight=10_000)
    with slow as (served, clients, asked, may_answer):
        images = served.service.images
        images._settings = replace(images._settings, body_timeout=0.1)
        first = clients.submit(send, served, WHITE)
        assert asked.wait(300)
        second = clients.submit(send, served, WHITE)
        wait_until(lambda: second.done() or served.service.models.get("tags").current.batcher.depth)
        may_answer.set()
        answer = second.result()
        check_problem(answer, 503, "too many images")
        assert answer.headers["retry-after"] == "1"
        assert labels_of(first.result()) == [["sun"]]
        check_problem(send(served, encode_image(np.zeros((101, 100), np.uint8))), 413, "10,000")
        check_problem(send(served, WHITE[:60]), 422)
        assert labels_of(send(served, WHITE)) == [["sun"]]


def test_the_budget_of_pixels_is_first_come_first_served():
    async def main():
        budget = PixelBudget(10)
        await budget.take(6, seconds=1)
        order = []

        async def client(name, pixels, seconds):
            await budget.take(pixels, seconds=seconds)
            order.append(name)

        large = asyncio.create_task(client("large", 8, 300))
        small = asyncio.create_task(client("small", 2, 300))
        await asyncio.sleep(0)
        assert order == []  # the small one would fit, but it came later
        with pytest.raises(TimeoutError):
            await budget.take(1, seconds=0.01)
        budget.give_back(6)
        await asyncio.gather(large, small)
        assert order == ["large", "small"]
        last = asyncio.create_task(client("last", 10, 300))
        await asyncio.sleep(0)
        last.cancel()
        budget.give_back(10)
        await asyncio.gather(last, return_exceptions=True)
        return budget.left

    assert asyncio.run(main()) == 10


@pytest.mark.parametrize("mode", ["1", "L", "P", "LA", "RGB", "RGBA", "I;16", "turned"])
def test_images_are_decoded_as_in_training(mode, monkeypatch, tmp_path):
    monkeypatch.setattr(image_requests, "_STRIP", 64)  # several strips
    values = np.random.default_rng(0).integers(0, 255, (13, 17, 3), np.uint8)
    exif = Image.Exif()
    if mode == "I;16":
        image = Image.fromarray(values[:, :, 0].astype(np.uint16) * 200)
    elif mode == "turned":
        image = Image.fromarray(values)
        exif[0x0112] = 6  # a camera that was held upright
    else:
        image = Image.fromarray(values).convert(mode)
        if mode in ("LA", "RGBA"):
            image.putalpha(Image.fromarray(values[:, :, 1]))
    image.save(tmp_path / "image.png", exif=exif)
    contents = {"the body": (tmp_path / "image.png").read_bytes()}
    assert count_pixels(contents) == 13 * 17
    (pixels,) = decode_all(contents)
    assert pixels.shape == ((17, 13, 3) if mode == "turned" else (13, 17, 3))
    np.testing.assert_array_equal(decode(pixels, 8), decode(tmp_path / "image.png", 8))


def test_more_pixels_per_image_than_for_all():
    with pytest.raises(InputError, match="max_pixels_in_flight"):
        Settings(max_pixels=100, max_pixels_in_flight=99)
