"""The two training stages of MulSupCon: contrastive pretraining, and fine-tuning.

The pretraining uses a momentum encoder and a queue of keys (He et al., "Momentum Contrast for
Unsupervised Visual Representation Learning", CVPR 2020) with the multi-label loss of
:mod:`labelweave.nn.contrastive`.
"""

from __future__ import annotations

import copy
from functools import partial
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 (torch's own way)
from torch.optim.swa_utils import get_ema_multi_avg_fn

from labelweave.nn.batches import Batch
from labelweave.nn.contrastive import mulsupcon
from labelweave.nn.encoders import MLPEncoder
from labelweave.nn.losses import bce, mean_loss
from labelweave.nn.process_rows import bernoulli_, draw_rows, gather_rows
from labelweave.nn.task import OptimizerPlan, StepInfo, Task, TwoStepTask, make_plan

__all__ = [
    "ContrastiveTask",
    "FineTuningTask",
    "KeyQueue",
    "encoder_and_head",
    "masked_features",
    "projection_head",
]


class KeyQueue(nn.Module):
    """The last keys and their labels, first in, first out.

    Parameters
    ----------
    size : int
        Number of keys that are stored.
    n_dims, n_labels : int

    Examples
    --------
    >>> queue = KeyQueue(3, n_dims=1, n_labels=1)
    >>> for k in range(4):
    ...     queue.push(torch.full((1, 1), k), torch.ones(1, 1))
    >>> queue.keys.ravel().tolist(), queue.is_full()
    ([3.0, 1.0, 2.0], True)
    """

    keys: Tensor
    labels: Tensor
    n_pushed: Tensor

    def __init__(self, size: int, n_dims: int, n_labels: int) -> None:
        super().__init__()
        self.register_buffer("keys", torch.zeros(size, n_dims))
        self.register_buffer("labels", torch.zeros(size, n_labels))
        self.register_buffer("n_pushed", torch.zeros((), dtype=torch.long))

    def is_full(self) -> bool:
        """Whether all places hold a key; before, the contrast is with the batch alone."""
        return int(self.n_pushed) >= len(self.keys)

    @torch.no_grad()
    def push(self, keys: Tensor, labels: Tensor) -> None:
        """Replace the oldest keys."""
        size = len(self.keys)
        if size == 0:
            return
        self.n_pushed += len(keys)
        keys, labels = keys[-size:], labels[-size:]
        last = torch.arange(-len(keys), 0, device=self.keys.device)
        places = (self.n_pushed + last) % size
        self.keys[places] = keys.to(self.keys.dtype)
        self.labels[places] = labels.to(self.labels.dtype)


class ContrastiveTask(Task):
    """Train an encoder so that rows which share labels have similar representations.

    The queries are computed by the encoder and a projection head, the keys by moving averages of
    both. Queries and keys see differently masked features.

    Parameters
    ----------
    encoder : nn.Module
        With an attribute `n_out`, the width of the representation.
    n_labels : int
    n_dims : int
        Width of the projection.
    queue_size : int
    momentum : float
        Share of their weights that the moving averages keep at each step.
    mask : float
        Probability of setting a feature to zero.
    loss : dict
        Keywords of :func:`labelweave.nn.contrastive.mulsupcon`.
    plan : dict
        Arguments of :func:`labelweave.nn.task.make_plan`.
    """

    def __init__(
        self,
        encoder: nn.Module,
        n_labels: int,
        *,
        n_dims: int,
        queue_size: int,
        momentum: float,
        mask: float,
        loss: dict[str, Any],
        plan: dict[str, Any],
    ) -> None:
        super().__init__(nn.Sequential(encoder, projection_head(encoder.n_out, n_dims)))  # type: ignore[arg-type]
        self.key_network = copy.deepcopy(self.network).requires_grad_(False)
        self.queue = KeyQueue(queue_size, n_dims, n_labels)
        self.mask = mask
        self.loss = loss
        self.plan = plan
        self._update_average = get_ema_multi_avg_fn(momentum)
        self._new_keys: tuple[Tensor, Tensor] | None = None

    def losses(self, batch: Batch, info: StepInfo) -> dict[str, Tensor]:
        queries = self._embed(self.network, batch.x)
        with torch.no_grad():
            keys = self._embed(self.key_network, batch.x)
        labels = gather_rows(batch.y)
        self._new_keys = keys, labels
        all_keys, all_labels = keys, labels
        if self.queue.is_full():
            all_keys = torch.cat([keys, self.queue.keys.to(keys.dtype)])
            all_labels = torch.cat([labels, self.queue.labels])
        return {"contrast": mulsupcon(queries, all_keys, labels, all_labels, **self.loss)}

    def after_step(self, batch: Batch, info: StepInfo) -> None:
        self._update_average(
            list(self.key_network.parameters()), list(self.network.parameters()), None
        )
        if self._new_keys is not None:
            self.queue.push(*self._new_keys)
            self._new_keys = None

    def optimizers(self, n_steps: int) -> list[OptimizerPlan]:
        return [make_plan(self.network.parameters(), n_steps=n_steps, **self.plan)]

    def _embed(self, network: nn.Module, x: Tensor) -> Tensor:
        return gather_rows(F.normalize(network(masked_features(x, self.mask)), dim=1))


def projection_head(n_in: int, n_out: int) -> nn.Sequential:
    """One hidden layer (batch norm, ReLU, dropout 0.1), then the embedding.

    The hidden layer halves the width where the input is at least twice as wide as the output;
    otherwise it has the width of the output.
    """
    width = n_in // 2 if n_in >= 2 * n_out else n_out
    return nn.Sequential(
        MLPEncoder(n_in, (width,), norm="batch", dropout=0.1), nn.Linear(width, n_out)
    )


def masked_features(x: Tensor, p: float) -> Tensor:
    """Each feature set to zero with probability `p`, the others as they are.

    >>> masked_features(torch.ones(2, 3), 0.0).sum()
    tensor(6.)
    """
    return x if p == 0 else x * draw_rows(x, partial(bernoulli_, p=1 - p))


class FineTuningTask(TwoStepTask):
    """Binary cross-entropy of a linear layer on an encoder, with a learning rate for each.

    Parameters
    ----------
    network : nn.Module
        With the parts `encoder` and `head`.
    backbone_lr : float or None
        Learning rate of the encoder; None keeps it fixed, without dropout.
    plan : dict
        Arguments of :func:`labelweave.nn.task.make_plan`; its `lr` is that of the head.
    """

    weighs_entries: ClassVar[bool] = True
    weighs_rows: ClassVar[bool] = True

    def __init__(
        self, network: nn.Module, *, backbone_lr: float | None, plan: dict[str, Any]
    ) -> None:
        super().__init__(network)
        self.backbone_lr = backbone_lr
        self.plan = plan

    def outputs(self, batch: Batch) -> Tensor:
        if self.backbone_lr is not None:
            return self.network(batch.x)
        encoder, head = encoder_and_head(self.network)
        with torch.no_grad():
            representation = encoder.eval()(batch.x)
        return head(representation)

    def terms(self, outputs: Tensor, batch: Batch, info: StepInfo) -> dict[str, Tensor]:
        return {"bce": mean_loss(bce(outputs, batch.y), batch.weight, batch.row_weight)}

    def optimizers(self, n_steps: int) -> list[OptimizerPlan]:
        encoder, head = encoder_and_head(self.network)
        groups: list[dict[str, Any]] = [{"params": list(head.parameters())}]
        if self.backbone_lr is not None:
            groups.append({"params": list(encoder.parameters()), "lr": self.backbone_lr})
        return [make_plan(groups, n_steps=n_steps, **self.plan)]


def encoder_and_head(network: nn.Module) -> tuple[nn.Module, nn.Module]:
    """The encoder and the linear layer of a network."""
    return network.get_submodule("encoder"), network.get_submodule("head")
