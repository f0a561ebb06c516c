"""How labels relate: similar meanings, a map of them, and pairs that occur together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import scipy.sparse as sp
from sklearn.metrics.pairwise import cosine_similarity

from labelweave.labels import LabelMatrix

__all__ = ["Cooccurrence", "LabelVectors", "nearest_labels", "read_cooccurrence", "similarity_map"]

MAX_POINTS = 500  # a map of more labels cannot be read
_N_NEAREST = 5


@runtime_checkable
class LabelVectors(Protocol):
    """A model with one vector per label in its `table_`, as zero-shot methods have."""

    table_: Any
    label_names_: Any


def _names_and_vectors(model: LabelVectors) -> tuple[list[str], Any]:
    """Return the names of the labels, and one row per label."""
    vectors = model.table_.vectors(model.table_.rows)
    return [str(name) for name in model.label_names_], vectors


def nearest_labels(model: LabelVectors, name: str, k: int) -> list[tuple[str, float]]:
    """Return the k labels most similar to a label, with their cosine similarities."""
    names, vectors = _names_and_vectors(model)
    position = names.index(name)
    cosines = cosine_similarity(vectors[[position]], vectors, dense_output=True)[0]
    cosines[position] = -np.inf
    best = np.argsort(-cosines, kind="stable")[: min(k, len(names) - 1)]
    return [(names[j], round(float(cosines[j]), 6)) for j in best]


def similarity_map(model: LabelVectors) -> list[dict[str, Any]]:
    """Return points for the first labels, on the two principal axes of their similarities."""
    names, vectors = _names_and_vectors(model)
    names = names[:MAX_POINTS]
    cosines = cosine_similarity(vectors[: len(names)])
    centred = cosines - cosines.mean(axis=0)
    centred -= centred.mean(axis=1, keepdims=True)
    values, axes = np.linalg.eigh((centred + centred.T) / 2)
    points = axes[:, ::-1][:, :2] * np.sqrt(np.maximum(values[::-1][:2], 0))
    if points.shape[1] < 2:
        points = np.column_stack([points, np.zeros(len(names))])
    points /= np.abs(points).max() or 1.0
    np.fill_diagonal(cosines, -np.inf)
    near = np.argsort(-cosines, axis=1, kind="stable")[:, : min(_N_NEAREST, len(names) - 1)]
    return [
        {
            "label": name,
            "x": round(float(points[i, 0]), 4),
            "y": round(float(points[i, 1]), 4),
            "nearest": [
                {"label": names[j], "score": round(float(cosines[i, j]), 6)} for j in near[i]
            ],
        }
        for i, name in enumerate(names)
    ]


class Cooccurrence:
    """The number of rows that have both labels of a pair.

    >>> from labelweave.labels import as_labels
    >>> cooccurrence = Cooccurrence(as_labels([["sea", "sun"], ["sea"], ["sea", "sun", "sky"]]))
    >>> cooccurrence.pairs(["sea", "sun"], 5)
    [{'first': 'sea', 'second': 'sun', 'rows': 2, 'share': 0.6667}]
    """

    def __init__(self, Y: LabelMatrix) -> None:
        positive = sp.csr_array(Y.values == 1, dtype=np.int64)
        self.names = [str(name) for name in Y.names]
        self._rows = sp.csr_array(positive.T @ positive)

    def pairs(self, names: Sequence[str], limit: int) -> list[dict[str, Any]]:
        """Return the pairs of these labels with the largest share of rows in common."""
        position = {name: j for j, name in enumerate(self.names)}
        columns = [position[name] for name in names if name in position]
        rows = self._rows[columns][:, columns]
        totals = rows.diagonal()
        above = sp.coo_array(sp.triu(rows, k=1))
        either = totals[above.row] + totals[above.col] - above.data
        share = above.data / either
        best = np.lexsort((-above.data, -share))[:limit]
        return [
            {
                "first": self.names[columns[above.row[i]]],
                "second": self.names[columns[above.col[i]]],
                "rows": int(above.data[i]),
                "share": round(float(share[i]), 4),
            }
            for i in best
        ]


def read_cooccurrence(
    data: str, reading: Mapping[str, Any], folders: Iterable[Path]
) -> Cooccurrence:
    """Count the pairs of labels in a data set, given by its name or path.

    A file of the same kind as the training data of the first model is read with their options,
    beside those given.
    """
    from labelweave.pipeline.data_parts import Source
    from labelweave.pipeline.model_folder import read_origin

    origin = read_origin(next(iter(folders)))
    return Cooccurrence(Source(data, origin.reading_of(data, reading)).load().Y)
