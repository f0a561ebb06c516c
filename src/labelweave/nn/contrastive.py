"""Supervised contrastive losses for rows with several labels.

Zhang and Wu, "Multi-Label Supervised Contrastive Learning", AAAI 2024. An anchor's embedding
is drawn towards those of its positives and away from all others. Which keys are positives is
where the losses differ; all of them are the same function of an (anchors, keys) matrix of
weights W and the scores S,

    loss = -sum(W * log_softmax(S)) / sum(W),

so that memory grows with anchors x keys, whatever the number of labels:

- "each-label", MulSupCon, Eq. 4 and 5: W = Y_q diag(1 / |P_j|) Y_k^T, where |P_j| counts the
  keys with label j. An anchor counts once for each of its labels.
- the same, weighted, Eq. 6: each row of W divided by its sum. An anchor counts once.
- "all" and "any", Eq. 1 with keys that have exactly the anchor's labels, or one of them: W is
  1 / |P| on the |P| positives.

Labels are 1, 0, or NaN for an unknown entry, which makes no pair a positive one. Every key
stands in the denominator, whatever its labels, as in Eq. 1. A label that no key carries is
skipped, and so is an anchor without any positive key.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 (torch's own way)

from labelweave.exceptions import InputError

__all__ = ["POSITIVES", "mulsupcon", "positive_weights", "supcon", "weighted_contrast"]

POSITIVES = ("each-label", "all", "any")
_TINY = 1e-12  # far below any sum of weights that is not zero


def mulsupcon(
    queries: Tensor,
    keys: Tensor,
    query_labels: Tensor,
    key_labels: Tensor,
    *,
    temperature: float = 0.1,
    positives: str = "each-label",
    weighted: bool = False,
    left_out: Tensor | None = None,
) -> Tensor:
    """The multi-label contrastive loss of a batch of anchors against keys.

    Parameters
    ----------
    queries : Tensor of shape (n, d)
        Embeddings of the anchors, of length 1.
    keys : Tensor of shape (m, d)
        Embeddings of the keys, from batch and queue, of length 1.
    query_labels, key_labels : Tensor of shape (n, L) and (m, L)
        1, 0 or NaN (unknown).
    temperature : float, default=0.1
        tau of the paper.
    positives : {"each-label", "all", "any"}, default="each-label"
        Which keys an anchor is drawn to: for each of its labels the keys with that label, the
        keys with the same label set, or those with any of its labels.
    weighted : bool, default=False
        Divide the terms of an anchor by the number of its labels, Eq. 6.
    left_out : bool Tensor of shape (n, m), optional
        Pairs that are ignored, such as an anchor and itself.

    Examples
    --------
    >>> z = F.normalize(torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.0, 1.0]]), dim=1)
    >>> y = torch.tensor([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    >>> round(mulsupcon(z, z, y, y, temperature=1.0).item(), 4)
    0.9796
    """
    weights = positive_weights(
        query_labels, key_labels, positives=positives, weighted=weighted, left_out=left_out
    )
    return weighted_contrast(queries, keys, weights, temperature=temperature, left_out=left_out)


def supcon(
    queries: Tensor,
    keys: Tensor,
    is_positive: Tensor,
    *,
    temperature: float = 0.1,
    left_out: Tensor | None = None,
) -> Tensor:
    """Supervised contrastive loss, Eq. 1, with a matrix of positives; mean over the anchors.

    >>> z = torch.eye(2)
    >>> round(supcon(z, z, torch.eye(2) > 0, temperature=1.0).item(), 4)
    0.3133
    """
    weights = _equal_weights(is_positive, queries.dtype, left_out)
    return weighted_contrast(queries, keys, weights, temperature=temperature, left_out=left_out)


def weighted_contrast(
    queries: Tensor,
    keys: Tensor,
    weights: Tensor,
    *,
    temperature: float,
    left_out: Tensor | None = None,
) -> Tensor:
    """``-sum(W * log_softmax(S)) / sum(W)``; zero if no pair has a weight."""
    scores = (queries / temperature @ keys.T).to(weights.dtype)
    if left_out is not None:
        # Finite, because the zero weight times minus infinity would be NaN.
        scores = scores.masked_fill(left_out, torch.finfo(scores.dtype).min)
    total = F.cross_entropy(scores, weights, reduction="sum")
    return total / weights.sum().clamp(min=_TINY)


def positive_weights(
    query_labels: Tensor,
    key_labels: Tensor,
    *,
    positives: str = "each-label",
    weighted: bool = False,
    left_out: Tensor | None = None,
) -> Tensor:
    """The weight of each anchor and key: the matrix W of the module's docstring.

    >>> y = torch.tensor([[1.0, 0.0], [1.0, 1.0]])
    >>> positive_weights(y, y)
    tensor([[0.5000, 0.5000],
            [0.5000, 1.5000]])
    """
    if positives not in POSITIVES:
        raise InputError(
            f"there are no positives {positives!r}: choose one of {', '.join(POSITIVES)}"
        )
    on_queries, _ = _positives(query_labels)
    on_keys, sizes = _positives(key_labels)  # sizes: |P_j|
    if positives != "each-label":
        is_positive = on_queries @ on_keys.T > 0.5
        if positives == "all":
            # The same set, as far as both are known: nothing on in one and off in the other.
            off_queries, off_keys = ((y == 0).to(y.dtype) for y in (query_labels, key_labels))
            is_positive &= on_queries @ off_keys.T + off_queries @ on_keys.T < 0.5
        return _equal_weights(is_positive, query_labels.dtype, left_out)
    if left_out is None:
        weights = (on_queries / sizes.clamp(min=1)) @ on_keys.T
    else:
        included = (~left_out).to(on_keys.dtype)
        sizes = included @ on_keys  # now per anchor
        weights = (on_queries / sizes.clamp(min=1)) @ on_keys.T * included
    return _rows_of_sum_one(weights) if weighted else weights


def _positives(labels: Tensor) -> tuple[Tensor, Tensor]:
    """1 where a row has a label, else 0; and the number of rows with each label."""
    counts = labels.sum(dim=0)
    if counts.isnan().any():  # tested on the sums, which is cheaper for a long queue
        labels = labels.nan_to_num(0.0)
        counts = labels.sum(dim=0)
    return labels, counts


def _equal_weights(is_positive: Tensor, dtype: torch.dtype, left_out: Tensor | None) -> Tensor:
    if left_out is not None:
        is_positive = is_positive & ~left_out
    return _rows_of_sum_one(is_positive.to(dtype))


def _rows_of_sum_one(weights: Tensor) -> Tensor:
    return weights / weights.sum(dim=1, keepdim=True).clamp(min=_TINY)
