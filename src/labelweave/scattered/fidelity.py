"""How well a student follows its teachers."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit

from labelweave.scattered.opinions import Opinions

__all__ = ["fidelity_to"]


def fidelity_to(opinions: Opinions, scores: np.ndarray) -> Any:
    """One line a teacher, on the labels that it knows.

    Parameters
    ----------
    opinions : Opinions
    scores : array of shape (rows, labels)
        The student's probabilities, in the order of the vocabulary.

    Returns
    -------
    DataFrame
        `teacher`, `labels`, `rows`, `agreement` (share of the entries that both put on the same
        side of one half), `f1` (micro F1, the teacher taken for the truth; NaN where neither
        finds anything) and `difference` (mean absolute difference of the probabilities).
    """
    import pandas as pd

    lines = []
    teachers = zip(opinions.names, opinions.vocabulary.columns, opinions.logits, strict=True)
    for name, columns, logits in teachers:
        theirs, ours = logits[:, columns] > 0, scores[:, columns] > 0.5
        found = int(theirs.sum() + ours.sum())
        lines.append(
            {
                "teacher": name,
                "labels": len(columns),
                "rows": len(logits),
                "agreement": float((theirs == ours).mean()),
                "f1": 2 * int((theirs & ours).sum()) / found if found else np.nan,
                "difference": float(np.abs(expit(logits[:, columns]) - scores[:, columns]).mean()),
            }
        )
    return pd.DataFrame(lines).sort_values("teacher", kind="stable", ignore_index=True)
