"""Scores of many rows, computed in batches."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from labelweave.nn.batches import Batches
from labelweave.nn.distributed import Engine

__all__ = ["predict_scores", "scoring_rows"]

# Matrix products compute rows in groups of this size, and may round the rows of an incomplete
# group differently. With full groups the scores of a row do not depend on the other rows.
_ROW_GROUP = 32
_MOST_ROWS = 1024
_MOST_ENTRIES = 2**24  # 64 MB of float32


def scoring_rows(n_columns: int) -> int:
    """Rows to score at a time: enough to keep the processor busy, few enough for the memory.

    >>> scoring_rows(300), scoring_rows(100_000)
    (1024, 160)
    """
    rows = min(_MOST_ROWS, _MOST_ENTRIES // max(n_columns, 1))
    return max(rows // _ROW_GROUP * _ROW_GROUP, _ROW_GROUP)


def predict_scores(
    scores: Callable[..., Tensor],
    batches: Batches,
    engine: Engine | None = None,
    *,
    with_labels: bool = False,
) -> np.ndarray:
    """The scores of all rows, in their order, as one float32 array.

    `scores` is a function of the features or, `with_labels`, of features and labels.
    """
    engine = engine or Engine()
    parts = []
    with torch.inference_mode():
        for batch in batches.in_order():
            inputs = (batch.x, batch.y) if with_labels else (batch.x,)
            batch_scores = scores(*(_padded(rows) for rows in inputs))[: len(batch.x)]
            parts.append(engine.gather(batch, batch_scores.float()).cpu())
        return torch.cat(parts).numpy()


def _padded(rows: Tensor) -> Tensor:
    return torch.cat([rows, rows.new_zeros((-len(rows) % _ROW_GROUP, *rows.shape[1:]))])
