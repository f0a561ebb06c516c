"""Expected positive regularisation (EPR): positives, and their expected number per row."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import Any, ClassVar

import torch
from sklearn.utils._param_validation import Interval, StrOptions
from torch import Tensor, nn

from labelweave.nn.batches import Batch
from labelweave.nn.losses import expected_positives, mean_loss, positive_bce
from labelweave.nn.process_rows import gather_rows
from labelweave.nn.task import StepInfo, Task
from labelweave.partial._selection.partial_losses import PartialLossTask, plain_targets
from labelweave.partial._selection.partial_run import PartialRun
from labelweave.partial.base import PartialClassifier

__all__ = ["EPR"]


class ExpectedTask(PartialLossTask):
    """Cross-entropy of the positives, and a penalty if their number per row is not `k`."""

    def __init__(
        self, network: nn.Module, plan: dict[str, Any], *, k: float, weight: float = 1.0
    ) -> None:
        super().__init__(network, lambda z, y, _: positive_bce(z, y), plan, name="positive_bce")
        self.k = k
        self.weight = weight

    def losses(self, batch: Batch, info: StepInfo) -> dict[str, Tensor]:
        logits = self.network(batch.x)
        targets, unannotated = plain_targets(batch.y)
        losses = self._entry_losses(logits, targets, unannotated, batch, info)
        return {
            self.name: mean_loss(losses),
            "expected": self.weight * self._penalty(torch.sigmoid(logits), targets),
        }

    def _penalty(self, probabilities: Tensor, targets: Tensor) -> Tensor:
        known = torch.where(torch.isnan(targets), 0.0, probabilities)
        return expected_positives(gather_rows(known), self.k)


class EPR(PartialClassifier):
    """Cross-entropy of the positives, and a penalty on the number of predicted positives per row.

    Unannotated entries have no loss of their own. The second term keeps the mean number of
    predicted positives near the expected one.

    Parameters
    ----------
    expected : float or "auto", default="auto"
        Expected number of positives per row, the paper's k. ``"auto"``: the annotated positives
        plus the missing ones, whose share is estimated as in
        :class:`~labelweave.partial.cls.CLS`.
    weight : float, default=1.0
        Weight of the second term, the paper's lambda.
    base, unannotated, validation, monitor, threshold, validation_fraction, random_state
        As in :class:`~labelweave.partial.base.PartialClassifier`.

    Attributes
    ----------
    expected_ : float
        Expected number of positives per row.

    References
    ----------
    .. [1] E. Cole, O. Mac Aodha, T. Lorieul, P. Perona, D. Morris and N. Jojic. Multi-label
       learning from single positive labels. CVPR 2021, Eq. 5 and 6.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, Y = make_multilabel_classification(n_samples=200, random_state=0)
    >>> model = EPR(expected=2.0, random_state=0).set_params(base__epochs=5).fit(X, Y)
    >>> model.predict_proba(X[:3]).shape
    (3, 5)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PartialClassifier._parameter_constraints,
        "expected": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "weight": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        base: Any = "mlp",
        *,
        expected: float | str = "auto",
        weight: float = 1.0,
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
        self.expected = expected
        self.weight = weight

    def _build_task(self, run: PartialRun) -> Task:
        self.expected_ = self._expected_positives(run)
        options = run.session.spec.settings.optimizer_options()
        return ExpectedTask(run.network, options, k=self.expected_, weight=self.weight)

    def _expected_positives(self, run: PartialRun) -> float:
        if self.expected != "auto":
            return float(self.expected)
        session = run.session
        n_positive = float(session.Y.positive().sum())
        n_unannotated = float((session.Y.to_numpy() == 0).sum())
        return (n_positive + run.missing_rate() * n_unannotated) / session.Y.n_rows

    @classmethod
    def _test_params(cls) -> dict[str, Any]:
        # With three labels and few rows, the second term needs a large weight.
        return {**super()._test_params(), "weight": 10.0}

    def _state(self) -> dict[str, Any]:
        return {**super()._state(), "expected": self.expected_}

    def _set_state(self, state: Mapping[str, Any]) -> None:
        super()._set_state(state)
        self.expected_ = state["expected"]
