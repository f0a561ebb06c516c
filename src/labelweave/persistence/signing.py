"""Signatures of model folders, which tell who signed the files and that none was changed since.

``signature.json`` in the folder holds the size and SHA-256 of every other file, and an Ed25519
signature of this list. What is signed is the canonical JSON of the list (sorted, without spaces)
with the name and version of the format.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

from labelweave.exceptions import InputError, ModelFolderError, require
from labelweave.files import atomic_write_text
from labelweave.persistence.atomic_folder import read_unchanged
from labelweave.persistence.manifest import (
    SIGNATURE_FILE,
    file_facts,
    read_config,
    read_json,
    verify_files,
)

__all__ = ["new_key", "read_signed", "sign"]

T = TypeVar("T")

_FORMAT = "labelweave-signature"
_VERSION = 1
_PUBLIC_KEY = re.compile(rb"-----BEGIN PUBLIC KEY-----.*?-----END PUBLIC KEY-----", re.DOTALL)


def new_key(path: str | PathLike[str]) -> Path:
    """Make an Ed25519 key pair, write it to two PEM files, and return the path of the public one.

    The private key is written to `path`, which only its owner can read, and the public key beside
    it with the ending ``.pub``. No file is overwritten.
    """
    serialization, ed25519 = _cryptography()
    private = ed25519.Ed25519PrivateKey.generate()
    pem = serialization.Encoding.PEM
    public_path = Path(path).with_name(f"{Path(path).name}.pub")
    if public_path.exists():
        raise InputError(f"{public_path} exists and is not overwritten: choose another name")
    secret = private.private_bytes(
        pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    _write_new(Path(path), secret, 0o600)
    public = private.public_key()
    _write_new(
        public_path,
        public.public_bytes(pem, serialization.PublicFormat.SubjectPublicKeyInfo),
        0o644,
    )
    return public_path


def sign(path: str | PathLike[str], key: str | PathLike[str]) -> int:
    """Sign the model folder at a path, and return the number of files that the signature covers.

    An earlier signature is replaced. `key` is the PEM file of an Ed25519 private key.
    """
    private = _read_private_key(Path(key))
    folder = Path(os.path.realpath(path))
    files = read_unchanged(folder, _unchanged_files)
    document = {"format": _FORMAT, "version": _VERSION, "files": files}
    document["signature"] = private.sign(_canonical(document)).hex()
    # Written beside the folder first, so that nothing but whole files is ever in it.
    written = folder.with_name(f".{folder.name}.{SIGNATURE_FILE}")
    try:
        atomic_write_text(written, json.dumps(document, indent=2, sort_keys=True) + "\n")
        written.replace(folder / SIGNATURE_FILE)
    except OSError as error:
        written.unlink(missing_ok=True)
        raise ModelFolderError(
            f"{folder / SIGNATURE_FILE} cannot be written: {error.strerror}"
        ) from error
    return len(files)


def read_signed(
    path: str | PathLike[str],
    trusted_keys: Iterable[str | PathLike[str]] | None,
    read: Callable[[Path], T],
) -> T:
    """Return what `read` returns of the model folder at a path, all of it from one save.

    If there are `trusted_keys`, files of public keys, the folder is refused unless one of them
    signed it and its files are those that were signed.
    """
    if trusted_keys is None:
        return read_unchanged(path, read)
    keys = _read_public_keys(trusted_keys)

    def check_and_read(folder: Path) -> T:
        _check_signature(folder, keys)
        return read(folder)

    return read_unchanged(path, check_and_read)


def _check_signature(folder: Path, keys: Iterable[Any]) -> None:
    if not os.path.lexists(folder / SIGNATURE_FILE):
        raise ModelFolderError(
            f"{folder} is not signed, and trusted keys are required: sign it with `labelweave sign`"
        )
    document = read_json(folder, SIGNATURE_FILE)
    if not isinstance(document, dict) or document.get("format") != _FORMAT:
        raise ModelFolderError(f"{folder}: {SIGNATURE_FILE} is not a signature of labelweave")
    if document.get("version") != _VERSION:
        raise ModelFolderError(
            f"{folder}: {SIGNATURE_FILE} has version {document.get('version')!r}, and this version "
            f"of labelweave reads {_VERSION}: sign the folder again, or upgrade labelweave"
        )
    if not _is_signed(document, keys):
        raise ModelFolderError(f"{folder} is not signed by one of the trusted keys")
    signed = document["files"]
    for name in _files(folder):
        if name not in signed:
            raise ModelFolderError(f"{folder} contains {name!r}, which was added after signing")
    verify_files(folder, document)


def _read_public_keys(paths: Iterable[str | PathLike[str]]) -> list[Any]:
    """Read the Ed25519 public keys of PEM files, each of which may hold several."""
    if isinstance(paths, str | PathLike):
        raise InputError("trusted_keys must be a list of files, not one path")
    serialization, ed25519 = _cryptography()
    keys = []
    for path in paths:
        blocks = _PUBLIC_KEY.findall(_read_key_file(Path(path)))
        if not blocks:
            raise InputError(
                f"{path} contains no public key: name the .pub file that `labelweave sign "
                "--new-key` wrote"
            )
        for block in blocks:
            try:
                key = serialization.load_pem_public_key(block)
            except Exception as error:  # of several kinds, for broken and for unknown keys
                raise InputError(f"{path} contains a public key that cannot be read") from error
            if not isinstance(key, ed25519.Ed25519PublicKey):
                raise InputError(f"{path} contains a key of another kind than Ed25519")
            keys.append(key)
    if not keys:
        raise InputError("trusted_keys is empty: name at least one file of public keys")
    return keys


def _is_signed(document: dict[str, Any], keys: Iterable[Any]) -> bool:
    from cryptography.exceptions import InvalidSignature

    rest = {name: value for name, value in document.items() if name != "signature"}
    try:
        signature = bytes.fromhex(document["signature"])
        signed = _canonical(rest)
    except (KeyError, TypeError, ValueError, RecursionError):
        return False
    for key in keys:
        try:
            key.verify(signature, signed)
        except InvalidSignature:
            continue
        return True
    return False


def _canonical(document: dict[str, Any]) -> bytes:
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()


def _unchanged_files(folder: Path) -> dict[str, Any]:
    """Size and hash of every file, after they were compared with those of saving."""
    verify_files(folder, read_config(folder))
    return file_facts(folder, [name for name in _files(folder) if name != SIGNATURE_FILE])


def _files(folder: Path) -> Iterator[str]:
    """Yield the names of all files but the signature; refuse folders that are links."""
    for parent, folders, names in os.walk(folder):
        for name in folders:
            if (Path(parent) / name).is_symlink():
                raise ModelFolderError(
                    f"{Path(parent) / name} is a symbolic link, which a model folder may not "
                    "contain"
                )
        for name in names:
            relative = (Path(parent) / name).relative_to(folder).as_posix()
            if relative != SIGNATURE_FILE:
                yield relative


def _cryptography() -> tuple[Any, Any]:
    serialization = require("cryptography.hazmat.primitives.serialization", "sign")
    return serialization, require("cryptography.hazmat.primitives.asymmetric.ed25519", "sign")


def _read_private_key(path: Path) -> Any:
    serialization, ed25519 = _cryptography()
    content = _read_key_file(path)
    try:
        key = serialization.load_pem_private_key(content, password=None)
    except TypeError as error:
        raise InputError(f"{path} is encrypted: name a key without a passphrase") from error
    except Exception as error:  # of several kinds, for broken and for unknown keys
        raise InputError(
            f"{path} is not the PEM file of a private key: `labelweave sign --new-key` makes one"
        ) from error
    if not isinstance(key, ed25519.Ed25519PrivateKey):
        raise InputError(f"{path} is a key of another kind than Ed25519")
    return key


def _read_key_file(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(1 << 20)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error


def _write_new(path: Path, content: bytes, mode: int) -> None:
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    except FileExistsError:
        raise InputError(f"{path} exists and is not overwritten: choose another name") from None
    with os.fdopen(handle, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
