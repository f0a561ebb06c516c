"""Data sets: reading files, loading by name, splitting, and making scenarios."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from labelweave.data.dataset import Dataset

if TYPE_CHECKING:
    from labelweave.data.catalog import list_datasets, load_dataset
    from labelweave.data.reading import iter_batches, read_dataset

__all__ = ["Dataset", "iter_batches", "list_datasets", "load_dataset", "read_dataset"]

_LAZY = {
    "iter_batches": "labelweave.data.reading",
    "list_datasets": "labelweave.data.catalog",
    "load_dataset": "labelweave.data.catalog",
    "read_dataset": "labelweave.data.reading",
}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'labelweave.data' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_LAZY])
