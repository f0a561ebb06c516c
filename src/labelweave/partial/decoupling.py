"""Decoupling: two networks learn only from the rows where they disagree."""

from __future__ import annotations

from typing import ClassVar

from labelweave.nn.task import Task
from labelweave.partial._selection.partial_run import PartialRun
from labelweave.partial._selection.selection_rules import (
    MiniBatch,
    Selection,
    SelectionRule,
    disagreeing_rows,
    drop_rows,
)
from labelweave.partial.base import PartialClassifier

__all__ = ["Decoupling"]


class DecouplingRule(SelectionRule):
    """Both networks ignore the rows for which they predict the same label set."""

    def select(self, batch: MiniBatch) -> list[Selection]:
        agree = ~disagreeing_rows(*batch.logits)
        return drop_rows(batch, [agree, agree])


class Decoupling(PartialClassifier):
    """Decoupling: two networks learn only from rows for which they predict different label sets.

    "When to update" (on disagreement) is thus decoupled from "how to update" (each network by its
    own loss). A mini-batch without such a row changes nothing.

    Parameters
    ----------
    base, unannotated, validation, monitor, threshold, validation_fraction, random_state
        As in :class:`~labelweave.partial.base.PartialClassifier`.

    References
    ----------
    .. [1] E. Malach and S. Shalev-Shwartz. Decoupling "when to update" from "how to update".
       NeurIPS 2017.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, Y = make_multilabel_classification(n_samples=200, random_state=0)
    >>> model = Decoupling(random_state=0).set_params(base__epochs=5).fit(X, Y)
    >>> model.predict_proba(X[:3]).shape
    (3, 5)
    """

    _n_networks: ClassVar[int] = 2

    def _build_task(self, run: PartialRun) -> Task:
        return run.peer_task(DecouplingRule(), tau_h=0.0)
