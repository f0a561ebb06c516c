"""Hill loss: a negative that looks positive pulls less."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval
from torch import nn

from labelweave.nn.losses import hill
from labelweave.nn.session import TrainingSession
from labelweave.nn.task import Task
from labelweave.partial.base import PartialClassifier

__all__ = ["Hill"]


class Hill(PartialClassifier):
    """Hill loss: ``(margin - p) p^2`` on unannotated entries.

    Its gradient falls again as p nears 1: an entry that the network insists on is more likely a
    missing positive than a hard negative.

    Parameters
    ----------
    base : str or neural estimator, default="mlp"
    margin : float, default=1.5
        The paper's lambda.
    **partial
        As in :class:`labelweave.partial.base.PartialClassifier`.

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

    def __init__(self, base: Any = "mlp", *, margin: float = 1.5, **partial: Any) -> None:
        super().__init__(base, **partial)
        self.margin = margin

    @classmethod
    def _test_params(cls) -> dict[str, Any]:
        # With every other entry positive, the paper's margin lets all of them be.
        return {**super()._test_params(), "margin": 4.0}

    def _build_task(self, network: nn.Module, session: TrainingSession) -> Task:
        margin = self.margin
        return self._loss_task(network, session, lambda z, y, _: hill(z, y, margin=margin), "hill")
