"""Explaining predictions by columns or words, at a bounded cost."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from labelweave.exceptions import InputError
from labelweave.explaining import explain_row
from labelweave.labels import is_frame
from labelweave.rows import count_rows
from labelweave.serve.inputs_and_labels import read_inputs
from labelweave.serve.problems import ProblemError
from labelweave.serve.settings import Settings
from labelweave.tables.table import Table

if TYPE_CHECKING:
    from labelweave.serve.loaded_model import LoadedModel
    from labelweave.serve.schemas import ExplainRequest

__all__ = ["explain_by_features", "reference_for"]


def explain_by_features(
    request: ExplainRequest, loaded: LoadedModel, settings: Settings
) -> dict[str, Any]:
    """Return which columns or words speak for and against the labels of each input.

    The number of rows that have to be predicted for it is limited.
    """
    X = read_inputs(request.inputs, loaded, settings, absent=request.absent)
    is_text = loaded.facts.input == "texts"
    background = None if is_text else _background(request, loaded, settings, X)
    n_rows = count_rows(X) * (1 if background is None else count_rows(background))
    most = settings.max_explained_rows // n_rows
    if request.columns is not None:
        n_columns = len(request.columns)
    elif is_text:
        n_columns = most  # of longer texts, the first words
    elif sp.issparse(background):
        n_columns = int(np.count_nonzero(X, axis=1).max())  # the others stay 0
    else:
        n_columns = X.shape[1]
    if n_columns > most or most == 0:
        raise ProblemError(
            413,
            f"This explanation would take {n_rows * max(n_columns, 1):,} predictions, but a "
            f"request may take at most {settings.max_explained_rows:,}: send fewer inputs or "
            "background rows, or name the columns to look at.",
        )
    names = None if is_text or isinstance(X, Table) else loaded.feature_names
    results = loaded.ask(
        partial(
            _explain_rows,
            X=X,
            background=background,
            labels=request.labels,
            top_k=request.top_k,
            columns=request.columns,
            n_features=request.features,
            max_columns=most,
            names=names,
        )
    )
    return {
        "by": "words" if is_text else "columns",
        "explanations": [labels for labels, _ in results],
        "not_measured": [n for _, n in results],
    }


def _background(request: ExplainRequest, loaded: LoadedModel, settings: Settings, X: Any) -> Any:
    """Return the rows of the request, or else the typical values of the model folder."""
    if request.background is None:
        return reference_for(loaded.facts.reference, X, loaded.feature_names)
    try:
        return read_inputs(request.background, loaded, settings, absent=request.absent)
    except InputError as error:
        raise InputError(str(error).replace("inputs", "background", 1)) from None


def reference_for(reference: Any, X: Any, names: Sequence[str] | None) -> Any:
    """Return typical values in the form of the rows; an error if there are none that fit."""
    if is_frame(reference) and isinstance(X, Table):
        if set(X.frame.columns) <= set(reference.columns):
            return Table(reference[list(X.frame.columns)])
    elif is_frame(reference):
        columns = list(reference.columns) if names is None else list(names)
        if set(columns) <= set(reference.columns) and len(columns) == X.shape[1]:
            with suppress(ValueError, TypeError):  # words where the model takes numbers
                return reference[columns].to_numpy(dtype=np.float64)
    elif reference is not None and not isinstance(X, Table) and reference.shape[1] == X.shape[1]:
        return reference
    raise ProblemError(
        409,
        "The folder of this model has no typical values of its columns to compare with: send some "
        "rows as background, or train the model with labelweave train.",
    )


def _explain_rows(
    model: Any,
    *,
    X: Any,
    background: Any,
    labels: Sequence[str] | None,
    top_k: int,
    columns: Sequence[str] | None,
    n_features: int,
    max_columns: int,
    names: Sequence[str] | None,
) -> list[tuple[list[dict[str, Any]], int]]:
    """Explain each row; runs where the model is."""
    is_text = isinstance(X, list)
    if sp.issparse(background):
        X = sp.csr_array(X)
    results = []
    for i in range(count_rows(X)):
        explanation = explain_row(
            model,
            X[i] if is_text else X[i : i + 1],
            background,
            columns=columns,
            max_background=max(1, 0 if background is None else count_rows(background)),
            max_columns=max_columns,
            feature_names=names,
        )
        chosen = list(labels) if labels is not None else explanation.chosen_labels(top_k)
        explained = explanation.to_dict(chosen, n_features)["labels"]
        results.append((explained, len(explanation.not_measured)))
    return results
