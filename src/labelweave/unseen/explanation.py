"""Why an unseen label was given to a document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from labelweave.unseen.evidence import Evidence
from labelweave.unseen.fusion import Fusion, members

__all__ = ["Explanation", "Predicted", "explain_document"]


class Explanation(NamedTuple):
    """Why an unseen label was given to a document.

    Attributes
    ----------
    label : str
    probability : float
    fusion : float
        Cosine of the label with the best combination of predicted labels; 0 without any.
    similarity : float or None
        Cosine of the label with the document; None where its text is not used.
    because_of : list of (str, float)
        The seen labels of that combination and their probabilities, the likeliest first.
    """

    label: str
    probability: float
    fusion: float
    similarity: float | None
    because_of: list[tuple[str, float]]


class Predicted(NamedTuple):
    """What the classifier predicted for documents, and the combinations found.

    `likely` are the probabilities of the seen labels, `chosen` the columns that count as
    predicted, `found` the fusion of each document.
    """

    likely: np.ndarray
    chosen: Sequence[np.ndarray]
    found: Sequence[Fusion]


def explain_document(
    i: int,
    k: int,
    probabilities: np.ndarray,
    evidence: Evidence,
    predicted: Predicted,
    names: np.ndarray,
    seen_names: np.ndarray,
) -> list[Explanation]:
    """The k likeliest labels of document i; `names` are those of the columns."""
    likely, chosen, found = predicted.likely[i], predicted.chosen[i], predicted.found[i]
    similarity = evidence.similarity
    return [
        Explanation(
            str(names[j]),
            float(probabilities[i, j]),
            float(found.scores[j]),
            None if similarity is None else float(similarity[i, j]),
            [(str(seen_names[c]), float(likely[c])) for c in chosen[members(found.masks[j])]],
        )
        for j in np.argsort(-probabilities[i], kind="stable")[:k]
    ]
