"""Writing the values of a model as JSON, with arrays, tensors and estimators in files beside it.

Plain JSON values are written as they are. Every other value is an object whose key ``"$"`` names
its kind, for instance ``{"$": "array", "name": "coef_"}`` for an array of
``arrays.safetensors``. :mod:`labelweave.persistence.value_reader` reads them.
"""

from __future__ import annotations

import math
import re
import sys
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path, PurePath
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils.validation import _is_fitted

from labelweave.exceptions import InputError
from labelweave.labels import LabelMatrix
from labelweave.methods import method_of
from labelweave.persistence.sklearn_parts import models_inside, save_sklearn
from labelweave.thresholds import Threshold

__all__ = [
    "ARRAYS",
    "NUMERIC_KINDS",
    "SPARSE_TYPES",
    "Place",
    "ValueWriter",
    "is_mostly_padding",
    "saved_parameters",
]

ARRAYS = "arrays.safetensors"
SPARSE_TYPES = {
    cls.__name__: cls for cls in (sp.csr_array, sp.csr_matrix, sp.csc_array, sp.csc_matrix)
}
NUMERIC_KINDS = "biuf"
_MAX_PADDING = 1 << 24  # bytes that a text array may take beyond 16 times its texts
_RESERVED_STEMS = ("arrays", "config", "labels", "metrics", "readme", "state", "thresholds")


def saved_parameters(model: Any) -> dict[str, Any]:
    """Return the parameters of a model that are saved.

    Parameters of the training run, such as callbacks, are listed in the class attribute
    `_unsaved_parameters`; they have their defaults after loading.
    """
    unsaved = getattr(model, "_unsaved_parameters", ())
    return {n: value for n, value in model.get_params(deep=False).items() if n not in unsaved}


def is_mostly_padding(dtype: np.dtype, items: Iterable[Any]) -> bool:
    """Whether an array of texts reserves far more memory than its texts need.

    Every item of such an array takes as much as the longest text may take, so that a small file
    could claim any amount of memory.

    >>> is_mostly_padding(np.dtype("U10"), ["a"] * 9)
    False
    >>> is_mostly_padding(np.dtype("U99999"), ["a"] * 99)
    True
    """
    if dtype.kind != "U":
        return False
    lengths = [len(item) if isinstance(item, str) else 0 for item in items]
    return dtype.itemsize * len(lengths) > 16 * 4 * sum(lengths) + _MAX_PADDING


class Place(NamedTuple):
    """Where in a model a value is, for messages and file names."""

    kind: str
    path: str

    def at(self, key: Any) -> Place:
        """Return the place of an item of this value."""
        return Place(self.kind, f"{self.path}.{key}")

    def __str__(self) -> str:
        return f"the {self.kind} {self.path!r}"


class ValueWriter:
    """Encodes the values of one model as JSON and files of its folder.

    * `save_model`: Writes a model inside this model to a folder, and returns the names of its
      files.
    """

    def __init__(self, folder: Path, save_model: Callable[[Any, Path], list[str]]) -> None:
        self.folder = folder
        self.files: list[str] = []
        self._save_model = save_model
        self._arrays: dict[str, np.ndarray] = {}
        self._used_names: set[str] = set()

    def encode(self, value: Any, place: Place) -> Any:
        """Return a value as JSON; arrays, tensors and estimators go to files."""
        try:
            return self._encode(value, place)
        except RecursionError:
            root = Place(place.kind, place.path.partition(".")[0])
            raise InputError(f"{root} cannot be saved: it contains itself") from None

    def _encode(self, value: Any, place: Place) -> Any:
        if value is None or isinstance(value, bool | str) or type(value) is int:
            return value
        if type(value) is float:
            return value if math.isfinite(value) else {"$": "float", "value": str(value)}
        for test, encode in self._encoders():
            if test(value):
                return encode(value, place)
        raise InputError(
            f"{place} cannot be saved: a model folder has no values of type {type(value).__name__}"
            + _advice(value)
        )

    def finish(self) -> None:
        """Write the arrays that were encoded so far."""
        if self._arrays:
            from safetensors.numpy import save_file

            _write_tensors(save_file, self._arrays, self.folder / ARRAYS)
            self.files.append(ARRAYS)

    def _encoders(self) -> tuple[tuple[Callable[[Any], Any], Callable[[Any, Place], Any]], ...]:
        return (
            (_is(np.generic), self._scalar),
            (_is(np.ndarray), self._array),
            (_is(np.dtype), lambda value, place: {"$": "dtype", "name": value.str}),
            (sp.issparse, self._sparse),
            (_is(LabelMatrix), self._labels),
            (_is(Threshold), self._threshold),
            (_is_tensor, self._tensor),
            (_is_tensor_dict, self._tensors),
            (_is(Mapping), self._mapping),
            (method_of, self._model),
            (_is_sklearn, self._sklearn),
            (_is(list | tuple), self._sequence),
            (_is(PurePath), lambda value, place: {"$": "path", "value": str(value)}),
            (_is_frame, self._frame),
        )

    def _scalar(self, value: np.generic, place: Place) -> Any:
        if value.dtype.kind not in NUMERIC_KINDS:
            raise InputError(f"{place} cannot be saved: its data type is {value.dtype}")
        return {
            "$": "scalar",
            "dtype": value.dtype.str,
            "value": self.encode(value.item(), place),
        }

    def _array(self, value: np.ndarray, place: Place) -> Any:
        if type(value) not in (np.ndarray, np.memmap):
            raise InputError(
                f"{place} cannot be saved: {type(value).__name__} is not a plain array"
            )
        if value.dtype.kind in "OU":
            if is_mostly_padding(value.dtype, value.flat):
                raise InputError(
                    f"{place} cannot be saved: most of its texts are much shorter than the "
                    "longest, so make it an array of objects"
                )
            items = [self.encode(item, place.at(k)) for k, item in enumerate(value.ravel())]
            return {
                "$": "object-array",
                "dtype": value.dtype.str,
                "shape": list(value.shape),
                "items": items,
            }
        if value.dtype.kind not in NUMERIC_KINDS or value.dtype.itemsize > 8:
            raise InputError(f"{place} cannot be saved: its data type is {value.dtype}")
        name = self._unused_name(place.path, "")
        # Sums depend on the memory order: keeping it makes predictions equal to the last bit.
        column_major = value.ndim > 1 and value.flags.f_contiguous and not value.flags.c_contiguous
        stored = np.ascontiguousarray(value.T if column_major else value).reshape(
            value.T.shape if column_major else value.shape
        )
        self._arrays[name] = stored.astype(stored.dtype.newbyteorder("="), copy=False)
        return {"$": "array", "name": name, **({"order": "F"} if column_major else {})}

    def _sparse(self, value: Any, place: Place) -> Any:
        form = type(value).__name__
        if form not in SPARSE_TYPES:
            raise InputError(f"{place} cannot be saved: store a CSR array instead of a {form}")
        parts = {
            part: self._array(getattr(value, part), place.at(part))
            for part in ("data", "indices", "indptr")
        }
        return {"$": "sparse", "form": form, "shape": list(map(int, value.shape)), **parts}

    def _labels(self, value: LabelMatrix, place: Place) -> Any:
        return {
            "$": "labels",
            "values": self.encode(value.values, place),
            "names": list(value.names),
            "descriptions": dict(value.descriptions),
            "absent": self.encode(float(value.absent), place),
        }

    def _threshold(self, value: Threshold, place: Place) -> Any:
        return {"$": "threshold", "value": self.encode(value.to_dict(), place)}

    def _tensor(self, value: Any, place: Place) -> Any:
        return {"$": "tensor", "value": self._tensors({"tensor": value}, place)}

    def _tensors(self, value: Mapping[str, Any], place: Place) -> Any:
        from safetensors.torch import save_file

        # Copies, because tied weights share memory, which the file format cannot express.
        copies = {key: tensor.detach().cpu().clone().contiguous() for key, tensor in value.items()}
        name = self._unused_file_name(place, ".safetensors")
        _write_tensors(save_file, copies, self.folder / name)
        self.files.append(name)
        return {"$": "tensors", "file": name, "keys": list(value)}

    def _mapping(self, value: Mapping[Any, Any], place: Place) -> Any:
        if type(value) not in (dict, OrderedDict):
            raise InputError(f"{place} cannot be saved: make the {type(value).__name__} a dict")
        if all(isinstance(key, str) for key in value) and "$" not in value:
            return {key: self.encode(item, place.at(key)) for key, item in value.items()}
        pairs = [
            [self.encode(key, place.at("key")), self.encode(item, place.at(key))]
            for key, item in value.items()
        ]
        return {"$": "mapping", "items": pairs}

    def _sequence(self, value: list[Any] | tuple[Any, ...], place: Place) -> Any:
        if type(value) not in (list, tuple):
            raise InputError(f"{place} cannot be saved: make the {type(value).__name__} a tuple")
        is_named = type(value) is tuple and len(value) == 2 and isinstance(value[0], str)
        if not is_named and any(map(_is_sklearn, value)) and not any(map(method_of, value)):
            return self._sklearn(value, place)  # many small estimators share one file
        keys = (value[0],) * 2 if is_named else range(len(value))
        items = [self.encode(item, place.at(key)) for key, item in zip(keys, value, strict=True)]
        return items if isinstance(value, list) else {"$": "tuple", "items": items}

    def _sklearn(self, value: Any, place: Place) -> Any:
        name = self._unused_file_name(place, ".skops")
        models = models_inside(value)
        save_sklearn(value, self.folder / name, str(place), models)
        self.files.append(name)
        encoded = [self._model(model, place.at(k)) for k, model in enumerate(models)]
        return {"$": "sklearn", "file": name, **({"models": encoded} if models else {})}

    def _model(self, value: Any, place: Place) -> Any:
        method = method_of(value)
        if method is not None and not _is_fitted(value):
            parameters = saved_parameters(value)
            return {
                "$": "method",
                "id": method.id,
                "parameters": {k: self.encode(v, place.at(k)) for k, v in parameters.items()},
            }
        name = self._unused_file_name(place, "")
        self.files += [f"{name}/{file}" for file in self._save_model(value, self.folder / name)]
        return {"$": "model", "folder": name}

    def _frame(self, value: Any, place: Place) -> Any:
        plain_index = list(value.index) == list(range(len(value)))
        if not plain_index or not all(isinstance(column, str) for column in value.columns):
            raise InputError(f"{place} cannot be saved: reset the index of the DataFrame first")
        columns = [
            [column, self._array(value[column].to_numpy(), place.at(column))]
            for column in value.columns
        ]
        return {"$": "frame", "rows": len(value), "columns": columns}

    def _unused_file_name(self, place: Place, ending: str) -> str:
        stem = re.sub(r"[^A-Za-z0-9_-]+", "-", place.path).strip("-")[:80] or "part"
        return self._unused_name(f"{stem}-part" if stem in _RESERVED_STEMS else stem, ending)

    def _unused_name(self, stem: str, ending: str) -> str:
        name, k = stem + ending, 1
        # Some file systems ignore case, so names must differ in more than that.
        while name.casefold() in self._used_names:
            k += 1
            name = f"{stem}-{k}{ending}"
        self._used_names.add(name.casefold())
        return name


def _is(kind: Any) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, kind)


def _is_sklearn(value: Any) -> bool:
    return isinstance(value, BaseEstimator) and method_of(value) is None


def _is_tensor(value: Any) -> bool:
    torch = sys.modules.get("torch")  # without torch there are no tensors
    return torch is not None and isinstance(value, torch.Tensor)


def _is_tensor_dict(value: Any) -> bool:
    return (
        isinstance(value, Mapping)
        and len(value) > 0
        and all(isinstance(key, str) and _is_tensor(item) for key, item in value.items())
    )


def _is_frame(value: Any) -> bool:
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(value, pandas.DataFrame)


def _write_tensors(save_file: Callable[..., None], tensors: Mapping[str, Any], path: Path) -> None:
    from safetensors import SafetensorError

    try:
        save_file(tensors, path)
    except SafetensorError as error:  # it wraps errors such as a full disk
        reason = str(error).rpartition("I/O error: ")[2].partition(" (os error")[0]
        raise OSError(reason) from error


def _advice(value: Any) -> str:
    if isinstance(value, np.random.RandomState | np.random.Generator):
        return ": use an integer seed and fit again"
    if callable(value):
        return ": code cannot be saved; use a name or a value instead, or None"
    return ""
