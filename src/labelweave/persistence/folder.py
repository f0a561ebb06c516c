"""Replacing a whole folder in one step.

The new folder is written beside the old one under a hidden name, brought to disk, and
exchanged with the old one by a single system call (Linux ``renameat2``). Where there is no
such call two renames do it, and a crash between them leaves the old folder under
``.name.previous``, where :func:`existing_folder` finds it.
"""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path

from labelweave.exceptions import ModelFolderError
from labelweave.persistence.manifest import EDITABLE_FILES, read_config

__all__ = ["check_save_path", "existing_folder", "replaced_folder"]

_SUFFIX = ".saving"
_AT_FDCWD = -100
_RENAME_EXCHANGE = 2
_NO_EXCHANGE = {errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP, errno.EPERM}


def check_save_path(path: str | PathLike[str]) -> Path:
    """Refuse a path that a model cannot be saved to, before any time is spent on training.

    An earlier model may be replaced. A file, and a folder that holds anything labelweave did
    not write, may not.

    >>> check_save_path("no-such-model").name
    'no-such-model'
    """
    target = Path(os.path.realpath(path))
    if target == target.parent:
        raise ModelFolderError(f"{path}: a model cannot be saved to the root folder")
    if not target.exists():
        return target
    if not target.is_dir():
        raise ModelFolderError(f"{path} is a file: a model is saved to a folder, choose another")
    try:
        held = {entry.name for entry in target.iterdir()}
    except OSError as error:
        raise ModelFolderError(f"{path} cannot be read: {error.strerror}") from error
    if not held:
        return target
    try:
        listed = read_config(target)["files"]
    except ModelFolderError:
        raise ModelFolderError(
            f"{path} holds files but no labelweave model, so it is not overwritten: "
            "choose another folder"
        ) from None
    ours = {name.partition("/")[0] for name in listed} | {"config.json", *EDITABLE_FILES}
    if others := sorted(held - ours):
        raise ModelFolderError(
            f"{path} holds {others[0]!r}, which labelweave did not write and saving would "
            "delete: move it away or choose another folder"
        )
    return target


def existing_folder(path: str | PathLike[str]) -> Path:
    """The model folder at this path, or the one that an interrupted save had put aside."""
    folder = Path(path)
    if not folder.exists():
        aside = _aside(Path(os.path.realpath(path)))
        if aside.is_dir():
            return aside
        raise ModelFolderError(f"{path}: there is no such model folder")
    if not folder.is_dir():
        raise ModelFolderError(f"{path} is a file, not a model folder")
    return folder


@contextmanager
def replaced_folder(path: str | PathLike[str]) -> Iterator[Path]:
    """An empty folder to write to, which takes the place of `path` if the block succeeds.

    If the block fails, `path` is as it was and nothing else is left.
    """
    target = check_save_path(path)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _mend(target)
        check_save_path(target)  # what was put back may hold files of somebody else
        temporary, lock = _locked_sibling(target)
    except OSError as error:
        raise _unwritable(path, error) from error
    try:
        yield temporary
        _open_to_readers(temporary)
        _sync(temporary)
        _swap_in(temporary, target)
        _sync_folder(target.parent)
    except OSError as error:
        raise _unwritable(path, error) from error
    finally:
        # After an exchange this is the old model, after a failure the unfinished one.
        shutil.rmtree(temporary, ignore_errors=True)
        if lock is not None:
            os.close(lock)


def _unwritable(path: str | PathLike[str], error: OSError) -> ModelFolderError:
    reason = error.strerror or str(error)
    return ModelFolderError(
        f"the model could not be written to {path}: {reason} (what was there before is unchanged)"
    )


# -- the exchange ----------------------------------------------------------------------


def _swap_in(new: Path, target: Path) -> None:
    if target.exists() and any(target.iterdir()):
        if _exchange(new, target):
            return
        aside = _aside(target)
        target.rename(aside)
        try:
            new.rename(target)
        except OSError:
            aside.rename(target)
            raise
        shutil.rmtree(aside, ignore_errors=True)
        return
    if target.exists() and os.name == "nt":
        target.rmdir()
    new.rename(target)


def _exchange(first: Path, second: Path) -> bool:
    """Exchange two folders in one step; False where the system has no such call."""
    if not sys.platform.startswith("linux"):
        return False
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if rename is None:
        return False
    done = rename(_AT_FDCWD, os.fsencode(first), _AT_FDCWD, os.fsencode(second), _RENAME_EXCHANGE)
    if done == 0:
        return True
    code = ctypes.get_errno()
    if code in _NO_EXCHANGE:
        return False
    raise OSError(code, os.strerror(code), str(second))


def _aside(target: Path) -> Path:
    return target.with_name(f".{target.name}.previous")


# -- what a killed save leaves behind --------------------------------------------------


def _mend(target: Path) -> None:
    """Put back a folder left aside by a killed save and delete its unfinished ones."""
    aside = _aside(target)
    if aside.is_dir():
        if target.exists():
            shutil.rmtree(aside, ignore_errors=True)
        else:
            aside.rename(target)
    for entry in target.parent.iterdir():
        ours = entry.name.startswith(f".{target.name}.") and entry.name.endswith(_SUFFIX)
        if not ours or entry.is_symlink():
            continue
        with suppress(BlockingIOError):  # of a save that is at work
            lock = _lock(entry)
            if lock is not None:
                shutil.rmtree(entry, ignore_errors=True)
                os.close(lock)


def _locked_sibling(target: Path) -> tuple[Path, int | None]:
    """A new hidden folder, locked so that no other save takes it for a leftover."""
    while True:
        made = tempfile.mkdtemp(prefix=f".{target.name}.", suffix=_SUFFIX, dir=target.parent)
        temporary = Path(made)
        try:
            lock = _lock(temporary)
        except BlockingIOError:  # another save takes it for a leftover and is about to delete it
            continue
        if temporary.exists():  # or has done so before the lock
            return temporary, lock
        if lock is not None:
            os.close(lock)


def _lock(folder: Path) -> int | None:
    """An open lock on a folder, or None where there is no folder or locks are unknown.

    Raises
    ------
    BlockingIOError
        If another process holds it.
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


# -- bringing it to disk ---------------------------------------------------------------


def _open_to_readers(folder: Path) -> None:
    """Give the usual permissions: temporary folders and tensor files are made private."""
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
    with suppress(OSError):  # not every file system can sync a folder, or lets one open it
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
