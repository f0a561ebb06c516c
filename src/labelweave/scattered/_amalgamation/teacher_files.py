"""Teachers from files: ONNX graphs, scikit-learn's files, and tables of predictions."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelweave.data.equal_rows import row_hashes
from labelweave.exceptions import InputError, LabelweaveWarning, in_one_line, require

__all__ = ["OnnxModel", "StoredPredictions", "is_pickle", "open_model_file", "read_predictions"]

_PICKLES = (".pkl", ".pickle", ".joblib")
_ID_COLUMNS = ("id", "row")
_NO_LABELS = ("labels", "probabilities")  # further columns that `labelweave predict` writes


class OnnxModel:
    """A graph for ONNX Runtime from features to one probability per label.

    The label names are read from the entry ``labels`` of its metadata, a JSON list, as
    :func:`labelweave.export.export_onnx` writes it.
    """

    def __init__(self, path: Path) -> None:
        runtime = require("onnxruntime", "export")
        try:
            self._session = runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        except Exception as error:  # onnxruntime has an error class of its own for each cause
            raise InputError(
                f"{path} is not a file of ONNX Runtime: {in_one_line(error)}"
            ) from None
        if len(self._session.get_inputs()) != 1:
            raise InputError(f"{path} has several inputs: a teacher has one, the features")
        outputs = [output.name for output in self._session.get_outputs()]
        self._output = "probabilities" if "probabilities" in outputs else outputs[-1]

    @property
    def label_names_(self) -> list[str]:
        """The labels that the file lists; absent where it lists none."""
        stored = self._session.get_modelmeta().custom_metadata_map.get("labels")
        try:
            labels = json.loads(stored or "null")
        except (ValueError, RecursionError):
            labels = None
        if not isinstance(labels, list) or not labels:
            raise AttributeError("label_names_")
        return [str(label) for label in labels]

    def predict_proba(self, X: Any) -> Any:
        """P(label | x)."""
        dense = X.toarray() if sp.issparse(X) else np.asarray(X)
        features = dense.astype(np.float32)
        name = self._session.get_inputs()[0].name
        try:
            return self._session.run([self._output], {name: features})[0]
        except Exception as error:  # as above
            raise InputError(in_one_line(error)) from None


class StoredPredictions:
    """Predictions that were made before, for some rows and no others.

    Rows are recognised by their features; equal rows get the mean of their predictions.
    """

    def __init__(self, X: Any, probabilities: Any, labels: Sequence[str]) -> None:
        values = np.asarray(probabilities, dtype=np.float64)
        hashes, position = np.unique(row_hashes(X), return_inverse=True)
        if values.shape != (len(position), len(labels)):
            raise InputError(
                f"there are predictions of {values.shape[0]} rows, but {len(position)} rows"
            )
        self._hashes = hashes
        totals = np.zeros((len(hashes), len(labels)))
        np.add.at(totals, position, values)
        self._means = totals / np.bincount(position)[:, None]
        self.label_names_ = [str(label) for label in labels]

    def predict_proba(self, X: Any) -> np.ndarray:
        """The stored predictions of these rows."""
        wanted = row_hashes(X)
        place = np.minimum(np.searchsorted(self._hashes, wanted), len(self._hashes) - 1)
        unknown = self._hashes[place] != wanted
        if unknown.any():
            raise InputError(
                f"it consists of stored predictions, which do not have row {int(unknown.argmax())}"
            )
        return self._means[place]


def is_pickle(path: str | PathLike[str]) -> bool:
    """Whether a file is opened by running the instructions in it."""
    return Path(path).suffix.lower() in _PICKLES


def open_model_file(path: Path, *, trust: bool) -> Any:
    """The model of a file; None where its ending is not that of a model file."""
    ending = path.suffix.lower()
    if ending == ".onnx":
        _check_there(path)
        return OnnxModel(path)
    if ending == ".skops":
        _check_there(path)
        from labelweave.persistence.sklearn_parts import load_sklearn

        return load_sklearn(path)
    if not is_pickle(path):
        return None
    _check_there(path)
    if not trust:
        raise InputError(
            f"{path} is a pickle, which can run any program when it is opened: save the model with "
            "skops instead or, if you know who wrote this file, allow it (trust=True, or --trust "
            f"{path})"
        )
    warnings.warn(
        f"{path} is opened because you trust it: whoever wrote it can run any program here",
        LabelweaveWarning,
        stacklevel=4,
    )
    import joblib

    try:
        return joblib.load(path)
    except Exception as error:  # whatever its instructions raise
        raise InputError(f"{path} cannot be opened: {in_one_line(error)}") from None


def _check_there(path: Path) -> None:
    if not path.is_file():
        raise InputError(f"there is no file {path}")


def read_predictions(path: Path, row_ids: Sequence[Any] | None, n_rows: int) -> Any:
    """The probabilities in a CSV file, one column per label, in the order of some rows.

    Where the file has a column ``id`` or ``row`` and the rows have ids, the column names the rows;
    otherwise the file has the same rows in the same order. Returns a DataFrame.
    """
    import pandas as pd

    _check_there(path)
    try:
        table = pd.read_csv(path)
    except (ValueError, OSError) as error:
        raise InputError(f"{path} cannot be read: {in_one_line(error)}") from None
    id_column = next((name for name in _ID_COLUMNS if name in table.columns), None)
    ids = None if id_column is None else table[id_column].astype(str)
    values = table.drop(columns=[n for n in (*_ID_COLUMNS, *_NO_LABELS) if n in table.columns])
    wrong = [str(n) for n, dtype in values.dtypes.items() if dtype.kind not in "fiub"]
    if values.columns.empty or wrong:
        what = f"the column {wrong[0]!r} does not hold numbers" if wrong else "there is no label"
        raise InputError(
            f"{path} is no table of predictions, one column of probabilities per label: {what} "
            "(labelweave predict --proba all --as csv writes one)"
        )
    if ids is None or row_ids is None:
        if len(values) != n_rows:
            raise InputError(
                f"{path} has predictions of {len(values):,} rows, but there are {n_rows:,} rows"
            )
        return values
    if ids.duplicated().any():
        raise InputError(f"{path} has the row {ids[ids.duplicated()].iloc[0]!r} twice")
    ordered = values.set_axis(ids, axis=0).reindex([str(id) for id in row_ids])
    missing = ordered.isna().all(axis=1)
    if missing.any():
        raise InputError(f"{path} has no predictions of the row {missing.idxmax()!r}")
    return ordered.reset_index(drop=True)
