"""The cost of a cell: seconds and memory, and a limit on its threads."""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any, Self

from labelweave.bench.storing.records import Memory, Seconds

__all__ = ["Meter", "bounded_threads", "machine", "versions"]

_PACKAGES = ("labelweave", "numpy", "scipy", "scikit-learn", "torch")
_MB = 1e6


class Meter:
    """Wall seconds, processor seconds and the highest resident memory of a block.

    On Linux the kernel's peak memory of the process (VmHWM) is reset at the start, so that the
    peak is that of the block alone; elsewhere it is the peak since the process started.

    >>> with Meter() as meter:
    ...     _ = bytearray(10**6)
    >>> meter.memory["peak"] > 0
    True
    """

    def __enter__(self) -> Self:
        self._is_reset = _reset_peak()
        self._before = _status_mb("VmRSS") or _peak_since_start()
        self._wall, self._cpu = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *error: object) -> None:
        self.wall = time.perf_counter() - self._wall
        self.cpu = time.process_time() - self._cpu
        peak = (_status_mb("VmHWM") if self._is_reset else None) or _peak_since_start()
        self.memory: Memory = {
            "peak": round(peak, 1),
            "before": round(self._before, 1),
            "how": "per cell" if self._is_reset else "since start",
        }

    def seconds(self, fit: float) -> Seconds:
        return {"fit": round(fit, 4), "wall": round(self.wall, 4), "cpu": round(self.cpu, 4)}


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


@contextmanager
def bounded_threads(threads: int) -> Iterator[None]:
    """Limit the threads of BLAS, OpenMP and torch inside the block."""
    torch = sys.modules.get("torch")
    before = None if torch is None else torch.get_num_threads()
    if torch is not None:
        torch.set_num_threads(threads)
    try:
        with _thread_pools(len(sys.modules)).limit(limits=threads):
            yield
    finally:
        if torch is not None and before is not None:
            torch.set_num_threads(before)


@lru_cache(maxsize=1)
def _thread_pools(n_modules: int) -> Any:
    """Find the thread pools of this process, again (some ms) when it has imported more modules."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


@cache
def machine() -> dict[str, Any]:
    """Describe this machine."""
    return {
        "host": platform.node(),
        "system": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gb": _memory_gb(),
    }


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _memory_gb() -> float | None:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1)
    except (ValueError, OSError, AttributeError):
        return None


@cache
def versions() -> dict[str, str]:
    """Return the versions of the packages that scores depend on."""
    return {"python": platform.python_version()} | {
        name: metadata.version(name) for name in _PACKAGES
    }
