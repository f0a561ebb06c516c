"""What labelweave adds to co-label selection (:mod:`labelweave.partial.cls`).

- **Softening** (:func:`soft_targets`): an entry of high loss is not ignored but learned with the
  probability that the other network predicts.
- **Entry weights** (:func:`entry_weight`): unannotated entries get a smaller weight than positives.
- **Label evidence** (:class:`LabelEvidence`): the annotated labels of a row help to find those that
  are missing.
- **Estimated rate** (:func:`estimated_rate`): the share of missing positives is estimated instead
  of tuned.

Each has a parameter of :class:`~labelweave.partial.cls.CLS` whose paper's value switches it off.
Additions that are not specific to CLS (held-out tenths, the shift of the logits, the threshold by
expected cardinality, runs of fixed length) are in :mod:`labelweave.partial.base`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
import torch
from scipy.special import expit
from torch import Tensor, nn

from labelweave.labels import LabelMatrix
from labelweave.partial._selection.held_out import HeldOutRows
from labelweave.partial._selection.posterior import annotation_curve, likely_share
from labelweave.probabilities import log_odds
from labelweave.shallow.label_regression import regression_on_labels

__all__ = ["LabelEvidence", "entry_weight", "estimated_rate", "soft_targets"]

_NEGATIVES = 2.5  # weight of all unannotated entries together, relative to that of the positives
_EDGE = 1e-4
_TINY = 1e-6
_MIN_SLOPE = 0.2


def soft_targets(logits: np.ndarray) -> np.ndarray:
    """The probabilities that replace the target 0 of entries of high loss."""
    return expit(logits)


def entry_weight(observed: LabelMatrix) -> float:
    """Weight of an unannotated entry so that all of them weigh 2.5 times the annotated positives.

    It is at most 1. `observed` is coded as in :mod:`labelweave.unannotated`.

    >>> from labelweave.labels import as_labels
    >>> entry_weight(as_labels([[1.0, *[0.0] * 25], [1.0, *[0.0] * 25]]))
    0.1
    """
    codes = observed.to_numpy()
    n_positive, n_unannotated = int((codes == 1).sum()), int((codes == 0).sum())
    if not n_positive or not n_unannotated:
        return 1.0
    return min(_NEGATIVES * n_positive / n_unannotated, 1.0)


class LabelEvidence(nn.Module):
    """Evidence for each entry of the training rows from the other annotated labels of its row.

    A row that is tagged "python" is more likely to miss "programming" than other rows that look
    like it. Each label is regressed on the other annotated labels. The weight of this evidence
    relative to the logits of a network is estimated on rows that the network was not trained on.

    Parameters
    ----------
    positive : boolean csr_array of shape (n_rows, n_labels)
        The annotated positives.
    fitted : boolean ndarray of shape (n_rows,)
        The rows that the regression is fitted to: none of those that :meth:`add_to` is given.

    Attributes
    ----------
    weight : Tensor
        0 before the first call of :meth:`add_to`. It is a buffer, so checkpoints save it.
    """

    weight: Tensor

    def __init__(self, positive: sp.csr_array, fitted: np.ndarray) -> None:
        super().__init__()
        self.register_buffer("weight", torch.zeros((), dtype=torch.float64))
        predicted = regression_on_labels(positive, fitted)
        prevalence = np.asarray(positive[np.flatnonzero(fitted)].mean(axis=0)).ravel()
        self.logits = log_odds(predicted, _EDGE) - log_odds(prevalence, _EDGE, np.float32)

    def weighted(self, rows: np.ndarray) -> np.ndarray:
        """What to add to the logits of a network for these rows."""
        return np.float32(self.weight) * self.logits[rows]

    def add_to(self, scores: np.ndarray, codes: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Estimate the weight on these rows and return their scores combined with the evidence.

        The weight maximises the likelihood of the annotations under a logistic curve over the
        logits of the network and the evidence.
        """
        logits, evidence = log_odds(scores.astype(np.float64), _TINY), self.logits[rows]
        used = (codes == 0) | (codes == 1)
        slopes, _ = annotation_curve(np.stack([logits[used], evidence[used]]), codes[used] == 1)
        self.weight.fill_(float(slopes[1] / max(slopes[0], _MIN_SLOPE)))
        return expit(logits + float(self.weight) * evidence)


def estimated_rate(
    evidence: LabelEvidence | None, held_out: HeldOutRows | None
) -> Callable[[np.ndarray, np.ndarray], float]:
    """A function of (scores, codes) that estimates the share tau_h.

    It is the share of the unannotated entries that are more likely positive than negative
    (:func:`~labelweave.partial._selection.posterior.likely_share`). It needs no clean labels, but
    it assumes that all positives are equally likely to be missed.
    """

    def rate(scores: np.ndarray, codes: np.ndarray) -> float:
        if evidence is not None and held_out is not None:
            scores = evidence.add_to(scores, codes, held_out.rows)
        return likely_share(scores, codes)

    return rate
