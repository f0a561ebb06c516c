"""The machine of a cell: what it is, and a limit on the threads."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, lru_cache
from pathlib import Path
from typing import Any


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
