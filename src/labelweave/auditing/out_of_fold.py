"""Out-of-fold scores for the audit: computed by a method, or supplied by the user."""

from __future__ import annotations

import zipfile
from os import PathLike
from typing import Any

import numpy as np
from sklearn.base import clone

from labelweave.auditing.prepared_labels import PreparedLabels
from labelweave.exceptions import DataFileError, InputError
from labelweave.labels import LabelMatrix, first_marked
from labelweave.unannotated import assume_negative, blank_unannotated

__all__ = ["check_scores", "out_of_fold_scores", "read_scores"]


def out_of_fold_scores(
    model: Any,
    prepared: PreparedLabels,
    *,
    n_folds: int = 5,
    random_state: Any = 0,
    verbose: int = 0,
) -> np.ndarray:
    """Compute the probability of every entry with models that did not see its row.

    `model` is cloned for each fold. A method for partial labels has a parameter `unannotated`,
    which is set to the rule of the audit; for all others unannotated entries are negatives.
    """
    from labelweave.model_selection import MultiLabelKFold, cross_val_predict_proba

    data, observed = prepared.data, prepared.observed
    if not 2 <= n_folds <= len(data):
        raise InputError(f"folds must be from 2 to the {len(data)} rows, not {n_folds}")
    labels = assume_negative(observed)
    folds = MultiLabelKFold(n_folds, random_state=random_state)
    splits = list(folds.split(data.X, labels, data.groups))
    names = [name for name in model.get_params() if name.split("__")[-1] == "unannotated"]
    if names:
        rule = prepared.rule
        if not labels.has_unknown:  # then known negatives can be told from unannotated entries
            rule, positive = "unknown", observed.positive()
            in_all_folds = [np.asarray(positive[rows].sum(axis=0)) > 0 for rows, _ in splits]
            labels = blank_unannotated(observed, np.all(in_all_folds, axis=0))
        model = clone(model).set_params(**dict.fromkeys(names, rule))
    return cross_val_predict_proba(
        model, data.X, labels, cv=splits, groups=data.groups, verbose=verbose
    )


def read_scores(path: str | PathLike[str]) -> np.ndarray:
    """Read scores from an .npy file, or the array `scores` (or the only array) of an .npz file."""
    try:
        stored = np.load(path, allow_pickle=False)
    except FileNotFoundError:
        raise DataFileError("there is no such file", path=path) from None
    except (ValueError, OSError, EOFError, zipfile.BadZipFile):
        raise DataFileError("this is not an .npz or .npy file of numbers", path=path) from None
    if isinstance(stored, np.ndarray):
        return stored
    names = list(stored.files)
    name = "scores" if "scores" in names else names[0] if len(names) == 1 else None
    if name is None:
        raise DataFileError(
            f"no array is called scores; the arrays are {', '.join(names) or 'none'}", path=path
        )
    try:
        return stored[name]
    except (ValueError, OSError, zipfile.BadZipFile):
        raise DataFileError(f"the array {name} cannot be read", path=path) from None


def check_scores(scores: Any, observed: LabelMatrix) -> np.ndarray:
    """Return the scores as a float array, or raise if they are not one probability per entry."""
    try:
        values = np.asarray(scores, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("scores must be an array of numbers with one row per sample") from None
    if values.shape != observed.shape:
        raise InputError(
            f"scores have shape {values.shape}, but the labels have {observed.shape}: one "
            "probability per row and label is needed, in their order"
        )
    wrong = ~((values >= 0) & (values <= 1))
    if wrong.any():
        value, row, column = first_marked(values, wrong)
        raise InputError(
            f"scores hold {value:g} at row {row}, label {observed.names[column]!r}: "
            "they must be probabilities from 0 to 1"
        )
    return values
