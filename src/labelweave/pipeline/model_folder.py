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

from labelweave.data import Dataset
from labelweave.data.equal_rows import row_hashes
from labelweave.exceptions import ModelFolderError
from labelweave.files import json_ready
from labelweave.pipeline.data_parts import SplitSettings, TrainingData

__all__ = ["Origin", "checked_folder", "open_model", "save_model"]

ORIGIN, SEEN, METRICS = "training.json", "rows-seen.npy", "metrics.json"
REFERENCE = "reference.json"
_REFERENCE_ROWS = 20_000
_LABEL_OPTIONS = frozenset(("labels", "label_column"))


class Origin(NamedTuple):
    """Where a model comes from, as far as its folder records it.

    `reading` are the reader options that the training data needed; `seen` holds the
    hashes of the rows that training or validation used, see
    :func:`labelweave.data.equal_rows.row_hashes`. `reference` are typical values of each column of
    the training rows, see :func:`labelweave.explaining.reference_rows`.
    """

    data: str | None = None
    source: str = ""
    reading: Mapping[str, Any] = MappingProxyType({})
    fingerprint: str | None = None
    feature_names: Sequence[str] | None = None
    protocol: SplitSettings | None = None
    seen: np.ndarray | None = None
    reference: Any = None

    def reading_of(
        self, source: str, given: Mapping[str, Any], *, leave: Sequence[str] = ()
    ) -> dict[str, Any]:
        """The reader options of some data: those given, and besides them those of the training.

        The latter only for the same data or a file of the same kind. Which columns are labels is
        taken from one of the two. `leave` are options of the training that are not wanted.
        """
        kinds = [Path(name).suffixes[-2:] for name in (source, self.source)]
        is_other_kind = source != self.source and (not kinds[0] or kinds[0] != kinds[1])
        if is_other_kind or given.get("format") not in (None, self.reading.get("format")):
            return dict(given)
        if not _LABEL_OPTIONS.isdisjoint(given):
            leave = [*leave, *_LABEL_OPTIONS]
        return {k: value for k, value in self.reading.items() if k not in leave} | dict(given)

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
    reading = dict(source.reading)
    if data.is_text and "text_column" in data.facts:  # a file to predict on may have other columns
        reading.setdefault("text_column", data.facts["text_column"])
    origin = {
        "data": data.name,
        "source": source.name,
        "reading": reading,
        "fingerprint": None if parts is None else fingerprint(data),
        "feature_names": None if names is None else list(names),
        "protocol": asdict(protocol),
    }
    learnt = (data,) if parts is None else (parts.train, parts.validation)
    used = [row_hashes(part.X) for part in learnt]
    reference = _reference_of(learnt[0])
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
            **({} if reference is None else {REFERENCE: _json_bytes(reference)}),
        },
    )


def _reference_of(train: Dataset) -> dict[str, Any] | None:
    """Typical values of each column; None for texts, images and very wide tables."""
    if train.is_text or train.is_image:
        return None
    from labelweave.explaining.reference import reference_rows, reference_to_plain

    step = -(-len(train) // _REFERENCE_ROWS)  # quantiles of very many rows need no more
    return reference_to_plain(reference_rows(train[::step].X if step > 1 else train.X))


def _json_bytes(value: Any) -> bytes:
    text = json.dumps(json_ready(value), indent=2, ensure_ascii=False, allow_nan=False)
    return (text + "\n").encode()


def open_model(
    folder: str, trusted: Sequence[str] = (), trusted_keys: Sequence[str] | None = None
) -> tuple[Any, Origin]:
    """The model of a folder, and where it comes from; both of one save.

    `trusted` are sentence encoders that it may use and `trusted_keys` the keys one of which must
    have signed it, see :func:`labelweave.load`.
    """
    from labelweave.persistence import load, read_unchanged

    def read(path: Path) -> tuple[Any, Origin]:
        return load(path, trusted=trusted, trusted_keys=trusted_keys), read_origin(path)

    return read_unchanged(folder, read)


def read_origin(folder: Path) -> Origin:
    """Read the record of the training; empty if the model was saved from Python."""
    from labelweave.persistence import plain_file, read_json

    reference = _read_reference(folder)
    if not os.path.lexists(folder / ORIGIN):
        return Origin(reference=reference)
    stored = read_json(folder, ORIGIN)
    has_seen = os.path.lexists(folder / SEEN)
    try:
        names = stored["feature_names"]
        if names is not None and not all(isinstance(name, str) for name in names):
            raise TypeError("names of features are texts")
        return Origin(
            data=None if stored["data"] is None else str(stored["data"]),
            source=str(stored["source"]),
            reading=dict(stored["reading"]),
            fingerprint=stored["fingerprint"],
            feature_names=names,
            protocol=SplitSettings(**stored["protocol"]),
            seen=_read_seen(plain_file(folder, SEEN)) if has_seen else None,
            reference=reference,
        )
    except ModelFolderError:
        raise
    except Exception:  # NumPy has many kinds of errors for files that are no array
        raise ModelFolderError(
            f"{folder / ORIGIN} or {SEEN} beside it is damaged: delete both (the model works "
            "without them)"
        ) from None


def _read_seen(path: Path) -> np.ndarray:
    # A map cannot be longer than the file, whatever its header says.
    seen = np.load(path, allow_pickle=False, mmap_mode="r")
    if seen.dtype != np.uint64 or seen.ndim != 1:
        raise ValueError("not what save_model writes")
    return np.array(seen)


def _read_reference(folder: Path) -> Any:
    from labelweave.persistence import read_json

    if not os.path.lexists(folder / REFERENCE):
        return None
    stored = read_json(folder, REFERENCE)
    from labelweave.explaining.reference import reference_from_plain

    try:
        return reference_from_plain(stored)
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError):
        raise ModelFolderError(
            f"{folder / REFERENCE} is damaged: delete it (the model works without it, except that "
            "a service cannot explain predictions)"
        ) from None
