"""Co-label selection (CLS): two networks remove each other's likely missing positives.

Equations and lines are those of the paper. Of its Algorithm 1, lines 6 and 7 are
:func:`co_label_selection` and line 8 is :class:`CoLabelSelectionRule`; lines 5, 9 and 10 are
:class:`~labelweave.partial._selection.peer_networks.PeerTask`, which trains the two networks, and
line 12 is :func:`~labelweave.partial._selection.loss_ranks.drop_share`. What labelweave adds to CLS
is a method of its own, :mod:`labelweave.partial.cls_plus`.
"""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from labelweave.nn.cls_run import MLP_RUN
from labelweave.nn.task import Task
from labelweave.partial._selection.loss_ranks import extreme
from labelweave.partial._selection.partial_run import PartialRun
from labelweave.partial._selection.selection_rules import MiniBatch, Selection, SelectionRule
from labelweave.partial.base import PartialClassifier, published_base

__all__ = ["CLS", "Negatives", "co_label_selection", "sel_max", "sel_min"]


class Negatives(NamedTuple):
    """The negative labels that one network learns from, as boolean arrays of shape (B, C)."""

    true: np.ndarray  # Y_N^f: without the labels of high loss
    informative: np.ndarray  # Y_N^f': without those of low loss either


def sel_min(losses: np.ndarray, among: np.ndarray, count: int) -> np.ndarray:
    """Mask of the `count` labels with the smallest losses, of those in the mask `among`.

    >>> sel_min(np.array([[0.1, 0.9, 0.5]]), np.array([[True, True, True]]), 2)
    array([[ True, False,  True]])
    """
    return _without(among, extreme(losses, among, int(among.sum()) - count))


def sel_max(losses: np.ndarray, among: np.ndarray, count: int) -> np.ndarray:
    """Mask of the `count` labels with the largest losses, of those in the mask `among`."""
    removed = extreme(losses, among, int(among.sum()) - count, largest=False)
    return _without(among, removed)


def _without(labels: np.ndarray, positions: np.ndarray) -> np.ndarray:
    rest = labels.copy()
    rest.reshape(-1)[positions] = False
    return rest


def co_label_selection(
    losses_f: np.ndarray,
    losses_g: np.ndarray,
    candidates: np.ndarray,
    keep_high: float,
    keep_low: float,
) -> tuple[Negatives, Negatives]:
    """Algorithm 1, lines 6 and 7: the negative labels that each network learns from.

    Parameters
    ----------
    losses_f, losses_g : arrays of shape (B, C)
        Losses of the labels of a mini-batch in the networks f and g, L(Y; P^f) and L(Y; P^g).
    candidates : boolean array of shape (B, C)
        The unannotated labels, which are assumed to be negative: the set Y_N.
    keep_high : float
        The reserving rate R_h(e): share of the labels that remain after those of high loss, which
        are likely missing positives, are removed.
    keep_low : float
        The reserving rate R_l(e): share of the remaining labels that remain after those of low
        loss, which are not informative, are removed.

    Returns
    -------
    of_f, of_g : Negatives
        The sets Y_N^f and Y_N^f' of f, and those of g. Together with the annotated positives,
        Y_N^f' are the labels that f learns from (Eq. 5 and 6).

    Notes
    -----
    In line 7 of the published algorithm g selects from the set of f. Here it selects from its own
    set, as in Eq. 4.

    Examples
    --------
    >>> losses_f, losses_g = np.array([[0.9, 0.2, 0.1]]), np.array([[0.1, 0.7, 0.2]])
    >>> of_f, of_g = co_label_selection(losses_f, losses_g, losses_f > 0, 2 / 3, 1 / 2)
    >>> of_f.true, of_f.informative
    (array([[ True, False,  True]]), array([[ True, False, False]]))
    """
    n_true = round(keep_high * np.count_nonzero(candidates))  # R_h(e) |Y_N|
    n_informative = round(keep_low * n_true)  # R_l(e) |Y_N^f|
    true_f = sel_min(losses_g, candidates, n_true)  # Eq. 1
    true_g = sel_min(losses_f, candidates, n_true)  # Eq. 2
    informative_f = sel_max(losses_f, true_f, n_informative)  # Eq. 3
    informative_g = sel_max(losses_g, true_g, n_informative)  # Eq. 4
    return Negatives(true_f, informative_f), Negatives(true_g, informative_g)


class CoLabelSelectionRule(SelectionRule):
    """The labels of a mini-batch that each network learns from, Eq. 5 and 6.

    Parameters
    ----------
    action : {"remove", "correct"}, default="remove"
        What happens to labels of high loss, as in :class:`CLS`.
    """

    def __init__(self, action: str = "remove") -> None:
        super().__init__()
        self.corrects = action == "correct"

    def select(self, batch: MiniBatch) -> list[Selection]:
        # The loss of a negative, log(1 + e^z), rises with its logit z: logits rank like losses.
        losses_f, losses_g = batch.logits
        candidates = batch.candidates[0]
        keep_high, keep_low = 1 - batch.drop_high, 1 - batch.drop_low  # R_h(e), R_l(e)
        selections = []
        for of in co_label_selection(losses_f, losses_g, candidates, keep_high, keep_low):
            high, low = candidates & ~of.true, of.true & ~of.informative
            targets = batch.targets.copy()
            targets[low] = np.nan
            targets[high] = 1.0 if self.corrects else np.nan
            selections.append(Selection(targets, np.flatnonzero(high), int(low.sum())))
        return selections


class CLS(PartialClassifier):
    """Co-label selection: two networks select the labels that the other one learns from.

    In each mini-batch all unannotated labels (assumed negatives) are ranked by their losses. Those
    of highest loss in one network are likely missing positives: the other network does not learn
    them as negatives (Eq. 1 and 2). Of the rest, each network ignores those of lowest loss, which
    are not informative (Eq. 3 and 4). Annotated positives always stay. The prediction is the mean
    of the probabilities of the two networks.

    This is the method of the paper. :class:`~labelweave.partial.cls_plus.CLSPlus` has what
    labelweave adds to it; it was better on most of the data measured, at two thirds of the cost.

    Parameters
    ----------
    tau_h : float or "auto", default="auto"
        Share of the unannotated labels of highest loss to remove in the end. ``"auto"``: the
        estimated share of missing positives among them.
    tau_l : float, default=0.06
        Share of the remaining unannotated labels of lowest loss to remove in the end.
    ramp : float, default=10
        Number of epochs over which both shares rise from zero, the paper's E_k.
    action : {"remove", "correct"}, default="remove"
        What happens to labels of highest loss: ``"remove"`` ignores them, ``"correct"`` makes them
        positive (co-label correction, CLC, of the paper's Figure 5).
    base : str or neural estimator, default="mlp"
        As in :class:`~labelweave.partial.base.PartialClassifier`; ``"mlp"`` is trained as the paper
        trains its ResNet-50: for 100 epochs in batches of 120, by Adam with a weight decay of 1e-4
        and a learning rate that falls to 0 by a cosine.
    threshold : float, str or Threshold, default=0.5
        As in every estimator.
    unannotated, validation, monitor, validation_fraction, random_state
        As in :class:`~labelweave.partial.base.PartialClassifier`.

    Attributes
    ----------
    tau_h_ : float
        `tau_h`, or the estimate of it.
    history_ : DataFrame
        Has additional columns, per epoch and averaged over the two networks: ``removed``, the
        number of unannotated labels removed (or corrected) for their high loss; ``removed_low``,
        for their low loss; and, if `truth` was passed to `fit`, ``removed_missing``, the number of
        missing positives among the removed labels.

    Notes
    -----
    The ablations of the paper are settings: without high-loss removal (CLS-H) ``tau_h=0``, without
    low-loss removal (CLS-L) ``tau_l=0``, correction instead of removal (CLC) ``action="correct"``.

    *Choices.* What the paper leaves open, or what a user does not have:

    - The paper finds `tau_h` by cross-validation with complete labels. ``"auto"`` needs none: one
      plain network is trained on four fifths of the rows, and the share of missing positives is
      estimated from its scores of the other fifth
      (:func:`labelweave.missing_positives.missing_share`). The two networks then learn from all
      rows.
    - `tau_l` is the paper's for MS-COCO and NUS-WIDE; it takes 0.02 for PASCAL VOC.
    - The learning rate of ``"mlp"`` is 1e-3, because an MLP starts from random weights; the paper
      takes 4e-5 for a network trained on ImageNet (:meth:`published`). The MLP has dropout, 0.5 in
      its hidden layers and 0.3 of the features.
    - Eq. 1 to 4 use the rates R(e) of the same epoch e, line 12 of Algorithm 1 updates them at its
      end. Here line 12 holds: epoch e uses R(e - 1), and the first one removes nothing.
    - Numbers of labels, R_h(e) times that of the candidates, are rounded to whole ones.
    - Eq. 7 and 8 do not say whether the loss of a row is the sum or the mean over its labels: here
      it is the sum, relative to which Adam's weight decay is small.
    - The paper does not say how the two networks predict (here: mean of the probabilities) nor the
      threshold of its F1 scores (here: 0.5, as in the works that it follows).

    References
    ----------
    .. [1] G. Lyu, B. Sun, X. Deng and S. Feng. Addressing multi-label learning with partial
       labels: from sample selection to label selection. AAAI 2025.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from labelweave.data.scenarios import hide_positives
    >>> X, Y = make_multilabel_classification(n_samples=300, random_state=0)
    >>> partial = hide_positives(Y, 0.5, random_state=0).Y
    >>> model = CLS(random_state=0).set_params(base__epochs=5)
    >>> model.fit(X, partial, truth=Y).predict_proba(X[:3]).shape
    (3, 5)
    >>> sorted(set(model.history_.columns) & {"removed", "removed_low", "removed_missing"})
    ['removed', 'removed_low', 'removed_missing']
    """

    _n_networks: ClassVar[int] = 2
    _default_settings: ClassVar[dict[str, Any]] = MLP_RUN
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PartialClassifier._parameter_constraints,
        "tau_h": [Interval(Real, 0, 1, closed="left"), StrOptions({"auto"})],
        "tau_l": [Interval(Real, 0, 1, closed="left")],
        "ramp": [Interval(Real, 0, None, closed="left")],
        "action": [StrOptions({"remove", "correct"})],
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
        tau_l: float = 0.06,
        ramp: float = 10,
        action: str = "remove",
        unannotated: str = "auto",
        validation: str = "partial",
        monitor: str = "auto",
        threshold: Any = 0.5,
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
        self.tau_h = tau_h
        self.tau_l = tau_l
        self.ramp = ramp
        self.action = action

    @classmethod
    def published(cls, dataset: str | None = None, *, annotated: str | None = None) -> Self:
        """CLS with the settings of the paper's tables.

        Parameters
        ----------
        dataset : str, optional
            ``"ms-coco"``, ``"pascal-voc-2007"`` or ``"nus-wide"``; others get the defaults.
        annotated : {"75%", "50%", "25%", "single"}, optional
            How many positives are annotated. The paper's `tau_h` depends on it; without it, `tau_h`
            is estimated.
        """
        tau_h, tau_l = _PUBLISHED_RATES.get(dataset or "", ({}, 0.06))
        rate = "auto" if annotated is None else tau_h.get(annotated, "auto")
        return cls(published_base(dataset), tau_h=rate, tau_l=tau_l, ramp=10)

    def _build_task(self, run: PartialRun) -> Task:
        self.tau_h_ = run.missing_rate() if self.tau_h == "auto" else float(self.tau_h)
        return run.peer_task(
            CoLabelSelectionRule(self.action),
            tau_h=self.tau_h_,
            tau_l=self.tau_l,
            ramp=self.ramp,
            loss_scale=run.session.Y.n_labels,  # Eq. 7 and 8 are sums over labels
        )

    def _state(self) -> dict[str, Any]:
        return {**super()._state(), "tau_h": self.tau_h_}

    def _set_state(self, state: Mapping[str, Any]) -> None:
        super()._set_state(state)
        self.tau_h_ = state["tau_h"]


def _rates(*tau_h: float) -> dict[str, float]:
    return dict(zip(("75%", "50%", "25%", "single"), tau_h, strict=True))


# "Implementation Details": tau_h of the four configurations, and tau_l.
_PUBLISHED_RATES: dict[str, tuple[dict[str, float], float]] = {
    "pascal-voc-2007": (_rates(0.002, 0.003, 0.005, 0.005), 0.02),
    "ms-coco": (_rates(0.005, 0.010, 0.012, 0.012), 0.06),
    "nus-wide": (_rates(0.006, 0.012, 0.020, 0.020), 0.06),
}
