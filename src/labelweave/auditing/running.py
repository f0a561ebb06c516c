"""An audit from beginning to end: labels, scores, ranking, list."""

from __future__ import annotations

from os import PathLike
from typing import Any

import numpy as np

from labelweave.auditing import SUSPECTS
from labelweave.auditing.findings import Audit, Finding, describe_row
from labelweave.auditing.ranking import Candidates, rank_entries
from labelweave.auditing.scoring import checked_scores, out_of_fold_scores, read_scores
from labelweave.auditing.views import numeric_rows
from labelweave.data import Dataset
from labelweave.data.corrections import Verdicts, apply_corrections, read_verdicts
from labelweave.exceptions import InputError
from labelweave.labels import LabelMatrix
from labelweave.unannotated import UNANNOTATED, as_observed, unannotated_rule

__all__ = ["run"]


def run(
    data: Any,
    *,
    method: Any,
    scores: Any,
    corrections: Any,
    suspects: str,
    unannotated: str,
    top: int,
    folds: int,
    random_state: Any,
    verbose: int,
    name: str | None = None,
) -> Audit:
    """See :func:`labelweave.audit`."""
    if suspects not in SUSPECTS:
        raise InputError(f"suspects must be one of {', '.join(SUSPECTS)}, not {suspects!r}")
    if unannotated not in UNANNOTATED:
        raise InputError(
            f"unannotated must be one of {', '.join(UNANNOTATED)}, not {unannotated!r}"
        )
    if top < 1:
        raise InputError(f"top must be at least 1, not {top}")
    loaded = _loaded(data)
    # By the labels before corrections: a verdict "no" makes a zero.
    rule = unannotated_rule(loaded.Y, unannotated)
    verdicts = _verdicts(corrections)
    corrected = loaded if verdicts is None else apply_corrections(loaded, verdicts)
    observed = as_observed(corrected.Y, rule)
    if verdicts is not None:
        observed = _with_known_negatives(observed, loaded, verdicts)
    if not (observed.to_numpy() == 1).any():
        raise InputError(
            f"{loaded.name} has no annotated positive to learn from: is a yes written as 1?"
        )
    if scores is None:
        model, called = _model(method, corrected, random_state)
        found = out_of_fold_scores(
            model,
            corrected,
            observed,
            rule,
            n_folds=folds,
            random_state=random_state,
            verbose=verbose,
        )
    else:
        called = "scores of your own"
        found = read_scores(scores) if isinstance(scores, str | PathLike) else scores
    ranked = rank_entries(
        observed,
        checked_scores(found, observed),
        X=numeric_rows(corrected),
        reviewed=_decided(as_observed(loaded.Y, rule), loaded, verdicts),
        n_wanted=top,
        random_state=random_state,
    )
    skip = _reviewed(loaded, verdicts)
    chosen, score = _choose(ranked, observed, suspects, skip, top)
    return Audit(
        _findings(corrected, ranked, chosen, score),
        loaded.name,
        name or called,
        suspects,
        int((observed.to_numpy() == 0).sum()),
        ranked.share,
    )


def _loaded(data: Any) -> Dataset:
    if isinstance(data, Dataset):
        loaded = data
    elif isinstance(data, str | PathLike):
        from labelweave.data.catalog import load_dataset

        loaded = load_dataset(data)
    else:
        raise InputError("data must be a Dataset, or the name or path of one")
    if loaded.Y.n_labels == 0 or len(loaded) == 0:
        raise InputError(f"{loaded.name} has no labels to audit")
    return loaded


def _model(method: Any, data: Dataset, random_state: Any) -> tuple[Any, str]:
    """An unfitted estimator for these rows, and its name."""
    if not isinstance(method, str):
        return method, type(method).__name__
    from labelweave.methods import make

    model = make(method, random_state=random_state)
    if data.is_text:
        from labelweave.text import TextClassifier

        model = TextClassifier(model, random_state=random_state)
    return model, method


def _verdicts(corrections: Any) -> Verdicts | None:
    if corrections is None or isinstance(corrections, Verdicts):
        return corrections
    return read_verdicts(corrections)


def _reviewed(data: Dataset, verdicts: Verdicts | None) -> np.ndarray:
    """Flat numbers of the entries that somebody has looked at."""
    if verdicts is None:
        return np.empty(0, dtype=np.int64)
    rows, columns, _ = verdicts.entries(data)
    return rows * data.Y.n_labels + columns


def _decided(before: LabelMatrix, data: Dataset, verdicts: Verdicts | None) -> np.ndarray | None:
    """The entries that were unannotated until a verdict."""
    if verdicts is None:
        return None
    rows, columns, said = verdicts.entries(data)
    found = np.zeros(before.shape, dtype=bool)
    found[rows, columns] = said != "unsure"
    return found & (before.to_numpy() == 0)


def _with_known_negatives(observed: LabelMatrix, data: Dataset, verdicts: Verdicts) -> LabelMatrix:
    """Coded labels in which "no" is a known negative, under either rule."""
    rows, columns, said = verdicts.entries(data)
    no = said == "no"
    codes = observed.to_numpy().copy()
    codes[rows[no], columns[no]] = -1.0
    return LabelMatrix(codes, observed.names, observed.descriptions)


def _choose(
    ranked: Candidates, observed: LabelMatrix, suspects: str, skip: np.ndarray, top: int
) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of the candidates to list, best first, and the score of each."""
    if suspects == "missing":
        score, order = ranked.missing, ranked.annotated
        listed = ~np.isnan(ranked.missing)
    else:
        # A positive is annotated with chance g = c P(positive).
        score, order = 1 - np.clip(ranked.annotated / ranked.share, 0, 1), -ranked.annotated
        listed = observed.to_numpy()[ranked.rows, ranked.columns] == 1
    listed &= ~np.isin(ranked.rows * observed.n_labels + ranked.columns, skip)
    places = np.flatnonzero(listed)
    chosen = places[np.argsort(-order[places], kind="stable")[:top]]
    return chosen, score[chosen]


def _findings(
    data: Dataset, ranked: Candidates, chosen: np.ndarray, score: np.ndarray
) -> list[Finding]:
    rows, columns = ranked.rows[chosen], ranked.columns[chosen]
    annotated = ranked.annotated[chosen]
    shown, place = np.unique(rows, return_inverse=True)
    known = data.Y[shown].to_lists()
    texts = [describe_row(data, row) for row in shown.tolist()]
    ids = None if data.row_ids is None else [str(data.row_ids[row]) for row in shown.tolist()]
    return [
        Finding(
            rank=k + 1,
            score=float(score[k]),
            annotated=float(annotated[k]),
            label=data.label_names[columns[k]],
            row=int(rows[k]),
            id="" if ids is None else ids[i],
            text=texts[i],
            known=tuple(known[i]),
        )
        for k, i in enumerate(place.tolist())
    ]
