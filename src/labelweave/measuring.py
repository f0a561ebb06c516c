"""The cost of a block of code in seconds and memory, and the versions of the packages."""

from __future__ import annotations

import platform
import sys
import time
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Self

_PACKAGES = ("labelweave", "numpy", "scipy", "scikit-learn", "torch")
_MB = 1e6


class Meter:
    """Wall seconds, processor seconds and the highest resident memory of a block.

    On Linux the kernel's peak memory of the process (VmHWM) is reset at the start, so that the
    peak is that of the block alone; elsewhere it is the peak since the process started.

    >>> with Meter() as meter:
    ...     _ = bytearray(10**6)
    >>> meter.peak_mb > 0
    True
    """

    wall: float
    cpu: float
    peak_mb: float  # memory in MB (10^6 bytes)
    before_mb: float
    is_reset: bool  # whether the peak is that of the block alone

    def __enter__(self) -> Self:
        self.is_reset = _reset_peak()
        self.before_mb = _status_mb("VmRSS") or _peak_since_start()
        self._wall, self._cpu = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *error: object) -> None:
        self.wall = time.perf_counter() - self._wall
        self.cpu = time.process_time() - self._cpu
        self.peak_mb = (_status_mb("VmHWM") if self.is_reset else None) or _peak_since_start()


def _reset_peak() -> bool:
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return False
    return True


def _status_mb(field: str) -> float | None:
    try:
        text = Path("/proc/self/status").read_text()
    except OSError:
        return None
    words = text.partition(f"{field}:")[2].split(maxsplit=1)
    return int(words[0]) * 1024 / _MB if words else None


def _peak_since_start() -> float:
    try:
        import resource
    except ImportError:  # Windows
        return 0.0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / _MB if sys.platform == "darwin" else peak * 1024 / _MB


@cache
def versions() -> dict[str, str]:
    """Return the versions of the packages that scores depend on."""
    return {"python": platform.python_version()} | {
        name: metadata.version(name) for name in _PACKAGES
    }
