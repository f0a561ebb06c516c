"""Expected positive regularisation (EPR): positives, and how many there should be."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval, StrOptions
from torch import nn

from labelweave.nn.session import TrainingSession
from labelweave.nn.task import Task
from labelweave.partial._selection.partial_losses import ExpectedTask
from labelweave.partial.base import PartialClassifier

__all__ = ["EPR"]


class EPR(PartialClassifier):
    """Cross-entropy of the positives alone, and the number of positives to expect a row.

    Parameters
    ----------
    base : str or neural estimator, default="mlp"
    expected : float or "auto", default="auto"
        Positives to expect a row, the paper's k. ``"auto"``: those annotated, and the missing
        ones by the estimate of :func:`labelweave.missing_positives.missing_share`, after a few
        epochs of assuming negatives with a network of its own. The hidden truth is never looked at.
    weight : float, default=1.0
        Of the second term, the paper's lambda.
    **partial
        As in :class:`labelweave.partial.base.PartialClassifier`.

    Attributes
    ----------
    expected_ : float
        Positives expected a row.

    References
    ----------
    .. [1] E. Cole et al. Multi-label learning from single positive labels. CVPR 2021, Eq. 5, 6.

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
        **partial: Any,
    ) -> None:
        super().__init__(base, **partial)
        self.expected = expected
        self.weight = weight

    def _build_task(self, network: nn.Module, session: TrainingSession) -> Task:
        self.expected_ = self._expected(session, self.expected)
        plan = session.spec.settings.optimizer_options()
        return ExpectedTask(network, plan, k=self.expected_, weight=self.weight)

    @classmethod
    def _test_params(cls) -> dict[str, Any]:
        given = super()._test_params()
        # With three labels and few rows the count has to be held to firmly.
        return {**given, "weight": 10.0}

    def _state(self) -> dict[str, Any]:
        return {**super()._state(), "expected": self.expected_}

    def _set_state(self, state: Any) -> None:
        super()._set_state(state)
        self.expected_ = state["expected"]
