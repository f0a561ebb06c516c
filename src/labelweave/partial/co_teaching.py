"""Co-teaching: two networks select the rows of small loss for each other."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from labelweave.nn.task import Task
from labelweave.partial._selection.loss_ranks import rows_to_drop
from labelweave.partial._selection.partial_run import PartialRun
from labelweave.partial._selection.selection_rules import (
    MiniBatch,
    Selection,
    SelectionRule,
    drop_rows,
    row_losses,
)
from labelweave.partial.base import PartialClassifier, published_base

__all__ = ["CoTeaching", "co_teaching"]


def co_teaching(
    losses_f: np.ndarray,
    losses_g: np.ndarray,
    drop: float,
    among: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """The rows that each network ignores: those with the largest losses in the other network.

    Han et al., Algorithm 1; the paper's R(T) is ``1 - drop``.

    Parameters
    ----------
    losses_f, losses_g : arrays of shape (n,)
        Losses of the rows of a mini-batch in the two networks.
    drop : float
        Share of the rows to ignore.
    among : boolean array of shape (n,), optional
        The rows to select from; all others are ignored.

    Returns
    -------
    ignored_f, ignored_g : boolean arrays of shape (n,)

    Examples
    --------
    >>> co_teaching(np.array([0.1, 0.9]), np.array([0.8, 0.2]), 0.5)
    (array([ True, False]), array([False,  True]))
    """
    ignored_f, ignored_g = (rows_to_drop(losses, drop, among) for losses in (losses_g, losses_f))
    if among is not None:
        ignored_f, ignored_g = ignored_f | ~among, ignored_g | ~among
    return ignored_f, ignored_g


class CoTeachingRule(SelectionRule):
    """Each network ignores the rows with the largest losses in the other network."""

    def select(self, batch: MiniBatch) -> list[Selection]:
        losses_f, losses_g = (row_losses(logits, batch.targets) for logits in batch.logits)
        return drop_rows(batch, co_teaching(losses_f, losses_g, batch.drop_high))


class CoTeaching(PartialClassifier):
    """Co-teaching: each network learns from the rows that have a small loss in the other.

    Rows of large loss are likely to miss positives. Because each network selects rows for the
    other one, it does not confirm its own mistakes.

    Parameters
    ----------
    noise_rate : float or "auto", default="auto"
        Share of the rows of a mini-batch that are ignored in the end. ``"auto"``: the estimated
        share of missing positives among the unannotated entries, as in
        :class:`~labelweave.partial.cls.CLS`. (The share of rows that miss a positive is often near
        1, and would leave almost no rows.)
    ramp : float or "auto", default="auto"
        Number of epochs over which that share rises from zero. ``"auto"``: half of the run, at
        most 10.
    base, unannotated, validation, monitor, threshold, validation_fraction, random_state
        As in :class:`~labelweave.partial.base.PartialClassifier`.

    Notes
    -----
    *Choices.* The loss of a mini-batch is divided by the number of all of its rows, not only of
    those that are used; Adam nearly cancels the difference.

    References
    ----------
    .. [1] B. Han, Q. Yao, X. Yu et al. Co-teaching: robust training of deep neural networks
       with extremely noisy labels. NeurIPS 2018.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, Y = make_multilabel_classification(n_samples=200, random_state=0)
    >>> model = CoTeaching(noise_rate=0.2, random_state=0).set_params(base__epochs=5).fit(X, Y)
    >>> model.predict_proba(X[:3]).shape
    (3, 5)
    """

    _n_networks: ClassVar[int] = 2
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PartialClassifier._parameter_constraints,
        "noise_rate": [Interval(Real, 0, 1, closed="left"), StrOptions({"auto"})],
        "ramp": [Interval(Real, 0, None, closed="left"), StrOptions({"auto"})],
    }

    def __init__(
        self,
        base: Any = "mlp",
        *,
        noise_rate: float | str = "auto",
        ramp: float | str = "auto",
        unannotated: str = "auto",
        validation: str = "partial",
        monitor: str = "auto",
        threshold: Any = "cardinality",
        validation_fraction: float = 0.2,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            base,
            unannotated=unannotated,
            validation=validation,
            monitor=monitor,
            threshold=threshold,
            validation_fraction=validation_fraction,
            random_state=random_state,
        )
        self.noise_rate = noise_rate
        self.ramp = ramp

    @classmethod
    def published(cls, dataset: str | None = None) -> Self:
        """The method as trained for Table 2 of the CLS paper, which does not give `noise_rate`."""
        return cls(published_base(dataset), ramp=10, threshold=0.5)

    def _rule(self) -> SelectionRule:
        return CoTeachingRule()

    def _build_task(self, run: PartialRun) -> Task:
        noise_rate = run.missing_rate() if self.noise_rate == "auto" else float(self.noise_rate)
        return run.peer_task(self._rule(), tau_h=noise_rate, ramp=self.ramp)
