"""A limit on the threads of numerical libraries."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

__all__ = ["bounded_threads"]


@contextmanager
def bounded_threads(threads: int) -> Iterator[None]:
    """Limit the threads of BLAS, OpenMP and torch inside the block.

    The order of sums, and with it the last digits of a result, depends on the number of threads.
    """
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
