"""A small zero-shot model, a service of it that runs beside the test, and checks of responses."""

import io
import socket
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import httpx
import numpy as np
import uvicorn
from PIL import Image
from sklearn.base import BaseEstimator

from labelweave.capabilities import Capabilities, with_capabilities
from labelweave.exceptions import InputError
from labelweave.persistence import ModelInfo
from labelweave.serve import model_process, served_models
from labelweave.serve.app import create_app, server_options
from labelweave.serve.service import Service
from labelweave.serve.settings import Settings
from labelweave.thresholds import FixedThreshold

KEY = "a-key-of-the-tests-only"


class Explanation(NamedTuple):
    label: str
    probability: float
    fusion: float
    similarity: float | None
    because_of: list


class FakeTable:
    def __init__(self, model):
        self.model = model

    @property
    def rows(self):
        return np.arange(len(self.model.label_names_))

    def vectors(self, rows):
        """Counts of letters."""
        texts = [str(self.model.label_names_[i]) for i in rows]
        return np.array(
            [[text.count(c) for c in "abcdefghijklmnopqrstuvwxyz"] for text in texts], float
        )


class FakeZeroShot(BaseEstimator):
    """The probability of a label is 0.9 if the text contains its name, else 0.1.

    A test that clears `may_predict` holds predictions back until it sets the event.
    """

    def __init__(self, names=("sea", "sun")):
        self.label_names_ = np.array(names, dtype=object)
        self.label_descriptions_ = {"sea": "salt water"}
        self.threshold_ = FixedThreshold(0.5)
        self.table_ = FakeTable(self)
        self.batches = []
        self.may_predict = threading.Event()
        self.may_predict.set()

    def __sklearn_tags__(self):
        tags = with_capabilities(super().__sklearn_tags__())
        tags.capabilities = Capabilities(texts=True, new_labels=True)
        return tags

    def predict_proba(self, X):
        self.batches.append(len(X))
        assert self.may_predict.wait(300)
        if any("poison" in text for text in X):
            raise InputError("a text is poisonous")
        if any("crash" in text for text in X):
            raise RuntimeError("/secret/path")
        return np.array([[0.9 if n in text else 0.1 for n in self.label_names_] for text in X])

    def explain(self, X, k=5):
        because = [("sea", 0.7)]
        row = [Explanation(n, 0.9, 0.5, None, because) for n in self.label_names_[:k]]
        return [row for _ in X]

    def add_labels(self, names, descriptions=None):
        assert not set(names) & set(self.label_names_)
        self.label_descriptions_.update({n: d for n, d in (descriptions or {}).items() if d})
        self.label_names_ = np.append(self.label_names_, np.array(names, dtype=object))

    def remove_labels(self, names):
        self.label_names_ = np.array([n for n in self.label_names_ if n not in names], dtype=object)

    def rename_label(self, old, new, description=None):
        self.label_names_ = np.array([new if n == old else n for n in self.label_names_], object)
        text = self.label_descriptions_.pop(old, None) if description is None else description
        if text:
            self.label_descriptions_[new] = text


class PredictsBrightness(FakeZeroShot):
    """The label "sun" for bright images, "sea" for dark ones."""

    def predict_proba(self, X):
        bright = np.array([image.mean() / 255 for image in X])
        return np.column_stack([1 - bright, bright])

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.capabilities = Capabilities(images=True)
        return tags


def encode_image(array, kind="PNG"):
    stream = io.BytesIO()
    Image.fromarray(array).save(stream, kind)
    return stream.getvalue()


def fake_info(folder, **_):
    facts = dict.fromkeys(ModelInfo.__dataclass_fields__)
    return ModelInfo(**{**facts, "method": "fake", "label_names": ["sea", "sun"]})


def use_fakes(monkeypatch=None, make=FakeZeroShot):
    """Make every folder contain a fake model."""
    patch = setattr if monkeypatch is None else monkeypatch.setattr
    patch(served_models, "model_info", fake_info)
    patch(model_process, "read_model", lambda folder, *_: (make(), None))


def wait_until(condition):
    """Wait as long as a busy machine may need, and no longer: a test that fails shall end."""
    end = time.monotonic() + 400
    while not condition():
        assert time.monotonic() < end, "what the test waits for has not happened"
        time.sleep(0.01)


@contextmanager
def running(folders, *, queues=None, cooccurrence=None, key=KEY, **settings):
    """Run a service in a thread: `.client` sends a key, `.open` does not."""
    listening = socket.create_server(("127.0.0.1", 0))
    chosen = Settings(
        port=listening.getsockname()[1], **{"poll": 0.1, "model_processes": False, **settings}
    )
    paths = {name: Path(folder) for name, folder in folders.items()}
    service = Service(paths, chosen, queues, cooccurrence=cooccurrence)
    if key is not None and "tests" not in service.keys.stored_hashes:
        service.store.add_key("tests", key)
        service.keys.stored_hashes = service.store.key_hashes()
    server = uvicorn.Server(uvicorn.Config(create_app(service), **server_options(chosen)))
    thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
    thread.start()
    url = f"http://127.0.0.1:{chosen.port}"
    wait_until(lambda: server.started or not thread.is_alive())
    assert server.started, "the service did not start"
    bearer = {"Authorization": f"Bearer {key}"}
    try:
        with (
            httpx.Client(base_url=url, headers=bearer, timeout=300) as client,
            httpx.Client(base_url=url, timeout=300) as anyone,
        ):
            yield SimpleNamespace(
                client=client, open=anyone, service=service, url=url, server=server, thread=thread
            )
    finally:
        server.should_exit = True
        thread.join(300)


def predict(served, model, **body):
    return served.open.post(f"/v1/models/{model}/predict", json=body)


def labels_of(answer):
    assert answer.status_code == 200, answer.text
    return [[label["label"] for label in row["labels"]] for row in answer.json()["predictions"]]


def check_problem(answer, status, *words):
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    body = answer.json()
    assert set(body) == {"type", "title", "status", "detail"}
    assert body["status"] == status
    for word in words:
        assert word in body["detail"]
