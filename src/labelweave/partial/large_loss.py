"""Large loss matters: a network removes or corrects its negatives of large loss.

LL-R rejects them, LL-Ct corrects them temporarily, LL-Cp permanently.
"""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.utils._param_validation import Interval
from torch import Tensor

from labelweave.nn.task import Task
from labelweave.partial._selection.loss_ranks import extreme
from labelweave.partial._selection.partial_run import PartialRun
from labelweave.partial._selection.selection_rules import MiniBatch, Selection, SelectionRule
from labelweave.partial.base import PartialClassifier

__all__ = ["LargeLossCorrection", "LargeLossPermanent", "LargeLossRejection"]


class LargeLossRule(SelectionRule):
    """One network removes, or corrects for this step, its candidates of largest loss."""

    def __init__(self, *, corrects: bool = False) -> None:
        super().__init__()
        self.corrects = corrects

    def select(self, batch: MiniBatch) -> list[Selection]:
        (logits,), (candidates,) = batch.logits, batch.candidates
        n_largest = round(batch.drop_high * np.count_nonzero(candidates))
        largest = extreme(logits, candidates, n_largest)
        targets = batch.targets.copy()
        targets.reshape(-1)[largest] = 1.0 if self.corrects else np.nan
        return [Selection(targets, largest)]


class PermanentCorrectionRule(LargeLossRule):
    """One network corrects its candidates of largest loss, and they stay corrected.

    Parameters
    ----------
    n_rows, n_labels : int
        Of the training labels.
    """

    corrected: Tensor

    def __init__(self, n_rows: int, n_labels: int) -> None:
        super().__init__(corrects=True)
        self.register_buffer("corrected", torch.zeros(n_rows, n_labels, dtype=torch.bool))

    def select(self, batch: MiniBatch) -> list[Selection]:
        (candidates,) = batch.candidates
        corrected = self.corrected[batch.rows].cpu().numpy() & candidates
        (selection,) = super().select(
            batch._replace(targets=batch.targets + corrected, candidates=[candidates & ~corrected])
        )
        row, label = np.unravel_index(selection.removed, candidates.shape)
        self.corrected[torch.from_numpy(batch.rows[row]), torch.from_numpy(label)] = True
        return [selection]


class LargeLossRejection(PartialClassifier):
    """Large loss rejection (LL-R): unannotated entries of large loss are ignored.

    In epoch e the ``(e - 1) delta`` share of largest loss is ignored in each mini-batch. A network
    learns clean labels first, so a large loss points to a missing positive. In contrast to CLS a
    single network selects for itself.

    Parameters
    ----------
    delta : float, default=0.005
        By how much the share rises per epoch.
    base, unannotated, validation, monitor, threshold, validation_fraction, random_state
        As in :class:`~labelweave.partial.base.PartialClassifier`.

    References
    ----------
    .. [1] Y. Kim, J. M. Kim, Z. Akata and J. Lee. Large loss matters in weakly supervised
       multi-label classification. CVPR 2022, Eq. 6 and Table 1.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, Y = make_multilabel_classification(n_samples=200, random_state=0)
    >>> model = LargeLossRejection(random_state=0).set_params(base__epochs=5).fit(X, Y)
    >>> model.predict_proba(X[:3]).shape
    (3, 5)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PartialClassifier._parameter_constraints,
        "delta": [Interval(Real, 0, 1, closed="left")],
    }

    def __init__(
        self,
        base: Any = "mlp",
        *,
        delta: float = 0.005,
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
        self.delta = delta

    def _rule(self) -> SelectionRule:
        return LargeLossRule()

    def _build_task(self, run: PartialRun) -> Task:
        # In epoch e (from 0) the share is e * delta, at most 1.
        tau, ramp = (1.0, 1 / self.delta) if self.delta > 0 else (0.0, 1.0)
        return run.peer_task(self._rule(), tau_h=tau, ramp=ramp)


class LargeLossCorrection(LargeLossRejection):
    """Large loss correction, temporary (LL-Ct): entries of large loss count as positives.

    The correction holds for one step; in the next epoch the entries are selected again.

    Parameters
    ----------
    delta : float, default=0.002
        By how much the share of corrected entries rises per epoch.
    base, unannotated, validation, monitor, threshold, validation_fraction, random_state
        As in :class:`~labelweave.partial.base.PartialClassifier`.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, Y = make_multilabel_classification(n_samples=200, random_state=0)
    >>> model = LargeLossCorrection(random_state=0).set_params(base__epochs=5).fit(X, Y)
    >>> model.predict_proba(X[:3]).shape
    (3, 5)
    """

    def __init__(
        self,
        base: Any = "mlp",
        *,
        delta: float = 0.002,
        unannotated: str = "auto",
        validation: str = "partial",
        monitor: str = "auto",
        threshold: Any = "cardinality",
        validation_fraction: float = 0.2,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            base,
            delta=delta,
            unannotated=unannotated,
            validation=validation,
            monitor=monitor,
            threshold=threshold,
            validation_fraction=validation_fraction,
            random_state=random_state,
        )

    def _rule(self) -> SelectionRule:
        return LargeLossRule(corrects=True)


class LargeLossPermanent(LargeLossRejection):
    """Large loss correction, permanent (LL-Cp): entries of large loss become positives.

    In each epoch the ``delta`` share of the entries that are still unannotated is added.

    Parameters
    ----------
    delta : float, default=0.001
        Share of the unannotated entries to correct per epoch.
    base, unannotated, validation, monitor, threshold, validation_fraction, random_state
        As in :class:`~labelweave.partial.base.PartialClassifier`.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, Y = make_multilabel_classification(n_samples=200, random_state=0)
    >>> model = LargeLossPermanent(random_state=0).set_params(base__epochs=5).fit(X, Y)
    >>> model.predict_proba(X[:3]).shape
    (3, 5)
    """

    def __init__(
        self,
        base: Any = "mlp",
        *,
        delta: float = 0.001,
        unannotated: str = "auto",
        validation: str = "partial",
        monitor: str = "auto",
        threshold: Any = "cardinality",
        validation_fraction: float = 0.2,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            base,
            delta=delta,
            unannotated=unannotated,
            validation=validation,
            monitor=monitor,
            threshold=threshold,
            validation_fraction=validation_fraction,
            random_state=random_state,
        )

    def _build_task(self, run: PartialRun) -> Task:
        rule = PermanentCorrectionRule(*run.session.Y.shape)
        return run.peer_task(rule, tau_h=self.delta, ramp=1)
