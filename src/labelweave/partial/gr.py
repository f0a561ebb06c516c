"""Generalized robust loss (GR): a negative counts as positive by its probability of being one."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval
from torch import Tensor

from labelweave.nn.losses import generalized_robust
from labelweave.nn.task import StepInfo, Task
from labelweave.partial._selection.partial_run import PartialRun
from labelweave.partial.base import PartialClassifier

__all__ = ["GR"]


class GR(PartialClassifier):
    """Generalized robust loss; see :func:`labelweave.nn.losses.generalized_robust`.

    An unannotated entry counts as a positive in proportion to its estimated probability, and the
    loss lies between cross-entropy and absolute error.

    Parameters
    ----------
    loss_params : dict, optional
        Parameters of the loss that differ from the paper's: `slope`, `offset`, `mean`, `width`
        (pairs: values at the start and at the end of the ramp), `q_positive`, `q_negative`.
    ramp : int, default=10
        Number of epochs over which the loss moves from the first to the second value of each pair.
    base, unannotated, validation, monitor, threshold, validation_fraction, random_state
        As in :class:`~labelweave.partial.base.PartialClassifier`.

    References
    ----------
    .. [1] Y. Chen, C. Li, X. Dai et al. Boosting single positive multi-label classification
       with generalized robust loss. IJCAI 2024.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, Y = make_multilabel_classification(n_samples=200, random_state=0)
    >>> model = GR(random_state=0).set_params(base__epochs=5).fit(X, Y)
    >>> model.predict_proba(X[:3]).shape
    (3, 5)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PartialClassifier._parameter_constraints,
        "loss_params": [dict, None],
        "ramp": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        base: Any = "mlp",
        *,
        loss_params: dict[str, Any] | None = None,
        ramp: int = 10,
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
        self.loss_params = loss_params
        self.ramp = ramp

    @classmethod
    def _test_params(cls) -> dict[str, Any]:
        # Near cross-entropy: the paper's values fail where half of all entries are positive.
        near = {"slope": (0.0, 0.0), "offset": (-6.0, -6.0), "width": (3.0, 3.0)}
        return {**super()._test_params(), "loss_params": {**near, "q_negative": 0.01}}

    def _build_task(self, run: PartialRun) -> Task:
        parameters, ramp = dict(self.loss_params or {}), self.ramp

        def loss(logits: Tensor, targets: Tensor, info: StepInfo) -> Tensor:
            progress = min(info.epoch / ramp, 1.0)
            return generalized_robust(logits, targets, progress=progress, **parameters)

        return run.entry_loss_task(loss, "gr")
