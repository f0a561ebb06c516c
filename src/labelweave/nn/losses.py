"""Losses of multi-label learning, as pure functions of tensors.

Each takes logits and targets of shape (n, L). A target is 1, 0, or NaN for an unknown entry,
which is ignored: its loss and its gradient are zero. Losses that are a sum over entries
return the (n, L) matrix of entries, so that a method can select or weight them; losses of a row
return one value per row. :func:`mean_loss` turns either into a number. Losses that compare the
embeddings of rows with one another are in :mod:`labelweave.nn.contrastive`; :func:`mulsupcon` and
:func:`supcon` can be imported from here too.

>>> logits = torch.tensor([[2.0, -1.0, 0.0]])
>>> targets = torch.tensor([[1.0, 0.0, torch.nan]])
>>> bce(logits, targets)
tensor([[0.1269, 0.3133, 0.0000]])
>>> round(mean_loss(asl(logits, targets)).item(), 4)
0.0052
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 (torch's own way)

from labelweave.exceptions import InputError
from labelweave.nn.contrastive import mulsupcon, supcon

__all__ = [
    "LOSSES",
    "asl",
    "bce",
    "entropy_maximisation",
    "expected_positives",
    "focal",
    "generalized_robust",
    "get_loss",
    "hill",
    "label_weighted",
    "mean_loss",
    "mulsupcon",
    "positive_bce",
    "smoothed_bce",
    "splc",
    "supcon",
    "weigh_rows",
    "weighted_bce",
    "zlpr",
]

Loss = Callable[[Tensor, Tensor], Tensor]
# Below this a probability has no influence, and powers of it keep finite gradients.
_TINY = 1e-8


def mean_loss(
    values: Tensor, weight: Tensor | None = None, row_weight: Tensor | None = None
) -> Tensor:
    """Mean over rows of a loss; entries are averaged over all labels of their row.

    An unknown entry adds nothing and is still counted, so that the mean is one over rows:
    that of a batch is the weighted mean of those of its parts. Weights of entries, which must
    not be NaN, scale what they add; a loss of whole rows has no entries to weight. Weights of
    rows, (n,), scale entries of shape (..., n, L) as well as values of rows.
    """
    if weight is not None and values.dim() > 1:
        values = values * weight
    if row_weight is not None:
        if values.dim() == 0:
            raise InputError(
                "sample_weight needs a loss with one value per row or entry, but this loss "
                "returns one number for all rows"
            )
        values = values * (row_weight if values.dim() == 1 else row_weight.unsqueeze(1))
    return values.mean()


def weigh_rows(values: Tensor, row_weight: Tensor | None) -> Tensor:
    """Values of rows, shape (..., n), times the weights of the rows, where there are any."""
    return values if row_weight is None else values * row_weight


def label_weighted(loss: Loss, label_weight: np.ndarray) -> Loss:
    """The loss with weights of negatives and positives per label, shape (L, 2).

    >>> twice = label_weighted(bce, np.array([[1.0, 2.0]]))
    >>> twice(torch.zeros(2, 1), torch.tensor([[1.0], [0.0]]))
    tensor([[1.3863],
            [0.6931]])
    """
    negative, positive = torch.from_numpy(label_weight).float().unbind(dim=1)

    def weighted(logits: Tensor, targets: Tensor) -> Tensor:
        entries = loss(logits, targets)
        if entries.shape != logits.shape:
            raise InputError(
                "class_weight needs a loss with one value per entry of Y, but this loss has "
                f"values of shape {tuple(entries.shape)} for {tuple(logits.shape)} entries"
            )
        of_positives, of_negatives = positive.to(logits.device), negative.to(logits.device)
        return entries * torch.where(targets > 0.5, of_positives, of_negatives)

    return weighted


def known_targets(targets: Tensor) -> tuple[Tensor, Tensor | None]:
    """Targets with zeros for the unknown ones, and the mask of the known (None: all are)."""
    if not math.isnan(targets.sum().item()):  # half the cost of looking at each entry
        return targets, None
    unknown = torch.isnan(targets)
    return targets.masked_fill(unknown, 0.0), ~unknown


def _only_known(entries: Tensor, known: Tensor | None) -> Tensor:
    return entries if known is None else torch.where(known, entries, 0.0)


def bce(logits: Tensor, targets: Tensor) -> Tensor:
    """Binary cross-entropy of each entry; its gradient is ``sigmoid(logits) - targets``."""
    targets, known = known_targets(targets)
    entries = F.binary_cross_entropy_with_logits(logits, targets, reduction="none")
    return _only_known(entries, known)


def weighted_bce(
    logits: Tensor,
    targets: Tensor,
    *,
    pos_weight: float | Sequence[float] | Tensor = 1.0,
    neg_weight: float | Sequence[float] | Tensor = 1.0,
) -> Tensor:
    """Binary cross-entropy with weights on positives and negatives, one in all or one per label.

    With ``neg_weight=1 / (L - 1)`` this is the weak assume-negative loss of Cole et al.,
    "Multi-Label Learning from Single Positive Labels", CVPR 2021.
    """
    targets, known = known_targets(targets)
    positive, negative = (
        torch.as_tensor(weight, dtype=logits.dtype, device=logits.device)
        for weight in (pos_weight, neg_weight)
    )
    entries = -(
        positive * targets * F.logsigmoid(logits) + negative * (1 - targets) * F.logsigmoid(-logits)
    )
    return _only_known(entries, known)


def smoothed_bce(logits: Tensor, targets: Tensor, *, smoothing: float = 0.1) -> Tensor:
    """Binary cross-entropy towards ``smoothing / 2`` and ``1 - smoothing / 2``.

    Label smoothing of Szegedy et al., "Rethinking the Inception Architecture for Computer
    Vision", CVPR 2016, with two classes per label.
    """
    return bce(logits, targets * (1 - smoothing) + smoothing / 2)


def focal(logits: Tensor, targets: Tensor, *, gamma: float = 2.0, alpha: float = 0.25) -> Tensor:
    """Focal loss: entries that are already right count less.

    Lin et al., "Focal Loss for Dense Object Detection", ICCV 2017, Eq. 5. `alpha` weights
    positives, ``1 - alpha`` negatives; 0.5 treats them alike.
    """
    targets, known = known_targets(targets)
    # Written with log-sigmoids throughout: no probability is ever rounded to 0 or 1.
    log_right = torch.where(targets > 0.5, F.logsigmoid(logits), F.logsigmoid(-logits))
    log_wrong = torch.where(targets > 0.5, F.logsigmoid(-logits), F.logsigmoid(logits))
    weight = torch.where(targets > 0.5, alpha, 1 - alpha)
    return _only_known(-weight * torch.exp(gamma * log_wrong) * log_right, known)


def asl(
    logits: Tensor,
    targets: Tensor,
    *,
    gamma_neg: float = 4.0,
    gamma_pos: float = 1.0,
    clip: float = 0.05,
) -> Tensor:
    """Asymmetric loss: easy negatives count less, very easy ones not at all.

    Ridnik et al., "Asymmetric Loss For Multi-Label Classification", ICCV 2021, Eq. 4 to 7:
    ``(1 - p)^gamma_pos log p`` on positives, ``q^gamma_neg log(1 - q)`` on negatives with
    ``q = max(p - clip, 0)``. The gradient flows through the focusing factors too.
    """
    targets, known = known_targets(targets)
    log_negative = F.logsigmoid(-logits)
    on_positive = torch.exp(gamma_pos * log_negative) * F.logsigmoid(logits)
    if clip > 0:
        shifted = (torch.sigmoid(logits) - clip).clamp(min=_TINY)
        on_negative = shifted**gamma_neg * torch.log1p(-shifted)
    else:
        on_negative = torch.exp(gamma_neg * F.logsigmoid(logits)) * log_negative
    return _only_known(-(targets * on_positive + (1 - targets) * on_negative), known)


def zlpr(logits: Tensor, targets: Tensor) -> Tensor:
    """Zero-bounded log-sum-exp pairwise rank loss, one value per row.

    Su et al., "ZLPR: A Novel Loss for Multi-label Classification", 2022, Eq. 6:
    ``log(1 + sum over positives of e^-s) + log(1 + sum over negatives of e^s)``.
    """
    targets, known = known_targets(targets)
    positive = targets > 0.5
    negative = ~positive if known is None else known & ~positive
    zero = logits.new_zeros((logits.shape[0], 1))

    def log_one_plus_sum(values: Tensor, included: Tensor) -> Tensor:
        values = values.masked_fill(~included, -torch.inf)
        return torch.logsumexp(torch.cat([zero, values], dim=1), dim=1)

    return log_one_plus_sum(-logits, positive) + log_one_plus_sum(logits, negative)


# -- losses for partial labels: a negative may be a missing positive -------------------


def positive_bce(logits: Tensor, targets: Tensor) -> Tensor:
    """Binary cross-entropy of the positives alone; other entries are zero."""
    targets, known = known_targets(targets)
    return _only_known(-targets * F.logsigmoid(logits), known)


def expected_positives(probabilities: Tensor, k: float) -> Tensor:
    """Squared deviation of the mean number of positives per row from `k`: ``((mean - k) / L)^2``.

    The regulariser R_k of Cole et al., CVPR 2021, Eq. 6.
    """
    mean = probabilities.sum(dim=1).mean()
    return ((mean - k) / probabilities.shape[1]) ** 2


def hill(logits: Tensor, targets: Tensor, *, margin: float = 1.5) -> Tensor:
    """Hill loss: ``(margin - p) p^2`` on negatives, less steep the surer they look positive.

    Zhang et al., "Simple and Robust Loss Design for Multi-Label Learning with Missing Labels",
    2021, Eq. 8; cross-entropy on positives.
    """
    targets, known = known_targets(targets)
    p = torch.sigmoid(logits)
    entries = -targets * F.logsigmoid(logits) + (1 - targets) * (margin - p) * p**2
    return _only_known(entries, known)


def splc(
    logits: Tensor,
    targets: Tensor,
    *,
    tau: float = 0.6,
    margin: float = 1.0,
    gamma: float = 2.0,
    correct: bool = True,
) -> Tensor:
    """Self-paced loss correction: a negative with a probability above `tau` counts as positive.

    Zhang et al., 2021 (as :func:`hill`), Eq. 10 and 11: focal margin loss on positives,
    ``-(1 - q)^gamma log q`` with ``q = sigmoid(logit - margin)``; cross-entropy on negatives.
    """
    targets, known = known_targets(targets)
    if correct:
        targets = torch.where(torch.sigmoid(logits.detach()) > tau, 1.0, targets)
    shifted = logits - margin
    on_positive = torch.exp(gamma * F.logsigmoid(-shifted)) * F.logsigmoid(shifted)
    return _only_known(-(targets * on_positive + (1 - targets) * F.logsigmoid(-logits)), known)


def entropy_maximisation(logits: Tensor, targets: Tensor, *, alpha: float = 0.2) -> Tensor:
    """Cross-entropy on positives, minus `alpha` times the entropy on all other entries.

    Zhou et al., "Acknowledging the Unknown for Multi-Label Learning with Single Positive
    Labels", ECCV 2022, Eq. 3: unannotated entries are kept undecided and not trained as
    negatives.
    """
    targets, known = known_targets(targets)
    log_p, log_not = F.logsigmoid(logits), F.logsigmoid(-logits)
    negentropy = log_p.exp() * log_p + log_not.exp() * log_not
    return _only_known(torch.where(targets > 0.5, -log_p, alpha * negentropy), known)


def generalized_robust(
    logits: Tensor,
    targets: Tensor,
    *,
    progress: float = 1.0,
    slope: tuple[float, float] = (0.0, 2.0),
    offset: tuple[float, float] = (-2.0, -2.0),
    mean: tuple[float, float] = (0.5, 0.8),
    width: tuple[float, float] = (2.0, 0.5),
    q_positive: float = 0.01,
    q_negative: float = 1.0,
) -> Tensor:
    """Generalized robust loss: a negative counts as positive by its estimated probability.

    Chen et al., "Boosting Single Positive Multi-label Classification with Generalized Robust
    Loss", IJCAI 2024. On negatives ``v (k l+ + (1 - k) l-)`` with the estimated probability
    ``k = sigmoid(slope p + offset)``, the weight ``v = exp(-((p - mean) / width)^2 / 2)``, and
    ``l+ = (1 - p^q) / q``, ``l- = (1 - (1 - p)^q) / q``, each with its own q; cross-entropy on
    positives. The four pairs are values at the start and at the end of training, between which
    `progress` moves. `k` and `v` carry no gradient.
    """
    targets, known = known_targets(targets)

    def at(ends: tuple[float, float]) -> float:
        return ends[0] + (ends[1] - ends[0]) * progress

    p = torch.sigmoid(logits.detach())
    k = torch.sigmoid(at(slope) * p + at(offset))
    weight = torch.exp(-0.5 * ((p - at(mean)) / at(width)) ** 2)
    as_positive = (1 - torch.exp(q_positive * F.logsigmoid(logits))) / q_positive
    as_negative = (1 - torch.exp(q_negative * F.logsigmoid(-logits))) / q_negative
    robust = weight * (k * as_positive + (1 - k) * as_negative)
    return _only_known(torch.where(targets > 0.5, -F.logsigmoid(logits), robust), known)


LOSSES: dict[str, Callable[..., Tensor]] = {
    "bce": bce,
    "weighted-bce": weighted_bce,
    "smoothed-bce": smoothed_bce,
    "focal": focal,
    "asl": asl,
    "zlpr": zlpr,
    "hill": hill,
}


def get_loss(
    loss: str | Callable[..., Tensor], parameters: Mapping[str, Any] | None = None
) -> Loss:
    """A loss by its name, or any function, with its parameters filled in.

    >>> get_loss("asl", {"clip": 0.0}).keywords
    {'clip': 0.0}
    """
    if isinstance(loss, str) and loss not in LOSSES:
        raise InputError(f"there is no loss {loss!r}: choose one of {', '.join(LOSSES)}")
    function = LOSSES[loss] if isinstance(loss, str) else loss
    parameters = dict(parameters or {})
    try:
        inspect.signature(function).bind(None, None, **parameters)
    except TypeError as error:
        name = loss if isinstance(loss, str) else getattr(loss, "__name__", repr(loss))
        raise InputError(f"wrong parameters for the loss {name!r}: {error}") from None
    return partial(function, **parameters) if parameters else function
