"""Values as JSON has them."""

from __future__ import annotations

from typing import Any

__all__ = ["plain"]


def plain(value: Any) -> Any:
    """The same value in types that JSON has; NaN and infinity become null."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):  # NumPy arrays and scalars
        return plain(value.tolist())
    if isinstance(value, float):
        finite = value == value and abs(value) != float("inf")
        return value if finite else None
    if value is None or isinstance(value, bool | int | str):
        return value
    return str(value)
