"""What the annotated labels of a row say about its other labels, beside what a network says.

A row that is tagged "python" is likelier to miss "programming" than others that look like it. Each
label is regressed on the annotated others; how much that counts beside a network's scores is seen
in rows that the network did not learn.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
import torch
from scipy.special import expit
from torch import Tensor, nn

from labelweave.partial._selection.posterior import annotation_curve
from labelweave.probabilities import log_odds
from labelweave.shallow.label_regression import regression_on_labels

__all__ = ["LabelEvidence"]

_EDGE, _TINY = 1e-4, 1e-6
_FLATTEST = 0.2  # slope of a curve over scores that another slope may be divided by


class LabelEvidence(nn.Module):
    """Log odds of all entries of the training rows, given the other annotated labels of the row.

    Parameters
    ----------
    positive : boolean csr_array of shape (n_rows, n_labels)
        The annotated positives.
    fitted : boolean ndarray of shape (n_rows,)
        The rows that the regression of labels on labels is fitted to: none of those that
        :meth:`weigh` is given.

    Attributes
    ----------
    weight : Tensor
        What the log odds count beside those of a network; 0 before :meth:`weigh`.
    """

    weight: Tensor

    def __init__(self, positive: sp.csr_array, fitted: np.ndarray) -> None:
        super().__init__()
        self.register_buffer("weight", torch.zeros((), dtype=torch.float64))
        found = regression_on_labels(positive, fitted)
        frequency = np.asarray(positive[np.flatnonzero(fitted)].mean(axis=0)).ravel()
        usual = log_odds(frequency, _EDGE, np.float32)
        self.log_odds = log_odds(found, _EDGE) - usual

    def of(self, rows: np.ndarray) -> np.ndarray:
        """What to add to the log odds of a network for these rows."""
        return np.float32(self.weight) * self.log_odds[rows]

    def weigh(self, scores: np.ndarray, codes: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Find the weight by rows that a network did not learn; their scores with the evidence.

        The weight is the one at which annotations are likeliest, by a logistic curve over both.
        `codes` as in :mod:`labelweave.unannotated`.
        """
        own, others = log_odds(scores.astype(np.float64), _TINY), self.log_odds[rows]
        taking_part = (codes == 0) | (codes == 1)
        features = np.stack([own[taking_part], others[taking_part]])
        slopes, _ = annotation_curve(features, codes[taking_part] == 1)
        self.weight.fill_(float(slopes[1] / max(slopes[0], _FLATTEST)))
        return expit(own + float(self.weight) * others)
