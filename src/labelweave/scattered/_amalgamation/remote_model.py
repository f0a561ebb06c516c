"""A model that is reached by HTTP."""

from __future__ import annotations

import json
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

import numpy as np
import scipy.sparse as sp

from labelweave.exceptions import InputError

_MAX_BYTES = 256 * 2**20  # of one response


class RemoteModel:
    """A model that answers requests in the form of the Open Inference Protocol, version 2.

    ``POST {url}/infer`` with rows as a tensor of FP64 numbers (or BYTES, for texts) is answered
    with an output of shape (rows, labels); ``GET {url}`` may list the labels, under
    ``parameters.labels`` of that output. :class:`labelweave.scattered.teacher.Teacher` makes one
    from an ``http://`` address.
    """

    def __init__(
        self,
        url: str,  # such as "http://127.0.0.1:8000/v2/models/tagger"
        *,
        output: str = "probabilities",  # the output to read; the first where none has this name
        batch_rows: int = 256,  # per request
        timeout: float = 30.0,  # in seconds, of one response
        api_key: str | None = None,  # sent as a bearer token
    ) -> None:
        if not url.startswith(("http://", "https://")):
            raise InputError(f"{url!r} is not an http address")
        self.url = url.rstrip("/")
        self.output = output
        self.batch_rows = batch_rows
        self.timeout = timeout
        self.api_key = api_key
        self._labels: list[str] | None = None

    @property
    def label_names_(self) -> list[str]:
        """The labels that the service lists, requested once; absent where it lists none."""
        if self._labels is None:
            self._labels = self._request_labels()
        return self._labels

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

    def _request_labels(self) -> list[str]:
        answer = self._send("", None)
        for output in answer.get("outputs", ()):
            labels = output.get("parameters", {}).get("labels")
            if labels:
                return [str(label) for label in labels]
        raise AttributeError("label_names_")

    def _read_output(self, answer: Any) -> np.ndarray:
        try:
            outputs = {output["name"]: output for output in answer["outputs"]}
            chosen = outputs.get(self.output) or next(iter(outputs.values()))
            values = np.asarray(chosen["data"], dtype=np.float64).reshape(chosen["shape"])
        except (KeyError, TypeError, ValueError, StopIteration):
            raise InputError(
                f"{self.url} answered with something other than an inference"
            ) from None
        if values.ndim != 2:
            raise InputError(f"{self.url} returned an output of shape {values.shape}")
        return values

    def _send(self, path: str, body: Any) -> Any:
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self.api_key is not None:
            headers["Authorization"] = f"Bearer {self.api_key}"
        data = None if body is None else json.dumps(body).encode()
        request = Request(self.url + path, data=data, headers=headers)
        try:
            with urlopen(request, timeout=self.timeout) as response:
                text = response.read(_MAX_BYTES + 1)
            if len(text) > _MAX_BYTES:
                raise InputError(f"{self.url} answered with more than {_MAX_BYTES // 2**20} MB")
            return json.loads(text)
        except HTTPError as error:
            raise InputError(f"{self.url} answered with {error.code} {error.reason}") from None
        except (URLError, TimeoutError, OSError) as error:
            reason = getattr(error, "reason", error)
            raise InputError(f"{self.url} cannot be reached: {reason}") from None
        except json.JSONDecodeError:
            raise InputError(f"{self.url} answered with something that is not JSON") from None


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
