"""What counts as a list of texts."""

from __future__ import annotations

from typing import Any

from labelweave.exceptions import InputError

__all__ = ["checked_texts"]


def checked_texts(X: Any) -> list[str]:
    """The texts as a list, or one sentence on what is wrong with them.

    >>> checked_texts(("a", "b"))
    ['a', 'b']
    """
    if isinstance(X, str):
        raise InputError("X is one text: pass a list of texts")
    if hasattr(X, "ndim") and X.ndim != 1:
        raise InputError(f"X must be a list of texts, but it has shape {X.shape}")
    texts = list(X)
    if not texts:
        raise InputError("X holds no text")
    for i, text in enumerate(texts):
        if not isinstance(text, str):
            raise InputError(f"X must be a list of texts, but row {i} is {type(text).__name__}")
    return texts
