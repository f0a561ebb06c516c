"""Checkpoints of a run: written atomically, and read without unpickling code."""

from __future__ import annotations

import hashlib
import io
import json
import pickle
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from labelweave.data.images.collection import Images
from labelweave.exceptions import InputError, LabelweaveError
from labelweave.files import atomic_path
from labelweave.labels import LabelMatrix

__all__ = ["CheckpointError", "fingerprint", "read_checkpoint", "write_checkpoint"]

_FORMAT = "labelweave checkpoint 1"


class CheckpointError(LabelweaveError, OSError):
    """A checkpoint cannot be written; the one before it is unchanged."""


def fingerprint(*parts: Any) -> str:
    """A hash of data, weights and settings, by which a run recognises its checkpoint.

    >>> fingerprint(np.eye(2), {"lr": 0.1}) == fingerprint(np.eye(2), {"lr": 0.1})
    True
    >>> fingerprint(np.eye(2), {"lr": 0.1}) == fingerprint(np.eye(2), {"lr": 0.2})
    False
    """
    digest = hashlib.sha256()
    for part in parts:
        _feed(digest, part)
    return digest.hexdigest()


def _feed(digest: Any, part: Any) -> None:
    if isinstance(part, LabelMatrix):
        _feed(digest, [part.values, str(part.absent)])
    elif isinstance(part, Images):
        _feed(digest, part.fingerprint())
    elif sp.issparse(part):
        _feed(digest, ["sparse", *part.shape, part.data, part.indices, part.indptr])
    elif isinstance(part, Tensor):
        _feed(digest, part.detach().cpu().float().numpy())
    elif isinstance(part, np.ndarray):
        digest.update(f"{part.dtype.str}{part.shape}".encode())
        digest.update(np.ascontiguousarray(part).view(np.uint8).data)
    elif isinstance(part, Mapping):
        for key in part:
            _feed(digest, str(key))
            _feed(digest, part[key])
    elif isinstance(part, list | tuple):
        digest.update(f"[{len(part)}]".encode())
        for item in part:
            _feed(digest, item)
    else:
        digest.update(json.dumps(part, default=_description).encode() + b"\0")


def _description(value: Any) -> str:
    """How a value describes itself, without the address that differs between processes."""
    return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))


def write_checkpoint(path: Path, run: str, state: dict[str, Any]) -> None:
    """Replace the checkpoint in one step; a reader sees the old one or the new one."""
    # Through memory: torch hides why it cannot write to a file.
    packed = io.BytesIO()
    torch.save({"format": _FORMAT, "run": run, **state}, packed)
    try:
        with atomic_path(path) as temporary:
            temporary.write_bytes(packed.getbuffer())
    except OSError as error:
        raise CheckpointError(f"the checkpoint {path} cannot be written: {error}") from error


def read_checkpoint(path: Path, run: str) -> dict[str, Any] | None:
    """The state of this run, or None if it has no checkpoint yet.

    Raises
    ------
    InputError
        If the file is damaged, foreign, or belongs to a run with other data or settings.
    """
    for left_over in path.parent.glob(f".{path.name}.*.tmp*"):
        left_over.unlink(missing_ok=True)  # of a process that died while it was writing
    if not path.exists():
        return None
    try:
        state = torch.load(path, weights_only=True, map_location="cpu")
        known = isinstance(state, dict) and state.get("format") == _FORMAT
    except (RuntimeError, pickle.UnpicklingError, EOFError, ValueError, KeyError):
        known = False
    if not known:
        raise InputError(f"{path} is damaged or no checkpoint of labelweave: delete it to start")
    if state["run"] != run:
        raise InputError(
            f"{path} belongs to a run with other data, parameters or random_state: "
            "use another checkpoint folder, or delete it to start again"
        )
    return state
