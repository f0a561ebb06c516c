"""`labelweave serve`, which notes what it opens, runs and connects to: LOG FOLDER serve ...

Python's audit events are written to LOG, a line each, once a file named LOG.start exists: files
that are opened outside FOLDER (which holds models, database and cache), the installed packages and
the system's own /proc and /sys; processes and connections that are started; classes that pickle
looks up; code that is run from a file elsewhere. Used by `serve_abuse.py`. Files that native code
opens have no such events.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

STARTS = (
    "subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork",
    "socket.connect", "socket.getaddrinfo", "pickle.find_class", "marshal.loads",
)  # fmt: skip
WRITES = (
    "open", "os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.chmod",
    "os.truncate", "shutil.rmtree", "shutil.move",
)  # fmt: skip


class Watch:
    """An audit hook that writes what is outside the allowed places to a file."""

    def __init__(self, log: Path, folder: Path) -> None:
        self._start = f"{log}.start"
        self._log = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        places = (folder, sys.prefix, sys.base_prefix, Path(__file__).parents[1])
        self._allowed = tuple(os.path.realpath(place) for place in places)
        self._is_on = False

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event not in WRITES and event not in STARTS and event != "exec":
            return
        if not self._is_on:
            self._is_on = os.access(self._start, os.F_OK)
            if not self._is_on:
                return
        if event in STARTS:
            if event == "marshal.loads" and _is_import():
                return
            self._note(f"{event} {arguments!r:.200}")
        elif event == "exec":
            name = arguments[0].co_filename
            if not name.startswith("<") and not self._may_use(name):
                self._note(f"code {name}")
        else:
            for path in arguments[:2]:
                if isinstance(path, str | bytes) and not self._may_use(os.fsdecode(path)):
                    self._note(f"{event} {path!r:.200}")
                if event == "open":  # the second argument is the mode
                    break

    def _may_use(self, path: str) -> bool:
        return os.path.realpath(path).startswith((*self._allowed, "/proc/", "/sys/", "/dev/null"))

    def _note(self, text: str) -> None:
        os.write(self._log, text.encode(errors="replace").replace(b"\n", b" ") + b"\n")


def _is_import() -> bool:
    """Whether Python reads a compiled module."""
    frame: Any = sys._getframe(2)
    return frame.f_code.co_filename.startswith("<frozen importlib")


if __name__ == "__main__":
    log, folder, *words = sys.argv[1:]
    sys.addaudithook(Watch(Path(log), Path(folder)))
    from labelweave.cli.main import main

    main(words, prog_name="labelweave")
