"""Regularised online label estimation (ROLE): the training labels are learnt as well."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar, Self

import torch
from sklearn.utils._param_validation import Interval
from torch import Tensor, nn

from labelweave.nn.batches import Batch
from labelweave.nn.losses import bce, mean_loss, positive_bce
from labelweave.nn.task import OptimizerPlan, StepInfo, Task, make_plan
from labelweave.partial._selection.partial_losses import plain_targets
from labelweave.partial._selection.partial_run import PartialRun
from labelweave.partial.base import published_base
from labelweave.partial.epr import EPR, ExpectedTask

__all__ = ["ROLE"]


class FreeLabelsTask(ExpectedTask):
    """The network and the labels of the training rows learn from each other, Eq. 8 to 10.

    The logits of all labels are parameters, those of annotated positives too. Known negatives,
    which the paper does not have, keep the target 0. The gradient of each half stops at the other.
    """

    def __init__(
        self,
        network: nn.Module,
        plan: dict[str, Any],
        shape: tuple[int, int],
        *,
        k: float,
        weight: float,
        label_lr: float,
    ) -> None:
        super().__init__(network, plan, k=k, weight=weight)
        self.labels = nn.Parameter(torch.logit(torch.empty(shape).uniform_(0.4, 0.6)))
        self.label_lr = label_lr

    def losses(self, batch: Batch, info: StepInfo) -> dict[str, Tensor]:
        if not self.training:
            return super().losses(batch, info)
        logits = self.network(batch.x)
        targets, _ = plain_targets(batch.y)
        known_negative, ignored = batch.y < 0, torch.isnan(batch.y)
        labels = self.labels[batch.rows]
        halves = []
        for one, other in ((logits, labels), (labels, logits)):
            estimate = torch.sigmoid(other.detach()).masked_fill(known_negative, 0.0)
            losses = bce(one, estimate.masked_fill(ignored, torch.nan)) + positive_bce(one, targets)
            penalty = self.weight * self._penalty(torch.sigmoid(one), targets)
            halves.append((mean_loss(losses), penalty))
        (network_loss, network_penalty), (label_loss, label_penalty) = halves
        return {
            "network": network_loss / 2,
            "labels": label_loss / 2,
            "expected": (network_penalty + label_penalty) / 2,
        }

    def optimizers(self, n_steps: int) -> list[OptimizerPlan]:
        label_plan = {**self.plan, "lr": self.label_lr, "weight_decay": 0.0}
        return [
            *super().optimizers(n_steps),
            make_plan([self.labels], n_steps=n_steps, **label_plan),
        ]


class ROLE(EPR):
    """Regularised online label estimation: the labels of the training rows are parameters too.

    The network and the labels learn from each other, and both are held to the expected number of
    positives. The estimated labels need as much memory as the label matrix.

    Parameters
    ----------
    expected, weight
        As in :class:`~labelweave.partial.epr.EPR`.
    label_rate : float, default=10.0
        Learning rate of the labels, as a multiple of that of the network.
    base, unannotated, validation, monitor, threshold, validation_fraction, random_state
        As in :class:`~labelweave.partial.base.PartialClassifier`.

    References
    ----------
    .. [1] E. Cole, O. Mac Aodha, T. Lorieul, P. Perona, D. Morris and N. Jojic. Multi-label
       learning from single positive labels. CVPR 2021, Eq. 8 to 10.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, Y = make_multilabel_classification(n_samples=200, random_state=0)
    >>> model = ROLE(expected=2.0, random_state=0).set_params(base__epochs=5).fit(X, Y)
    >>> model.predict_proba(X[:3]).shape
    (3, 5)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **EPR._parameter_constraints,
        "label_rate": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        base: Any = "mlp",
        *,
        expected: float | str = "auto",
        weight: float = 1.0,
        label_rate: float = 10.0,
        unannotated: str = "auto",
        validation: str = "partial",
        monitor: str = "auto",
        threshold: Any = "cardinality",
        validation_fraction: float = 0.2,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            base,
            expected=expected,
            weight=weight,
            unannotated=unannotated,
            validation=validation,
            monitor=monitor,
            threshold=threshold,
            validation_fraction=validation_fraction,
            random_state=random_state,
        )
        self.label_rate = label_rate

    @classmethod
    def published(cls, dataset: str | None = None) -> Self:
        """The method as trained for Table 2 of the CLS paper."""
        return cls(published_base(dataset), threshold=0.5)

    def _build_task(self, run: PartialRun) -> Task:
        self.expected_ = self._expected_positives(run)
        settings = run.session.spec.settings
        return FreeLabelsTask(
            run.network,
            settings.optimizer_options(),
            run.session.Y.shape,
            k=self.expected_,
            weight=self.weight,
            label_lr=settings.lr * self.label_rate,
        )
