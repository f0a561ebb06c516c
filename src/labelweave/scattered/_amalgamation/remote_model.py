"""A model that is reached by HTTP."""

from __future__ import annotations

import io
import json
import os
import socket
import time
from collections.abc import Sequence
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any, ClassVar, NamedTuple
from urllib.error import HTTPError, URLError
from urllib.parse import quote
from urllib.request import (
    HTTPHandler,
    HTTPRedirectHandler,
    HTTPSHandler,
    Request,
    build_opener,
)

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator

from labelweave.exceptions import InputError
from labelweave.files import parsed_json_size

KEYS_VARIABLE = "LABELWEAVE_TEACHER_KEYS"
_MAX_BYTES = 256 * 2**20  # of one response
_MAX_PARSED = 2**30  # bytes that a parsed response may take


class RemoteThreshold(NamedTuple):
    """The probability, of all labels or of each, from which a service predicts a label."""

    applied_threshold: float | list[float]


class RemoteModel(BaseEstimator):
    """A model that answers requests in the form of the Open Inference Protocol, version 2.

    ``POST {url}/infer`` with rows as a tensor of FP64 numbers (or BYTES, for texts) is answered
    with an output of shape (rows, labels); ``GET {url}`` may list the labels and their thresholds,
    under ``parameters.labels`` and ``parameters.threshold`` of that output.
    :class:`labelweave.scattered.teacher.Teacher` makes one from an ``http://`` address.

    Redirects are not followed, because the key must not go to another address. A response that is
    not complete within `timeout`, or that is too large, is an error. A model folder contains the
    address but never the key; a folder with an address is only loaded where that is trusted.

    Parameters
    ----------
    url : str
        Such as ``"http://127.0.0.1:8000/v2/models/tagger"``.
    output : str, default="probabilities"
        Name of the output to read; the first where none has this name.
    labels : sequence of str, optional
        Names of the labels; by default those that the service lists. Answers that list other
        labels are refused.
    batch_rows : int, default=256
        Rows per request.
    timeout : float, default=30.0
        Seconds to connect, to send, and of one whole response.
    api_key : str, optional
        Sent as a bearer token. By default the key of the address in the environment variable
        ``LABELWEAVE_TEACHER_KEYS``, a JSON object of addresses and keys such as
        ``{"http://127.0.0.1:8000": "KEY"}``.
    """

    _unsaved_parameters: ClassVar[tuple[str, ...]] = ("api_key",)
    _outside_parameters: ClassVar[dict[str, tuple[str, ...]]] = {"url": ()}

    def __init__(
        self,
        url: str,
        *,
        output: str = "probabilities",
        labels: Sequence[str] | None = None,
        batch_rows: int = 256,
        timeout: float = 30.0,
        api_key: str | None = None,
    ) -> None:
        self.url = url
        self.output = output
        self.labels = labels
        self.batch_rows = batch_rows
        self.timeout = timeout
        self.api_key = api_key

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        return f"RemoteModel({self.url!r})"  # without its key

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        return {"text/plain": repr(self)}

    @property
    def label_names_(self) -> list[str]:
        """The labels that the service lists, requested once; absent where it lists none."""
        if self.labels is not None:
            return list(self.labels)
        if "_listed" not in vars(self):
            self._listed = self._request_labels()
        return self._listed

    def predict_proba(self, X: Any) -> np.ndarray:
        """P(label | x), requested in batches."""
        n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
        parts = []
        for first in range(0, n_rows, self.batch_rows):
            rows = slice(first, first + self.batch_rows)
            batch = X.iloc[rows] if hasattr(X, "iloc") else X[rows]
            answer = self._send("/infer", {"inputs": [_as_input(batch)]})
            parts.append(self._read_output(answer))
        if len({part.shape[1:] for part in parts}) > 1:
            raise InputError(f"{self.url} returned outputs of different widths")
        return np.concatenate(parts)

    @property
    def threshold_(self) -> RemoteThreshold:
        """The thresholds that the service lists, requested once; absent where it lists none."""
        try:
            threshold = self._described_output().get("threshold")
        except InputError:
            if self.labels is None:
                raise
            threshold = None  # a service that describes nothing can still predict
        if not isinstance(threshold, int | float | list):
            raise AttributeError("threshold_")
        return RemoteThreshold(threshold)

    def _request_labels(self) -> list[str]:
        labels = self._described_output().get("labels")
        if labels and isinstance(labels, list):
            return [str(label) for label in labels]
        raise AttributeError("label_names_")

    def _described_output(self) -> dict[str, Any]:
        """The parameters of the first output that lists labels; empty if none does."""
        if "_described" not in vars(self):
            answer = self._send("", None)
            try:
                listed = [dict(output.get("parameters", {})) for output in answer["outputs"]]
            except (AttributeError, KeyError, TypeError, ValueError):
                listed = []
            self._described = next((one for one in listed if one.get("labels")), {})
        return self._described

    def _read_output(self, answer: Any) -> np.ndarray:
        try:
            outputs = {output["name"]: output for output in answer["outputs"]}
            chosen = outputs.get(self.output) or next(iter(outputs.values()))
            values = np.asarray(chosen["data"], dtype=np.float64).reshape(chosen["shape"])
            listed = chosen.get("parameters", {}).get("labels")
        except (AttributeError, KeyError, TypeError, ValueError, OverflowError, StopIteration):
            raise InputError(
                f"{self.url} answered with something other than an inference"
            ) from None
        if values.ndim != 2:
            raise InputError(f"{self.url} returned an output of shape {values.shape}")
        expected = vars(self).get("_listed") if self.labels is None else list(self.labels)
        if listed is not None and expected is not None and listed != expected:
            raise InputError(
                f"{self.url} no longer predicts the labels that it listed before: it serves "
                "another model"
            )
        return values

    def _key(self) -> str | None:
        """The key of the address: that of the constructor, else that of the environment."""
        if self.api_key is not None or not (text := os.environ.get(KEYS_VARIABLE)):
            return self.api_key
        try:
            keys = {str(address).rstrip("/"): str(key) for address, key in json.loads(text).items()}
        except (ValueError, AttributeError, RecursionError):
            raise InputError(
                f"{KEYS_VARIABLE} must be a JSON object of addresses and keys, such as "
                '{"http://127.0.0.1:8000": "KEY"}'
            ) from None
        near = [address for address in keys if f"{self.url}/".startswith(f"{address}/")]
        return keys[max(near, key=len)] if near else None

    def _send(self, path: str, body: Any) -> Any:
        if not self.url.startswith(("http://", "https://")):
            raise InputError(f"{self.url!r} is not an http address")
        key = self._key()
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if key is not None:
            headers["Authorization"] = f"Bearer {key}"
        data = None if body is None else json.dumps(body).encode()
        request = Request(self.url.rstrip("/") + path, data=data, headers=headers)
        try:
            with _OPENER.open(request, timeout=self.timeout) as response:
                text = response.read(_MAX_BYTES + 1)
        except HTTPError as error:
            error.close()
            reason = " ".join(str(error.reason).split())[:80]
            hint = ", and redirects are not followed: use the address that it redirects to"
            raise InputError(
                f"{self.url} answered with {error.code} {reason}"
                f"{hint if 300 <= error.code < 400 else ''}"
            ) from None
        except (URLError, OSError, HTTPException) as error:
            cause = error.reason if isinstance(error, URLError) else error
            if isinstance(cause, TimeoutError):
                raise InputError(
                    f"{self.url} did not answer within {self.timeout:g} seconds"
                ) from None
            raise InputError(f"{self.url} cannot be reached: {cause}") from None
        if len(text) > _MAX_BYTES or parsed_json_size(text) > _MAX_PARSED:
            raise InputError(f"{self.url} answered with more than a response may have")
        try:
            return json.loads(text)
        except (ValueError, RecursionError):  # also raised for text that is not UTF-8
            raise InputError(f"{self.url} answered with something that is not JSON") from None


class _TimedReader(io.RawIOBase):
    """Reads from a socket until a moment; a socket's own timeout begins again with each byte."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._stream = sock.makefile("rb", buffering=0)
        seconds = sock.gettimeout()
        self._end = None if seconds is None else time.monotonic() + seconds

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        if self._end is not None:
            left = self._end - time.monotonic()
            if left <= 0:
                raise TimeoutError("timed out")
            self._socket.settimeout(left)
        return self._stream.readinto(buffer)

    def close(self) -> None:
        self._stream.close()
        super().close()


class _TimedResponse(HTTPResponse):
    def __init__(self, sock: socket.socket, *args: Any, **keywords: Any) -> None:
        super().__init__(sock, *args, **keywords)
        self.fp.close()
        self.fp = io.BufferedReader(_TimedReader(sock))


class _TimedConnection(HTTPConnection):
    response_class = _TimedResponse


class _TimedSecureConnection(HTTPSConnection):
    response_class = _TimedResponse


class _TimedHandler(HTTPHandler):
    def http_open(self, request: Request) -> HTTPResponse:
        return self.do_open(_TimedConnection, request)


class _TimedSecureHandler(HTTPSHandler):
    def https_open(self, request: Request) -> HTTPResponse:
        return self.do_open(_TimedSecureConnection, request)


class _NoRedirects(HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        """Let the redirect be an error."""


_OPENER = build_opener(_TimedHandler, _TimedSecureHandler, _NoRedirects)


def list_models(url: str) -> list[str]:
    """The addresses of the models of a service, from its root address; none if it lists none."""
    root = url.rstrip("/")
    answer = RemoteModel(f"{root}/v1/models")._send("", None)
    try:
        names = [model["name"] for model in answer["models"]]
    except (KeyError, TypeError):
        return []
    return [f"{root}/v2/models/{quote(str(name), safe='')}" for name in names]


def _as_input(batch: Any) -> dict[str, Any]:
    if not hasattr(batch, "shape"):
        return {"name": "X", "datatype": "BYTES", "shape": [len(batch)], "data": list(batch)}
    dense = batch.toarray() if sp.issparse(batch) else np.asarray(batch, dtype=np.float64)
    return {
        "name": "X",
        "datatype": "FP64",
        "shape": list(dense.shape),
        "data": dense.ravel().tolist(),
    }
