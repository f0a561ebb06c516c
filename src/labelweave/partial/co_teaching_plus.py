"""Co-teaching+: co-teaching on the rows where the two networks disagree."""

from __future__ import annotations

from labelweave.partial._selection.selection_rules import (
    MiniBatch,
    Selection,
    SelectionRule,
    disagreeing_rows,
    drop_rows,
    row_losses,
)
from labelweave.partial.co_teaching import CoTeaching, co_teaching

__all__ = ["CoTeachingPlus"]


class CoTeachingPlusRule(SelectionRule):
    """Co-teaching among the rows on which the networks disagree, or all rows if they agree."""

    def select(self, batch: MiniBatch) -> list[Selection]:
        losses_f, losses_g = (row_losses(logits, batch.targets) for logits in batch.logits)
        disagree = disagreeing_rows(*batch.logits)
        among = disagree if disagree.any() else None
        return drop_rows(batch, co_teaching(losses_f, losses_g, batch.drop_high, among))


class CoTeachingPlus(CoTeaching):
    """Co-teaching+: co-teaching on the rows where the two networks predict different label sets.

    The disagreement keeps the two networks from becoming alike. In a mini-batch without such a row
    all rows are used.

    Parameters
    ----------
    noise_rate, ramp
        As in :class:`~labelweave.partial.co_teaching.CoTeaching`.
    base, unannotated, validation, monitor, threshold, validation_fraction, random_state
        As in :class:`~labelweave.partial.base.PartialClassifier`.

    References
    ----------
    .. [1] X. Yu, B. Han, J. Yao et al. How does disagreement help generalization against label
       corruption? ICML 2019.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, Y = make_multilabel_classification(n_samples=200, random_state=0)
    >>> model = CoTeachingPlus(random_state=0).set_params(base__epochs=5).fit(X, Y)
    >>> model.predict_proba(X[:3]).shape
    (3, 5)
    """

    def _rule(self) -> SelectionRule:
        return CoTeachingPlusRule()
