"""The networks of AttentionXML, and the groups of labels for its tree."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from labelweave.nn.batches import Batch
from labelweave.nn.losses import mean_loss
from labelweave.nn.task import OptimizerPlan, StepInfo, Task, make_plan

PADDING, UNKNOWN = 0, 1
_LEAST = 1e-6  # probability of a label that is not a candidate
_ROUNDS = 5  # of 2-means in each split of labels


class TokenEncoder(nn.Module):
    """Computes one vector per token by embeddings and a bidirectional LSTM.

    Padding is ignored, so the vectors of a text do not depend on the other texts of the batch.
    """

    def __init__(
        self, n_tokens: int, width: int, hidden: int, word_dropout: float, dropout: float
    ) -> None:
        super().__init__()
        self.words = nn.Embedding(n_tokens, width, padding_idx=PADDING)
        self.word_dropout = nn.Dropout(word_dropout)
        self.lstm = nn.LSTM(width, hidden, batch_first=True, bidirectional=True)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return vectors of shape (n, longest, 2 hidden) and a mask of the tokens."""
        tokens = x.long()
        lengths = (tokens != PADDING).sum(dim=1).clamp(min=1)
        tokens = tokens[:, : int(lengths.max())]
        words = self.word_dropout(self.words(tokens))
        packed = pack_padded_sequence(words, lengths.cpu(), batch_first=True, enforce_sorted=False)
        vectors, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True)
        places = torch.arange(vectors.shape[1], device=x.device)
        return self.dropout(vectors), places < lengths[:, None]


class LabelAttention(nn.Module):
    """One softmax over the tokens per label, and a head that all labels share."""

    def __init__(self, n_labels: int, width: int, head: int) -> None:
        super().__init__()
        self.attention = nn.Parameter(torch.empty(n_labels, width))
        nn.init.xavier_uniform_(self.attention)
        self.head = nn.Sequential(nn.Linear(width, head), nn.ReLU(), nn.Linear(head, 1))

    def forward(self, vectors: Tensor, is_token: Tensor, labels: Tensor | None = None) -> Tensor:
        """Return one logit per label, or per candidate in `labels`, of shape (n, C)."""
        queries = self.attention if labels is None else self.attention[labels]
        scores = queries @ vectors.transpose(1, 2)  # (n, L or C, tokens)
        weights = scores.masked_fill(~is_token[:, None], -torch.inf).softmax(dim=-1)
        return self.head(weights @ vectors).squeeze(-1)


class LabelTreeNetwork(nn.Module):
    """A tree of two levels: it scores groups of labels, then those of the `beam` best groups."""

    members: Tensor  # (n_groups, size), the labels of each group, filled up with -1
    group_of: Tensor

    def __init__(
        self,
        encoder: TokenEncoder,
        members: Tensor,
        n_labels: int,
        width: int,
        head: int,
        beam: int,
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.groups = LabelAttention(len(members), width, head)
        self.labels = LabelAttention(n_labels, width, head)
        self.n_labels = n_labels
        self.beam = min(beam, len(members))
        group_of = torch.zeros(n_labels, dtype=torch.long)
        row, _ = torch.nonzero(members >= 0, as_tuple=True)
        group_of[members[members >= 0]] = row
        self.register_buffer("members", members)
        self.register_buffer("group_of", group_of)

    def parts(
        self, x: Tensor, wanted: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return the logits of the groups, the candidates, their mask and their logits.

        Groups in `wanted`, a boolean (n, n_groups), are chosen before all others.
        """
        vectors, is_token = self.encoder(x)
        groups = self.groups(vectors, is_token)
        order = groups.detach()
        if wanted is not None:
            order = torch.where(wanted, order + 1e4, order)
        best = order.topk(self.beam, dim=1).indices
        candidates = self.members[best].flatten(1)
        is_label = candidates >= 0
        candidates = candidates.clamp(min=0)
        return groups, candidates, is_label, self.labels(vectors, is_token, candidates)

    def forward(self, x: Tensor) -> Tensor:
        """Return the logits of all labels: P(label) = P(group) P(label | group)."""
        groups, candidates, is_label, logits = self.parts(x)
        path = groups.sigmoid().gather(1, self.group_of[candidates]) * logits.sigmoid()
        path = path.clamp(_LEAST, 1 - _LEAST)
        result = path.new_full((len(x), self.n_labels + 1), _LEAST)
        # Padding is written to an additional column, which is dropped.
        places = torch.where(is_label, candidates, self.n_labels)
        return result.scatter(1, places, path)[:, : self.n_labels].logit()


class TreeTask(Task):
    """Trains both levels together: cross-entropy of the groups and of the candidates."""

    network: LabelTreeNetwork
    weighs_rows: ClassVar[bool] = True

    def __init__(self, network: LabelTreeNetwork, loss: Any, plan: dict[str, Any]) -> None:
        super().__init__(network)
        self.loss = loss
        self.plan = plan

    def losses(self, batch: Batch, info: StepInfo) -> dict[str, Tensor]:
        y = batch.y
        n_groups = len(self.network.members)
        positive = torch.zeros((len(y), n_groups), device=y.device)
        group_of = self.network.group_of.expand(len(y), -1)
        positive.scatter_reduce_(1, group_of, (y == 1).float(), "amax")
        unknown = torch.zeros_like(positive)
        unknown.scatter_reduce_(1, group_of, y.isnan().float(), "amax")
        target = torch.where((positive == 0) & (unknown == 1), torch.nan, positive)
        groups, candidates, is_label, logits = self.network.parts(batch.x, positive > 0)
        truth = y.gather(1, candidates).masked_fill(~is_label, torch.nan)
        return {
            "groups": mean_loss(self.loss(groups, target), row_weight=batch.row_weight),
            "labels": mean_loss(self.loss(logits, truth), row_weight=batch.row_weight),
        }

    def optimizers(self, n_steps: int) -> list[OptimizerPlan]:
        return [make_plan(self.network.parameters(), n_steps=n_steps, **self.plan)]


def balanced_groups(features: sp.csr_array, size: int, random: np.random.RandomState) -> np.ndarray:
    """Split labels in halves repeatedly until no group has more than `size` labels.

    Each split is a balanced spherical 2-means: the half of the labels that is closest to one
    centre, relative to the other, is assigned to it. The rows of `features` (L, d) are of length
    one, or zero. Returns an array (n_groups, size) of sorted labels, filled up with -1.

    >>> rows = sp.csr_array(np.array([[1.0, 0], [0, 1], [1, 0], [0, 1]]))
    >>> sorted(balanced_groups(rows, 2, np.random.RandomState(0)).tolist())
    [[0, 2], [1, 3]]
    """
    waiting, groups = [np.arange(features.shape[0])], []
    while waiting:
        labels = waiting.pop()
        if len(labels) <= size:
            groups.append(labels)
        else:
            waiting += _halves(features, labels, random)
    table = np.full((len(groups), size), -1, dtype=np.int64)
    for row, labels in enumerate(groups):
        table[row, : len(labels)] = np.sort(labels)
    return table


def _halves(
    features: sp.csr_array, labels: np.ndarray, random: np.random.RandomState
) -> list[np.ndarray]:
    rows = features[labels]
    first = random.randint(len(labels))
    far = int(np.argmin((rows @ rows[[first]].T).toarray().ravel()))
    centres = rows[[first, far]].toarray()
    half = len(labels) // 2
    for _ in range(_ROUNDS):
        lean = rows @ (centres[0] - centres[1])
        order = np.argsort(-lean, kind="stable")
        centres = np.stack([rows[part].sum(axis=0) for part in (order[:half], order[half:])])
        lengths = np.linalg.norm(centres, axis=1, keepdims=True)
        centres = centres / np.where(lengths > 0, lengths, 1)
    return [labels[order[:half]], labels[order[half:]]]
