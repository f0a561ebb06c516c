"""Checks of a file of scikit-learn estimators before any of its parts is constructed."""

from __future__ import annotations

import json
import math
import zipfile
from collections.abc import Iterator
from typing import Any

import numpy as np

from labelweave.persistence.manifest import is_too_large
from labelweave.persistence.native_checks import require_fit

__all__ = ["check_sizes"]

_MAX_EXPANSION = 1 << 28  # bytes of the compressed arrays of sparse matrices, once read


def check_sizes(archive: zipfile.ZipFile, n_bytes: int) -> None:
    """Refuse a skops archive of `n_bytes` whose parts cannot even be constructed safely.

    Its parts must not be larger than the archive, and each is used for one object. The constructor
    of scikit-learn's tree reads as many numbers of classes as there are outputs, and later calls
    read as many nodes as it counts.
    """
    parts = archive.infolist()
    # We save without compression, so that no small file can expand to a huge one.
    is_stored = all(part.compress_type == zipfile.ZIP_STORED for part in parts)
    require_fit(is_stored and sum(part.file_size for part in parts) <= n_bytes, "compressed parts")
    schema = archive.read("schema.json")
    require_fit(not is_too_large(schema), "a description")
    _check_arrays(archive)
    users: dict[str, Any] = {}

    def constant(node: dict[str, Any]) -> Any:
        require_fit(node["__loader__"] == "JsonNode", "a tree")
        return json.loads(node["content"])

    def array(node: dict[str, Any]) -> np.ndarray:
        require_fit(node["__loader__"] == "NdArrayNode" and node["type"] == "numpy", "a tree")
        with archive.open(node["file"]) as file:
            return np.lib.format.read_array(file, allow_pickle=False)

    for node in _objects(json.loads(schema)):
        if "file" in node:
            user = users.setdefault(node["file"], node.get("__id__"))
            require_fit(user is not None and user == node.get("__id__"), "a file of two arrays")
        if node.get("__class__") != "Tree":
            continue
        arguments, state = node["__reduce__"]["args"], node["content"]
        loaders = [part["__loader__"] for part in (node, arguments, state)]
        require_fit(loaders == ["TreeNode", "TupleNode", "DictNode"], "a tree")
        _, classes, outputs = arguments["content"]
        n_classes, n_nodes = array(classes), len(array(state["content"]["nodes"]))
        require_fit(
            n_classes.shape == (constant(outputs),)
            and n_classes.min() >= 1
            and constant(state["content"]["node_count"]) == n_nodes >= 1,
            "a tree",
        )


def _check_arrays(archive: zipfile.ZipFile) -> None:
    """Refuse arrays that claim to be larger than what is stored of them."""
    n_packed, n_unpacked = 0, 0
    for part in archive.infolist():
        with archive.open(part) as file:
            if part.filename.endswith(".npy"):
                require_fit(_claimed_bytes(file) <= part.file_size, "an array")
            elif part.filename.endswith(".npz"):
                with zipfile.ZipFile(file) as matrix:
                    n_packed += part.file_size
                    n_unpacked += sum(item.file_size for item in matrix.infolist())
                    for item in matrix.infolist():
                        with matrix.open(item) as array:
                            require_fit(_claimed_bytes(array) <= item.file_size, "an array")
    require_fit(n_unpacked <= _MAX_EXPANSION + 100 * n_packed, "matrices that expand")


def _claimed_bytes(file: Any) -> int:
    """The size of an array according to its header."""
    version = np.lib.format.read_magic(file)
    require_fit(version in ((1, 0), (2, 0)), "an array")
    header = (
        np.lib.format.read_array_header_1_0
        if version == (1, 0)
        else (np.lib.format.read_array_header_2_0)
    )
    shape, _, dtype = header(file)
    require_fit(not dtype.hasobject and min(shape, default=0) >= 0, "an array")
    return math.prod(shape) * dtype.itemsize


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    """Yield every object of a JSON document."""
    if isinstance(value, dict):
        yield value
    for item in value.values() if isinstance(value, dict) else value:
        if isinstance(item, dict | list):
            yield from _objects(item)
