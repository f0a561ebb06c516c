"""Regularised online label estimation (ROLE): free labels learn with the network."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import torch
from sklearn.utils._param_validation import Interval
from torch import nn

from labelweave.nn.session import TrainingSession
from labelweave.nn.task import Task
from labelweave.partial._selection.partial_losses import FreeLabelsTask
from labelweave.partial.epr import EPR

__all__ = ["ROLE"]


class ROLE(EPR):
    """Regularised online label estimation: the training rows' labels are parameters too.

    Network and labels learn from each other, both held to the expected number of positives. The
    free labels take as much memory as the label matrix.

    Parameters
    ----------
    base : str or neural estimator, default="mlp"
    expected, weight
        As in :class:`labelweave.partial.epr.EPR`.
    label_rate : float, default=10.0
        Learning rate of the labels, as a multiple of the network's.
    **partial
        As in :class:`labelweave.partial.base.PartialClassifier`.

    References
    ----------
    .. [1] E. Cole et al. Multi-label learning from single positive labels. CVPR 2021, Eq. 8-10.

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

    def __init__(self, base: Any = "mlp", *, label_rate: float = 10.0, **partial: Any) -> None:
        super().__init__(base, **partial)
        self.label_rate = label_rate

    def _build_task(self, network: nn.Module, session: TrainingSession) -> Task:
        self.expected_ = self._expected(session, self.expected)
        settings = session.spec.settings
        return FreeLabelsTask(
            network,
            settings.optimizer_options(),
            torch.empty(session.Y.shape),
            k=self.expected_,
            weight=self.weight,
            label_lr=settings.lr * self.label_rate,
        )
