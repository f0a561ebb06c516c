"""Reading the values of a model from the JSON and the files of its folder.

Only the kinds of value that :mod:`labelweave.persistence.value_writer` writes are accepted. A class
can only be one of NumPy, SciPy, pandas, the table of methods, the thresholds, or one of the
scikit-learn types that :mod:`labelweave.persistence.sklearn_parts` trusts.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils._param_validation import validate_parameter_constraints

from labelweave.exceptions import InputError, ModelFolderError
from labelweave.labels import LabelMatrix
from labelweave.methods import WRAPPERS, get_class
from labelweave.persistence.sklearn_parts import load_sklearn
from labelweave.persistence.value_writer import (
    ARRAYS,
    NUMERIC_KINDS,
    SPARSE_TYPES,
    is_mostly_padding,
)
from labelweave.thresholds import Threshold

__all__ = ["ValueReader", "build"]

_MAX_THREADS = 1024
_MAX_EMPTY_SIDE = 10_000_000  # rows or columns of an array without entries


def build(id: str, parameters: dict[str, Any], folder: Path, trusted: Collection[str] = ()) -> Any:
    """Return an unfitted estimator of a method that a folder names.

    A parameter of the training run is refused: it is never saved, and could name a file. So is a
    name of something outside the folder that is neither known to the class
    (``_outside_parameters``) nor `trusted`, and a value that `fit` would refuse.
    """
    try:
        wrapper = next((wrapper for wrapper in WRAPPERS if wrapper.id == id), None)
        cls: Any = get_class(id) if wrapper is None else wrapper.load()
    except InputError as error:
        raise ModelFolderError(
            f"{folder} contains a model of the method {id!r}, which is not installed here"
        ) from error
    except ImportError as error:
        raise ModelFolderError(
            f"{folder} contains a model of the method {id!r}, which cannot be imported: {error}"
        ) from error
    names = set(cls._get_param_names())
    if unknown := sorted(set(parameters) - names):
        raise ModelFolderError(
            f"{folder}: {cls.__name__} has no parameter {unknown[0]!r} in this version"
        )
    if unsaved := sorted(set(parameters) & set(getattr(cls, "_unsaved_parameters", ()))):
        raise ModelFolderError(
            f"{folder} sets {unsaved[0]!r} of {cls.__name__}, which is never saved: the model "
            "folder was changed"
        )
    n_jobs = parameters.get("n_jobs")
    if isinstance(n_jobs, int) and abs(n_jobs) > _MAX_THREADS:
        raise ModelFolderError(f"{folder} asks for {n_jobs} threads: the model folder was changed")
    constraints = getattr(cls, "_parameter_constraints", {})
    checked = {name: value for name, value in parameters.items() if name in constraints}
    validate_parameter_constraints(constraints, checked, cls.__name__)
    for name, known in getattr(cls, "_outside_parameters", {}).items():
        value = str(parameters.get(name))
        if name in parameters and value not in known and value not in trusted:
            raise ModelFolderError(
                f"{folder} names {value!r} as the {name} of {cls.__name__}, which is outside the "
                f"folder: if you trust it, load the model with trusted=[{value!r}]"
            )
    return cls(**parameters)


class ValueReader:
    """Decodes the values of one model folder.

    Every array and every file is used once, as it was written: many copies of one would take far
    more memory than the folder does.

    * `files`: The files that config.json lists; no other file is read.
    * `load_model`: Loads a model inside this model from its folder.
    * `trusted`: Names of encoders outside the folder, and patterns of words, that it may use.
    """

    def __init__(
        self,
        folder: Path,
        files: set[str],
        load_model: Callable[[Path], Any],
        trusted: Collection[str] = (),
    ) -> None:
        self.folder = folder
        self._files = files
        self._used: set[str] = set()
        self._load_model = load_model
        self._arrays: dict[str, np.ndarray] | None = None
        self._readers: dict[str, Callable[[dict[str, Any]], Any]] = {
            "array": self._read_array,
            "dtype": lambda value: self._checked_dtype(value["name"]),
            "float": lambda value: float(value["value"]),
            "frame": self._read_frame,
            "labels": self._read_labels,
            "mapping": lambda value: {
                self.decode(key): self.decode(item) for key, item in value["items"]
            },
            "method": lambda value: build(
                value["id"], self.decode(value["parameters"]), folder, trusted
            ),
            "model": self._read_model,
            "object-array": self._read_object_array,
            "path": lambda value: Path(value["value"]),
            "scalar": self._read_scalar,
            "sklearn": lambda value: load_sklearn(
                self._file(value["file"]),
                [self.decode(model) for model in value.get("models", ())],
                trusted,
            ),
            "sparse": self._read_sparse,
            "tensor": lambda value: self._read_tensors(value["value"])["tensor"],
            "tensors": self._read_tensors,
            "threshold": lambda value: Threshold.from_dict(self.decode(value["value"])),
            "tuple": lambda value: tuple(self.decode(item) for item in value["items"]),
        }

    def decode(self, value: Any) -> Any:
        """Return the value that was given to `ValueWriter.encode`."""
        if isinstance(value, list):
            return [self.decode(item) for item in value]
        if not isinstance(value, dict):
            return value
        if "$" not in value:
            return {key: self.decode(item) for key, item in value.items()}
        kind = str(value["$"])
        if kind not in self._readers:
            raise ModelFolderError(f"{self.folder} contains a value of the unknown kind {kind!r}")
        return self._readers[kind](value)

    def _file(self, name: str) -> Path:
        if name not in self._files:
            raise ModelFolderError(f"{self.folder}: config.json does not list {name!r}")
        if name in self._used:
            raise ModelFolderError(f"{self.folder} uses {name!r} twice: the folder was changed")
        self._used.add(name)
        return self.folder / name

    def _read_array(self, value: dict[str, Any]) -> np.ndarray:
        if self._arrays is None:
            from safetensors.numpy import load_file

            self._arrays = load_file(self._file(ARRAYS))
        array = self._arrays.pop(value["name"], None)
        if array is None:
            raise ModelFolderError(
                f"{self.folder} has no array {value['name']!r}, or uses it more than once"
            )
        if array.size == 0 and max(array.shape) > _MAX_EMPTY_SIDE:
            raise ModelFolderError(f"{self.folder} contains an array of the shape {array.shape}")
        return array.T if value.get("order") == "F" else array

    def _read_scalar(self, value: dict[str, Any]) -> Any:
        dtype = np.dtype(value["dtype"])
        if dtype.kind not in NUMERIC_KINDS:
            raise ModelFolderError(f"{self.folder} contains a number of the unsafe type {dtype}")
        return dtype.type(self.decode(value["value"]))

    def _read_object_array(self, value: dict[str, Any]) -> np.ndarray:
        items = [self.decode(item) for item in value["items"]]
        dtype = self._checked_dtype(value["dtype"], items)
        flat = np.empty(len(items), dtype=dtype)
        for k, item in enumerate(items):
            flat[k] = item
        return flat.reshape(value["shape"])

    def typed(self, values: np.ndarray, dtype: str) -> np.ndarray:
        """Return an array of objects with another type."""
        return values.astype(self._checked_dtype(dtype, values.flat))

    def _checked_dtype(self, name: str, items: Iterable[Any] = ()) -> np.dtype:
        dtype = np.dtype(name)
        if dtype.kind not in "biufOU" or is_mostly_padding(dtype, items):
            raise ModelFolderError(f"{self.folder} contains an array of the unsafe type {dtype}")
        return dtype

    def _read_sparse(self, value: dict[str, Any]) -> Any:
        parts = tuple(self._read_array(value[part]) for part in ("data", "indices", "indptr"))
        matrix = SPARSE_TYPES[value["form"]](parts, shape=tuple(value["shape"]))
        matrix.check_format(full_check=True)
        return matrix

    def _read_labels(self, value: dict[str, Any]) -> LabelMatrix:
        absent = self.decode(value["absent"])
        values = self.decode(value["values"])
        return LabelMatrix(values, value["names"], value["descriptions"], absent=absent)

    def _read_tensors(self, value: dict[str, Any]) -> dict[str, Any]:
        path = self._file(value["file"])
        from safetensors.torch import load_file  # imports torch, which many models do not need

        tensors = load_file(path)
        return {key: tensors[key] for key in value["keys"]}

    def _read_model(self, value: dict[str, Any]) -> Any:
        name = value["folder"]
        if "/" in name:  # a model inside a model inside this one, which is read with the former
            raise ModelFolderError(f"{self.folder} contains no model {name!r} of its own")
        self._file(f"{name}/config.json")
        return self._load_model(self.folder / name)

    def _read_frame(self, value: dict[str, Any]) -> Any:
        import pandas as pd

        columns = {str(name): self.decode(array) for name, array in value["columns"]}
        rows = value["rows"]
        if any(np.shape(column) != (rows,) for column in columns.values()) or not (
            columns or rows == 0
        ):
            raise ModelFolderError(
                f"{self.folder} contains a table whose columns do not have {rows} entries each"
            )
        return pd.DataFrame(columns, index=range(rows))
