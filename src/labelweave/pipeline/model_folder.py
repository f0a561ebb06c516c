"""What the command line keeps in a model folder beside the model, and reads back.

A score is worth little on rows that the model was trained on. A model folder therefore keeps one
64-bit hash per row that training or validation used, computed from the features alone; a row has
the same hash whether it is stored dense or sparse.
"""

from __future__ import annotations

import io
import json
import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from labelweave.data import Dataset
from labelweave.data.images.collection import Images
from labelweave.exceptions import ModelFolderError
from labelweave.files import json_ready
from labelweave.pipeline.data_parts import SplitSettings, TrainingData
from labelweave.rows import row_chunks

__all__ = ["Origin", "checked_folder", "open_model", "row_hashes", "save_model"]

ORIGIN, SEEN, METRICS = "training.json", "rows-seen.npy", "metrics.json"
_CHUNK_ENTRIES = 4_000_000


class Origin(NamedTuple):
    """Where a model comes from, as far as its folder records it.

    `reading` are the reader options that the training data needed; `seen` holds the
    hashes of the rows that training or validation used, see :func:`row_hashes`.
    """

    data: str | None = None
    source: str = ""
    reading: Mapping[str, Any] = MappingProxyType({})
    fingerprint: str | None = None
    feature_names: Sequence[str] | None = None
    protocol: SplitSettings | None = None
    seen: np.ndarray | None = None

    def reading_of(self, source: str, *, leave: Sequence[str] = ()) -> dict[str, Any]:
        """The reader options of the training, for the same data or a file of the same kind."""
        kinds = [Path(name).suffixes[-2:] for name in (source, self.source)]
        if source != self.source and (not kinds[0] or kinds[0] != kinds[1]):
            return {}
        return {name: value for name, value in self.reading.items() if name not in leave}

    def is_trained_on(self, data: Dataset) -> bool:
        """Whether the model comes from exactly these rows, parts of them held out."""
        return self.fingerprint is not None and self.fingerprint == fingerprint(data)

    def count_seen(self, data: Dataset) -> int | None:
        """How many of these rows training or validation used; None if it is not known."""
        if self.seen is None:
            return None
        return int(np.isin(row_hashes(data.X), self.seen).sum())


def fingerprint(data: Dataset) -> str:
    """A short text that differs if the rows, their order or their number do."""
    import hashlib

    return hashlib.sha256(row_hashes(data.X).tobytes()).hexdigest()[:32]


def checked_folder(asked: str | None, default: str) -> Path:
    """The folder to save to, refused now rather than after the training.

    A folder that was asked for may hold an earlier model, which is replaced in the end. The
    default is numbered (`name-2`, `name-3`, ...): nothing is overwritten unasked.
    """
    from labelweave.persistence import check_save_path

    if asked is not None:
        path = Path(asked)
    else:
        name = re.sub(r"[^\w.-]+", "-", Path(default).name).strip("-") or "model"
        path, k = Path(name), 1
        while path.exists():
            k += 1
            path = Path(f"{name}-{k}")
    check_save_path(path)
    above = Path(os.path.realpath(path)).parent
    while not above.exists():
        above = above.parent
    try:
        with tempfile.TemporaryFile(dir=above):
            pass
    except OSError as error:
        raise ModelFolderError(f"{path} cannot be written: {error.strerror}") from None
    return path


def save_model(
    model: Any,
    folder: Path,
    training: TrainingData,
    *,
    scores: Mapping[str, Any],
    metrics: Mapping[str, Any],
) -> None:
    """Write the model, its scores and its origin to a folder, all of it or nothing."""
    from labelweave.persistence import save

    data, source, protocol, parts = training
    names = data.feature_names
    origin = {
        "data": data.name,
        "source": source.name,
        "reading": dict(source.reading),
        "fingerprint": None if parts is None else fingerprint(data),
        "feature_names": None if names is None else list(names),
        "protocol": asdict(protocol),
    }
    learnt = (data,) if parts is None else (parts.train, parts.validation)
    used = [row_hashes(part.X) for part in learnt]
    seen = io.BytesIO()
    np.save(seen, np.unique(np.concatenate(used)), allow_pickle=False)
    save(
        model,
        folder,
        scores=scores,
        data=data.summary(),
        extra_files={
            ORIGIN: _json_bytes(origin),
            METRICS: _json_bytes(metrics),
            SEEN: seen.getvalue(),
        },
    )


def _json_bytes(value: Any) -> bytes:
    text = json.dumps(json_ready(value), indent=2, ensure_ascii=False, allow_nan=False)
    return (text + "\n").encode()


def open_model(folder: str) -> tuple[Any, Origin]:
    """The model of a folder, and where it comes from."""
    from labelweave.persistence import load

    return load(folder), read_origin(Path(folder))


def read_origin(folder: Path) -> Origin:
    """Read the record of the training; empty if the model was saved from Python."""
    path = folder / ORIGIN
    if not path.exists():
        return Origin()
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        return Origin(
            data=stored["data"],
            source=stored["source"],
            reading=dict(stored["reading"]),
            fingerprint=stored["fingerprint"],
            feature_names=stored["feature_names"],
            protocol=SplitSettings(**stored["protocol"]),
            seen=_read_seen(folder / SEEN),
        )
    except (ValueError, KeyError, TypeError, EOFError):
        raise ModelFolderError(
            f"{path} or {SEEN} beside it is damaged: delete both (the model works without them)"
        ) from None


def _read_seen(path: Path) -> np.ndarray | None:
    if not path.exists():
        return None
    seen = np.load(path, allow_pickle=False)
    if seen.dtype != np.uint64 or seen.ndim != 1:
        raise ValueError("not what save_model writes")
    return seen


def row_hashes(X: Any) -> np.ndarray:
    """Compute one 64-bit hash per row; equal rows have equal hashes.

    >>> X = np.array([[0.0, 1.5], [2.0, 0.0], [0.0, 1.5]])
    >>> hashes = row_hashes(X)
    >>> bool(hashes[0] == hashes[2]), bool(hashes[0] == hashes[1])
    (True, False)
    >>> bool((row_hashes(sp.csr_array(X)) == hashes).all())
    True
    """
    if isinstance(X, Images):  # the content of their files, at any size
        return np.array([int(digest[:16], 16) for digest in X.hashes()], dtype=np.uint64)
    if isinstance(X, Sequence):  # texts
        from pandas.util import hash_array

        return hash_array(np.asarray(X, dtype=object), categorize=False)
    if sp.issparse(X):
        return _of_sparse(sp.csr_array(X))
    if X.ndim > 2:
        X = X.reshape(len(X), -1)
    pieces = [
        _of_sparse(sp.csr_array(np.asarray(X[rows], dtype=np.float32)))
        for rows in row_chunks(X.shape[0], X.shape[1], _CHUNK_ENTRIES)
    ]
    return np.concatenate(pieces) if pieces else np.empty(0, dtype=np.uint64)


def _of_sparse(X: sp.csr_array) -> np.ndarray:
    """Sum one mixed number per non-zero entry, so that the order of entries does not matter."""
    values = np.ascontiguousarray(X.data, dtype=np.float32)
    mixed = _mix(X.indices.astype(np.uint64) << np.uint64(32) | values.view(np.uint32))
    mixed[values == 0] = 0  # a stored zero is no entry
    totals = np.concatenate([np.zeros(1, np.uint64), np.cumsum(mixed, dtype=np.uint64)])
    return _mix(totals[X.indptr[1:]] - totals[X.indptr[:-1]])  # wraps around, as it should


def _mix(numbers: np.ndarray) -> np.ndarray:
    """Spread neighbouring numbers over all 64 bits (the finaliser of SplitMix64)."""
    z = numbers + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
