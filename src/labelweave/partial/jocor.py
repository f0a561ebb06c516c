"""JoCoR: two networks that are drawn together learn from the rows of small joint loss."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit
from sklearn.utils._param_validation import Interval

from labelweave.partial._selection.loss_ranks import rows_to_drop
from labelweave.partial._selection.selection_rules import (
    MiniBatch,
    Selection,
    SelectionRule,
    drop_rows,
    row_losses,
)
from labelweave.partial.co_teaching import CoTeaching

__all__ = ["JoCoR"]


class JoCoRRule(SelectionRule):
    """Both networks ignore the rows of largest joint loss (Wei et al., Eq. 1 and 6)."""

    def __init__(self, agreement: float) -> None:
        super().__init__()
        self.agreement = agreement

    def select(self, batch: MiniBatch) -> list[Selection]:
        f, g = batch.logits
        known = ~np.isnan(batch.targets)
        cross_entropy = row_losses(f, batch.targets) + row_losses(g, batch.targets)
        # The sum of both Kullback-Leibler divergences, as in `peer_networks.divergence`.
        divergence = np.sum((expit(f) - expit(g)) * (f - g), axis=1, where=known)
        joint = (1 - self.agreement) * cross_entropy + self.agreement * divergence
        ignored = rows_to_drop(joint, batch.drop_high)
        return drop_rows(batch, [ignored, ignored])


class JoCoR(CoTeaching):
    """JoCoR: joint training of two networks with co-regularisation.

    The loss of a row is ``(1 - agreement)`` times the cross-entropies of both networks plus
    `agreement` times the two divergences between their probabilities. Both networks learn from the
    rows of small joint loss.

    Parameters
    ----------
    agreement : float, default=0.1
        Weight of the divergences, the paper's lambda.
    noise_rate, ramp
        As in :class:`~labelweave.partial.co_teaching.CoTeaching`.
    base, unannotated, validation, monitor, threshold, validation_fraction, random_state
        As in :class:`~labelweave.partial.base.PartialClassifier`.

    References
    ----------
    .. [1] H. Wei, L. Feng, X. Chen and B. An. Combating noisy labels by agreement: a joint
       training method with co-regularization. CVPR 2020.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, Y = make_multilabel_classification(n_samples=200, random_state=0)
    >>> model = JoCoR(random_state=0).set_params(base__epochs=5).fit(X, Y)
    >>> model.predict_proba(X[:3]).shape
    (3, 5)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **CoTeaching._parameter_constraints,
        "agreement": [Interval(Real, 0, 1, closed="left")],
    }

    def __init__(
        self,
        base: Any = "mlp",
        *,
        agreement: float = 0.1,
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
            noise_rate=noise_rate,
            ramp=ramp,
            unannotated=unannotated,
            validation=validation,
            monitor=monitor,
            threshold=threshold,
            validation_fraction=validation_fraction,
            random_state=random_state,
        )
        self.agreement = agreement

    def _rule(self) -> SelectionRule:
        return JoCoRRule(self.agreement)
