"""Regularised online label estimation (ROLE): the training labels are learnt as well."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar, Self

from sklearn.utils._param_validation import Interval

from labelweave.nn.task import Task
from labelweave.partial._selection.partial_losses import FreeLabelsTask
from labelweave.partial._selection.partial_run import PartialRun
from labelweave.partial.base import published_base
from labelweave.partial.epr import EPR

__all__ = ["ROLE"]


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
