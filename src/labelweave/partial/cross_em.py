"""Cross-fitted expectation maximisation: networks label the rows that they did not see."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.utils._param_validation import Interval, StrOptions
from torch import Tensor, nn

from labelweave.data.splits import stratified_folds
from labelweave.exceptions import InputError
from labelweave.nn.batches import Batch
from labelweave.nn.losses import bce, mean_loss
from labelweave.nn.scoring import predict_scores
from labelweave.nn.session import TrainingSession
from labelweave.nn.task import StepInfo, SupervisedTask, Task
from labelweave.partial._selection.partial_losses import PartialLossTask, plain_targets
from labelweave.partial._selection.peer_networks import PeerTask, peers_of
from labelweave.partial._selection.posterior import (
    annotated_chance,
    annotation_rate,
    chance_given_labels,
    count_shift,
    positive_chance,
    shifted,
)
from labelweave.partial._selection.strategies import STRATEGIES
from labelweave.partial.base import PartialClassifier
from labelweave.unannotated import assume_negative

__all__ = ["CrossFitEM"]

_NEGATIVES_A_ROW = 3.0  # weight of all unannotated entries of a row together, in positives


class CrossFitEM(PartialClassifier):
    """Cross-fitted expectation maximisation over any network.

    The rows are dealt out to folds; one network a fold learns from the rows of all others and is
    stopped by its own. So every row has a score by a network that did not learn it. By these the
    annotation rate is estimated and each unannotated entry gets its chance of being positive
    (E-step); new networks learn from these chances (M-step). The mean of the last networks'
    probabilities predicts.

    The first networks leave out their own unannotated entries of highest loss, as CLS does with
    two. The loss is cross-entropy, in the place of that of `base`.

    Parameters
    ----------
    base : str or neural estimator, default="mlp"
        The network; also epochs, learning rate, patience.
    n_folds : int, default=4
        Folds, and networks a round. No row is held out besides.
    rounds : int, default=1
        E- and M-steps after the first networks; 0 keeps these.
    ramp : float or "auto", default="auto"
        Epochs over which the first networks come to leave out the estimated share; half of the
        run, 10 at the most.
    negative_weight : float or "auto", default="auto"
        Weight of an unannotated entry for the first networks, as in
        :class:`labelweave.partial.cls.CLS`.
    soft_weight : float or "auto", default="auto"
        Weight of an entry whose target is a chance; ``"auto"`` as `negative_weight`.
    label_evidence : bool, default=True
        Whether the chance of an entry also goes by the other labels that its row is known to have
        (:func:`labelweave.partial._selection.posterior.chance_given_labels`). Off, by its score
        alone.
    **partial
        As in :class:`labelweave.partial.base.PartialClassifier`.

    Attributes
    ----------
    annotation_rate_ : float or None
        Estimated share of the positives that are annotated, in the last round; None without.

    Notes
    -----
    Rows of a fold stop the network that labels them, and those that other rows are labelled by
    did learn them: their chances are out of fold, the epochs chosen nearly so.

    That every positive has the same chance of being annotated is an assumption; with a single
    annotated label a row it holds on average only.

    References
    ----------
    .. [1] C. Elkan and K. Noto. Learning classifiers from only positive and unlabeled data. KDD
       2008, Eq. 6.
    .. [2] V. Chernozhukov et al. Double/debiased machine learning for treatment and structural
       parameters. The Econometrics Journal, 2018 (cross-fitting).

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from labelweave.data.scenarios import hide_positives
    >>> X, Y = make_multilabel_classification(n_samples=200, random_state=0)
    >>> partial = hide_positives(Y, 0.5, random_state=0).Y
    >>> model = CrossFitEM(n_folds=2, random_state=0).set_params(base__epochs=5).fit(X, partial)
    >>> model.predict_proba(X[:3]).shape
    (3, 5)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PartialClassifier._parameter_constraints,
        "n_folds": [Interval(Integral, 2, None, closed="left")],
        "rounds": [Interval(Integral, 0, None, closed="left")],
        "ramp": [Interval(Real, 0, None, closed="left"), StrOptions({"auto"})],
        "negative_weight": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "soft_weight": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "label_evidence": ["boolean"],
    }

    def __init__(
        self,
        base: Any = "mlp",
        *,
        n_folds: int = 4,
        rounds: int = 1,
        ramp: float | str = "auto",
        negative_weight: float | str = "auto",
        soft_weight: float | str = "auto",
        label_evidence: bool = True,
        **partial: Any,
    ) -> None:
        super().__init__(base, **partial)
        self.n_folds = n_folds
        self.rounds = rounds
        self.ramp = ramp
        self.negative_weight = negative_weight
        self.soft_weight = soft_weight
        self.label_evidence = label_evidence

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.capabilities.out_of_fold = True
        return tags

    def _needs_validation(self) -> bool:
        return self.validation == "clean"  # otherwise each fold is held out in its turn

    def _n_networks(self) -> int:
        return self.n_folds

    def _learn(self, network: Any, session: TrainingSession) -> None:
        scores = self._learn_folds(network, session)
        by = count_shift(scores, session.Y.to_numpy())
        network.move(by)
        self._out_of_fold = assume_negative(session.Y), shifted(scores, by)

    def _learn_folds(self, network: nn.Module, session: TrainingSession) -> np.ndarray:
        """Train the networks; what they say of the rows that they did not learn."""
        codes = session.Y.to_numpy()
        if len(codes) < self.n_folds:
            raise InputError(
                f"n_folds is {self.n_folds}, but there are fewer rows: n_samples = {len(codes)}"
            )
        fold = self._folds(session)
        self.annotation_rate_: float | None = None
        chances = None
        for number in range(self.rounds):
            first = self._peer_networks(session.spec, session.X.shape[1], session.Y.n_labels)
            scores = self._round(first, session, fold, chances, f"round-{number + 1}-")
            self.annotation_rate_ = annotation_rate(scores, codes)
            annotated = annotated_chance(scores, codes)
            if self.label_evidence:
                annotated = chance_given_labels(annotated, codes, random_state=session.seed)
            chance = positive_chance(annotated, self.annotation_rate_)
            chances = torch.from_numpy(chance.astype(np.float32))
        return self._round(network, session, fold, chances, f"round-{self.rounds + 1}-")

    def _folds(self, session: TrainingSession) -> np.ndarray:
        """Of each row; the same each time for a session."""
        return stratified_folds(assume_negative(session.Y), self.n_folds, random_state=session.seed)

    def _round(
        self,
        network: nn.Module,
        session: TrainingSession,
        fold: np.ndarray,
        chances: Tensor | None,
        prefix: str,
    ) -> np.ndarray:
        """Train a network a fold; the scores of each row by the one that did not learn it."""
        spec = session.spec
        monitor = self.monitor
        if monitor == "auto":
            monitor = "auc_macro" if self.validation == "partial" else "map"
        scores = np.zeros(session.Y.shape, np.float32)
        for k, own in enumerate(peers_of(network)):
            rest, held = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
            self._held = (session.X[held], session.Y[held])
            judged = (self._held[0], assume_negative(self._held[1]))
            part = replace(
                session,
                X=session.X[rest],
                Y=session.Y[rest],
                validation=judged if self.validation == "partial" else session.validation,
                prefix=f"{prefix}fold-{k + 1}-",
            )
            spec.pretrain(own, replace(part, Y=assume_negative(part.Y)))
            if chances is None:
                task = self._build_task(own, part)
            else:
                weight = _row_weight(self.soft_weight, part.Y.n_labels)
                plan = spec.settings.optimizer_options()
                task = ChancesTask(own, plan, chances[rest], weight=weight)
            part.train(task, monitor=None if spec.settings.patience is None else monitor)
            batches = part.scoring_batches(*self._held)
            scores[held] = predict_scores(task.scores, batches, part.engine)
        return scores

    def _build_task(self, network: nn.Module, session: TrainingSession) -> Task:
        """The objective of a network of the first round."""
        plain = SupervisedTask(network, bce, session.spec.settings.optimizer_options(), name="bce")
        return PeerTask(
            network,
            [plain],
            STRATEGIES["ll-r"],
            tau_h=None,
            ramp=self._ramp(self.ramp, session),
            negative_weight=_row_weight(self.negative_weight, session.Y.n_labels),
            estimate=self._estimator(session),
        )

    @classmethod
    def _test_params(cls) -> dict[str, Any]:
        return {**super()._test_params(), "n_folds": 2}

    def _state(self) -> dict[str, Any]:
        return {**super()._state(), "annotation_rate": self.annotation_rate_}

    def _set_state(self, state: Any) -> None:
        super()._set_state(state)
        self.annotation_rate_ = state["annotation_rate"]


def _row_weight(given: float | str, n_labels: int) -> float:
    """Weight of an unannotated entry; "auto": all of a row weigh as three positives, or less.

    >>> _row_weight(0.5, 31), _row_weight("auto", 31), _row_weight("auto", 3)
    (0.5, 0.1, 1.0)
    """
    if given != "auto":
        return float(given)
    return min(_NEGATIVES_A_ROW / max(n_labels - 1, 1), 1.0)


class ChancesTask(PartialLossTask):
    """Cross-entropy towards the chance that an unannotated entry is positive.

    Parameters
    ----------
    network, plan
        As in :class:`labelweave.partial._selection.partial_losses.PartialLossTask`.
    chances : Tensor of shape (n_rows, L)
        Of the training rows; those of entries that are known are not looked at.
    weight : float, default=1.0
        Of these entries.
    """

    chances: Tensor

    def __init__(
        self, network: nn.Module, plan: dict[str, Any], chances: Tensor, *, weight: float = 1.0
    ) -> None:
        super().__init__(network, lambda z, y, _: bce(z, y), plan, name="bce")
        self.register_buffer("chances", chances, persistent=False)
        self.weight = weight

    def losses(self, batch: Batch, info: StepInfo) -> dict[str, Tensor]:
        logits = self.network(batch.x)
        targets, is_open = plain_targets(batch.y)
        if self.training:
            targets = torch.where(is_open, self.chances[batch.rows], targets)
        weight = torch.where(is_open, self.weight, 1.0)
        return {self.name: mean_loss(bce(logits, targets), weight)}
