"""Texts of requests leave no trace on the disk."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sklearn.base import BaseEstimator

from labelweave.text.sentence import SentenceEmbedder

__all__ = ["keep_no_vectors"]


def keep_no_vectors(model: Any) -> None:
    """Let every sentence encoder within a model compute vectors without keeping them.

    The cache of embeddings saves time where the same texts come again, as in training. In a
    service it would grow with every request, and hold what clients sent.

    >>> from sklearn.pipeline import make_pipeline
    >>> model = make_pipeline(SentenceEmbedder(), "passthrough")
    >>> keep_no_vectors(model)
    >>> model[0].cache
    False
    """
    for part in _parts(model, set()):
        if isinstance(part, SentenceEmbedder):
            part.cache = False


def _parts(value: Any, seen: set[int]) -> Iterator[Any]:
    """A value and all estimators within it."""
    if id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, BaseEstimator):
        yield value
        inner = list(vars(value).values())
    elif isinstance(value, Mapping):
        inner = list(value.values())
    elif isinstance(value, list | tuple):
        inner = list(value)
    else:
        return
    for part in inner:
        yield from _parts(part, seen)
