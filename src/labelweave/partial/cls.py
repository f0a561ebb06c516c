"""Co-label selection (CLS): two networks remove each other's likely missing positives.

The algorithm of the paper is :func:`co_label_selection`. What labelweave adds to it is in
:mod:`labelweave.partial.cls_plus`.
"""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.utils._param_validation import Interval, StrOptions

from labelweave.capabilities import capabilities
from labelweave.exceptions import InputError
from labelweave.nn.task import Task
from labelweave.partial._selection.loss_ranks import extreme
from labelweave.partial._selection.partial_run import PartialRun
from labelweave.partial._selection.selection_rules import MiniBatch, Selection, SelectionRule
from labelweave.partial.base import SHORT_RUN, PartialClassifier
from labelweave.partial.cls_plus import LabelEvidence, entry_weight, estimated_rate, soft_targets
from labelweave.shallow.label_regression import rows_share_labels

__all__ = ["CLS", "co_label_selection", "removed_labels"]


def co_label_selection(
    losses_f: np.ndarray,
    losses_g: np.ndarray,
    candidates: np.ndarray,
    keep_high: float,
    keep_low: float,
) -> tuple[np.ndarray, np.ndarray]:
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
    selected_f, selected_g : boolean arrays of shape (B, C)
        The sets Y_N^f' and Y_N^g'. Together with the annotated positives they are the labels that
        f and g learn from (Eq. 5 and 6); their losses are summed over the labels and averaged over
        the rows (Eq. 7 and 8).

    Notes
    -----
    In line 7 of the published algorithm g selects from the set of f. Here it selects from its own
    set, as in Eq. 4.

    Examples
    --------
    >>> losses_f, losses_g = np.array([[0.9, 0.2, 0.1]]), np.array([[0.1, 0.7, 0.2]])
    >>> selected_f, selected_g = co_label_selection(losses_f, losses_g, losses_f > 0, 2 / 3, 1 / 2)
    >>> selected_f, selected_g
    (array([[ True, False, False]]), array([[False,  True, False]]))
    """
    n_candidates = int(np.count_nonzero(candidates))
    n_true = round(keep_high * n_candidates)  # R_h(e) |Y_N|
    n_informative = round(keep_low * n_true)  # R_l(e) |Y_N^f|
    selections = []
    for losses, peer_losses in ((losses_f, losses_g), (losses_g, losses_f)):
        high, low = removed_labels(
            losses, peer_losses, candidates, n_candidates - n_true, n_true - n_informative
        )
        selected = candidates.copy()
        selected.reshape(-1)[high] = False
        selected.reshape(-1)[low] = False
        selections.append(selected)
    return selections[0], selections[1]


def removed_labels(
    losses: np.ndarray, peer_losses: np.ndarray, candidates: np.ndarray, n_high: int, n_low: int
) -> tuple[np.ndarray, np.ndarray]:
    """The candidates that one network does not learn from, as flat positions.

    Parameters
    ----------
    losses, peer_losses : arrays of shape (B, C)
        Losses in this network and in the other one.
    candidates : boolean array of shape (B, C)
    n_high, n_low : int
        Number of labels of high and of low loss to remove.

    Returns
    -------
    high, low : arrays of int
    """
    # Eq. 1 and 2: the peer removes the labels that look like missing positives.
    high = extreme(peer_losses, candidates, n_high)
    # Eq. 3 and 4: the network itself removes the least informative ones of the others.
    true_negatives = candidates.flatten()
    true_negatives[high] = False
    low = extreme(losses.reshape(-1), true_negatives, n_low, largest=False)
    return high, low


class CoLabelSelectionRule(SelectionRule):
    """Co-label selection of the entries of a mini-batch.

    Parameters
    ----------
    action : {"remove", "soften", "correct"}, default="remove"
        What happens to the entries of high loss, as in :class:`CLS`.
    evidence : LabelEvidence, optional
        Added to the losses of the peer.
    """

    def __init__(self, action: str = "remove", evidence: LabelEvidence | None = None) -> None:
        super().__init__()
        self.action = action
        self.corrects = action != "remove"
        self.evidence = evidence

    def select(self, batch: MiniBatch) -> list[Selection]:
        evidence = None if self.evidence is None else self.evidence.weighted(batch.rows)
        selections = []
        for losses, peer_losses, candidates in zip(
            batch.logits, reversed(batch.logits), batch.candidates, strict=True
        ):
            if evidence is not None:
                peer_losses = peer_losses + evidence
            n_candidates = np.count_nonzero(candidates)
            n_high = round(batch.drop_high * n_candidates)
            n_low = round(batch.drop_low * (n_candidates - n_high))
            high, low = removed_labels(losses, peer_losses, candidates, n_high, n_low)
            targets = batch.targets.copy()
            entries = targets.reshape(-1)
            entries[low] = np.nan
            if self.action == "soften":
                entries[high] = soft_targets(peer_losses.reshape(-1)[high])
            else:
                entries[high] = np.nan if self.action == "remove" else 1.0
            selections.append(Selection(targets, high, n_low))
        return selections


class CLS(PartialClassifier):
    """Co-label selection: two networks select the labels that the other one learns from.

    In each mini-batch all unannotated entries (assumed negatives) are ranked by their losses. Those
    of highest loss in one network are likely missing positives: the other network does not learn
    them as negatives (Eq. 1 and 2). Of the rest, each network ignores those of lowest loss, which
    are not informative (Eq. 3 and 4). Annotated positives always stay. The prediction is the mean
    of the probabilities of the two networks.

    The defaults are not those of the paper: entries of high loss are softened rather than removed,
    unannotated entries have a smaller weight, label evidence is added, `tau_h` is estimated on
    held-out rows, the logits are shifted to the estimated number of labels, and training has a
    fixed length. ``action="remove", negative_weight=1`` with fixed `tau_h` and `ramp` is closest to
    the paper. The rows that each network holds out and the shift of the logits cannot be turned
    off, unless `base` stops early (`patience`) and holds out validation rows for it.

    Any neural method can be the `base`. All terms of its objective see the selected labels, because
    an ignored entry is unknown (NaN) for this mini-batch and all methods accept unknown labels.

    Parameters
    ----------
    tau_h : float or "auto", default="auto"
        Share of the unannotated entries of highest loss to remove in the end. ``"auto"``: the
        estimated share of entries that are more likely positive than negative.
    tau_l : float, default=0.02
        Share of the remaining unannotated entries of lowest loss to remove in the end.
    negative_weight : float or "auto", default="auto"
        Weight of an unannotated entry in the loss; 1 is the paper's. ``"auto"``: such that all of
        them together weigh 2.5 times as much as the annotated positives, at most 1. See Notes.
    ramp : float or "auto", default="auto"
        Number of epochs over which both shares rise from zero, the paper's E_k (10). ``"auto"``:
        half of the run, at most 10.
    action : {"auto", "remove", "soften", "correct"}, default="auto"
        What happens to entries of highest loss: ``"remove"``, the paper's, ignores them;
        ``"soften"`` replaces the target 0 by the probability of the other network; ``"correct"``
        replaces it by 1 (co-label correction, CLC). ``"auto"`` softens if `base` supports soft
        targets, and removes otherwise.
    label_evidence : bool or "auto", default="auto"
        Whether the annotated labels of a row are considered, in addition to the loss, when its
        entries of highest loss are selected. ``"auto"``: if entries are softened, `tau_h` is
        estimated and rows with two annotated labels are not rare.
    base, unannotated, validation, monitor, threshold, validation_fraction, random_state
        As in :class:`~labelweave.partial.base.PartialClassifier`.

    Attributes
    ----------
    history_ : DataFrame
        Has additional columns, per epoch and averaged over the two networks: ``removed``, the
        number of unannotated entries removed (or corrected) for their high loss; ``removed_low``,
        for their low loss; ``tau_h``, if it is estimated; and, if `truth` was passed to `fit`,
        ``removed_missing``, the number of missing positives among the removed entries.

    Notes
    -----
    The ablations of the paper are settings: without high-loss removal (CLS-H) ``tau_h=0``, without
    low-loss removal (CLS-L) ``tau_l=0``, correction instead of removal (CLC) ``action="correct"``.

    ``tau_h="auto"`` scores held-out rows (or the validation rows) after each epoch of the ramp; see
    :func:`labelweave.partial.cls_plus.estimated_rate`.

    ``negative_weight="auto"`` does what the paper leaves to `tau_l`, to balance positives and
    negatives. Entries of low loss have a small gradient, so removing them has little effect. If the
    objective of `base` does not support weights of entries (as that of C-Tran), ``"auto"`` is 1.

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
    >>> sorted(set(model.history_.columns) & {"removed", "removed_missing", "tau_h"})
    ['removed', 'removed_missing', 'tau_h']
    """

    _n_networks: ClassVar[int] = 2
    _default_settings: ClassVar[dict[str, Any]] = SHORT_RUN | {"input_dropout": 0.3}
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PartialClassifier._parameter_constraints,
        "tau_h": [Interval(Real, 0, 1, closed="left"), StrOptions({"auto"})],
        "tau_l": [Interval(Real, 0, 1, closed="left")],
        "negative_weight": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "ramp": [Interval(Real, 0, None, closed="left"), StrOptions({"auto"})],
        "action": [StrOptions({"auto", "remove", "soften", "correct"})],
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
        action: str = "auto",
        label_evidence: bool | str = "auto",
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
        self.tau_h = tau_h
        self.tau_l = tau_l
        self.negative_weight = negative_weight
        self.ramp = ramp
        self.action = action
        self.label_evidence = label_evidence

    def _build_task(self, run: PartialRun) -> Task:
        objectives = run.objectives()
        action = self._chosen_action()
        evidence = self._chosen_evidence(run, action)
        return run.peer_task(
            CoLabelSelectionRule(action, evidence),
            objectives=objectives,
            tau_h=None if self.tau_h == "auto" else float(self.tau_h),
            tau_l=self.tau_l,
            ramp=self.ramp,
            negative_weight=self._chosen_weight(run, objectives[0]),
            rate=estimated_rate(evidence, run.held_out),
        )

    def _chosen_action(self) -> str:
        if self.action not in ("auto", "soften"):
            return self.action
        network = self._network_estimator()
        if capabilities(network).soft_targets:
            return "soften"
        if self.action == "auto":
            return "remove"
        raise InputError(
            f"action is 'soften', but the objective of {type(network).__name__} does not support "
            "soft targets: use 'remove'",
            parameter="action",
        )

    def _chosen_evidence(self, run: PartialRun, action: str) -> LabelEvidence | None:
        if not run.held_out or self.tau_h != "auto":
            if self.label_evidence is True:
                raise InputError(
                    "label_evidence needs tau_h='auto' and a base without patience, because its "
                    "weight is estimated on held-out rows: leave it at 'auto'",
                    parameter="label_evidence",
                )
            return None
        wanted = action == "soften" if self.label_evidence == "auto" else self.label_evidence
        positive = sp.csr_array(run.session.Y.positive())
        if not wanted or not rows_share_labels(positive.sum(axis=1)):
            return None
        return LabelEvidence(positive, run.held_out.held_out_by < 0)

    def _chosen_weight(self, run: PartialRun, objective: Task) -> float:
        if objective.weighs_entries:
            automatic = self.negative_weight == "auto"
            return entry_weight(run.session.Y) if automatic else float(self.negative_weight)
        if self.negative_weight not in ("auto", 1):
            raise InputError(
                f"negative_weight is {self.negative_weight}, but the objective of "
                f"{run.session.spec.name} does not support weights of entries: leave it at 1",
                parameter="negative_weight",
            )
        return 1.0
