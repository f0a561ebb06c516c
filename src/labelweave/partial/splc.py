"""Self-paced loss correction (SPLC): a probable negative counts as positive."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval
from torch import Tensor

from labelweave.nn.losses import splc
from labelweave.nn.task import StepInfo, Task
from labelweave.partial._selection.partial_run import PartialRun
from labelweave.partial.base import PartialClassifier

__all__ = ["SPLC"]


class SPLC(PartialClassifier):
    """Self-paced loss correction: an unannotated entry with a probability above `tau` is positive.

    Parameters
    ----------
    tau : float, default=0.6
        Probability above which an entry has the loss of a positive.
    margin : float, default=1.0
        Subtracted from the logits of positives in their loss.
    gamma : float, default=2.0
        Focusing parameter of the loss of positives.
    warmup : int, default=1
        Number of epochs before corrections start.
    base, unannotated, validation, monitor, threshold, validation_fraction, random_state
        As in :class:`~labelweave.partial.base.PartialClassifier`.

    References
    ----------
    .. [1] Y. Zhang, Y. Cheng, X. Huang et al. Simple and robust loss design for multi-label
       learning with missing labels. 2021, Eq. 10 and 11.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, Y = make_multilabel_classification(n_samples=200, random_state=0)
    >>> model = SPLC(random_state=0).set_params(base__epochs=5).fit(X, Y)
    >>> model.predict_proba(X[:3]).shape
    (3, 5)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PartialClassifier._parameter_constraints,
        "tau": [Interval(Real, 0, 1, closed="both")],
        "margin": [Interval(Real, 0, None, closed="left")],
        "gamma": [Interval(Real, 0, None, closed="left")],
        "warmup": [Interval(Integral, 0, None, closed="left")],
    }

    def __init__(
        self,
        base: Any = "mlp",
        *,
        tau: float = 0.6,
        margin: float = 1.0,
        gamma: float = 2.0,
        warmup: int = 1,
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
        self.tau = tau
        self.margin = margin
        self.gamma = gamma
        self.warmup = warmup

    def _build_task(self, run: PartialRun) -> Task:
        parameters = {"tau": self.tau, "margin": self.margin, "gamma": self.gamma}
        warmup = self.warmup

        def loss(logits: Tensor, targets: Tensor, info: StepInfo) -> Tensor:
            return splc(logits, targets, **parameters, correct=info.epoch >= warmup)

        return run.entry_loss_task(loss, "splc")
