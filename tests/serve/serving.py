"""A small zero-shot model, and a service of it that runs beside the test."""

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

from labelweave.exceptions import InputError
from labelweave.persistence import ModelInfo
from labelweave.serve import models as serve_models
from labelweave.serve.app import create_app
from labelweave.serve.running import server_options
from labelweave.serve.service import Service
from labelweave.serve.settings import Settings
from labelweave.thresholds import FixedThreshold

KEY = "a-key-of-the-tests-only"


class Because(NamedTuple):
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


class FakeZeroShot:
    """A text has a label, with 0.9, if it holds its name, else with 0.1."""

    def __init__(self, names=("sea", "sun")):
        self.label_names_ = np.array(names, dtype=object)
        self.label_descriptions_ = {"sea": "salt water"}
        self.threshold_ = FixedThreshold(0.5)
        self.table_ = FakeTable(self)
        self.batches = []
        self.pause = 0.0

    def predict_proba(self, X):
        self.batches.append(len(X))
        time.sleep(self.pause)
        if any("poison" in text for text in X):
            raise InputError("a text is poisonous")
        if any("crash" in text for text in X):
            raise RuntimeError("/secret/path")
        return np.array([[0.9 if n in text else 0.1 for n in self.label_names_] for text in X])

    def explain(self, X, k=5):
        return [
            [Because(n, 0.9, 0.5, None, [("sea", 0.7)]) for n in self.label_names_[:k]] for _ in X
        ]

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


def fake_info(folder):
    facts = dict.fromkeys(ModelInfo.__dataclass_fields__)
    return ModelInfo(**{**facts, "method": "fake", "label_names": ["sea", "sun"]})


def use_fakes(monkeypatch=None, make=FakeZeroShot):
    """From here on every folder holds a fake model."""
    patch = setattr if monkeypatch is None else monkeypatch.setattr
    patch(serve_models, "model_info", fake_info)
    patch(serve_models, "read_model", lambda folder, threads: (make(), None))


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextmanager
def running(folders, *, queues=None, together=None, key=KEY, **settings):
    """A service in a thread: `.client` with a key, `.open` without, `.service`, `.url`."""
    chosen = Settings(port=free_port(), **{"poll": 0.1, **settings})
    paths = {name: Path(folder) for name, folder in folders.items()}
    service = Service(paths, chosen, queues, together=together)
    if key is not None and "tests" not in service.keys.hashes:
        service.store.add_key("tests", key)
        service.keys.hashes = service.store.key_hashes()
    options = server_options(chosen) | {"host": "127.0.0.1"}
    server = uvicorn.Server(uvicorn.Config(create_app(service), **options))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    url = f"http://127.0.0.1:{chosen.port}"
    deadline = time.monotonic() + 30
    while not server.started:
        assert thread.is_alive(), "the service did not start"
        assert time.monotonic() < deadline
        time.sleep(0.01)
    bearer = {"Authorization": f"Bearer {key}"}
    try:
        with (
            httpx.Client(base_url=url, headers=bearer, timeout=30) as client,
            httpx.Client(base_url=url, timeout=30) as anyone,
        ):
            yield SimpleNamespace(
                client=client, open=anyone, service=service, url=url, server=server, thread=thread
            )
    finally:
        server.should_exit = True
        thread.join(30)
