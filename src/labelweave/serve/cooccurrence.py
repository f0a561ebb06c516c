"""Labels that go together in a data set."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelweave.labels import LabelMatrix

__all__ = ["Cooccurrence", "read_cooccurrence"]


class Cooccurrence:
    """How many rows have each pair of labels.

    Parameters
    ----------
    Y : LabelMatrix

    Examples
    --------
    >>> from labelweave.labels import as_labels
    >>> counted = Cooccurrence(as_labels([["sea", "sun"], ["sea"], ["sea", "sun", "sky"]]))
    >>> counted.pairs(["sea", "sun"], 5)
    [{'first': 'sea', 'second': 'sun', 'rows': 2, 'share': 0.6667}]
    """

    def __init__(self, Y: LabelMatrix) -> None:
        positive = sp.csr_array(Y.values == 1, dtype=np.int64)
        self.names = [str(name) for name in Y.names]
        self._rows = sp.csr_array(positive.T @ positive)

    def pairs(self, names: Sequence[str], limit: int) -> list[dict[str, Any]]:
        """The pairs of these labels that share most of their rows."""
        position = {name: j for j, name in enumerate(self.names)}
        known = [position[name] for name in names if name in position]
        rows = self._rows[known][:, known]
        alone = rows.diagonal()
        above = sp.coo_array(sp.triu(rows, k=1))
        either = alone[above.row] + alone[above.col] - above.data
        share = above.data / either
        best = np.lexsort((-above.data, -share))[:limit]
        return [
            {
                "first": self.names[known[above.row[i]]],
                "second": self.names[known[above.col[i]]],
                "rows": int(above.data[i]),
                "share": round(float(share[i]), 4),
            }
            for i in best
        ]


def read_cooccurrence(data: str) -> Cooccurrence:
    """Count in a data set, by its name or path."""
    from labelweave.data.catalog import load_dataset

    return Cooccurrence(load_dataset(data).Y)
