"""Replacing a whole folder in one step, so that a crash leaves the old or the new one.

The new folder is written beside the old one under a hidden name, flushed to disk, and exchanged
with the old one by a single system call (``renameat2`` of Linux). On other systems two renames
do the same; a crash between them leaves the old folder as ``.name.previous``, where
:func:`existing_folder` finds it.
"""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path
from typing import TypeVar

from labelweave.exceptions import ModelFolderError
from labelweave.persistence.manifest import EDITABLE_FILES, SIGNATURE_FILE, read_config

__all__ = ["check_save_path", "existing_folder", "read_unchanged", "replaced_folder"]

T = TypeVar("T")
_WAITS = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)  # seconds between two readings of a replaced folder
_SUFFIX = ".saving"
_AT_FDCWD = -100
_RENAME_EXCHANGE = 2
_NO_EXCHANGE = {errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP, errno.EPERM}


def check_save_path(path: str | PathLike[str]) -> Path:
    """Refuse a path that a model cannot be saved to, so that no training time is wasted.

    An earlier model may be replaced. A file, or a folder with anything that labelweave did not
    write, may not.

    >>> check_save_path("no-such-model").name
    'no-such-model'
    """
    target = Path(os.path.realpath(path))
    if target == target.parent:
        raise ModelFolderError(f"{path}: a model cannot be saved to the root folder")
    if not target.exists():
        return target
    if not target.is_dir():
        raise ModelFolderError(
            f"{path} is a file, but a model is saved to a folder: choose another path"
        )
    try:
        present = {entry.name for entry in target.iterdir()}
    except OSError as error:
        raise ModelFolderError(f"{path} cannot be read: {error.strerror}") from error
    if not present:
        return target
    try:
        listed = read_config(target)["files"]
    except ModelFolderError:
        raise ModelFolderError(
            f"{path} contains files but no labelweave model, so it is not overwritten: "
            "choose another folder"
        ) from None
    ours = {name.partition("/")[0] for name in listed}
    ours |= {"config.json", SIGNATURE_FILE, *EDITABLE_FILES}
    if others := sorted(present - ours):
        raise ModelFolderError(
            f"{path} contains {others[0]!r}, which labelweave did not write and saving would "
            "delete: move it away or choose another folder"
        )
    return target


def existing_folder(path: str | PathLike[str]) -> Path:
    """Return the model folder at a path, or the old one that an interrupted save renamed."""
    folder = Path(path)
    if not folder.exists():
        previous = _previous(Path(os.path.realpath(path)))
        if previous.is_dir():
            return previous
        if folder.is_dir():  # a save that replaces it was between its two renames
            return folder
        raise ModelFolderError(f"{path}: there is no such model folder")
    if not folder.is_dir():
        raise ModelFolderError(f"{path} is a file, not a model folder")
    return folder


def read_unchanged(path: str | PathLike[str], read: Callable[[Path], T]) -> T:
    """Return what `read` returns of the model folder at a path, all of it from one save.

    If a save replaces the folder in the meantime, the folder is read again after a short wait.
    """
    for wait in _WAITS:
        folder = existing_folder(path)
        before = _identity(folder)
        try:
            result = read(folder)
        except ModelFolderError:
            if _identity(folder) == before:
                raise
        else:
            if _identity(folder) == before:
                return result
        time.sleep(wait)
    raise ModelFolderError(f"{path} is being replaced again and again: try again later")


def _identity(folder: Path) -> tuple[int, ...] | None:
    """Numbers that differ after the folder was replaced; None if it has no config.json."""
    try:
        outer, inner = folder.stat(), (folder / "config.json").lstat()
    except OSError:
        return None
    return outer.st_dev, outer.st_ino, inner.st_ino, inner.st_mtime_ns


@contextmanager
def replaced_folder(path: str | PathLike[str]) -> Iterator[Path]:
    """Provide an empty folder, which replaces the folder at `path` if the block succeeds.

    If the block fails, `path` is unchanged and the new folder is deleted.
    """
    target = check_save_path(path)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _recover(target)
        check_save_path(target)  # a recovered folder may contain files of others
        temporary, lock = _locked_sibling(target)
    except OSError as error:
        raise _unwritable(path, error) from error
    try:
        yield temporary
        _set_permissions(temporary)
        _sync(temporary)
        _swap_in(temporary, target)
        _sync_folder(target.parent)
    except OSError as error:
        raise _unwritable(path, error) from error
    finally:
        # After an exchange this is the old model, after a failure the incomplete new one.
        shutil.rmtree(temporary, ignore_errors=True)
        if lock is not None:
            os.close(lock)


def _unwritable(path: str | PathLike[str], error: OSError) -> ModelFolderError:
    reason = error.strerror or str(error)
    return ModelFolderError(
        f"the model could not be written to {path}: {reason} (what was there before is unchanged)"
    )


# -- exchanging ------------------------------------------------------------------------


def _swap_in(new: Path, target: Path) -> None:
    if not (target.exists() and any(target.iterdir())):
        if target.exists() and os.name == "nt":
            target.rmdir()
        try:
            new.rename(target)
            return
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
            # Another process replaced the folder while its files were listed.
    if _exchange(new, target):
        return
    previous = _previous(target)
    target.rename(previous)
    try:
        new.rename(target)
    except OSError:
        previous.rename(target)
        raise
    shutil.rmtree(previous, ignore_errors=True)


def _exchange(first: Path, second: Path) -> bool:
    """Exchange two folders in one step; return False if the system has no such call."""
    if not sys.platform.startswith("linux"):
        return False
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if rename is None:
        return False
    status = rename(_AT_FDCWD, os.fsencode(first), _AT_FDCWD, os.fsencode(second), _RENAME_EXCHANGE)
    if status == 0:
        return True
    code = ctypes.get_errno()
    if code in _NO_EXCHANGE:
        return False
    raise OSError(code, os.strerror(code), str(second))


def _previous(target: Path) -> Path:
    return target.with_name(f".{target.name}.previous")


# -- cleaning up after a killed save ---------------------------------------------------


def _recover(target: Path) -> None:
    """Restore the old folder of a killed save, and delete the incomplete new ones."""
    previous = _previous(target)
    if previous.is_dir():
        if target.exists():
            shutil.rmtree(previous, ignore_errors=True)
        else:
            previous.rename(target)
    for entry in target.parent.iterdir():
        ours = entry.name.startswith(f".{target.name}.") and entry.name.endswith(_SUFFIX)
        if not ours or entry.is_symlink():
            continue
        with suppress(BlockingIOError):  # another process is saving to it
            lock = _lock(entry)
            if lock is not None:
                shutil.rmtree(entry, ignore_errors=True)
                os.close(lock)


def _locked_sibling(target: Path) -> tuple[Path, int | None]:
    """Create a hidden folder and lock it, so that no other save deletes it as a leftover."""
    while True:
        temporary = Path(
            tempfile.mkdtemp(prefix=f".{target.name}.", suffix=_SUFFIX, dir=target.parent)
        )
        try:
            lock = _lock(temporary)
        except BlockingIOError:  # another save is about to delete it
            continue
        if temporary.exists():  # another save may have deleted it before it was locked
            return temporary, lock
        if lock is not None:
            os.close(lock)


def _lock(folder: Path) -> int | None:
    """Lock a folder and return the handle; return None if it is missing or cannot be locked.

    Raises
    ------
    BlockingIOError
        If another process holds the lock.
    """
    try:
        import fcntl
    except ImportError:
        return None
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        raise
    except OSError:
        os.close(handle)
        return None
    return handle


# -- flushing to disk ------------------------------------------------------------------


def _set_permissions(folder: Path) -> None:
    """Set the usual permissions; temporary folders and tensor files are created private."""
    umask = os.umask(0)
    os.umask(umask)
    folder.chmod(0o777 & ~umask)
    for path in folder.rglob("*"):
        path.chmod((0o777 if path.is_dir() else 0o666) & ~umask)


def _sync(folder: Path) -> None:
    for parent, _, names in os.walk(folder, topdown=False):
        for name in names:
            with (Path(parent) / name).open("rb+") as written:
                os.fsync(written.fileno())
        _sync_folder(Path(parent))


def _sync_folder(folder: Path) -> None:
    if os.name == "nt":
        return
    with suppress(OSError):  # not every file system can open and sync a folder
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
