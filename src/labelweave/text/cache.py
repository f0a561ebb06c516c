"""A cache of embeddings, with a hash of the text as key."""

from __future__ import annotations

import hashlib
import sqlite3
import warnings
from collections.abc import Sequence
from contextlib import closing
from os import PathLike
from pathlib import Path

import numpy as np

from labelweave.exceptions import LabelweaveWarning

_MAX_KEYS = 500  # keys per query, which SQLite limits


def folder_of_cache(cache: bool | str | PathLike[str]) -> Path | None:
    """Return the folder that the parameter `cache` of an embedder stands for; None for no cache."""
    if cache is False:
        return None
    if cache is True:
        from labelweave.files import cache_folder

        return cache_folder() / "embeddings"
    return Path(cache)


class EmbeddingCache:
    """Vectors of texts in one SQLite file, which several processes may use at the same time.

    Use one file per encoder and setting.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     cache = EmbeddingCache(Path(folder) / "vectors.sqlite")
    ...     cache.put(["sea"], np.ones((1, 2), dtype=np.float32))
    ...     cache.get(["sun", "sea"])
    {1: array([1., 1.], dtype=float32)}
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path = Path(path)

    def get(self, texts: Sequence[str]) -> dict[int, np.ndarray]:
        """Return the vectors of the texts in the cache, by position."""
        if not self.path.exists():
            return {}
        keys = [_key(text) for text in texts]
        known: dict[bytes, np.ndarray] = {}
        try:
            with closing(self._open()) as connection:
                for start in range(0, len(keys), _MAX_KEYS):
                    part = keys[start : start + _MAX_KEYS]
                    placeholders = ",".join("?" * len(part))
                    query = f"SELECT key, vector FROM vectors WHERE key IN ({placeholders})"
                    for key, vector in connection.execute(query, part):
                        known[key] = np.frombuffer(vector, dtype="<f4")
        except sqlite3.Error as error:
            self._warn(error)
        return {i: known[key] for i, key in enumerate(keys) if key in known}

    def put(self, texts: Sequence[str], vectors: np.ndarray) -> None:
        """Store the vectors of these texts."""
        rows = [
            (_key(text), np.ascontiguousarray(vector, dtype="<f4").tobytes())
            for text, vector in zip(texts, vectors, strict=True)
        ]
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with closing(self._open()) as connection, connection:
                connection.executemany("INSERT OR IGNORE INTO vectors VALUES (?, ?)", rows)
        except (sqlite3.Error, OSError) as error:
            self._warn(error)

    def _open(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, timeout=30)
        connection.execute(
            "CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, vector BLOB) WITHOUT ROWID"
        )
        return connection

    def _warn(self, error: Exception) -> None:
        warnings.warn(
            f"the cache of embeddings {self.path} cannot be used ({error}), so texts are embedded "
            "again: delete it, or choose another path with cache=",
            LabelweaveWarning,
            stacklevel=4,
        )


def _key(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", errors="surrogatepass")).digest()[:16]
