"""Entropy maximisation with asymmetric pseudo-labels (EM + APL)."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval

from labelweave.nn.losses import entropy_maximisation
from labelweave.nn.task import Task
from labelweave.partial._selection.partial_losses import PseudoNegativesTask
from labelweave.partial._selection.partial_run import PartialRun
from labelweave.partial.base import PartialClassifier

__all__ = ["EMAPL"]


class EMAPL(PartialClassifier):
    """Entropy maximisation and asymmetric pseudo-labelling.

    At first the loss keeps unannotated entries undecided, by maximising their entropy. Later the
    least probable entries of each label become (soft) negatives. No entry is pseudo-labelled as
    positive.

    Parameters
    ----------
    alpha : float, default=0.2
        Weight of the entropy.
    beta : float, default=0.5
        Weight of the pseudo-labels.
    share : float, default=0.9
        Share of the unannotated entries of each label that are pseudo-labelled in the end, the
        paper's theta.
    soft : bool, default=True
        Whether a pseudo-label is the probability that its entry had, instead of 0.
    warmup : int, default=5
        Number of epochs before the first pseudo-labels.
    ramp : int, default=10
        Number of epochs over which their share rises.
    base, unannotated, validation, monitor, threshold, validation_fraction, random_state
        As in :class:`~labelweave.partial.base.PartialClassifier`.

    Notes
    -----
    The paper tunes alpha (0.01 to 0.2) and beta (0.02 to 0.9) per data set.

    *Choices.* The probability of an entry is the one of the last step that used its row, instead of
    a separate pass over all rows, and a pseudo-label keeps its value.

    The scores rank well but are not calibrated: most lie near one half. A fixed threshold of 0.5 is
    therefore useless; the default threshold of this package works.

    References
    ----------
    .. [1] D. Zhou, P. Chen, Q. Wang, G. Chen and P.-A. Heng. Acknowledging the unknown for
       multi-label learning with single positive labels. ECCV 2022.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, Y = make_multilabel_classification(n_samples=200, random_state=0)
    >>> model = EMAPL(random_state=0).set_params(base__epochs=8).fit(X, Y)
    >>> model.predict_proba(X[:3]).shape
    (3, 5)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PartialClassifier._parameter_constraints,
        "alpha": [Interval(Real, 0, None, closed="left")],
        "beta": [Interval(Real, 0, None, closed="left")],
        "share": [Interval(Real, 0, 1, closed="both")],
        "soft": ["boolean"],
        "warmup": [Interval(Integral, 0, None, closed="left")],
        "ramp": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        base: Any = "mlp",
        *,
        alpha: float = 0.2,
        beta: float = 0.5,
        share: float = 0.9,
        soft: bool = True,
        warmup: int = 5,
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
        self.alpha = alpha
        self.beta = beta
        self.share = share
        self.soft = soft
        self.warmup = warmup
        self.ramp = ramp

    def _build_task(self, run: PartialRun) -> Task:
        alpha = self.alpha
        return PseudoNegativesTask(
            run.network,
            lambda z, y, _: entropy_maximisation(z, y, alpha=alpha),
            run.session.spec.settings.optimizer_options(),
            n_rows=run.session.Y.n_rows,
            n_labels=run.session.Y.n_labels,
            warmup=self.warmup,
            ramp=self.ramp,
            share=self.share,
            beta=self.beta,
            soft=self.soft,
        )

    @classmethod
    def _test_params(cls) -> dict[str, Any]:
        # Undecided entries have probabilities near one half, which give no label sets.
        quick = {"share": 1.0, "soft": False, "beta": 1.0, "warmup": 1, "ramp": 2}
        return {**super()._test_params(), **quick}
