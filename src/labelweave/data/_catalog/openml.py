"""Multi-label data sets of openml.org, through scikit-learn.

OpenML stores the labels as nominal columns of TRUE and FALSE, and has no official splits.
scikit-learn checks each file against OpenML's checksum and keeps it in the cache.
"""

from __future__ import annotations

import http.client
import socket
import warnings
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from labelweave.data.dataset import Dataset
from labelweave.exceptions import DatasetUnavailableError
from labelweave.labels import as_labels

_TRUE = ["true", "yes"]
_TRUE_OR_FALSE = {*_TRUE, "false", "no"}


def fetch_dataset(
    data_id: int, name: str, *, cache: Path, id_column: str | None = None, timeout: float = 30.0
) -> Dataset:
    """Download one OpenML data set, or read it from the folder `cache`.

    `data_id` is OpenML's number of the data set, which never changes its version; another name than
    `name` under that number is an error. `id_column` holds the names of the rows and is not a
    feature. Raises DatasetUnavailableError if OpenML cannot be reached, does not answer within
    `timeout` seconds, or sent other data.
    """
    from sklearn.datasets import fetch_openml

    with _network_errors(data_id), _socket_timeout(timeout):
        # The pandas parser fails on nominal TRUE and FALSE, which it takes for booleans.
        bunch = fetch_openml(
            data_id=data_id, data_home=str(cache), as_frame=True, parser="liac-arff", n_retries=1
        )
    openml_name = str(bunch.details["name"])
    if openml_name.lower() != name.lower():
        raise DatasetUnavailableError(
            f"OpenML's data set {data_id} is {openml_name!r}, not {name!r}"
        )
    target = bunch.target if hasattr(bunch.target, "columns") else bunch.target.to_frame()
    features = bunch.data
    ids = None
    if id_column is not None and id_column in features.columns:
        ids = features[id_column].astype(str).tolist()
        features = features.drop(columns=id_column)
    labels = as_labels(
        np.column_stack([_as_numbers(target[column]) for column in target.columns]),
        names=[str(column) for column in target.columns],
    )
    return Dataset(
        np.column_stack([_as_numbers(features[column]) for column in features.columns]),
        labels,
        name=name,
        feature_names=[str(column) for column in features.columns],
        row_ids=ids,
        facts={"openml_md5": str(bunch.details.get("md5_checksum", ""))},
    )


def _as_numbers(column: Any) -> np.ndarray:
    """Convert a column to numbers; yes and no (or true and false) become 1 and 0."""
    unknown = column.isna().to_numpy()
    known = column[~unknown].astype(str).str.strip().str.lower().to_numpy(dtype=str)
    words = set(known)
    numbers = np.full(len(unknown), np.nan, dtype=np.float32)
    try:
        numbers[~unknown] = (
            np.isin(known, _TRUE) if words <= _TRUE_OR_FALSE else known.astype(float)
        )
        return numbers
    except ValueError:
        shown = ", ".join(sorted(words)[:4])
        raise DatasetUnavailableError(
            f"column {column.name!r} of the OpenML data set is neither numeric nor yes/no: {shown}"
        ) from None


@contextmanager
def _network_errors(data_id: int) -> Iterator[None]:
    """Turn errors into one line, without the warnings of scikit-learn before them."""
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="A network error occurred|Invalid cache")
            yield
    except (OSError, http.client.HTTPException, EOFError, zlib.error, ValueError) as error:
        reason = " ".join(str(getattr(error, "reason", "") or error).split())[:160]
        raise DatasetUnavailableError(
            f"OpenML's data set {data_id} cannot be downloaded ({reason or type(error).__name__})"
        ) from error


@contextmanager
def _socket_timeout(seconds: float) -> Iterator[None]:
    """Set a timeout, which fetch_openml lacks: a silent server would block for ever."""
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(seconds)
    try:
        yield
    finally:
        socket.setdefaulttimeout(before)
