"""Co-label selection (CLS): two networks remove each other's missing positives."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.utils._param_validation import Interval, StrOptions
from torch import nn

from labelweave.capabilities import capabilities
from labelweave.exceptions import InputError
from labelweave.labels import LabelMatrix
from labelweave.nn.averaging import AveragedTask
from labelweave.nn.session import TrainingSession
from labelweave.nn.task import Task
from labelweave.partial._selection.label_evidence import LabelEvidence
from labelweave.partial._selection.posterior import likely_share
from labelweave.partial._selection.strategies import STRATEGIES, Strategy
from labelweave.partial.base import SHORT_RUN, PartialClassifier
from labelweave.shallow.label_regression import rows_share_labels

__all__ = ["CLS"]

_ACTIONS = {"remove": "cls", "soften": "cls-soft", "correct": "clc"}
_NEGATIVES = 2.5  # weight of all unannotated entries together, in that of the annotated positives


class CLS(PartialClassifier):
    """Co-label selection: two networks pick the labels that the other learns from.

    In each mini-batch the unannotated entries (assumed negatives) are ranked by their losses, all
    of them together. Those of highest loss with one network look like missing positives and are
    left out for the other (Eq. 1 and 2), or taught as likely as the first says; of the rest each
    network leaves out those of lowest loss with itself, which have nothing more to teach (Eq. 3
    and 4). Positives always stay. The prediction is the mean of the two networks' probabilities.

    This is a way to train, not a network: `base` is any neural method of the library, and every
    term of its objective sees the selected labels, because an entry that is left out is unknown
    (NaN) for this mini-batch and all methods know unknown labels.

    Parameters
    ----------
    base : str or neural estimator, default="mlp"
        The network, two of which are trained; also epochs, learning rate, patience.
    tau_h : float or "auto", default="auto"
        Share of the unannotated entries of highest loss to leave out in the end. ``"auto"``:
        the estimated share of those that are more likely positive than not.
    tau_l : float, default=0.02
        Share of the unannotated entries of lowest loss to leave out in the end.
    negative_weight : float or "auto", default="auto"
        Weight of an unannotated entry in the loss of entries; 1 is the paper's. ``"auto"``:
        all of them together weigh 2.5 times as much as the annotated positives, or less. See
        Notes.
    ramp : float or "auto", default="auto"
        Epochs over which both shares rise from zero, the paper's E_k (10). ``"auto"``: half of the
        run, 10 at the most.
    ema_decay : float, default=0.0
        Above 0 a moving average of each network's weights predicts, is judged and tells the rate,
        over about ``1 / (1 - ema_decay)`` steps; 0, the paper's, takes the weights as they are.
    action : {"auto", "remove", "soften", "correct"}, default="auto"
        What happens to entries of highest loss in this step: ``"remove"``, the paper's, leaves
        them out; ``"soften"`` teaches the other network's probability in place of 0;
        ``"correct"`` calls them positive (co-label correction, CLC). ``"auto"`` softens where the
        objective of `base` is binary cross-entropy alone, and leaves out elsewhere.
    label_evidence : bool or "auto", default="auto"
        Whether what the annotated labels of a row say about its others counts when the entries of
        highest loss are chosen, beside the loss. ``"auto"``: where they are softened, `tau_h` is
        estimated and rows with two annotated labels are not rare.
    **partial
        As in :class:`labelweave.partial.base.PartialClassifier`: `unannotated`, `validation`,
        `monitor`, `threshold`, `validation_fraction`, `random_state`.

    Attributes
    ----------
    history_ : DataFrame
        Also, by epoch and for the average network: ``removed``, unannotated entries left out (or
        corrected) for their high loss; ``removed_low``, for their low loss; ``tau_h``, where it
        is estimated; and, if `fit` was given the `truth`, ``removed_missing``: how many of the
        removed were missing positives.

    Notes
    -----
    Ablations are settings: without high-loss removal (CLS-H) ``tau_h=0``, without low-loss removal
    (CLS-L) ``tau_l=0``, correction instead of removal (CLC) ``action="correct"``.

    ``tau_h="auto"`` scores rows that a network has set aside (or the validation rows) after each
    epoch of the ramp and compares annotated with unannotated entries
    (:func:`labelweave.partial._selection.posterior.likely_share`). It needs no clean label; it
    assumes that positives are missed by chance.

    ``negative_weight="auto"`` does what the paper leaves to `tau_l`: balance positives and
    negatives. Entries of low loss have next to no gradient, so leaving them out alone changes
    little. Where the objective of `base` weighs no entries (as that of C-Tran), ``"auto"`` is 1
    and any other number an error.

    In line 7 of Algorithm 1 network g selects from the set of f; here from its own, as in Eq. 4.
    The loss is that of `base`: an entry that is left out adds nothing, and the mean is over all
    rows, as in Eq. 7 and 8.

    References
    ----------
    .. [1] G. Lyu, B. Sun, X. Deng and S. Feng. Addressing multi-label learning with partial
       labels: from sample selection to label selection. AAAI 2025.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from labelweave.data.scenarios import hide_positives
    >>> X, Y = make_multilabel_classification(n_samples=300, random_state=0)
    >>> found = hide_positives(Y, 0.5, random_state=0)
    >>> model = CLS(random_state=0).set_params(base__epochs=5)
    >>> model.fit(X, found.Y, truth=Y).predict_proba(X[:3]).shape
    (3, 5)
    >>> sorted(set(model.history_.columns) & {"removed", "removed_missing", "tau_h"})
    ['removed', 'removed_missing', 'tau_h']
    """

    _n_peers: ClassVar[int] = 2
    _run: ClassVar[dict[str, Any]] = SHORT_RUN | {"input_dropout": 0.3}
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PartialClassifier._parameter_constraints,
        "tau_h": [Interval(Real, 0, 1, closed="left"), StrOptions({"auto"})],
        "tau_l": [Interval(Real, 0, 1, closed="left")],
        "negative_weight": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "ramp": [Interval(Real, 0, None, closed="left"), StrOptions({"auto"})],
        "ema_decay": [Interval(Real, 0, 1, closed="left")],
        "action": [StrOptions({"auto", *_ACTIONS})],
        "label_evidence": ["boolean", StrOptions({"auto"})],
    }
    tuning_space: ClassVar = {
        "tau_h": ("float", 0.0, 0.5),
        "tau_l": ("float", 0.0, 0.5),
        "ramp": ("int", 1, 30),
    }

    def __init__(
        self,
        base: Any = "mlp",
        *,
        tau_h: float | str = "auto",
        tau_l: float = 0.02,
        negative_weight: float | str = "auto",
        ramp: float | str = "auto",
        ema_decay: float = 0.0,
        action: str = "auto",
        label_evidence: bool | str = "auto",
        **partial: Any,
    ) -> None:
        super().__init__(base, **partial)
        self.tau_h = tau_h
        self.tau_l = tau_l
        self.negative_weight = negative_weight
        self.ramp = ramp
        self.ema_decay = ema_decay
        self.action = action
        self.label_evidence = label_evidence

    def _build_task(self, network: nn.Module, session: TrainingSession) -> Task:
        task = self._peer_task(
            network,
            session,
            STRATEGIES[_ACTIONS["soften" if self.action == "auto" else self.action]],
            tau_h=None if self.tau_h == "auto" else float(self.tau_h),
            tau_l=self.tau_l,
            ramp=self._ramp(self.ramp, session),
        )
        return AveragedTask(task, self.ema_decay) if self.ema_decay else task

    def _fitting(self, strategy: Strategy, task: Task) -> Strategy:
        if strategy.correct != "soft" or capabilities(self._network_model()).soft_targets:
            return strategy
        if self.action == "auto":
            return STRATEGIES[_ACTIONS["remove"]]
        raise InputError(
            f"action is 'soften', but the objective of {type(self._network_model()).__name__} "
            "knows no targets between 0 and 1: use 'remove'"
        )

    def _label_evidence(self, strategy: Strategy, observed: LabelMatrix) -> LabelEvidence | None:
        aside, given = self._aside, self.label_evidence
        if not aside or self.tau_h != "auto":
            if given is True:
                raise InputError(
                    "label_evidence needs tau_h='auto' and a base without patience, for the rows "
                    "set aside tell what it weighs: leave it at 'auto'"
                )
            return None
        positive = sp.csr_array(observed.positive())
        wanted = given is True or (given == "auto" and strategy.correct == "soft")
        if not wanted or not rows_share_labels(positive.sum(axis=1)):
            return None
        return LabelEvidence(positive, aside.of_row < 0)

    def _rate(self, scores: np.ndarray, codes: np.ndarray) -> float:
        if self._evidence is not None and self._aside is not None:
            scores = self._evidence.weigh(scores, codes, self._aside.rows)
        return likely_share(scores, codes)

    def _negative_weight(self, task: Task, observed: LabelMatrix) -> float:
        if not task.weighs_entries and self.negative_weight not in ("auto", 1):
            raise InputError(
                f"negative_weight is {self.negative_weight}, but the objective of "
                f"{type(self._network_model()).__name__} weighs no entries: leave it at 1"
            )
        if not task.weighs_entries:
            return 1.0
        given = self.negative_weight
        return entry_weight(observed) if given == "auto" else float(given)


def entry_weight(observed: LabelMatrix) -> float:
    """Weight of an unannotated entry at which all of them weigh 2.5 times the annotated positives.

    It is 1 at most. `observed` as in :mod:`labelweave.unannotated`.

    >>> from labelweave.labels import as_labels
    >>> entry_weight(as_labels([[1.0, *[0.0] * 25], [1.0, *[0.0] * 25]]))
    0.1
    """
    codes = observed.to_numpy()
    positives, n_open = int((codes == 1).sum()), int((codes == 0).sum())
    return min(_NEGATIVES * positives / n_open, 1.0) if positives and n_open else 1.0
