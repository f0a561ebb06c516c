"""Labels that occur together: how often, and what a model makes of them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from labelweave.labels import LabelMatrix

__all__ = [
    "CoOccurrence",
    "Mistaken",
    "co_occurrence",
    "mistaken_for",
    "pair_outcomes",
    "top_pairs",
]


class CoOccurrence(NamedTuple):
    """How labels go together; arrays of shape (n_labels, n_labels).

    `together` counts the rows with both labels; `share` is P(column | row), the share of the
    rows of one label, in which the other is known, that have the other too; `lift` is how many
    times more often they meet than if they were independent. nan where a label has no row.
    """

    together: np.ndarray
    share: np.ndarray
    lift: np.ndarray


def co_occurrence(Y: LabelMatrix) -> CoOccurrence:
    """How the labels go together; a pair is looked at in the rows where both are known.

    >>> from labelweave.labels import as_labels
    >>> found = co_occurrence(as_labels([[1, 1], [1, 0], [0, 0], [1, np.nan]]))
    >>> [float(part[0, 1]) for part in found]
    [1.0, 0.5, 1.5]
    """
    positive, known = _floats(Y.positive()), Y.known()
    together = _product(positive, positive)
    if known is None:
        in_known = np.repeat(np.diag(together)[:, None], Y.n_labels, axis=1)
        rows = np.full_like(together, Y.n_rows)
    else:
        known = _floats(known)
        in_known, rows = _product(positive, known), _product(known, known)
    return CoOccurrence(
        together,
        _ratio(together, in_known),
        _ratio(together * rows, in_known * in_known.T),
    )


def top_pairs(together: np.ndarray, n_pairs: int) -> list[tuple[int, int]]:
    """The pairs of different labels that meet most often, the most frequent first.

    >>> top_pairs(np.array([[9, 1, 3], [1, 9, 0], [3, 0, 9]]), 5)
    [(0, 2), (0, 1)]
    """
    first, second = np.triu_indices(len(together), k=1)
    counts = together[first, second]
    order = np.argsort(-counts, kind="stable")[:n_pairs]
    return [(int(first[k]), int(second[k])) for k in order if counts[k] > 0]


class Mistaken(NamedTuple):
    """What a model says in place of a label that it misses.

    `confused[i, j]` rows have the label i, which was not predicted, and not j, which was;
    `missed[i]` rows have i and it was not predicted.
    """

    confused: np.ndarray
    missed: np.ndarray

    @property
    def share(self) -> np.ndarray:
        """Of the rows that miss the label of the line, those that wrongly get the column's."""
        return _ratio(self.confused, np.repeat(self.missed[:, None], len(self.missed), axis=1))


def mistaken_for(Y: LabelMatrix, predicted: np.ndarray) -> Mistaken:
    """Missed labels against labels wrongly predicted in the same rows; unknown is neither.

    >>> from labelweave.labels import as_labels
    >>> Y, predicted = as_labels([[1, 0], [1, 0], [1, 1]]), np.array([[0, 1], [0, 0], [0, 1]])
    >>> found = mistaken_for(Y, predicted)
    >>> found.confused, found.missed
    (array([[0., 1.],
           [0., 0.]]), array([3., 0.]))
    """
    values, chosen = Y.to_numpy(), np.asarray(predicted).astype(bool)
    missed, added = (values == 1) & ~chosen, (values == 0) & chosen
    return Mistaken(_product(_floats(missed), _floats(added)), missed.sum(axis=0).astype(float))


def pair_outcomes(
    Y: LabelMatrix, predicted: np.ndarray, pairs: list[tuple[int, int]]
) -> dict[str, np.ndarray]:
    """What was predicted in the rows that have both labels of a pair, and one of them only.

    Returns
    -------
    dict of arrays with one number a pair
        Of the rows with both: ``together``, ``both``, ``only_first``, ``only_second`` and
        ``neither`` (found). Of the rows that have one and, known, not the other: ``apart``, and
        ``joined``, in which both were predicted.

    Examples
    --------
    >>> from labelweave.labels import as_labels
    >>> Y, P = as_labels([[1, 1], [1, 1], [1, 0]]), np.array([[1, 1], [1, 0], [1, 1]])
    >>> {name: int(n[0]) for name, n in pair_outcomes(Y, P, [(0, 1)]).items() if n[0]}
    {'together': 2, 'both': 1, 'only_first': 1, 'apart': 1, 'joined': 1}
    """
    columns = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    chosen = np.asarray(predicted).astype(bool)
    # Only the labels of the pairs are made dense.
    values = [Y[:, columns[:, k]].to_numpy() for k in (0, 1)]
    guess = [chosen[:, columns[:, k]] for k in (0, 1)]
    together = (values[0] == 1) & (values[1] == 1)
    apart = ((values[0] == 1) & (values[1] == 0)) | ((values[0] == 0) & (values[1] == 1))
    cases = {
        "together": together,
        "both": together & guess[0] & guess[1],
        "only_first": together & guess[0] & ~guess[1],
        "only_second": together & ~guess[0] & guess[1],
        "neither": together & ~guess[0] & ~guess[1],
        "apart": apart,
        "joined": apart & guess[0] & guess[1],
    }
    return {name: rows.sum(axis=0) for name, rows in cases.items()}


def _floats(matrix: Any) -> Any:
    return matrix.astype(np.float64)


def _product(a: Any, b: Any) -> np.ndarray:
    product = a.T @ b
    return product.toarray() if sp.issparse(product) else np.asarray(product)


def _ratio(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    return np.divide(above, below, out=np.full(np.shape(below), np.nan), where=below > 0)
