"""Labels that are kinds of other labels: whoever has the narrower label has the broader one too.

In three-state labels a hierarchy fills in what annotators left out: a known narrower label makes
its broader labels known positives, and a broader label known to be absent makes its narrower ones
known negatives.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelweave.data.compressed_files import FilePath
from labelweave.exceptions import InputError
from labelweave.labels import LabelMatrix, as_labels

__all__ = ["LabelHierarchy"]


class LabelHierarchy:
    """Which labels are broader than which.

    Parameters
    ----------
    broader : mapping of str to sequence of str
        For a label, the labels directly above it. A label may have several; labels that are not
        in the mapping have none.

    Examples
    --------
    >>> import numpy as np
    >>> import labelweave as lw
    >>> hierarchy = LabelHierarchy({"cat": ["animal"], "dog": ["animal"]})
    >>> Y = lw.as_labels([[1, np.nan, np.nan], [np.nan, np.nan, 0]], names=["cat", "dog", "animal"])
    >>> hierarchy.complete(Y).to_numpy()
    array([[ 1., nan,  1.],
           [ 0.,  0.,  0.]], dtype=float32)
    >>> hierarchy.consistent(np.array([[0.9, 0.1, 0.4]]), ["cat", "dog", "animal"])
    array([[0.9, 0.1, 0.9]])
    """

    def __init__(self, broader: Mapping[str, Iterable[str]]) -> None:
        self.broader = {
            name: (above,) if isinstance(above, str) else tuple(dict.fromkeys(above))
            for name, above in broader.items()
        }
        self._above = _closure(self.broader)

    @classmethod
    def read(cls, path: FilePath) -> LabelHierarchy:
        """Read the hierarchy of a file of labels that has a column `broader`.

        The file is one of :func:`labelweave.data.label_files.read_label_file`; several broader
        labels are separated by ``|``, or are a list in a JSON file.
        """
        from labelweave.data.label_files import read_broader

        return cls(read_broader(path))

    def ancestors(self, names: Sequence[str]) -> sp.csr_array:
        """Return which of these labels are above which, directly or not.

        Returns
        -------
        csr_array of bool of shape (n_labels, n_labels)
            True at (i, j) where label j is broader than label i.
        """
        position = {name: j for j, name in enumerate(names)}
        pairs = [
            (i, position[above])
            for i, name in enumerate(names)
            for above in self._above.get(name, ())
            if above in position
        ]
        rows, columns = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
        shape = (len(names), len(names))
        return sp.csr_array((np.ones(len(pairs), dtype=bool), (rows, columns)), shape=shape)

    def complete(self, Y: Any) -> LabelMatrix:
        """Return the labels with everything that follows from the hierarchy.

        Broader labels of a positive label are positive. Where any entry is unknown, a 0 is a
        checked negative: the narrower labels of a 0 are 0 too, and a 1 below a 0 is refused. Where
        none is unknown, a 0 may be an entry that nobody annotated, and becomes 1 above a 1.
        """
        labels = as_labels(Y)
        above = self.ancestors(labels.names)
        positive = _reached(labels.positive(), above)
        if not labels.has_unknown:
            return labels._with(_with_state(labels.values, positive, 1.0))
        negative = self._negative(labels, above)
        _check_agreement(labels, positive, negative, above)
        return labels._with(_with_state(_with_state(labels.values, negative, 0.0), positive, 1.0))

    def _negative(self, labels: LabelMatrix, above: sp.csr_array) -> Any:
        """Return the entries that are 0, or below a 0 and not known to be 0 yet."""
        if not labels.is_sparse or labels.unstored_is_unknown:
            return _reached(labels.negative(), above.T)
        # Entries that are not stored are 0: an unknown entry has a 0 above unless everything above
        # is stored as 1 or unknown. The same test shows a 1 below a 0.
        stored = labels.values.copy()
        stored.data = np.ones_like(stored.data, dtype=np.float32)
        stored_zeros = labels.values.copy()
        stored_zeros.data = (stored_zeros.data == 0).astype(np.float32)
        reached = (stored - stored_zeros) @ above.T.astype(np.float32)
        n_above = np.asarray(above.sum(axis=1)).ravel()
        rows = np.repeat(np.arange(labels.n_rows), np.diff(labels.values.indptr))
        columns = labels.values.indices
        short = np.asarray(reached[rows, columns]).ravel() < n_above[columns]
        return sp.csr_array(
            (np.ones(short.sum(), dtype=bool), (rows[short], columns[short])), shape=labels.shape
        )

    def consistent(self, probabilities: Any, names: Sequence[str]) -> Any:
        """Return probabilities in which no label is less probable than a narrower one.

        A label gets the highest probability of itself and the labels below it.

        Parameters
        ----------
        probabilities : array or csr_array of shape (n_rows, n_labels)
            A sparse matrix holds the most probable labels of each row; broader labels are added.
        names : sequence of str
            The names of the labels, in the order of the columns.
        """
        above = self.ancestors(names)
        if sp.issparse(probabilities):
            return _raised(sp.csr_array(probabilities), above)
        raised = np.array(probabilities, copy=True)
        below = above.T.tocsr()
        for j in np.flatnonzero(np.diff(below.indptr)):
            narrower = below.indices[below.indptr[j] : below.indptr[j + 1]]
            raised[:, j] = np.maximum(raised[:, j], probabilities[:, narrower].max(axis=1))
        return raised

    def scores(self, Y_true: Any, Y_pred: Any) -> dict[str, float]:
        """Return hierarchical precision, recall and F1 of predicted label sets.

        Both sides are completed by their broader labels before true and predicted labels are
        counted, so that a prediction nearby counts in part (Kiritchenko, Matwin and Famili, 2005).
        Entries that stay unknown are ignored.
        """
        from labelweave.metrics import f1_micro, precision_micro, recall_micro

        truth, predicted = self.complete(Y_true), self.complete(Y_pred)
        return {
            "hierarchical_precision": precision_micro(truth, predicted),
            "hierarchical_recall": recall_micro(truth, predicted),
            "hierarchical_f1": f1_micro(truth, predicted),
        }

    def __repr__(self) -> str:
        n_links = sum(map(len, self.broader.values()))
        return f"<LabelHierarchy: {len(self.broader)} labels with {n_links} broader ones>"


def _closure(broader: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, ...]]:
    """Return all labels above each label; refuse a label that is above itself."""
    above: dict[str, tuple[str, ...]] = {}
    for start in broader:
        path = [(start, iter(broader[start]))]
        on_path = {start}
        while path:
            name, rest = path[-1]
            following = next((one for one in rest if one not in above), None)
            if following is None:
                direct = broader.get(name, ())
                higher = (one for parent in direct for one in above.get(parent, ()))
                above[name] = tuple(dict.fromkeys((*direct, *higher)))
                on_path.discard(name)
                path.pop()
            elif following in on_path:
                names = [name for name, _ in path]
                circle = [*names[names.index(following) :], following]
                raise InputError(
                    f"the labels are broader than each other in a circle: {' < '.join(circle)}; "
                    "take one of these links out"
                )
            else:
                path.append((following, iter(broader.get(following, ()))))
                on_path.add(following)
    return above


def _reached(marked: Any, links: sp.csr_array) -> Any:
    """Return the marked entries and those that the links lead to."""
    numbers = links.astype(np.float32)
    if sp.issparse(marked):
        return (marked.astype(np.float32) + marked.astype(np.float32) @ numbers) > 0
    return marked | ((numbers.T @ marked.T.astype(np.float32)).T > 0)


def _with_state(values: Any, marked: Any, state: float) -> Any:
    """Return the label values with a state at the marked entries."""
    if not sp.issparse(values):
        return np.where(marked, np.float32(state), values)
    marked = sp.coo_array(marked)
    stored = values.tocoo()
    rows = np.concatenate([stored.row, marked.row])
    columns = np.concatenate([stored.col, marked.col])
    data = np.concatenate([stored.data, np.full(marked.nnz, state, dtype=values.dtype)])
    key = rows.astype(np.int64) * values.shape[1] + columns
    order = np.argsort(key, kind="stable")
    last = np.append(key[order][1:] != key[order][:-1], True)  # of equal entries, the marked one
    chosen = order[last]
    return sp.csr_array((data[chosen], (rows[chosen], columns[chosen])), shape=values.shape)


def _raised(probabilities: sp.csr_array, above: sp.csr_array) -> sp.csr_array:
    """Return sparse probabilities of which each counts for the broader labels too."""
    links = (above + sp.eye_array(above.shape[0], dtype=bool, format="csr")).tocsr()
    stored = probabilities.tocoo()
    counts = np.diff(links.indptr)[stored.col]
    rows, data = np.repeat(stored.row, counts), np.repeat(stored.data, counts)
    starts = np.repeat(links.indptr[stored.col], counts)
    within = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    columns = links.indices[starts + within]
    order = np.lexsort((data, columns, rows))
    rows, columns, data = rows[order], columns[order], data[order]
    last = np.append((rows[1:] != rows[:-1]) | (columns[1:] != columns[:-1]), True)
    return sp.csr_array((data[last], (rows[last], columns[last])), shape=probabilities.shape)


def _check_agreement(
    labels: LabelMatrix, positive: Any, negative: Any, above: sp.csr_array
) -> None:
    """Refuse a row in which a label is positive and one above it is negative."""
    both = positive.multiply(negative) if sp.issparse(positive) else positive & negative
    n_both = int(both.sum())
    if n_both == 0:
        return
    entries = sp.coo_array(both)
    row = int(entries.row.min())
    states = labels[row].to_numpy()[0]
    for child, parent in zip(*above.nonzero(), strict=True):
        if states[child] == 1 and states[parent] == 0:
            raise InputError(
                f"row {row} has the label {labels.names[child]!r} but not the broader label "
                f"{labels.names[parent]!r}, which is 0 there: correct one of them, or leave the "
                f"broader one blank ({len(np.unique(entries.row)):,} such rows)"
            )
    raise AssertionError("a contradiction has a positive label below a negative one")
