"""Checks of lists of texts."""

from __future__ import annotations

from typing import Any

from labelweave.exceptions import InputError


def checked_texts(X: Any) -> list[str]:
    """Return the texts as a list; raise an error if X is not a list of texts.

    >>> checked_texts(("a", "b"))
    ['a', 'b']
    """
    if isinstance(X, str):
        raise InputError("X is one text: pass a list of texts")
    if hasattr(X, "ndim") and X.ndim != 1:
        raise InputError(f"X must be a list of texts, but it has shape {X.shape}")
    texts = list(X)
    if not texts:
        raise InputError("X holds no text: pass at least one")
    for i, text in enumerate(texts):
        if not isinstance(text, str):
            raise InputError(f"X must be a list of texts, but row {i} is {type(text).__name__}")
    return texts
