"""config.json: the description of a model folder, and checking its files against it."""

from __future__ import annotations

import hashlib
import json
import re
import stat
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from labelweave.exceptions import InputError, ModelFolderError
from labelweave.files import parsed_json_size

__all__ = [
    "EDITABLE_FILES",
    "SCHEMA",
    "SIGNATURE_FILE",
    "UPGRADES",
    "file_facts",
    "is_too_large",
    "plain_file",
    "read_config",
    "read_json",
    "verify_files",
]

FORMAT = "labelweave-model"
SCHEMA = 1
# Functions that convert the config of schema n to schema n + 1; other files are not changed.
UPGRADES: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {}
# Files that `load` does not read, so that people may change them.
EDITABLE_FILES = ("README.md", "metrics.json", "training.json", "rows-seen.npy", "reference.json")
SIGNATURE_FILE = "signature.json"

_PATH_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,199}")
_MAX_JSON = 1 << 28  # bytes of a JSON file
_MAX_PARSED = 1 << 30  # bytes of its values in memory, estimated


def write_config(folder: Path, content: dict[str, Any], files: Iterable[str]) -> None:
    """Write config.json with the sizes and hashes of the files beside it."""
    config = {"format": FORMAT, "schema": SCHEMA, **content}
    config["files"] = file_facts(folder, files)
    config["sha256"] = _config_hash(config)
    write_json(folder / "config.json", config)


def file_facts(folder: Path, names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return size and hash of files of a folder."""
    facts = {}
    for name in sorted(names):
        path = plain_file(folder, name)
        facts[name] = {"sha256": _sha256(path), "size": path.stat().st_size}
    return facts


def write_json(path: Path, value: Any) -> None:
    """Write a value as indented JSON; NaN is refused, because it is not valid JSON."""
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    try:
        encoded = text.encode()
    except UnicodeEncodeError:  # a lone surrogate in a name, which only escapes can express
        encoded = json.dumps(value, indent=2, allow_nan=False).encode()
    if is_too_large(encoded):
        raise InputError(
            f"the model cannot be saved: {path.name} would be too large to load ({len(encoded)} "
            "bytes); use fewer labels, or keep long lists as arrays"
        )
    path.write_bytes(encoded + b"\n")


def read_config(folder: Path) -> dict[str, Any]:
    """Read and check the config of a model folder; upgrade that of an older version."""
    try:
        (folder / "config.json").lstat()
    except FileNotFoundError:
        raise ModelFolderError(
            f"{folder} is not a labelweave model: it has no config.json"
        ) from None
    except OSError as error:
        raise ModelFolderError(f"{folder} cannot be read: {error.strerror}") from error
    config = read_json(folder, "config.json")
    if not isinstance(config, dict) or config.get("format") != FORMAT:
        raise ModelFolderError(
            f"{folder} is not a labelweave model: its config.json has another format"
        )
    schema = config.get("schema")
    if not isinstance(schema, int) or isinstance(schema, bool) or schema < 1:
        raise ModelFolderError(f"{folder}: config.json has no valid schema number")
    if schema > SCHEMA:
        raise ModelFolderError(
            f"{folder} was written by a newer version of labelweave (schema {schema}, this version "
            f"reads up to {SCHEMA}): upgrade labelweave to load it"
        )
    if config.get("sha256") != _config_hash(config):
        raise ModelFolderError(f"{folder}: config.json was changed after it was saved")
    for version in range(schema, SCHEMA):
        if version not in UPGRADES:
            raise ModelFolderError(
                f"{folder} was written with schema {version}, which this version no longer "
                "reads: load and save it with an older version first"
            )
        config = UPGRADES[version](config)
    _check_file_list(folder, config.get("files"))
    return config


def verify_files(folder: Path, config: dict[str, Any], names: Iterable[str] | None = None) -> None:
    """Refuse a folder if its files, or those of `names`, were changed after saving."""
    listed = config["files"]
    for name in listed if names is None else names:
        if name not in listed:
            raise ModelFolderError(f"{folder}: config.json does not list {name}")
        path = plain_file(folder, name)
        facts = listed[name]
        size = path.stat().st_size
        if size != facts["size"]:
            raise ModelFolderError(
                f"{path} has {size} bytes instead of {facts['size']}: the model folder is "
                "damaged, copy it again or train the model again"
            )
        if _sha256(path) != facts["sha256"]:
            raise ModelFolderError(
                f"{path} is not the file that was saved (its SHA-256 differs): the model folder "
                "is damaged or was changed"
            )


def read_json(folder: Path, name: str) -> Any:
    """Return the content of a JSON file of the folder."""
    path = plain_file(folder, name)
    try:
        is_long = path.stat().st_size > _MAX_JSON
        content = b"" if is_long else path.read_bytes()
    except OSError as error:
        raise ModelFolderError(f"{path} cannot be read: {error.strerror}") from error
    if is_long or is_too_large(content):
        raise ModelFolderError(f"{path} is too large to have been written by labelweave")
    try:
        return json.loads(content.decode("utf-8"), parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:  # JSONDecodeError, UnicodeDecodeError too
        raise ModelFolderError(f"{path} is not valid JSON") from error


def is_too_large(content: bytes) -> bool:
    """Whether a JSON document, once parsed, may take more memory than a model folder should.

    A name in an object takes some 100 bytes beyond those of its value.
    """
    parsed = parsed_json_size(content) + 100 * content.count(b":")
    return len(content) > _MAX_JSON or parsed > _MAX_PARSED


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def plain_file(folder: Path, name: str) -> Path:
    """Return the path of a file of the folder; refuse links, which may lead out of it."""
    path = folder
    parts = name.split("/")
    for k, part in enumerate(parts):
        path = path / part
        try:
            mode = path.lstat().st_mode
        except FileNotFoundError:
            raise ModelFolderError(f"{path} is missing: the model folder is damaged") from None
        except OSError as error:
            raise ModelFolderError(f"{path} cannot be read: {error.strerror}") from error
        if stat.S_ISLNK(mode):
            raise ModelFolderError(
                f"{path} is a symbolic link, which a model folder may not contain"
            )
        if not (stat.S_ISREG(mode) if k == len(parts) - 1 else stat.S_ISDIR(mode)):
            raise ModelFolderError(f"{path} is not an ordinary file or folder")
    return path


def _check_file_list(folder: Path, files: Any) -> None:
    if not isinstance(files, dict):
        raise ModelFolderError(f"{folder}: config.json does not list the files of the model")
    for name, facts in files.items():
        if not all(_PATH_PART.fullmatch(part) for part in name.split("/")):
            raise ModelFolderError(f"{folder}: config.json lists the unsafe file name {name!r}")
        well_formed = (
            isinstance(facts, dict)
            and isinstance(facts.get("size"), int)
            and isinstance(facts.get("sha256"), str)
        )
        if not well_formed:
            raise ModelFolderError(f"{folder}: config.json has no size and hash for {name!r}")


def _sha256(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise ModelFolderError(f"{path} cannot be read: {error.strerror}") from error


def _config_hash(config: dict[str, Any]) -> str:
    rest = {key: value for key, value in config.items() if key != "sha256"}
    text = json.dumps(rest, sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()
