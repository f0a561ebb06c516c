"""Claims on cells, so that processes and machines that share a folder share the work.

A claim is a small file, created atomically and touched every few seconds while its owner runs.
The claim of an owner that is gone (its process on this machine has ended, or another machine has
not touched it for a while) is taken over. Claims only save work: if one is lost, a cell is run
twice with the same result, and its file is replaced atomically.
"""

from __future__ import annotations

import json
import os
import platform
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_TOUCH_EVERY = 10.0
STALE_AFTER = 60.0
"""Seconds without a touch after which a claim of another machine is void."""


@contextmanager
def claimed(path: Path) -> Iterator[bool]:
    """Hold the claim at this path; yields False at once if another process holds it."""
    if not _take(path):
        yield False
        return
    done = threading.Event()
    keeper = threading.Thread(target=_keep_fresh, args=(path, done), daemon=True)
    keeper.start()
    try:
        yield True
    finally:
        done.set()
        with suppress(OSError):
            path.unlink()


def is_claimed(path: Path) -> bool:
    """Return whether a running process holds this claim."""
    try:
        written = path.stat().st_mtime
        owner = json.loads(path.read_text())
        host, process, begun = owner["host"], owner["process"], owner["begun"]
    except FileNotFoundError:
        return False
    except (OSError, ValueError, KeyError, TypeError):
        # It is being written at this moment, or its writer died.
        with suppress(OSError):
            return time.time() - written < _TOUCH_EVERY
        return False
    if host == platform.node():
        return _start_of(process) == begun
    return time.time() - written < STALE_AFTER


def _take(path: Path) -> bool:
    for _ in range(2):
        try:
            handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
        except FileExistsError:
            if is_claimed(path):
                return False
            with suppress(OSError):
                path.unlink()
            continue
        with os.fdopen(handle, "w") as file:
            process = os.getpid()
            owner = {"host": platform.node(), "process": process, "begun": _start_of(process)}
            json.dump(owner, file)
        return True
    return False


def _start_of(process: int) -> str | None:
    """Return the start time of a process, to recognise a process number that is used again."""
    try:
        # After the name, which may hold anything, in parentheses: field 22 is the start.
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        pass
    if Path("/proc/self/stat").exists():
        return None
    try:  # without /proc only the existence of the process can be checked
        os.kill(process, 0)
    except PermissionError:
        return "alive"
    except OSError:
        return None
    return "alive"


def _keep_fresh(path: Path, done: threading.Event) -> None:
    while not done.wait(_TOUCH_EVERY):
        with suppress(OSError):
            os.utime(path)
