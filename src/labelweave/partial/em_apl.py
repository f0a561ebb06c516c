"""Entropy maximisation with asymmetric pseudo-labels (EM + APL)."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import torch
from sklearn.utils._param_validation import Interval
from torch import Tensor, nn

from labelweave.nn.batches import Batch
from labelweave.nn.losses import bce, entropy_maximisation
from labelweave.nn.process_rows import gather_rows
from labelweave.nn.task import StepInfo, Task
from labelweave.partial._selection.partial_losses import EntryLoss, PartialLossTask
from labelweave.partial._selection.partial_run import PartialRun
from labelweave.partial.base import PartialClassifier

__all__ = ["EMAPL"]

_MAX_QUANTILE_ENTRIES = 2**22  # torch.nanquantile refuses more than four times this


class PseudoNegativesTask(PartialLossTask):
    """The objective of EM + APL, Zhou et al., Eq. 5 to 7; parameters are those of :class:`EMAPL`.

    After `warmup` epochs, a share of the unannotated entries of each label, those of lowest
    probability, get their current probability as a pseudo-label. The share rises by
    ``share / ramp`` per epoch up to `share`.
    """

    probabilities: Tensor
    thresholds: Tensor
    thresholds_epoch: Tensor

    def __init__(
        self,
        network: nn.Module,
        loss: EntryLoss,
        plan: dict[str, Any],
        *,
        n_rows: int,
        n_labels: int,
        warmup: int,
        ramp: int,
        share: float,
        beta: float,
        soft: bool = True,
    ) -> None:
        super().__init__(network, loss, plan, name="entropy")
        self.soft = soft
        self.warmup, self.ramp, self.share, self.beta = warmup, ramp, share, beta
        # Probability of each unannotated entry at the last step with its row; NaN for all others.
        self.register_buffer("probabilities", torch.full((n_rows, n_labels), torch.nan))
        self.register_buffer("thresholds", torch.full((n_labels,), -1.0))
        self.register_buffer("thresholds_epoch", torch.tensor(-1))

    def _entry_losses(
        self, logits: Tensor, targets: Tensor, unannotated: Tensor, batch: Batch, info: StepInfo
    ) -> Tensor:
        losses = super()._entry_losses(logits, targets, unannotated, batch, info)
        if not self.training:
            return losses
        self._update_thresholds(info.epoch)
        previous = self.probabilities[batch.rows]
        pseudo = unannotated & (previous <= self.thresholds)
        labels = previous if self.soft else torch.zeros_like(previous)
        losses = torch.where(pseudo, self.beta * bce(logits, labels), losses)
        current = torch.sigmoid(logits.detach()).masked_fill(~unannotated, torch.nan)
        rows = gather_rows(batch.rows)
        self.probabilities[rows] = torch.where(
            gather_rows(pseudo.float()) > 0, self.probabilities[rows], gather_rows(current)
        )
        return losses

    def _update_thresholds(self, epoch: int) -> None:
        """Per label, the probability below which an entry is a pseudo-negative in this epoch."""
        if epoch < self.warmup or int(self.thresholds_epoch) == epoch:
            return
        share = self.share * min((epoch - self.warmup + 1) / self.ramp, 1.0)
        n_columns = max(_MAX_QUANTILE_ENTRIES // max(len(self.probabilities), 1), 1)
        quantiles = [
            torch.nanquantile(columns, share, dim=0)
            for columns in self.probabilities.split(n_columns, 1)
        ]
        self.thresholds.copy_(torch.cat(quantiles).nan_to_num(-1.0))
        self.thresholds_epoch.fill_(epoch)


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
