"""Networks that turn features into a representation, and their layers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from labelweave.exceptions import InputError
from labelweave.nn.process_rows import bernoulli_, current_share, draw_rows, sum_over_processes

__all__ = [
    "ACTIVATIONS",
    "NORMS",
    "BatchNorm",
    "Dropout",
    "MLPEncoder",
    "build_encoder",
    "encoder_or_mlp",
]


class Dropout(nn.Module):
    """Dropout whose mask does not depend on how many processes share the batch.

    Parameters
    ----------
    p : float
        Probability of setting an element to zero.
    by_row : bool, default=True
        Whether the first axis is the rows of the batch; False for values that all rows share,
        such as label embeddings.
    """

    def __init__(self, p: float, *, by_row: bool = True) -> None:
        super().__init__()
        self.p = p
        self.by_row = by_row

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.p == 0:
            return x
        keep = 1 - self.p
        draw = partial(bernoulli_, p=keep)
        kept = draw_rows(x, draw) if self.by_row else draw(torch.empty_like(x))
        return x * kept.div_(keep)

    def extra_repr(self) -> str:
        return f"p={self.p}"


class BatchNorm(nn.BatchNorm1d):
    """Batch normalisation over the rows of all processes; a single row uses the running averages.

    For images, (n, channels, height, width), all pixels of a channel are normalised together.
    """

    def _check_input_dim(self, input: Tensor) -> None:
        """Vectors and images alike."""

    def forward(self, x: Tensor) -> Tensor:
        share = current_share()
        rows = x.shape[0] if share is None else share.total
        if not self.training or rows == 1:
            return nn.functional.batch_norm(
                x, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps
            )
        if share is None:
            return super().forward(x)
        axes = [axis for axis in range(x.ndim) if axis != 1]
        rows *= math.prod(x.shape[2:])
        column = (-1, *[1] * (x.ndim - 2))  # the shape of one number per channel
        mean = sum_over_processes(x.sum(dim=axes)) / rows
        apart = x - mean.view(column)
        variance = sum_over_processes((apart**2).sum(dim=axes)) / rows
        with torch.no_grad():
            assert self.running_mean is not None
            assert self.running_var is not None
            assert self.momentum is not None
            assert self.num_batches_tracked is not None
            self.num_batches_tracked.add_(1)
            self.running_mean.lerp_(mean, self.momentum)
            self.running_var.lerp_(variance * (rows / (rows - 1)), self.momentum)
        factor = torch.rsqrt(variance + self.eps) * self.weight
        return apart * factor.view(column) + self.bias.view(column)


ACTIVATIONS: dict[str, type[nn.Module]] = {
    "relu": nn.ReLU,
    "leaky-relu": nn.LeakyReLU,
    "gelu": nn.GELU,
    "silu": nn.SiLU,
    "elu": nn.ELU,
    "tanh": nn.Tanh,
}
NORMS: dict[str, type[nn.Module]] = {"batch": BatchNorm, "layer": nn.LayerNorm}


class MLPEncoder(nn.Sequential):
    """Linear layers, each followed by a norm (if any), an activation and dropout.

    Parameters
    ----------
    n_in : int
    sizes : sequence of int
        Width of each layer; without layers the features are unchanged.
    dropout : float, default=0.0
    activation : str, default="relu"
        A key of :data:`ACTIVATIONS`.
    norm : {"batch", "layer"} or None, default=None
    input_dropout : float, default=0.0
        Dropout of the features themselves.

    Attributes
    ----------
    n_out : int
        Width of the representation.

    Examples
    --------
    >>> import torch
    >>> encoder = MLPEncoder(5, (8, 4), dropout=0.1)
    >>> encoder(torch.zeros(2, 5)).shape, encoder.n_out
    (torch.Size([2, 4]), 4)
    """

    def __init__(
        self,
        n_in: int,
        sizes: Sequence[int],
        *,
        dropout: float = 0.0,
        activation: str = "relu",
        norm: str | None = None,
        input_dropout: float = 0.0,
    ) -> None:
        if activation not in ACTIVATIONS:
            known = ", ".join(ACTIVATIONS)
            raise InputError(f"there is no activation {activation!r}: choose one of {known}")
        if norm is not None and norm not in NORMS:
            raise InputError(f"there is no norm {norm!r}: choose one of {', '.join(NORMS)}")
        layers: list[nn.Module] = [Dropout(input_dropout)] if input_dropout else []
        width = n_in
        for size in sizes:
            # Batch normalisation subtracts any constant: a bias would have no effect.
            layers.append(nn.Linear(width, size, bias=norm != "batch"))
            if norm is not None:
                layers.append(NORMS[norm](size))
            layers.append(ACTIVATIONS[activation]())
            if dropout:
                layers.append(Dropout(dropout))
            width = size
        super().__init__(*layers)
        self.n_out = width


def build_encoder(encoder: Any, n_features: int) -> nn.Module:
    """The module that a parameter `encoder` stands for.

    Parameters
    ----------
    encoder : callable or str
        A function of the number of features that returns a module with an attribute `n_out`, the
        width of its output; or the name of a network for images, such as "resnet18".
    n_features : int

    Examples
    --------
    >>> build_encoder(lambda n: MLPEncoder(n, (8,)), 5).n_out
    8
    """
    from labelweave.nn.image_network import make_encoder

    module = make_encoder(encoder)(n_features)
    if not isinstance(getattr(module, "n_out", None), int):
        raise InputError("the encoder needs an attribute n_out, the width of its output")
    return module


def encoder_or_mlp(
    encoder: Any, n_features: int, hidden: Sequence[int], **options: Any
) -> nn.Module:
    """The module of `encoder`; if it is None, an MLPEncoder with these hidden layers.

    >>> encoder_or_mlp(None, 5, (8, 4), dropout=0.1).n_out
    4
    """
    if encoder is None:
        return MLPEncoder(n_features, hidden, **options)
    return build_encoder(encoder, n_features)
