"""The cache folder, values for JSON, and files that are replaced in one step."""

from __future__ import annotations

import errno
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path
from typing import Any

__all__ = [
    "atomic_path",
    "atomic_write_text",
    "cache_folder",
    "is_path",
    "json_ready",
    "parsed_json_size",
]

_DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def cache_folder() -> Path:
    """Folder of downloaded files: `LABELWEAVE_CACHE`, or the cache folder of the platform.

    >>> cache_folder().name != ""
    True
    """
    folder = os.environ.get("LABELWEAVE_CACHE")
    if folder:
        return Path(folder).expanduser()
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "labelweave"


def is_path(value: Any) -> bool:
    """Whether a value names a file."""
    return isinstance(value, str | PathLike)


@contextmanager
def atomic_path(target: str | PathLike[str]) -> Iterator[Path]:
    """Provide a temporary file beside `target`, which replaces it if the block succeeds.

    If the block fails, `target` is unchanged and the temporary file is deleted.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with atomic_path(Path(folder) / "a.txt") as path:
    ...         _ = path.write_text("complete")
    ...     (Path(folder) / "a.txt").read_text()
    'complete'
    """
    target = Path(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        handle, name = tempfile.mkstemp(
            prefix=f".{target.name}.", suffix=f".tmp{target.suffix}", dir=target.parent
        )
    except OSError as error:
        raise _error_about(target, error) from error
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        with temporary.open("rb+") as written:
            os.fsync(written.fileno())
        # mkstemp creates private files: set the usual permissions.
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o666 & ~umask)
        temporary.replace(target)
    except OSError as error:
        if error.errno in _DISK_FULL or error.filename == name:
            raise _error_about(target, error) from error
        raise
    finally:
        with suppress(FileNotFoundError):
            temporary.unlink()


def _error_about(target: Path, error: OSError) -> OSError:
    """Return the same error for the target file, in place of the temporary one."""
    return OSError(error.errno, error.strerror, str(target))


def atomic_write_text(target: str | PathLike[str], text: str) -> None:
    """Replace the text of a file in one step."""
    with atomic_path(target) as path:
        path.write_text(text, encoding="utf-8")


def json_ready(value: Any) -> Any:
    """Convert a value to types that JSON has; NaN and infinity become null."""
    if isinstance(value, dict):
        return {str(key): json_ready(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [json_ready(item) for item in value]
    if hasattr(value, "tolist"):  # NumPy arrays and scalars
        return json_ready(value.tolist())
    if isinstance(value, float):
        finite = value == value and abs(value) != float("inf")
        return value if finite else None
    if value is None or isinstance(value, bool | int | str):
        return value
    return str(value)


def parsed_json_size(content: bytes) -> int:
    """Return about how many bytes of memory a JSON document takes once it is parsed.

    Lists and objects take some 90 bytes each, other values some 35, however short their text is.

    >>> parsed_json_size(b"[[], []]")
    329
    """
    n_containers = content.count(b"[") + content.count(b"{")
    return 3 * len(content) + 90 * n_containers + 35 * content.count(b",")
