"""The metrics that every cell is scored by, whatever its suite shows.

So tables that differ only in their metrics share their fits. A metric that a suite asks for
beyond these is part of the name of its cells.
"""

from __future__ import annotations

__all__ = ["PANEL"]

PANEL = (
    "zero_one_loss",
    "hamming_loss",
    "hamming_accuracy",
    "f1_example",
    "f1_micro",
    "f1_macro",
    "cf1",
    "of1",
    "map",
    "ranking_loss",
    "lrap",
    "precision@1",
    "precision@3",
    "precision@5",
    "ndcg@3",
    "ndcg@5",
)
