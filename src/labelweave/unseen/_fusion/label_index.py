"""Nearest labels among many by FAISS, as candidates that are then scored exactly."""

from __future__ import annotations

from typing import Any

import numpy as np

from labelweave.exceptions import require

_PER_LIST = 64  # training vectors per list
_TRAINING_SEED = 1234


class LabelIndex:
    """An inverted-file index of unit vectors, quantised to eight bits per number.

    It has `n_lists` regions, by default four times the square root of the number of vectors, and a
    search visits `n_probes` of them. The ids of the vectors do not change.

    >>> index = LabelIndex(np.eye(4, dtype=np.float32), np.arange(10, 14), n_lists=1)
    >>> index.search(np.eye(4, dtype=np.float32)[:1], 1)
    array([[10]])
    """

    def __init__(
        self,
        vectors: np.ndarray,
        ids: np.ndarray,
        *,
        n_lists: int | None = None,
        n_probes: int = 32,
    ) -> None:
        faiss = require("faiss", "neighbors")
        n, d = vectors.shape
        lists = max(1, min(n // 40, round(4 * n**0.5))) if n_lists is None else n_lists
        centres = faiss.IndexFlatIP(d)
        self._index = faiss.IndexIVFScalarQuantizer(
            centres, d, lists, faiss.ScalarQuantizer.QT_8bit, faiss.METRIC_INNER_PRODUCT
        )
        self._index.cp.seed = _TRAINING_SEED
        self._index.cp.niter = 5  # regions need not be perfect: candidates are scored exactly
        random = np.random.default_rng(_TRAINING_SEED)
        sample = random.permutation(n)[: max(_PER_LIST * lists, 1)]
        self._index.train(_float32(vectors[np.sort(sample)]))
        self._index.nprobe = min(n_probes, lists)
        self.add(vectors, ids)

    def __len__(self) -> int:
        return int(self._index.ntotal)

    def add(self, vectors: np.ndarray, ids: np.ndarray) -> None:
        self._index.add_with_ids(_float32(vectors), np.ascontiguousarray(ids, dtype=np.int64))

    def remove(self, ids: np.ndarray) -> None:
        self._index.remove_ids(np.ascontiguousarray(ids, dtype=np.int64))

    def search(self, queries: np.ndarray, k: int) -> np.ndarray:
        """Ids of the nearest vectors of each query, filled up with -1."""
        return self._index.search(_float32(queries), k)[1]

    def to_array(self) -> np.ndarray:
        """The index as bytes, for saving."""
        return require("faiss", "neighbors").serialize_index(self._index)

    @classmethod
    def from_array(cls, stored: np.ndarray, n_probes: int = 32) -> LabelIndex:
        index: Any = cls.__new__(cls)
        index._index = require("faiss", "neighbors").deserialize_index(stored)
        index._index.nprobe = min(n_probes, index._index.nlist)
        return index


def _float32(vectors: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(vectors, dtype=np.float32)
