"""Where a model is: in the process of the service, or in one of its own.

Both are asked in the same way: with a function of the loaded model, such as
``methodcaller("predict_proba", X)``. A process of its own gets the pickled function through its
standard input and sends the pickled result through its standard output; it ends when its input
does, that is, with the service.
"""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, is_dataclass
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from sklearn.base import BaseEstimator

from labelweave.exceptions import LabelweaveError

__all__ = [
    "ModelCrashedError",
    "ModelHost",
    "ModelInService",
    "ModelProcess",
    "disable_caches",
    "ignore_expected_warnings",
]

_EXPECTED_WARNINGS = (
    # Records are matched with the feature names before they become arrays without names.
    "X does not have valid feature names",
    # Rows of clients differ from the training rows: the response says so, and not the log.
    "Found unknown categories in columns",
    "the column .* has .* that no training row had",
    "the column .* is missing: its cells count as blank",
)
_STOP_SECONDS = 5.0


class ModelCrashedError(LabelweaveError):
    """The process of a model has ended."""


class ModelHost(Protocol):
    """A loaded model, wherever it is."""

    feature_names: Sequence[str] | None

    @property
    def is_alive(self) -> bool:
        """Whether the model can still be asked."""

    def ask(self, function: Callable[[Any], Any]) -> Any:
        """Return the result of a function of the model."""

    def close(self) -> None:
        """Give the model up."""


class ModelInService:
    """A model in the process of the service."""

    is_alive = True

    def __init__(
        self,
        folder: Path,
        threads: int,
        trusted: Sequence[str] = (),
        trusted_keys: Sequence[str] | None = None,
    ) -> None:
        self.model, self.feature_names = read_model(folder, threads, trusted, trusted_keys)

    def ask(self, function: Callable[[Any], Any]) -> Any:
        """Return the result of a function of the model."""
        return function(self.model)

    def close(self) -> None:
        """Nothing is to be done."""


class ModelProcess:
    """A model in a process of its own; one thread at a time may ask it."""

    def __init__(
        self,
        folder: Path,
        threads: int,
        trusted: Sequence[str] = (),
        trusted_keys: Sequence[str] | None = None,
    ) -> None:
        trust = json.dumps([trusted, trusted_keys])
        command = [sys.executable, "-P", "-m", __name__, str(folder), str(threads), trust]
        path = os.pathsep.join(filter(None, sys.path))
        self._process = subprocess.Popen(
            command,
            env={**os.environ, "PYTHONPATH": path},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        try:
            self.feature_names: Sequence[str] | None = self._result()
        except BaseException:
            self.close()
            raise

    @property
    def is_alive(self) -> bool:
        """Whether the process has not ended."""
        return self._process.poll() is None

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    def ask(self, function: Callable[[Any], Any]) -> Any:
        """Return the result of a function of the model, which must be one that pickle can name."""
        message = pickle.dumps(function, protocol=5)
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(message)
            self._process.stdin.flush()
        except (OSError, ValueError):
            raise self._crashed() from None
        return self._result()

    def close(self) -> None:
        """End the process."""
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            with suppress(OSError):  # what was to be sent can no longer be sent
                stream.close()
        try:
            self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _result(self) -> Any:
        assert self._process.stdout is not None
        try:
            result, error = pickle.load(self._process.stdout)
        except (OSError, EOFError, ValueError, pickle.UnpicklingError):
            raise self._crashed() from None
        if error is not None:
            raise error
        return result

    def _crashed(self) -> ModelCrashedError:
        return ModelCrashedError(f"the process {self._process.pid} of a model has ended")


def read_model(
    folder: Path, threads: int, trusted: Sequence[str], trusted_keys: Sequence[str] | None
) -> tuple[Any, Sequence[str] | None]:
    """Load the model of a folder, and return it with the names of its features."""
    from labelweave.pipeline.model_folder import open_model

    model, origin = open_model(str(folder), trusted, trusted_keys)
    disable_caches(model)
    model._reference = origin.reference  # for explanations
    # Small batches are slower with several threads. Only a neural model has imported torch.
    if (torch := sys.modules.get("torch")) is not None:
        torch.set_num_threads(threads)
    names = getattr(model, "feature_names_in_", None)
    return model, origin.feature_names if names is None else names


def ignore_expected_warnings() -> None:
    """Keep warnings that depend on the rows of clients out of the log."""
    for message in _EXPECTED_WARNINGS:
        warnings.filterwarnings("ignore", message=message)


def disable_caches(model: Any) -> None:
    """Stop the encoders inside a model from keeping embeddings and features on disk.

    The cache saves time when the same texts or images are encoded again, as in training. In a
    service it would grow with every request and store what clients have sent.

    >>> from sklearn.pipeline import make_pipeline
    >>> from labelweave.text.sentence import SentenceEmbedder
    >>> model = make_pipeline(SentenceEmbedder(), "passthrough")
    >>> disable_caches(model)
    >>> model[0].cache
    False
    """
    for estimator in _nested_estimators(model, set()):
        if "cache" in estimator.get_params(deep=False):
            estimator.cache = False


def _nested_estimators(value: Any, visited: set[int]) -> Iterator[Any]:
    """Yield a value, if it is an estimator, and all estimators inside it."""
    if id(value) in visited:
        return
    visited.add(id(value))
    if isinstance(value, BaseEstimator):
        yield value
        children = list(vars(value).values())
    elif isinstance(value, Mapping):
        children = list(value.values())
    elif isinstance(value, list | tuple):
        children = list(value)
    elif is_dataclass(value) and not isinstance(value, type):  # a column of a table encoder
        children = [getattr(value, field.name) for field in fields(value)]
    else:
        return
    for child in children:
        yield from _nested_estimators(child, visited)


# -- in the process of the model -------------------------------------------------------


def _attempt(function: Callable[[], Any]) -> tuple[Any, Exception | None]:
    try:
        return function(), None
    except Exception as error:
        return None, error


def _send(responses: BinaryIO, outcome: tuple[Any, Exception | None]) -> None:
    try:
        message = pickle.dumps(outcome, protocol=5)
        if outcome[1] is not None:
            pickle.loads(message)  # some errors can be written, but not read again
    except Exception as error:
        reason = outcome[1] or error
        message = pickle.dumps((None, RuntimeError(f"{type(reason).__name__}: {reason}")))
    responses.write(message)
    responses.flush()


def main(folder: str, threads: str, trust: str) -> None:
    """Load a model, and answer until the input ends."""
    for name in ("SIGINT", "SIGTERM"):  # the service finishes what it has accepted, then closes
        signal.signal(getattr(signal, name), signal.SIG_IGN)
    ignore_expected_warnings()
    requests = os.fdopen(os.dup(0), "rb")
    responses = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints is no response
    loaded, error = _attempt(partial(read_model, Path(folder), int(threads), *json.loads(trust)))
    if error is not None:
        _send(responses, (None, error))
        return
    model, feature_names = loaded
    _send(responses, (feature_names, None))
    while True:
        try:
            function = pickle.load(requests)
        except EOFError:
            return
        _send(responses, _attempt(partial(function, model)))


if __name__ == "__main__":
    main(*sys.argv[1:])
