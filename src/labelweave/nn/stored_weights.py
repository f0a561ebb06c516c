"""Building a network for weights that were read from a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_parameter_registration_hook
from torch.overrides import TorchFunctionMode

from labelweave.exceptions import InputError
from labelweave.nn.randomness import forked_rng

__all__ = ["network_with_weights", "weights_are_at_hand"]

_AT_HAND: ContextVar[bool] = ContextVar("weights_are_at_hand", default=False)


def weights_are_at_hand() -> bool:
    """Whether a network is being built for stored weights, so that a file of others is not read."""
    return _AT_HAND.get()


def network_with_weights(
    build: Callable[[], nn.Module], weights: Mapping[str, Tensor]
) -> nn.Module:
    """Return the network that `build` makes, with these weights.

    The parameters of a method decide how large its network is. Those of a file may claim anything,
    so the network is built without memory first, and refused if the weights do not fit it.

    >>> weights = nn.Linear(2, 3).state_dict()
    >>> network_with_weights(lambda: nn.Linear(2, 3), weights)
    Linear(in_features=2, out_features=3, bias=True)
    >>> network_with_weights(lambda: nn.Linear(2, 10**12), weights)
    Traceback (most recent call last):
    ...
    labelweave.exceptions.InputError: the weights do not fit the network of these parameters
    """
    refusal = InputError("the weights do not fit the network of these parameters")
    n_registered = 0

    def count(module: nn.Module, name: str, parameter: Any) -> None:
        nonlocal n_registered
        n_registered += 1
        if n_registered > 4 * len(weights) + 16:  # a parameter may be replaced or shared
            raise refusal

    token = _AT_HAND.set(True)
    hook = register_module_parameter_registration_hook(count)
    try:
        with torch.device("meta"), _WithoutNormalNumbers():
            expected = {name: value.shape for name, value in build().state_dict().items()}
        hook.remove()
        if expected != {name: value.shape for name, value in weights.items()}:
            raise refusal
        with forked_rng(0):  # the weights drawn here are overwritten at once
            network = build()
    finally:
        hook.remove()
        _AT_HAND.reset(token)
    network.load_state_dict(dict(weights))
    return network.eval()


class _WithoutNormalNumbers(TorchFunctionMode):
    """Initial weights are not drawn for a network without memory.

    For normal numbers torch would import its compiler, which takes seconds and makes a folder for
    temporary files.
    """

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        return args[0] if func is Tensor.normal_ else func(*args, **(kwargs or {}))
