"""Labels by the vectors of their texts: which are near, and a map of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from labelweave.serve.loaded import LoadedModel
from labelweave.serve.problems import ProblemError

__all__ = ["has_label_vectors", "nearest_labels", "similarity_map"]

MOST_POINTS = 500  # a map of more is no picture
_NEAREST = 5


def has_label_vectors(model: Any) -> bool:
    """Whether a model holds one vector a label, as zero-shot methods do."""
    return hasattr(getattr(model, "table_", None), "vectors")


def _unit_vectors(loaded: LoadedModel) -> np.ndarray | sp.csr_array:
    """One row of length one a label, in the model's order."""
    if not has_label_vectors(loaded.model):
        raise ProblemError(409, "This model has no vectors of its labels.")
    table = loaded.model.table_
    vectors = table.vectors(table.rows)
    if sp.issparse(vectors):
        lengths = np.sqrt(vectors.multiply(vectors).sum(axis=1)).ravel()
        return sp.csr_array(sp.diags_array(1 / np.maximum(lengths, 1e-12)) @ vectors)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.maximum(lengths, 1e-12)


def _cosines(left: Any, right: Any) -> np.ndarray:
    found = left @ right.T
    return found.toarray() if sp.issparse(found) else found


def nearest_labels(loaded: LoadedModel, name: str, k: int) -> list[tuple[str, float]]:
    """The k labels nearest to one, with their cosines."""
    names = loaded.label_names
    if name not in names:
        raise ProblemError(404, "The model has no label of this name.")
    place = names.index(name)
    vectors = _unit_vectors(loaded)
    cosines = _cosines(vectors[[place]], vectors)[0]
    cosines[place] = -np.inf
    best = np.argsort(-cosines, kind="stable")[: min(k, len(names) - 1)]
    return [(names[j], round(float(cosines[j]), 6)) for j in best]


def similarity_map(loaded: LoadedModel) -> list[dict[str, Any]]:
    """The first labels as points, by the two principal axes of their similarities."""
    names = loaded.label_names[:MOST_POINTS]
    vectors = _unit_vectors(loaded)[: len(names)]
    cosines = _cosines(vectors, vectors)
    centred = cosines - cosines.mean(axis=0)
    centred -= centred.mean(axis=1, keepdims=True)
    values, axes = np.linalg.eigh((centred + centred.T) / 2)
    points = axes[:, ::-1][:, :2] * np.sqrt(np.maximum(values[::-1][:2], 0))
    if points.shape[1] < 2:
        points = np.column_stack([points, np.zeros(len(names))])
    points /= np.abs(points).max() or 1.0
    np.fill_diagonal(cosines, -np.inf)
    near = np.argsort(-cosines, axis=1, kind="stable")[:, : min(_NEAREST, len(names) - 1)]
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
