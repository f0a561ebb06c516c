"""Assume that unannotated entries are negative: AN, WAN and AN-LS."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar, Self

from sklearn.utils._param_validation import Interval

from labelweave.nn.losses import bce, smoothed_bce, weighted_bce
from labelweave.nn.task import Task
from labelweave.partial._selection.partial_run import PartialRun
from labelweave.partial.base import PartialClassifier, published_base

__all__ = ["AssumeNegative", "SmoothedAssumeNegative", "WeakAssumeNegative"]


class AssumeNegative(PartialClassifier):
    """Assume negative (AN): binary cross-entropy with every unannotated entry as a negative.

    This is the usual training and the baseline of every comparison. Therefore ``"mlp"`` is trained
    with its usual settings, with early stopping on held-out rows.

    Parameters
    ----------
    base, unannotated, validation, monitor, threshold, validation_fraction, random_state
        As in :class:`~labelweave.partial.base.PartialClassifier`.

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

    _default_settings: ClassVar[dict[str, Any]] = {}

    def _build_task(self, run: PartialRun) -> Task:
        return run.entry_loss_task(lambda z, y, _: bce(z, y), "an")


class WeakAssumeNegative(PartialClassifier):
    """Weak assume negative (WAN): each unannotated entry has the weight ``1 / (L - 1)``.

    A single annotated positive then has as much weight as all other entries of its row together.

    Parameters
    ----------
    base, unannotated, validation, monitor, threshold, validation_fraction, random_state
        As in :class:`~labelweave.partial.base.PartialClassifier`.

    References
    ----------
    .. [1] E. Cole, O. Mac Aodha, T. Lorieul, P. Perona, D. Morris and N. Jojic. Multi-label
       learning from single positive labels. CVPR 2021, Eq. 3.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, Y = make_multilabel_classification(n_samples=200, random_state=0)
    >>> model = WeakAssumeNegative(random_state=0).set_params(base__epochs=5).fit(X, Y)
    >>> model.predict_proba(X[:3]).shape
    (3, 5)
    """

    @classmethod
    def published(cls, dataset: str | None = None) -> Self:
        """The method as trained for Table 2 of the CLS paper."""
        return cls(published_base(dataset), threshold=0.5)

    def _build_task(self, run: PartialRun) -> Task:
        weight = 1 / max(run.session.Y.n_labels - 1, 1)
        return run.entry_loss_task(lambda z, y, _: weighted_bce(z, y, neg_weight=weight), "wan")


class SmoothedAssumeNegative(PartialClassifier):
    """Assume negative with label smoothing (AN-LS).

    Parameters
    ----------
    smoothing : float, default=0.1
        The targets are ``smoothing / 2`` and ``1 - smoothing / 2``.
    base, unannotated, validation, monitor, threshold, validation_fraction, random_state
        As in :class:`~labelweave.partial.base.PartialClassifier`.

    References
    ----------
    .. [1] E. Cole, O. Mac Aodha, T. Lorieul, P. Perona, D. Morris and N. Jojic. Multi-label
       learning from single positive labels. CVPR 2021, Eq. 4.

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

    def __init__(
        self,
        base: Any = "mlp",
        *,
        smoothing: float = 0.1,
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
        self.smoothing = smoothing

    def _build_task(self, run: PartialRun) -> Task:
        smoothing = self.smoothing
        return run.entry_loss_task(lambda z, y, _: smoothed_bce(z, y, smoothing=smoothing), "an_ls")
