"""The audit: which labels did the annotators miss?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from labelweave.auditing.findings import Audit

__all__ = ["SUSPECTS", "audit"]

DEFAULT_METHOD = "br"
SUSPECTS = ("missing", "wrong")


def audit(
    data: Any,
    *,
    method: Any = DEFAULT_METHOD,
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
    """The unannotated entries that are most likely missing positives, best first.

    Parameters
    ----------
    data : Dataset, path or name of a data set
    method : str or estimator, default="br"
        What scores the rows, out of fold: an id of the library or an estimator. Texts get TF-IDF
        weights first.
    scores : ndarray of shape (n_rows, n_labels) or path, optional
        Out-of-fold probabilities of your own, in place of `method`.
    corrections : path or Verdicts, optional
        Verdicts on an earlier list: they are learnt from, and their entries are not listed again.
    suspects : {"missing", "wrong"}, default="missing"
        "wrong" lists annotated positives that look wrong instead.
    unannotated : {"auto", "zeros", "unknown"}, default="auto"
        Which entries nobody annotated; see :mod:`labelweave.unannotated`.
    top : int, default=1000
        Length of the list.
    folds : int, default=5
    random_state : int or None, default=0
        Seed of the folds, the method and the ranking.
    verbose : int, default=0
        1 draws a progress bar.
    name : str, optional
        How the list calls what the scores come from.

    Returns
    -------
    Audit
        The list; ``audit.write("review.html")`` makes the page to review it on.

    Examples
    --------
    >>> import numpy as np
    >>> import labelweave as lw
    >>> X = np.random.default_rng(0).random((200, 2)).round(3)
    >>> Y = (X > 0.5).astype(int)
    >>> Y[13] = 0  # both are missing
    >>> found = lw.audit(lw.Dataset(X, Y, name="toy"), top=3)
    >>> {finding.row for finding in found.findings[:2]}
    {13}
    """
    from labelweave.auditing.running import run

    return run(
        data,
        method=method,
        scores=scores,
        corrections=corrections,
        suspects=suspects,
        unannotated=unannotated,
        top=top,
        folds=folds,
        random_state=random_state,
        verbose=verbose,
        name=name,
    )
