"""Random generators of a run: seeded for the run, and restored for the caller."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

__all__ = ["forked_rng", "get_rng_state", "set_rng_state"]


@contextmanager
def forked_rng(seed: int, device: str | torch.device = "cpu") -> Iterator[None]:
    """Torch's generators seeded within the block and restored after it.

    NumPy's and Python's own global generators are not used at all. Threads of one process
    share torch's generators: only one of them may train at a time (joblib's default, processes,
    is fine).

    >>> before = torch.get_rng_state()
    >>> with forked_rng(0):
    ...     _ = torch.rand(3)
    >>> bool((torch.get_rng_state() == before).all())
    True
    """
    device = torch.device(device)
    accelerator = device.type != "cpu"
    index = (device.index or 0) if accelerator else None
    devices = [] if index is None else [index]
    kind = device.type if accelerator else "cuda"
    with torch.random.fork_rng(devices=devices, device_type=kind):
        torch.default_generator.manual_seed(seed)
        if accelerator:
            getattr(torch, device.type).manual_seed(seed)
        yield


def get_rng_state(device: torch.device) -> dict[str, Tensor]:
    """The state of the generators that a run on this device draws from."""
    state = {"cpu": torch.get_rng_state()}
    if device.type != "cpu":
        state["device"] = getattr(torch, device.type).get_rng_state()
    return state


def set_rng_state(state: dict[str, Tensor], device: torch.device) -> None:
    """Restore the state that :func:`get_rng_state` returned."""
    torch.set_rng_state(state["cpu"])
    if device.type != "cpu":
        getattr(torch, device.type).set_rng_state(state["device"])
