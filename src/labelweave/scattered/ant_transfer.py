"""The three components of ANT as pure functions, and the loop that applies them to teachers.

Symbols as in the paper [1]_: a teacher T^t predicts logits L^t and probabilities P^t of its labels
Y^t (Eq. 1 and 2). All arrays of logits have the shape (teachers, rows, labels), with NaN where a
label is not one of the teacher's.

References
----------
.. [1] J. Thadajarassiri, T. Hartvigsen, W. Gerych, X. Kong and E. Rundensteiner. Knowledge
   Amalgamation for Multi-Label Classification via Label Dependency Transfer. AAAI 2023.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import expit

from labelweave.scattered.teacher import take_rows

if TYPE_CHECKING:
    from labelweave.scattered._amalgamation.teacher_predictions import TeacherPredictions

__all__ = [
    "KnowledgeTransfer",
    "exchange_knowledge",
    "knowledge_transfer",
    "prediction_integrator",
    "transfer_indicator",
]


def transfer_indicator(logits: np.ndarray, positive: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Transfer Indicator (TI): which teachers receive which positive predictions.

    Where one teacher T^m predicts a shared label y_c positive and another teacher T^n predicts it
    negative, T^m is the transferor and T^n the transferee. With several transferors, the most
    confident one is chosen.

    Parameters
    ----------
    logits : array of shape (teachers, rows, labels)
    positive : boolean array of the same shape
        The positive predictions that may be transferred.

    Returns
    -------
    transferor_logits : array of shape (rows, labels)
        The transferor's logit of y_c; -inf where there is no transferor.
    transferee : boolean array of shape (teachers, rows, labels)

    Examples
    --------
    >>> logits = np.array([[[2.0, -1.0]], [[-3.0, np.nan]]])
    >>> transferor_logits, transferee = transfer_indicator(logits, logits > 0)
    >>> transferor_logits
    array([[  2., -inf]])
    >>> transferee.tolist()
    [[[False, False]], [[True, False]]]
    """
    transferor_logits = np.where(positive, logits, -np.inf).max(axis=0)
    transferee = (logits <= 0) & (transferor_logits > 0)  # NaN <= 0 is False
    return transferor_logits, transferee


def knowledge_transfer(
    logits: np.ndarray,
    transferor_logits: np.ndarray,
    transferee: np.ndarray,
    revise: Callable[[np.ndarray, np.ndarray], np.ndarray],
) -> tuple[np.ndarray, np.ndarray]:
    """Knowledge Transfer Module: L^n' of one transferee T^n (Eq. 3).

    The transferee runs again from its own final logits L^n, in which the logit of y_c is replaced
    by the transferor's. Each (row, y_c) that is transferred is one run.

    Parameters
    ----------
    logits : array of shape (rows, labels)
        L^n; NaN for labels that T^n does not predict.
    transferor_logits : array of the same shape
    transferee : boolean array of the same shape
        Where T^n is the transferee.
    revise : function of (rows, initial logits)
        T^n(x), started from these logits; returns the final logits.

    Returns
    -------
    rows : int array of shape (runs,)
        The row of each run, ascending.
    revised : array of shape (runs, labels)
        L^n'.
    """
    rows, shared = np.nonzero(transferee)
    initial = logits[rows]
    initial[np.arange(len(rows)), shared] = transferor_logits[rows, shared]
    return rows, revise(rows, initial)


def prediction_integrator(logits: np.ndarray) -> np.ndarray:
    """Prediction Integrator: P(y_j | x) of the most confident teacher (Eq. 4 and 5).

    The candidates C_j of a label are the predictions of the teachers that predict it (Eq. 4).
    P(y_j | x) is min(C_j) if all of them are at most 0.5, else max(C_j) (Eq. 5).

    Parameters
    ----------
    logits : array of shape (candidates, rows, labels)
        NaN where there is no candidate.

    Returns
    -------
    array of shape (rows, labels)
        Probabilities; NaN where there is no candidate at all.

    Examples
    --------
    >>> prediction_integrator(np.array([[[2.0, -1.0]], [[-3.0, -2.0]]])).round(2)
    array([[0.88, 0.12]])
    """
    return expit(_most_confident(*_lowest_and_highest(logits)))


class KnowledgeTransfer(NamedTuple):
    """The predictions of teachers that have exchanged their knowledge.

    Attributes
    ----------
    logits : float32 array of shape (teachers, rows, labels)
        The prediction of each teacher. Where it was revised, this is the revised prediction
        L^n' in place of L^n; of several candidates the most confident (Eq. 5).
    n_transfers : int
        Number of predictions that were transferred, each to one transferee.
    n_revised : int
        Number of entries that became positive by a revision.
    n_rounds : int
    """

    logits: np.ndarray
    n_transfers: int
    n_revised: int
    n_rounds: int


def exchange_knowledge(
    predictions: TeacherPredictions,
    X: Any,
    *,
    max_rounds: int = 10,
    keep_original: bool | str = "several",
) -> KnowledgeTransfer:
    """Let teachers that are chains revise their predictions (Eq. 1 to 3).

    In the first round all positive predictions may be transferred, in each further round those
    that became positive by a revision. Within a round no teacher sees the revisions of the
    others, so that the order of teachers does not matter. All runs of a teacher in a round are one
    batch.

    Parameters
    ----------
    predictions : TeacherPredictions
    X : rows of the predictions
    max_rounds : int, default=10
        The largest number of rounds. A label of a row is transferred to a teacher only once, so
        that the exchange ends.
    keep_original : bool or "several", default="several"
        Whether L^n stays a candidate beside L^n' in Eq. 4. Otherwise L^n' replaces it (Eq. 3).
        With "several" it stays only in rows in which several teachers are transferees in the first
        round: each relation of teachers is revised and integrated alone, with the original
        predictions of all teachers but its transferee, and then all results are integrated.
    """
    # Of all candidates of a teacher for a label, Eq. 5 needs the lowest and the highest logit.
    lowest, highest = predictions.logits.copy(), predictions.logits.copy()
    margins = predictions.margins[:, None, None]
    positive = highest > margins
    received = np.zeros_like(positive)
    replaceable = np.full(positive.shape[:2], keep_original is not True)  # until the first revision
    can_revise = np.array([teacher.can_revise for teacher in predictions.teachers])
    n_transfers = n_revised = n_rounds = 0
    for _ in range(max_rounds):
        transferor_logits, transferee = transfer_indicator(highest, positive)
        transferee &= ~received & can_revise[:, None, None]
        receivers = np.flatnonzero(transferee.any(axis=(1, 2))).tolist()
        if not receivers:
            break
        if keep_original == "several" and n_rounds == 0:
            revises = transferee.any(axis=2)
            replaceable = revises & (revises.sum(axis=0) == 1)
        n_rounds += 1
        received |= transferee
        positive = np.zeros_like(positive)
        for t in receivers:
            n_transfers += int(transferee[t].sum())
            rows, low, high = _revisions(predictions, X, t, transferor_logits, transferee[t])
            was_positive = highest[t][rows] > 0
            # The first revision of a row replaces L^n (Eq. 3); later ones are further candidates.
            replace = replaceable[t][rows][:, None]
            lowest[t][rows] = np.where(replace, low, np.fmin(lowest[t][rows], low))
            highest[t][rows] = np.where(replace, high, np.fmax(highest[t][rows], high))
            replaceable[t][rows] = False
            positive[t][rows] = (highest[t][rows] > margins[t]) & ~was_positive
        n_revised += int(positive.sum())
    return KnowledgeTransfer(_most_confident(lowest, highest), n_transfers, n_revised, n_rounds)


def _revisions(
    predictions: TeacherPredictions,
    X: Any,
    t: int,
    transferor_logits: np.ndarray,
    transferee: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The rows that teacher t revises, and the lowest and highest revised logits of each."""
    columns = predictions.vocabulary.columns[t]

    def revise(rows: np.ndarray, initial: np.ndarray) -> np.ndarray:
        revised = np.full_like(initial, np.nan)
        start = initial[:, columns]
        replaced = start != predictions.logits[t][np.ix_(rows, columns)]
        revised[:, columns] = predictions.teachers[t].revise(take_rows(X, rows), start, replaced)
        return revised

    rows, revised = knowledge_transfer(predictions.logits[t], transferor_logits, transferee, revise)
    distinct, begin = np.unique(rows, return_index=True)
    low = np.minimum.reduceat(revised, begin, axis=0)
    high = np.maximum.reduceat(revised, begin, axis=0)
    return distinct, low, high


def _lowest_and_highest(logits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # no candidate at all: NaN
        return np.nanmin(logits, axis=0), np.nanmax(logits, axis=0)


def _most_confident(lowest: np.ndarray, highest: np.ndarray) -> np.ndarray:
    """Eq. 5 on logits."""
    return np.where(highest > 0, highest, lowest)
