"""Nearest labels among many by FAISS, as candidates that are then scored exactly."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from labelweave.exceptions import InputError, require

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

    def to_arrays(self) -> dict[str, np.ndarray]:
        """The content of the index, for saving."""
        faiss = require("faiss", "neighbors")
        lists, width = self._index.invlists, self._index.code_size
        sizes = [lists.list_size(k) for k in range(self._index.nlist)]
        ids = [faiss.rev_swig_ptr(lists.get_ids(k), n) for k, n in enumerate(sizes)]
        codes = [faiss.rev_swig_ptr(lists.get_codes(k), n * width) for k, n in enumerate(sizes)]
        return {
            "centres": self._index.quantizer.reconstruct_n(0, self._index.nlist),
            "ranges": faiss.vector_to_array(self._index.sq.trained),
            "sizes": np.array(sizes, dtype=np.int64),
            "ids": np.concatenate(ids),
            "codes": np.concatenate(codes).reshape(-1, width),
        }

    @classmethod
    def from_arrays(
        cls, stored: Mapping[str, np.ndarray], n_rows: int, n_probes: int = 32
    ) -> LabelIndex:
        """The index that was saved. FAISS trusts the files it reads, so it reads none."""
        faiss = require("faiss", "neighbors")
        centres = np.ascontiguousarray(stored["centres"], dtype=np.float32)
        ranges = np.ascontiguousarray(stored["ranges"], dtype=np.float32)
        sizes, ids = (np.asarray(stored[name], dtype=np.int64) for name in ("sizes", "ids"))
        codes = np.ascontiguousarray(stored["codes"], dtype=np.uint8)
        n_lists, d = centres.shape
        fits = (
            n_lists >= 1
            and ranges.shape == (2 * d,)
            and sizes.shape == (n_lists,)
            and bool((sizes >= 0).all())
            and ids.shape == (int(sizes.sum()),)
            and codes.shape == (len(ids), d)
            and bool((ids >= 0).all() and (ids < n_rows).all())
        )
        if not fits:
            raise InputError("the parts of the index of labels do not fit together")
        index: Any = cls.__new__(cls)
        quantizer = faiss.IndexFlatIP(d)
        quantizer.add(centres)
        index._index = faiss.IndexIVFScalarQuantizer(
            quantizer, d, n_lists, faiss.ScalarQuantizer.QT_8bit, faiss.METRIC_INNER_PRODUCT
        )
        faiss.copy_array_to_vector(ranges, index._index.sq.trained)
        ends = np.cumsum(sizes)
        for k, (start, end) in enumerate(zip(ends - sizes, ends, strict=True)):
            if start < end:
                own_ids, own_codes = ids[start:end].copy(), codes[start:end].copy()
                index._index.invlists.add_entries(
                    k, int(end - start), faiss.swig_ptr(own_ids), faiss.swig_ptr(own_codes)
                )
        index._index.is_trained = True
        index._index.ntotal = len(ids)
        index._index.nprobe = min(n_probes, n_lists)
        return index


def _float32(vectors: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(vectors, dtype=np.float32)
