"""Large loss matters: one network doubts its own negatives of large loss (LL-R, LL-Ct, LL-Cp)."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval
from torch import nn

from labelweave.nn.session import TrainingSession
from labelweave.nn.task import Task
from labelweave.partial._selection.strategies import STRATEGIES
from labelweave.partial.base import PartialClassifier

__all__ = ["LargeLossCorrection", "LargeLossPermanent", "LargeLossRejection"]


class LargeLossRejection(PartialClassifier):
    """Large loss rejection (LL-R): in epoch e the ``(e - 1) delta`` share of largest loss is out.

    The engine of CLS with one network that chooses for itself.

    Parameters
    ----------
    base : str or neural estimator, default="mlp"
    delta : float, default=0.005
        By how much the share of the unannotated entries rises each epoch.
    **partial
        As in :class:`labelweave.partial.base.PartialClassifier`.

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

    _strategy: ClassVar[str] = "ll-r"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PartialClassifier._parameter_constraints,
        "delta": [Interval(Real, 0, 1, closed="left")],
    }

    def __init__(self, base: Any = "mlp", *, delta: float = 0.005, **partial: Any) -> None:
        super().__init__(base, **partial)
        self.delta = delta

    def _build_task(self, network: nn.Module, session: TrainingSession) -> Task:
        # A share of e * delta, and no more than all of them.
        rate, ramp = (1.0, 1 / self.delta) if self.delta > 0 else (0.0, 1.0)
        return self._peer_task(network, session, STRATEGIES[self._strategy], tau_h=rate, ramp=ramp)


class LargeLossCorrection(LargeLossRejection):
    """Large loss correction, temporary (LL-Ct): entries of large loss count as positives.

    Parameters
    ----------
    base : str or neural estimator, default="mlp"
    delta : float, default=0.002
    **partial
        As in :class:`LargeLossRejection`.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, Y = make_multilabel_classification(n_samples=200, random_state=0)
    >>> model = LargeLossCorrection(random_state=0).set_params(base__epochs=5).fit(X, Y)
    >>> model.predict_proba(X[:3]).shape
    (3, 5)
    """

    _strategy: ClassVar[str] = "ll-ct"

    def __init__(self, base: Any = "mlp", *, delta: float = 0.002, **partial: Any) -> None:
        super().__init__(base, delta=delta, **partial)


class LargeLossPermanent(LargeLossRejection):
    """Large loss correction, permanent (LL-Cp): entries of large loss become positives for good.

    In epoch e the ``delta`` share of those that are still unannotated is added.

    Parameters
    ----------
    base : str or neural estimator, default="mlp"
    delta : float, default=0.001
    **partial
        As in :class:`LargeLossRejection`.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, Y = make_multilabel_classification(n_samples=200, random_state=0)
    >>> model = LargeLossPermanent(random_state=0).set_params(base__epochs=5).fit(X, Y)
    >>> model.predict_proba(X[:3]).shape
    (3, 5)
    """

    _strategy: ClassVar[str] = "ll-cp"

    def __init__(self, base: Any = "mlp", *, delta: float = 0.001, **partial: Any) -> None:
        super().__init__(base, delta=delta, **partial)

    def _build_task(self, network: nn.Module, session: TrainingSession) -> Task:
        strategy = STRATEGIES[self._strategy]
        return self._peer_task(network, session, strategy, tau_h=self.delta, ramp=1)
