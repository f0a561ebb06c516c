"""Assuming that what nobody annotated is negative: AN, WAN and AN-LS."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval
from torch import nn

from labelweave.nn.losses import bce, smoothed_bce, weighted_bce
from labelweave.nn.session import TrainingSession
from labelweave.nn.task import Task
from labelweave.partial.base import PartialClassifier

__all__ = ["AssumeNegative", "SmoothedAssumeNegative", "WeakAssumeNegative"]


class AssumeNegative(PartialClassifier):
    """Assume negative (AN): binary cross-entropy with every unannotated entry as a negative.

    What most people do without saying so, and the bottom line of every comparison: so ``"mlp"``
    is trained here as everywhere else, stopped early on rows held out.

    Parameters
    ----------
    base : str or neural estimator, default="mlp"
    **partial
        As in :class:`labelweave.partial.base.PartialClassifier`.

    References
    ----------
    .. [1] E. Cole, O. Mac Aodha, T. Lorieul, P. Perona, D. Morris and N. Jojic. Multi-label
       learning from single positive labels. CVPR 2021, Eq. 2.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, Y = make_multilabel_classification(n_samples=200, random_state=0)
    >>> model = AssumeNegative(random_state=0).set_params(base__epochs=5).fit(X, Y)
    >>> model.predict_proba(X[:3]).shape
    (3, 5)
    """

    _run: ClassVar[dict[str, Any]] = {}

    def _build_task(self, network: nn.Module, session: TrainingSession) -> Task:
        return self._loss_task(network, session, lambda z, y, _: bce(z, y), "an")


class WeakAssumeNegative(PartialClassifier):
    """Weak assume negative (WAN): each unannotated entry weighs ``1 / (L - 1)``.

    A single annotated positive then weighs as much as all the rest of its row.

    Parameters
    ----------
    base : str or neural estimator, default="mlp"
    **partial
        As in :class:`labelweave.partial.base.PartialClassifier`.

    References
    ----------
    .. [1] E. Cole et al. Multi-label learning from single positive labels. CVPR 2021, Eq. 3.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, Y = make_multilabel_classification(n_samples=200, random_state=0)
    >>> model = WeakAssumeNegative(random_state=0).set_params(base__epochs=5).fit(X, Y)
    >>> model.predict_proba(X[:3]).shape
    (3, 5)
    """

    def _build_task(self, network: nn.Module, session: TrainingSession) -> Task:
        weight = 1 / max(session.Y.n_labels - 1, 1)
        return self._loss_task(
            network, session, lambda z, y, _: weighted_bce(z, y, neg_weight=weight), "wan"
        )


class SmoothedAssumeNegative(PartialClassifier):
    """Assume negative with label smoothing (AN-LS).

    Parameters
    ----------
    base : str or neural estimator, default="mlp"
    smoothing : float, default=0.1
        Targets are ``smoothing / 2`` and ``1 - smoothing / 2``.
    **partial
        As in :class:`labelweave.partial.base.PartialClassifier`.

    References
    ----------
    .. [1] E. Cole et al. Multi-label learning from single positive labels. CVPR 2021, Eq. 4.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, Y = make_multilabel_classification(n_samples=200, random_state=0)
    >>> model = SmoothedAssumeNegative(random_state=0).set_params(base__epochs=5).fit(X, Y)
    >>> model.predict_proba(X[:3]).shape
    (3, 5)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PartialClassifier._parameter_constraints,
        "smoothing": [Interval(Real, 0, 1, closed="both")],
    }

    def __init__(self, base: Any = "mlp", *, smoothing: float = 0.1, **partial: Any) -> None:
        super().__init__(base, **partial)
        self.smoothing = smoothing

    def _build_task(self, network: nn.Module, session: TrainingSession) -> Task:
        smoothing = self.smoothing
        return self._loss_task(
            network, session, lambda z, y, _: smoothed_bce(z, y, smoothing=smoothing), "an_ls"
        )
