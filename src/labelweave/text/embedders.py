"""Embedders by name, and functions of vectors that they share."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from labelweave.exceptions import InputError

EMBEDDERS = ("minilm", "fast", "tfidf")


def make_embedder(embedder: Any) -> Any:
    """Return an unfitted embedder: a clone of an embedder, or the embedder of a name.

    >>> make_embedder("tfidf")
    TfidfEmbedder(max_words=2)
    """
    if not isinstance(embedder, str):
        return clone(embedder)
    if embedder == "tfidf":
        from labelweave.text.tfidf import TfidfEmbedder

        return TfidfEmbedder(max_words=2)
    if embedder == "fast":
        from labelweave.text.fast import FastEmbedder

        return FastEmbedder()
    if embedder == "minilm":
        from labelweave.text.sentence import SentenceEmbedder

        return SentenceEmbedder()
    raise InputError(
        f"there is no embedder {embedder!r}: choose one of {', '.join(EMBEDDERS)}, or give a "
        "transformer such as SentenceEmbedder('folder of a model')"
    )


def unit_rows(vectors: np.ndarray) -> np.ndarray:
    """Scale rows to length one; a row of zeros stays as it is.

    >>> unit_rows(np.array([[3.0, 4.0], [0.0, 0.0]]))
    array([[0.6, 0.8],
           [0. , 0. ]])
    """
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(lengths > 0, lengths, 1)


def cosines(left: Any, right: Any) -> np.ndarray:
    """Cosines of all pairs of rows of two matrices of unit vectors, dense or sparse."""
    products = left @ right.T
    return products.toarray() if sp.issparse(products) else np.asarray(products)
