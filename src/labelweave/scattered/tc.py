"""TC: a student of the teachers' mean, weighted where a few labels are known."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor, nn

from labelweave.nn.batches import as_tensor
from labelweave.nn.losses import bce
from labelweave.nn.randomness import forked_rng
from labelweave.nn.scaling import fit_scaling
from labelweave.scattered._amalgamation.integration import integrate
from labelweave.scattered._amalgamation.student import published_student
from labelweave.scattered._amalgamation.student_method import StudentMethod
from labelweave.scattered._amalgamation.training_set import TrainingSet

__all__ = ["TC", "teacher_weights"]

_LR, _WEIGHT_DECAY = 1e-2, 1e-2
_CHUNK = 4096  # rows whose weights are computed at a time


class TC(StudentMethod):
    """Teacher coordinator: the student learns the weighted mean of the teachers' logits [1]_.

    Without labels the weights are equal; this is the form that the ANT paper compares with. With
    labels of a few rows (`y` of `fit`), a small network learns from the features how to weight the
    teachers on each row: a softmax over the teachers that predict a label.

    Parameters
    ----------
    teachers : sequence of Teacher
    student, augment, aliases, match, calibration, verbose, on_disagreement, threshold,
    validation_fraction, random_state
        As in :class:`labelweave.scattered._amalgamation.student_method.StudentMethod`.

    Attributes
    ----------
    notes_ : dict
        With labelled rows, `teacher_weights`: the mean weight of each teacher.

    Notes
    -----
    Adapted: the original is for sequences with one class per row, with a softmax over classes;
    here each label has a sigmoid. For texts, and for a DataFrame without numeric columns, each
    teacher has the same weight on all rows.

    References
    ----------
    .. [1] J. Thadajarassiri, T. Hartvigsen, X. Kong and E. Rundensteiner. Semi-Supervised
       Knowledge Amalgamation for Sequence Classification. AAAI 2021.
    """

    @classmethod
    def published(cls, dataset: str | None = None) -> Self:
        """TC with the student of the ANT paper's tables; `dataset` is a name of the catalog."""
        return cls(student=published_student(dataset))

    def _targets(self, training_set: TrainingSet) -> np.ndarray:
        predictions = training_set.predictions
        logits = predictions.without_abstentions()
        if training_set.known_labels is None:
            return integrate(logits, "mean-logit")
        weights = teacher_weights(
            training_set.X,
            logits,
            training_set.known_labels,
            seed=training_set.seed,
        )
        means = weights.mean(axis=1).tolist()
        self.notes_["teacher_weights"] = dict(zip(predictions.names, means, strict=True))
        return integrate(logits, "reliability", weights[:, :, None])


def teacher_weights(
    X: Any,
    logits: np.ndarray,
    known_labels: np.ndarray,
    *,
    seed: int,
    hidden: int = 16,
    steps: int = 300,
) -> np.ndarray:
    """Learn the weight of each teacher on each row from a few labelled rows.

    `logits` (teachers, rows, labels) are NaN where there is no prediction, `known_labels` (rows,
    labels) where a label is unknown. The network that computes the weights has `hidden` units, or
    is linear if that is 0, and each of its training steps is on all labelled rows. Where the rows
    are not numbers, the weights do not depend on the row. Returns an array (teachers, rows), which
    sums to 1 over the teachers.
    """
    features = _ScaledFeatures(X, known_labels.shape[0])
    labelled = np.flatnonzero(~np.isnan(known_labels).all(axis=1))
    with forked_rng(seed):
        network = _weight_network(features.width, len(logits), hidden)
        predicted = torch.from_numpy(logits[:, labelled]).permute(1, 0, 2)  # rows, teachers, labels
        targets = torch.from_numpy(known_labels[labelled])
        # An entry without a prediction is left out of the loss.
        targets = targets.masked_fill(torch.isnan(predicted).all(dim=1), torch.nan)
        x = features.rows(labelled)
        optimizer = torch.optim.AdamW(network.parameters(), lr=_LR, weight_decay=_WEIGHT_DECAY)
        for _ in range(steps):
            optimizer.zero_grad()
            bce(_weighted_logits(network(x), predicted), targets).mean().backward()
            optimizer.step()
    n_rows = len(known_labels)
    with torch.inference_mode():
        parts = [
            torch.softmax(network(features.rows(rows)), dim=1)
            for rows in np.array_split(np.arange(n_rows), n_rows // _CHUNK + 1)
        ]
        return torch.cat(parts).T.contiguous().numpy()


def _weight_network(n_features: int, n_teachers: int, hidden: int) -> nn.Module:
    last = nn.Linear(hidden or n_features, n_teachers)
    nn.init.zeros_(last.weight)  # equal weights to begin with
    nn.init.zeros_(last.bias)
    if not hidden:
        return last
    return nn.Sequential(nn.Linear(n_features, hidden), nn.Tanh(), last)


def _weighted_logits(scores: Tensor, logits: Tensor) -> Tensor:
    """Mean of the logits, weighted by a softmax over the teachers that predict a label."""
    known = ~torch.isnan(logits)
    masked = scores.unsqueeze(2).expand_as(logits).masked_fill(~known, -torch.inf)
    nobody = ~known.any(dim=1, keepdim=True)
    weights = torch.softmax(masked.masked_fill(nobody, 0.0), dim=1)
    return (weights * torch.nan_to_num(logits)).sum(dim=1)


class _ScaledFeatures:
    """Scaled numeric features of rows; one constant where the rows have none."""

    def __init__(self, X: Any, n_rows: int) -> None:
        if hasattr(X, "iloc"):
            X = X.select_dtypes("number").to_numpy()
        if not hasattr(X, "shape") or X.shape[1] == 0:
            X = np.ones((n_rows, 1), dtype=np.float32)
        self.X = X
        self.width = X.shape[1]
        self.scaling = fit_scaling(X, "auto") if self.width > 1 else None

    def rows(self, rows: np.ndarray) -> Tensor:
        x = self.X[rows]
        values = as_tensor(x.toarray() if sp.issparse(x) else x)
        return values if self.scaling is None else self.scaling.apply(values)
