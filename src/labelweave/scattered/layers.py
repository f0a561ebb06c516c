"""The hidden layers of networks, for methods that compare or exchange them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from labelweave.exceptions import InputError
from labelweave.nn.encoders import MLPEncoder

__all__ = ["LayeredNetwork", "check_layers", "layers_of"]


class LayeredNetwork:
    """A network as a row of layers, each a function of the one before; the last gives logits.

    Parameters
    ----------
    layers : sequence of functions
        Hidden layers, from the features on.
    head : function
        From the last hidden layer to logits.
    """

    def __init__(
        self, layers: Sequence[Callable[[Tensor], Tensor]], head: Callable[[Tensor], Tensor]
    ) -> None:
        self.layers = list(layers)
        self.head = head

    @property
    def depth(self) -> int:
        return len(self.layers)

    def widths(self, n_features: int) -> list[int]:
        """Width of each hidden layer; the network must not be in training."""
        with torch.no_grad():
            return [layer.shape[1] for layer in self.hidden(torch.zeros((1, n_features)))]

    def hidden(self, x: Tensor) -> list[Tensor]:
        """What each hidden layer makes of the features."""
        found = []
        for layer in self.layers:
            x = layer(x)
            found.append(x)
        return found

    def resume(self, depth: int, h: Tensor) -> Tensor:
        """Logits from a given output of the hidden layer number `depth` on."""
        for layer in self.layers[depth + 1 :]:
            h = layer(h)
        return self.head(h)


def layers_of(network: nn.Module) -> LayeredNetwork | None:
    """The layers of a perceptron or of an order-free chain; None for any other network.

    The last hidden layer of a chain is its state after the first step, from which its first
    logits come: those of later steps belong to other labels in each network.
    """
    if isinstance(getattr(network, "from_chain", None), nn.Linear):
        chain: Any = network
        return LayeredNetwork([*_blocks(chain.encoder), _first_state(chain)], chain.out)
    if isinstance(network, nn.Sequential) and len(network) == 2:
        encoder, head = network
        if isinstance(encoder, MLPEncoder) and isinstance(head, nn.Linear):
            return LayeredNetwork(_blocks(encoder), head)
    return None


def _blocks(encoder: Any) -> list[Callable[[Tensor], Tensor]]:
    """Each linear layer of an encoder with all that follows it up to the next."""
    blocks: list[list[nn.Module]] = []
    before: list[nn.Module] = []
    for module in encoder:
        if isinstance(module, nn.Linear):
            blocks.append([*before, module])
            before = []
        elif blocks:
            blocks[-1].append(module)
        else:
            before.append(module)
    return [nn.Sequential(*block) for block in blocks]


def _first_state(chain: Any) -> Callable[[Tensor], Tensor]:
    """The state of an order-free chain after its first step (Eq. 6 to 8 of the ANT paper)."""

    def state(x: Tensor) -> Tensor:
        logits = chain.first(x)
        nothing = logits.new_zeros((len(x), logits.shape[1] + chain.hidden_size))
        gates = chain.from_features(x) + chain.from_chain(torch.cat([logits, nothing], dim=1))
        enter, _, new, leave = gates.chunk(4, dim=1)
        return torch.sigmoid(leave) * torch.tanh(torch.sigmoid(enter) * torch.tanh(new))

    return state


def check_layers(teachers: Sequence[Any], method: str) -> list[LayeredNetwork]:
    """The layers of each teacher, or one sentence on the one that has none."""
    found = []
    for teacher in teachers:
        network = getattr(teacher.model, "network_", None)
        layers = None if network is None else layers_of(network)
        if layers is None or layers.depth == 0:
            raise InputError(
                f"{method} looks into its teachers, and teacher {teacher.name!r} shows no hidden "
                "layers: give an OFCC or an MLP, or use ant, tc or bl, which any teacher can serve"
            )
        found.append(layers)
    return found
