"""Hill loss: less weight for negatives that look positive."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval

from labelweave.nn.losses import hill
from labelweave.nn.task import Task
from labelweave.partial._selection.partial_run import PartialRun
from labelweave.partial.base import PartialClassifier

__all__ = ["Hill"]


class Hill(PartialClassifier):
    """Hill loss: ``(margin - p) p^2`` on unannotated entries.

    Its gradient falls again as p approaches 1, because an unannotated entry that the network
    believes to be positive is more likely a missing positive than a hard negative.

    Parameters
    ----------
    margin : float, default=1.5
        The paper's lambda.
    base, unannotated, validation, monitor, threshold, validation_fraction, random_state
        As in :class:`~labelweave.partial.base.PartialClassifier`.

    References
    ----------
    .. [1] Y. Zhang, Y. Cheng, X. Huang et al. Simple and robust loss design for multi-label
       learning with missing labels. 2021, Eq. 8.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, Y = make_multilabel_classification(n_samples=200, random_state=0)
    >>> model = Hill(random_state=0).set_params(base__epochs=5).fit(X, Y)
    >>> model.predict_proba(X[:3]).shape
    (3, 5)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PartialClassifier._parameter_constraints,
        "margin": [Interval(Real, 1, None, closed="left")],
    }

    def __init__(
        self,
        base: Any = "mlp",
        *,
        margin: float = 1.5,
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
        self.margin = margin

    @classmethod
    def _test_params(cls) -> dict[str, Any]:
        # The paper's margin fails where half of all entries are positive.
        return {**super()._test_params(), "margin": 4.0}

    def _build_task(self, run: PartialRun) -> Task:
        margin = self.margin
        return run.entry_loss_task(lambda z, y, _: hill(z, y, margin=margin), "hill")
