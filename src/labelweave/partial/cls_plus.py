"""CLS+: co-label selection with what labelweave adds to it; :class:`CLSPlus` lists it."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
import torch
from scipy.special import expit
from sklearn.utils._param_validation import Interval, StrOptions
from torch import Tensor, nn

from labelweave.capabilities import capabilities
from labelweave.exceptions import InputError
from labelweave.labels import LabelMatrix
from labelweave.nn.task import Task
from labelweave.partial._selection.held_out import HeldOutRows
from labelweave.partial._selection.partial_run import PartialRun
from labelweave.partial._selection.peer_networks import PeerNetwork
from labelweave.partial._selection.posterior import (
    annotation_curve,
    likely_share,
    logit_shift,
    shifted,
)
from labelweave.partial._selection.selection_rules import MiniBatch, Selection, SelectionRule
from labelweave.partial.base import SHORT_RUN, PartialClassifier
from labelweave.partial.cls import CLS, sel_max, sel_min
from labelweave.probabilities import log_odds
from labelweave.shallow.label_regression import regression_on_labels, rows_share_labels
from labelweave.unannotated import assume_negative

__all__ = ["CLSPlus", "LabelEvidence", "entry_weight"]

_NEGATIVES = 2.5  # weight of all unannotated entries together, relative to that of the positives
_EDGE = 1e-4
_TINY = 1e-6
_MIN_SLOPE = 0.2


def entry_weight(observed: LabelMatrix) -> float:
    """Weight of an unannotated entry so that all of them weigh 2.5 times the annotated positives.

    It is at most 1. `observed` is coded as in :mod:`labelweave.unannotated`.

    >>> from labelweave.labels import as_labels
    >>> entry_weight(as_labels([[1.0, *[0.0] * 25], [1.0, *[0.0] * 25]]))
    0.1
    """
    codes = observed.to_numpy()
    n_positive, n_unannotated = int((codes == 1).sum()), int((codes == 0).sum())
    if not n_positive or not n_unannotated:
        return 1.0
    return min(_NEGATIVES * n_positive / n_unannotated, 1.0)


class LabelEvidence(nn.Module):
    """Evidence for each entry of the training rows from the other annotated labels of its row.

    A row that is tagged "python" is more likely to miss "programming" than other rows that look
    like it. Each label is regressed on the other annotated labels. The weight of this evidence
    relative to the logits of a network is estimated on rows that the network was not trained on.

    Parameters
    ----------
    positive : boolean csr_array of shape (n_rows, n_labels)
        The annotated positives.
    fitted : boolean ndarray of shape (n_rows,)
        The rows that the regression is fitted to: none of those that :meth:`add_to` is given.

    Attributes
    ----------
    weight : Tensor
        0 before the first call of :meth:`add_to`. It is a buffer, so checkpoints save it.
    """

    weight: Tensor

    def __init__(self, positive: sp.csr_array, fitted: np.ndarray) -> None:
        super().__init__()
        self.register_buffer("weight", torch.zeros((), dtype=torch.float64))
        predicted = regression_on_labels(positive, fitted)
        prevalence = np.asarray(positive[np.flatnonzero(fitted)].mean(axis=0)).ravel()
        self.logits = log_odds(predicted, _EDGE) - log_odds(prevalence, _EDGE, np.float32)

    def weighted(self, rows: np.ndarray) -> np.ndarray:
        """What to add to the logits of a network for these rows."""
        return np.float32(self.weight) * self.logits[rows]

    def add_to(self, scores: np.ndarray, codes: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Estimate the weight on these rows and return their scores combined with the evidence.

        The weight maximises the likelihood of the annotations under a logistic curve over the
        logits of the network and the evidence.
        """
        logits, evidence = log_odds(scores.astype(np.float64), _TINY), self.logits[rows]
        used = (codes == 0) | (codes == 1)
        slopes, _ = annotation_curve(np.stack([logits[used], evidence[used]]), codes[used] == 1)
        self.weight.fill_(float(slopes[1] / max(slopes[0], _MIN_SLOPE)))
        return expit(logits + float(self.weight) * evidence)


class CoLabelSelectionPlusRule(SelectionRule):
    """Co-label selection of the entries of a mini-batch, with soft targets and label evidence.

    Networks 0 and 1 select for each other, and so do 2 and 3, and so on.

    Parameters
    ----------
    soften : bool, default=True
        Whether entries of high loss get soft targets instead of being ignored.
    evidence : LabelEvidence, optional
        Added to the losses of the peer.
    """

    def __init__(self, *, soften: bool = True, evidence: LabelEvidence | None = None) -> None:
        super().__init__()
        self.corrects = soften
        self.evidence = evidence

    def select(self, batch: MiniBatch) -> list[Selection]:
        evidence = None if self.evidence is None else self.evidence.weighted(batch.rows)
        selections = []
        for k, (losses, candidates) in enumerate(zip(batch.logits, batch.candidates, strict=True)):
            peer_losses = batch.logits[k ^ 1]  # the other network of the pair
            if evidence is not None:
                peer_losses = peer_losses + evidence
            n_candidates = int(candidates.sum())
            n_true = n_candidates - round(batch.drop_high * n_candidates)
            n_low = round(batch.drop_low * n_true)
            true = sel_min(peer_losses, candidates, n_true)  # Eq. 1 and 2
            informative = sel_max(losses, true, n_true - n_low)  # Eq. 3 and 4
            high = candidates & ~true
            targets = batch.targets.copy()
            targets[true & ~informative] = np.nan
            targets[high] = expit(peer_losses[high]) if self.corrects else np.nan
            selections.append(Selection(targets, np.flatnonzero(high), n_low))
        return selections


class CLSPlus(PartialClassifier):
    """CLS+: co-label selection with what labelweave adds to it.

    As in :class:`~labelweave.partial.cls.CLS` two networks select labels for each other, by their
    losses. What is added:

    - **Two pairs** of networks. They select nothing for each other, so that their errors differ;
      the mean of all four predicts.
    - **Soft targets**: a label of high loss is not ignored but learned with the probability that
      the other network predicts.
    - **Entry weights** (:func:`entry_weight`): unannotated entries weigh less than positives.
    - **Label evidence** (:class:`LabelEvidence`): the annotated labels of a row help to find those
      that are missing.
    - **Held-out tenths**: each network does not learn from a tenth of the rows. On them, `tau_h`,
      the weight of the evidence, the threshold and a shift of the logits are estimated. With the
      shift no more labels are expected than are estimated.

    Parameters
    ----------
    n_pairs : int, default=2
        Number of pairs of networks, from 1, that of CLS, to 4. The time rises in proportion.
    tau_h : float or "auto", default="auto"
        Share of the unannotated entries of highest loss to soften (or remove) in the end.
        ``"auto"``: the estimated share of entries that are more likely positive than negative.
    tau_l : float, default=0.02
        Share of the remaining unannotated entries of lowest loss to remove in the end.
    negative_weight : float or "auto", default="auto"
        Weight of an unannotated entry in the loss; 1 is that of CLS. ``"auto"``: such that all of
        them together weigh 2.5 times as much as the annotated positives, at most 1. See Notes.
    ramp : float or "auto", default="auto"
        Number of epochs over which both shares rise from zero. ``"auto"``: half of the run, at
        most 10.
    action : {"auto", "remove", "soften"}, default="auto"
        What happens to entries of highest loss: ``"remove"``, that of CLS, ignores them;
        ``"soften"`` replaces the target 0 by the probability of the other network. ``"auto"``
        softens if `base` supports soft targets, and removes otherwise.
    label_evidence : bool or "auto", default="auto"
        Whether the annotated labels of a row are considered, in addition to the loss, when its
        entries of highest loss are selected. ``"auto"``: if entries are softened, `tau_h` is
        estimated and rows with two annotated labels are not rare.
    base, unannotated, validation, monitor, threshold, validation_fraction, random_state
        As in :class:`~labelweave.partial.base.PartialClassifier`.

    Attributes
    ----------
    history_ : DataFrame
        Has the additional columns of :class:`~labelweave.partial.cls.CLS`, and ``tau_h``, if it is
        estimated.

    Notes
    -----
    ``tau_h="auto"`` scores held-out rows (or the validation rows) after each epoch of the ramp. It
    needs no clean labels, but it assumes that all positives are equally likely to be missed.

    ``negative_weight="auto"`` does what the paper leaves to `tau_l`, to balance positives and
    negatives. Entries of low loss have a small gradient, so removing them has little effect. If the
    objective of `base` does not support weights of entries (as that of C-Tran), ``"auto"`` is 1.

    If `base` stops early (`patience`), validation rows are held out from both networks, and the
    logits are not shifted.

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
    >>> model = CLSPlus(random_state=0).set_params(base__epochs=5)
    >>> model.fit(X, partial, truth=Y).predict_proba(X[:3]).shape
    (3, 5)
    >>> sorted(set(model.history_.columns) & {"removed", "removed_missing", "tau_h"})
    ['removed', 'removed_missing', 'tau_h']
    """

    _default_settings: ClassVar[dict[str, Any]] = SHORT_RUN | {"input_dropout": 0.3}
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PartialClassifier._parameter_constraints,
        "n_pairs": [Interval(Integral, 1, 4, closed="both")],  # each network holds out a tenth
        "tau_h": [Interval(Real, 0, 1, closed="left"), StrOptions({"auto"})],
        "tau_l": [Interval(Real, 0, 1, closed="left")],
        "negative_weight": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "ramp": [Interval(Real, 0, None, closed="left"), StrOptions({"auto"})],
        "action": [StrOptions({"auto", "remove", "soften"})],
        "label_evidence": ["boolean", StrOptions({"auto"})],
    }
    tuning_space: ClassVar = CLS.tuning_space

    def __init__(
        self,
        base: Any = "mlp",
        *,
        n_pairs: int = 2,
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
        self.n_pairs = n_pairs
        self.tau_h = tau_h
        self.tau_l = tau_l
        self.negative_weight = negative_weight
        self.ramp = ramp
        self.action = action
        self.label_evidence = label_evidence

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # With patience, validation rows are held out from both networks instead.
        tags.capabilities.out_of_fold = (
            self.validation == "partial" and self._network_estimator().patience is None
        )
        return tags

    def _networks_to_build(self) -> int:
        return 2 * self.n_pairs

    def _train(self, run: PartialRun) -> None:
        if not capabilities(self).out_of_fold:
            super()._train(run)
            return
        held_out = HeldOutRows(run.session, self._networks_to_build())
        super()._train(replace(run, held_out=held_out))
        if held_out:
            observed, scores = held_out.observed, held_out.scores()
            shift = logit_shift(scores, observed.to_numpy())
            assert isinstance(run.network, PeerNetwork)
            run.network.shift_logits(shift)
            self._out_of_fold = assume_negative(observed), shifted(scores, shift)

    def _build_task(self, run: PartialRun) -> Task:
        objectives = run.objectives()
        softens = self._softens()
        evidence = self._chosen_evidence(run, softens)

        def rate(scores: np.ndarray, codes: np.ndarray) -> float:
            if evidence is not None and run.held_out is not None:
                scores = evidence.add_to(scores, codes, run.held_out.rows)
            return likely_share(scores, codes)

        return run.peer_task(
            CoLabelSelectionPlusRule(soften=softens, evidence=evidence),
            objectives=objectives,
            tau_h=None if self.tau_h == "auto" else float(self.tau_h),
            tau_l=self.tau_l,
            ramp=self.ramp,
            negative_weight=self._chosen_weight(run, objectives[0]),
            rate=rate,
        )

    def _softens(self) -> bool:
        network = self._network_estimator()
        if self.action == "remove" or capabilities(network).soft_targets:
            return self.action != "remove"
        if self.action == "auto":
            return False
        raise InputError(
            f"action is 'soften', but the objective of {type(network).__name__} does not support "
            "soft targets: use 'remove'",
            parameter="action",
        )

    def _chosen_evidence(self, run: PartialRun, softens: bool) -> LabelEvidence | None:
        if not run.held_out or self.tau_h != "auto":
            if self.label_evidence is True:
                raise InputError(
                    "label_evidence needs tau_h='auto' and a base without patience, because its "
                    "weight is estimated on held-out rows: leave it at 'auto'",
                    parameter="label_evidence",
                )
            return None
        wanted = softens if self.label_evidence == "auto" else self.label_evidence
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
