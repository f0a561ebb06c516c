"""From the JSON and the files of a model folder back to values.

Only the kinds of value that :mod:`labelweave.persistence.encoding` writes are known here, and
a class is only ever one of NumPy, SciPy, pandas, the table of methods or the thresholds.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelweave.exceptions import ModelFolderError
from labelweave.labels import LabelMatrix
from labelweave.persistence.classes import build
from labelweave.persistence.encoding import ARRAYS
from labelweave.persistence.sklearn_parts import load_sklearn
from labelweave.thresholds import Threshold

__all__ = ["ValueReader"]

_SPARSE_FORMS = {
    "csr_array": sp.csr_array,
    "csr_matrix": sp.csr_matrix,
    "csc_array": sp.csc_array,
    "csc_matrix": sp.csc_matrix,
}
_LONGEST_TEXT = 1 << 20  # bytes that each item of a text array may reserve


class ValueReader:
    """Turns JSON and the files of a model folder back into values."""

    def __init__(self, folder: Path, files: set[str], load_model: Callable[[Path], Any]) -> None:
        self.folder = folder
        self._files = files
        self._load_model = load_model
        self._arrays: dict[str, np.ndarray] | None = None

    def decode(self, value: Any) -> Any:
        """The value that `ValueWriter.encode` was given."""
        if isinstance(value, list):
            return [self.decode(item) for item in value]
        if not isinstance(value, dict):
            return value
        if "$" not in value:
            return {key: self.decode(item) for key, item in value.items()}
        decode = getattr(self, f"_read_{str(value['$']).replace('-', '_')}", None)
        if decode is None:
            raise ModelFolderError(f"{self.folder} holds a value of unknown kind {value['$']!r}")
        return decode(value)

    def _file(self, name: str) -> Path:
        if name not in self._files:
            raise ModelFolderError(f"{self.folder}: config.json does not list {name!r}")
        return self.folder / name

    def _read_float(self, value: dict[str, Any]) -> float:
        return float(value["value"])

    def _read_scalar(self, value: dict[str, Any]) -> Any:
        return np.dtype(value["dtype"]).type(self.decode(value["value"]))

    def _read_array(self, value: dict[str, Any]) -> np.ndarray:
        if self._arrays is None:
            from safetensors.numpy import load_file

            self._arrays = load_file(self._file(ARRAYS))
        array = self._arrays[value["name"]]
        return array.T if value.get("order") == "F" else array

    def _read_object_array(self, value: dict[str, Any]) -> np.ndarray:
        dtype = np.dtype(value["dtype"])
        if dtype.kind not in "OU" or dtype.itemsize > _LONGEST_TEXT:
            raise ModelFolderError(f"{self.folder} holds an array of the strange type {dtype}")
        flat = np.empty(len(value["items"]), dtype=dtype)
        for k, item in enumerate(value["items"]):
            flat[k] = self.decode(item)
        return flat.reshape(value["shape"])

    def _read_dtype(self, value: dict[str, Any]) -> np.dtype:
        return np.dtype(value["name"])

    def _read_sparse(self, value: dict[str, Any]) -> Any:
        parts = tuple(self._read_array(value[part]) for part in ("data", "indices", "indptr"))
        matrix = _SPARSE_FORMS[value["form"]](parts, shape=tuple(value["shape"]))
        matrix.check_format(full_check=True)
        return matrix

    def _read_labels(self, value: dict[str, Any]) -> LabelMatrix:
        return LabelMatrix(
            self.decode(value["values"]),
            value["names"],
            value["descriptions"],
            absent=self.decode(value["absent"]),
        )

    def _read_threshold(self, value: dict[str, Any]) -> Threshold:
        return Threshold.from_dict(self.decode(value["value"]))

    def _read_tensor(self, value: dict[str, Any]) -> Any:
        return self._read_tensors(value["value"])["tensor"]

    def _read_tensors(self, value: dict[str, Any]) -> dict[str, Any]:
        path = self._file(value["file"])
        from safetensors.torch import load_file  # imports torch: only once it is needed

        stored = load_file(path)
        return {key: stored[key] for key in value["keys"]}

    def _read_mapping(self, value: dict[str, Any]) -> dict[Any, Any]:
        return {self.decode(key): self.decode(item) for key, item in value["items"]}

    def _read_tuple(self, value: dict[str, Any]) -> tuple[Any, ...]:
        return tuple(self.decode(item) for item in value["items"])

    def _read_path(self, value: dict[str, Any]) -> Path:
        return Path(value["value"])

    def _read_sklearn(self, value: dict[str, Any]) -> Any:
        return load_sklearn(self._file(value["file"]))

    def _read_method(self, value: dict[str, Any]) -> Any:
        return build(value["id"], self.decode(value["parameters"]), self.folder)

    def _read_model(self, value: dict[str, Any]) -> Any:
        self._file(f"{value['folder']}/config.json")
        return self._load_model(self.folder / value["folder"])

    def _read_frame(self, value: dict[str, Any]) -> Any:
        import pandas as pd

        columns = {name: self.decode(array) for name, array in value["columns"]}
        return pd.DataFrame(columns, index=range(value["rows"]))
