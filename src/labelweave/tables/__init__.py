"""Mixed tables: numbers, categories, yes/no, dates and texts side by side, with blanks.

Every method takes a DataFrame of such columns in `fit` and `predict`; a
:class:`~labelweave.tables.encoder.TableEncoder` turns them into numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from labelweave.tables.table import Table

if TYPE_CHECKING:
    from labelweave.tables.encoder import TableEncoder

__all__ = ["Table", "TableEncoder"]


def __getattr__(name: str) -> Any:
    if name != "TableEncoder":
        raise AttributeError(f"module 'labelweave.tables' has no attribute {name!r}")
    from labelweave.tables.encoder import TableEncoder  # imports scikit-learn

    return TableEncoder


def __dir__() -> list[str]:
    return sorted([*globals(), "TableEncoder"])
