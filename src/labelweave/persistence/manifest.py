"""config.json: what a model folder says about itself, and whether that is true."""

from __future__ import annotations

import hashlib
import json
import re
import stat
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from labelweave.exceptions import ModelFolderError

__all__ = ["EDITABLE_FILES", "SCHEMA", "UPGRADES", "read_config", "read_json", "verify_files"]

FORMAT = "labelweave-model"
SCHEMA = 1
# From the config of schema n to that of n + 1; the files stay as they were written.
UPGRADES: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {}
# Not read by `load`, so people may change them.
EDITABLE_FILES = ("README.md", "metrics.json", "training.json", "rows-seen.npy")

_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,199}")
_LARGEST_JSON = 1 << 30


def write_config(folder: Path, content: dict[str, Any], files: Iterable[str]) -> None:
    """Write config.json with the size and hash of the files beside it."""
    config = {"format": FORMAT, "schema": SCHEMA, **content}
    config["files"] = {
        name: {"sha256": _sha256(folder / name), "size": (folder / name).stat().st_size}
        for name in sorted(files)
    }
    config["sha256"] = _config_hash(config)
    write_json(folder / "config.json", config)


def write_json(path: Path, value: Any) -> None:
    """Write a value as readable JSON; NaN is refused, which JSON has not."""
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    try:
        encoded = text.encode()
    except UnicodeEncodeError:  # half a surrogate pair in a name: only escapes can hold it
        encoded = json.dumps(value, indent=2, allow_nan=False).encode()
    path.write_bytes(encoded + b"\n")


def read_config(folder: Path) -> dict[str, Any]:
    """The config of a model folder, checked, and upgraded if an older version wrote it."""
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
            f"{folder} is not a labelweave model: its config.json does not say it is one"
        )
    schema = config.get("schema")
    if not isinstance(schema, int) or isinstance(schema, bool) or schema < 1:
        raise ModelFolderError(f"{folder}: config.json has no valid schema number")
    if schema > SCHEMA:
        raise ModelFolderError(
            f"{folder} was written by a newer labelweave (schema {schema}, this one reads up to "
            f"{SCHEMA}): upgrade labelweave to load it"
        )
    if config.get("sha256") != _config_hash(config):
        raise ModelFolderError(f"{folder}: config.json was changed after it was saved")
    for version in range(schema, SCHEMA):
        if version not in UPGRADES:
            raise ModelFolderError(
                f"{folder} was written with schema {version}, which this labelweave no longer "
                "reads: load and save it with an older version first"
            )
        config = UPGRADES[version](config)
    _check_file_list(folder, config.get("files"))
    return config


def verify_files(folder: Path, config: dict[str, Any], names: Iterable[str] | None = None) -> None:
    """Refuse a folder whose files (or these of them) are not those that were saved."""
    listed = config["files"]
    for name in listed if names is None else names:
        if name not in listed:
            raise ModelFolderError(f"{folder}: config.json does not list {name}")
        path = _plain_file(folder, name)
        facts = listed[name]
        size = path.stat().st_size
        if size != facts["size"]:
            raise ModelFolderError(
                f"{path} has {size} bytes instead of {facts['size']}: the model folder is "
                "damaged, copy it again or retrain"
            )
        if _sha256(path) != facts["sha256"]:
            raise ModelFolderError(
                f"{path} is not the file that was saved (its SHA-256 differs): the model folder "
                "is damaged or was changed"
            )


def read_json(folder: Path, name: str) -> Any:
    """The content of a JSON file of the folder."""
    path = _plain_file(folder, name)
    try:
        if path.stat().st_size > _LARGEST_JSON:
            raise ModelFolderError(f"{path} is too large to be what labelweave writes")
        return json.loads(path.read_text(encoding="utf-8"), parse_constant=_no_constant)
    except OSError as error:
        raise ModelFolderError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:  # JSONDecodeError, UnicodeDecodeError too
        raise ModelFolderError(f"{path} is not the JSON that labelweave writes") from error


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _plain_file(folder: Path, name: str) -> Path:
    """A file of the folder itself, not reached through a link out of it."""
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
            raise ModelFolderError(f"{path} is a symbolic link: a model folder holds none")
        if not (stat.S_ISREG(mode) if k == len(parts) - 1 else stat.S_ISDIR(mode)):
            raise ModelFolderError(f"{path} is not an ordinary file or folder")
    return path


def _check_file_list(folder: Path, files: Any) -> None:
    if not isinstance(files, dict):
        raise ModelFolderError(f"{folder}: config.json does not list the files of the model")
    for name, facts in files.items():
        if not all(_PART.fullmatch(part) for part in name.split("/")):
            raise ModelFolderError(f"{folder}: config.json lists the unsafe file name {name!r}")
        well_formed = (
            isinstance(facts, dict)
            and isinstance(facts.get("size"), int)
            and isinstance(facts.get("sha256"), str)
        )
        if not well_formed:
            raise ModelFolderError(f"{folder}: config.json gives no size and hash for {name!r}")


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
