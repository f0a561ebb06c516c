"""The audit: which labels did the annotators miss, or set by mistake?

:func:`audit` scores every entry of the label matrix with models that did not see its row, ranks
the entries, and returns the list that a person should review.
"""

from __future__ import annotations

from os import PathLike
from typing import Any

from labelweave.auditing.findings import Audit
from labelweave.data import Dataset
from labelweave.exceptions import InputError

__all__ = ["audit"]

_SUSPECTS = ("missing", "wrong")
_MOST_ENTRIES = 200_000_000  # an audit keeps several numbers for each


def audit(
    data: Any,
    *,
    method: Any = "br",
    scores: Any = None,
    corrections: Any = None,
    suspects: str = "missing",
    unannotated: str = "auto",
    top: int = 1000,
    folds: int = 5,
    random_state: Any = 0,
    verbose: int = 0,
    name: str | None = None,
) -> Audit:
    """List the unannotated entries that are most likely missing positives, the likeliest first.

    Parameters
    ----------
    data : Dataset, path or name of a data set
    method : str or estimator, default="br"
        The method that scores the rows out of fold: an id of the library or an estimator. With an
        id, texts become TF-IDF weights first.
    scores : ndarray of shape (n_rows, n_labels) or path, optional
        Your own out-of-fold probabilities, used in place of `method`.
    corrections : path or Verdicts, optional
        Verdicts of an earlier review. The audit learns from them and does not list their entries
        again.
    suspects : {"missing", "wrong"}, default="missing"
        "wrong" lists annotated positives that look wrong.
    unannotated : {"auto", "zeros", "unknown"}, default="auto"
        Which entries nobody annotated; see :mod:`labelweave.unannotated`.
    top : int, default=1000
        The number of entries to list.
    folds : int, default=5
        The number of folds of the out-of-fold scores.
    random_state : int or None, default=0
        Seed of the folds, the method and the ranking.
    verbose : int, default=0
        1 shows a progress bar.
    name : str, optional
        The name of the method in the list. Default: the id or class of the method.

    Returns
    -------
    Audit
        The list; ``audit.write("review.html")`` writes the page for reviewing it.

    Examples
    --------
    >>> import numpy as np
    >>> import labelweave as lw
    >>> X = np.random.default_rng(0).random((200, 2)).round(3)
    >>> Y = (X > 0.5).astype(int)
    >>> Y[13] = 0  # both labels are missing
    >>> result = lw.audit(lw.Dataset(X, Y, name="toy"), top=3)
    >>> {finding.row for finding in result.findings[:2]}
    {13}
    """
    from labelweave.auditing.entry_ranking import choose_entries, rank_entries
    from labelweave.auditing.feature_estimates import numeric_features
    from labelweave.auditing.findings import describe_findings, pictures_of
    from labelweave.auditing.out_of_fold import check_scores, out_of_fold_scores, read_scores
    from labelweave.auditing.prepared_labels import prepare_labels
    from labelweave.unannotated import UNANNOTATED

    if suspects not in _SUSPECTS:
        raise InputError(f"suspects must be one of {', '.join(_SUSPECTS)}, not {suspects!r}")
    if unannotated not in UNANNOTATED:
        raise InputError(
            f"unannotated must be one of {', '.join(UNANNOTATED)}, not {unannotated!r}"
        )
    if top < 1:
        raise InputError(f"top must be at least 1, not {top}")
    prepared = prepare_labels(_load(data), corrections, unannotated)
    if scores is None:
        model, method_name = _make_model(method, prepared.data, random_state)
        scores = out_of_fold_scores(
            model, prepared, n_folds=folds, random_state=random_state, verbose=verbose
        )
    else:
        method_name = "your own scores"
        scores = read_scores(scores) if isinstance(scores, str | PathLike) else scores
    candidates = rank_entries(
        prepared.observed,
        check_scores(scores, prepared.observed),
        X=numeric_features(prepared.data),
        reviewed=prepared.newly_decided,
        n_wanted=top,
        random_state=random_state,
    )
    chosen = choose_entries(candidates, prepared.observed, suspects, prepared.reviewed, top)
    findings = describe_findings(prepared.data, chosen)
    return Audit(
        findings,
        prepared.data.name,
        name or method_name,
        suspects,
        int((prepared.observed.to_numpy() == 0).sum()),
        candidates.annotated_share,
        pictures_of(prepared.data, findings),
    )


def _load(data: Any) -> Dataset:
    if isinstance(data, str | PathLike):
        from labelweave.data.catalog import load_dataset

        data = load_dataset(data)
    if not isinstance(data, Dataset):
        raise InputError("data must be a Dataset, or the name or path of one")
    if data.Y.n_labels == 0 or len(data) == 0:
        raise InputError(f"{data.name} has no labels to audit")
    if len(data) * data.Y.n_labels > _MOST_ENTRIES:
        raise InputError(
            f"{data.name} has {len(data):,} rows x {data.Y.n_labels:,} labels, but an audit "
            f"compares all entries and takes at most {_MOST_ENTRIES:,}: audit some of the rows "
            "(data[rows]) or labels (data.select_labels(names))"
        )
    return data


def _make_model(method: Any, data: Dataset, random_state: Any) -> tuple[Any, str]:
    """Return an unfitted estimator for these rows, and its name."""
    if not isinstance(method, str):
        return method, type(method).__name__
    from labelweave.methods import make

    model = make(method, random_state=random_state)
    if data.is_text:
        from labelweave.text import TextClassifier

        model = TextClassifier(model, random_state=random_state)
    if data.is_image:
        from labelweave.images import ImageClassifier

        model = ImageClassifier(model, random_state=random_state)
    return model, method
