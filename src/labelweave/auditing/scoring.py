"""Out-of-fold scores for the audit: by a method of the library, or brought by the user."""

from __future__ import annotations

import zipfile
from os import PathLike
from typing import Any

import numpy as np
from sklearn.base import clone

from labelweave.data import Dataset
from labelweave.exceptions import DataFileError, InputError
from labelweave.labels import LabelMatrix
from labelweave.unannotated import assume_negative

__all__ = ["checked_scores", "out_of_fold_scores", "read_scores"]


def out_of_fold_scores(
    model: Any,
    data: Dataset,
    observed: LabelMatrix,
    rule: str,
    *,
    n_folds: int = 5,
    random_state: Any = 0,
    verbose: int = 0,
) -> np.ndarray:
    """Probabilities of every entry by models that did not see its row.

    Parameters
    ----------
    model : estimator
        Cloned for each fold. One that is made for partial labels is told the rule; all others
        take unannotated entries for negatives.
    data : Dataset
        `Y` is what `observed` was coded from.
    observed : LabelMatrix
        Coded labels, see :mod:`labelweave.unannotated`.
    rule : {"zeros", "unknown"}
    n_folds : int, default=5
    random_state : None, int, RandomState or Generator
    verbose : int, default=0

    Returns
    -------
    ndarray of shape (n_rows, n_labels)
    """
    from labelweave.model_selection import MultiLabelKFold, cross_val_predict_proba

    if not 2 <= n_folds <= len(data):
        raise InputError(f"folds must be from 2 to the {len(data)} rows, not {n_folds}")
    plain = assume_negative(observed)
    labels = plain
    own = [name for name in model.get_params() if name.split("__")[-1] == "unannotated"]
    if own:
        model = clone(model).set_params(**dict.fromkeys(own, rule))
        labels = plain if rule == "zeros" else _decoded(observed)
    folds = MultiLabelKFold(n_folds, random_state=random_state)
    splits = list(folds.split(data.X, plain, data.groups))
    return cross_val_predict_proba(
        model, data.X, labels, cv=splits, groups=data.groups, verbose=verbose
    )


def _decoded(observed: LabelMatrix) -> LabelMatrix:
    """Labels of the rule "unknown": unannotated NaN, known negatives 0."""
    codes = observed.to_numpy()
    values = np.where(codes == 0, np.nan, np.where(codes == -1, 0.0, codes)).astype(np.float32)
    return LabelMatrix(values, observed.names, observed.descriptions)


def read_scores(path: str | PathLike[str]) -> np.ndarray:
    """Out-of-fold scores of a file: the array `scores` (or the only one) of an .npz, or an .npy."""
    try:
        stored = np.load(path, allow_pickle=False)
    except FileNotFoundError:
        raise DataFileError("there is no such file", path=path) from None
    except (ValueError, OSError, EOFError, zipfile.BadZipFile):
        raise DataFileError("this is no .npz or .npy file of numbers", path=path) from None
    if isinstance(stored, np.ndarray):
        return stored
    names = list(stored.files)
    wanted = "scores" if "scores" in names else names[0] if len(names) == 1 else None
    if wanted is None:
        raise DataFileError(
            f"no array is called scores; there are {', '.join(names) or 'none'}", path=path
        )
    try:
        return stored[wanted]
    except (ValueError, OSError, zipfile.BadZipFile):
        raise DataFileError(f"the array {wanted} cannot be read", path=path) from None


def checked_scores(scores: Any, observed: LabelMatrix) -> np.ndarray:
    """Scores as a float array, refused if they are not a probability for each entry."""
    try:
        found = np.asarray(scores, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("scores must be an array of numbers, a row a sample") from None
    if found.shape != observed.shape:
        raise InputError(
            f"scores have shape {found.shape}, but the labels have {observed.shape}: one "
            "probability for each row and label is needed, in their order"
        )
    wrong = ~((found >= 0) & (found <= 1))
    if wrong.any():
        row, column = (int(i) for i in np.argwhere(wrong)[0])
        raise InputError(
            f"scores hold {found[row, column]:g} at row {row}, label {observed.names[column]!r}: "
            "they must be probabilities from 0 to 1"
        )
    return found
