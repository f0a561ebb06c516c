"""Scaling of features, fitted to the training rows.

The choice depends on the values, not on how they are stored, so that a sparse matrix and the
same matrix in dense form train the same network. A sparse matrix is never made dense at once: its
batches are scaled one by one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from labelweave.exceptions import InputError
from labelweave.input_checks import is_mostly_zero

__all__ = ["SCALES", "FeatureScaling", "fit_scaling"]

SCALES = ("auto", "standard", "max-abs", "none")


@dataclass(frozen=True)
class FeatureScaling:
    """``(x - shift) * factor`` for each feature."""

    shift: Tensor
    factor: Tensor

    def apply(self, x: Tensor) -> Tensor:
        """Scale the features of these rows."""
        return (x - self.shift) * self.factor

    def on(self, device: torch.device) -> FeatureScaling:
        """The same scaling for tensors on this device."""
        return FeatureScaling(self.shift.to(device), self.factor.to(device))


def fit_scaling(X: Any, how: str) -> FeatureScaling | None:
    """Fit a scaling to training rows; None if the features are not scaled.

    "standard": mean 0, variance 1; "max-abs": divided by the largest absolute value, so that zeros
    stay zero; "auto": "standard" if at least a quarter of the entries is not zero; else "max-abs",
    or "none" if every row has length one, as TF-IDF weights have. (Scaled one by one, a word that
    occurs in one text would count as much as a common word.)

    >>> scaling = fit_scaling(np.array([[0.0, 5.0], [2.0, 5.0]]), "standard")
    >>> scaling.apply(torch.tensor([[2.0, 5.0]]))
    tensor([[1., 0.]])
    """
    if how not in SCALES:
        raise InputError(f"there is no scale {how!r}: choose one of {', '.join(SCALES)}")
    if how == "auto":
        sparse = "none" if _has_rows_of_length_one(X) else "max-abs"
        how = sparse if is_mostly_zero(X) else "standard"
    if how == "none":
        return None
    if how == "max-abs":
        largest = abs(X).max(axis=0)
        largest = largest.toarray().ravel() if sp.issparse(X) else largest
        return _scaling(np.zeros(X.shape[1]), largest)
    mean = np.asarray(X.mean(axis=0, dtype=np.float64)).ravel()
    if sp.issparse(X):
        squares = X.power(2, dtype=np.float64).mean(axis=0)
        variance = np.maximum(np.asarray(squares).ravel() - mean**2, 0)
    else:
        variance = X.var(axis=0, dtype=np.float64)
    return _scaling(mean, np.sqrt(variance))


def _has_rows_of_length_one(X: Any) -> bool:
    """Whether every row has length one, apart from empty rows."""
    if sp.issparse(X):
        squares = np.asarray(X.power(2, dtype=np.float64).sum(axis=1)).ravel()
    else:
        squares = np.einsum("ij,ij->i", X, X, dtype=np.float64)
    filled = squares[squares > 0]
    return bool(len(filled)) and bool(np.allclose(filled, 1.0, atol=1e-3))


def _scaling(shift: np.ndarray, spread: np.ndarray) -> FeatureScaling:
    # A constant feature (up to rounding) is not divided.
    constant = spread <= 1e-7 * np.maximum(np.abs(shift), 1e-30)
    factor = 1 / np.where(constant, 1.0, spread)
    return FeatureScaling(
        torch.from_numpy(shift.astype(np.float32)), torch.from_numpy(factor.astype(np.float32))
    )
