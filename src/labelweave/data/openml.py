"""Multi-label data sets of openml.org, through scikit-learn.

OpenML stores the labels as nominal columns of TRUE and FALSE, and the rows without an
official split. scikit-learn checks each file against the checksum that OpenML gives and keeps
it in the cache.
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

__all__ = ["fetch_dataset"]

_YES = ["true", "yes"]
_YES_AND_NO = {*_YES, "false", "no"}


def fetch_dataset(
    data_id: int, name: str, *, cache: Path, id_column: str | None = None, timeout: float = 30.0
) -> Dataset:
    """Download one OpenML data set, or take it from the cache.

    Parameters
    ----------
    data_id : int
        OpenML's number of the data set, which stands for one version for ever.
    name : str
        What OpenML calls it; another name under that number is an error.
    cache : Path
        Folder for the files.
    id_column : str, optional
        A column that names the rows and is no feature.
    timeout : float, default=30.0
        Seconds of silence after which the server is given up.

    Returns
    -------
    Dataset

    Raises
    ------
    DatasetUnavailableError
        OpenML cannot be reached or sent something else.
    """
    from sklearn.datasets import fetch_openml

    with _network_errors(data_id), _socket_timeout(timeout):
        # Not the pandas parser: it takes nominal TRUE and FALSE for booleans, and fails on them.
        bunch = fetch_openml(
            data_id=data_id, data_home=str(cache), as_frame=True, parser="liac-arff", n_retries=1
        )
    found = str(bunch.details["name"])
    if found.lower() != name.lower():
        raise DatasetUnavailableError(f"OpenML's data set {data_id} is {found!r}, not {name!r}")
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
    """A column of numbers as it is, one of yes and no (or true and false) as 1 and 0."""
    unknown = column.isna().to_numpy()
    known = column[~unknown].astype(str).str.strip().str.lower().to_numpy(dtype=str)
    words = set(known)
    numbers = np.full(len(unknown), np.nan, dtype=np.float32)
    try:
        numbers[~unknown] = np.isin(known, _YES) if words <= _YES_AND_NO else known.astype(float)
        return numbers
    except ValueError:
        shown = ", ".join(sorted(words)[:4])
        raise DatasetUnavailableError(
            f"column {column.name!r} of the OpenML data set is neither numeric nor yes/no: {shown}"
        ) from None


@contextmanager
def _network_errors(data_id: int) -> Iterator[None]:
    """Say in one line what went wrong; scikit-learn's warnings on the way would be a second."""
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="A network error occurred|Invalid cache")
            yield
    except (OSError, http.client.HTTPException, EOFError, zlib.error, ValueError) as error:
        reason = " ".join(str(getattr(error, "reason", "") or error).split())[:160]
        raise DatasetUnavailableError(
            f"OpenML's data set {data_id} cannot be had ({reason or type(error).__name__})"
        ) from error


@contextmanager
def _socket_timeout(seconds: float) -> Iterator[None]:
    """fetch_openml has no timeout of its own: a silent server would hang for ever."""
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(seconds)
    try:
        yield
    finally:
        socket.setdefaulttimeout(before)
