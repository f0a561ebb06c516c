"""Texts from which a word is left out; the words take the place of columns."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

__all__ = ["WordRows"]

_WORD = re.compile(r"(?u)\b\w\w+\b")  # as in TF-IDF weights


class WordRows:
    """Texts whose columns are their words, in the order in which they first occur.

    A word is a run of two or more letters or digits in any case. A word is replaced by nothing,
    wherever it occurs in the text; the source row is not used.

    >>> texts = WordRows(["The sea, the sun", "Sun"])
    >>> texts.names, texts.values(0)
    (['the', 'sea', 'sun'], [2, 1, 1])
    >>> texts.replaced(np.array([0]), np.array([0]), np.array([0]))
    [' sea,  sun']
    """

    is_dense = False

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = [str(text) for text in texts]
        position: dict[str, int] = {}
        rows, columns = [], []
        for i, text in enumerate(self.texts):
            for match in _WORD.finditer(text):
                rows.append(i)
                columns.append(position.setdefault(match[0].lower(), len(position)))
        self.names: list[str] = list(position)
        self.n_columns = len(self.names)
        counts = sp.coo_array(
            (np.ones(len(rows), dtype=np.int64), (rows, columns)),
            shape=(len(self.texts), self.n_columns),
        )
        self._counts = sp.csr_array(counts)

    def variation(self) -> np.ndarray:
        """The variance of whether a text has the word."""
        share = np.bincount(self._counts.indices, minlength=self.n_columns) / len(self.texts)
        return share * (1 - share)

    def replaced(self, rows: np.ndarray, columns: np.ndarray, sources: np.ndarray) -> list[str]:
        """Return the text of each row without its word."""
        return [
            _without(self.texts[i], self.names[j])
            for i, j in zip(rows.tolist(), columns.tolist(), strict=True)
        ]

    def differs(self, rows: np.ndarray, columns: np.ndarray, sources: np.ndarray) -> np.ndarray:
        """Whether each row has its word."""
        return np.asarray(self._counts[rows, columns]).ravel() > 0

    def values(self, row: int) -> list[Any]:
        """Return how often a text has each word."""
        return self._counts[[row]].toarray()[0].tolist()


def _without(text: str, word: str) -> str:
    return _WORD.sub(lambda match: "" if match[0].lower() == word else match[0], text)
