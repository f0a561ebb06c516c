"""MulSupCon's loss by matrix products against the form that repeats an anchor for each label.

Both run in this process on one thread, on the same random embeddings and labels (labels a row
as in delicious); value and gradient must agree. The repeated form follows Eq. 4 and 5 with
batched tensor code: one row of scores for each (anchor, label) pair. CPU seconds of a forward
and backward pass, the best of several rounds in which both run once; memory is what the pass
added at its highest (Linux). Then the products alone, with one size grown at a time. Run it with

    python benchmarks/mulsupcon_speed.py [--batch 256] [--queue 8192] [--labels 1000]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from labelweave.nn.contrastive import mulsupcon

TAU = 0.1
Inputs = tuple[Tensor, Tensor, Tensor, Tensor]


def make_inputs(batch: int, queue: int, labels: int, a_row: float, dims: int) -> Inputs:
    """Queries, keys (of the batch, then of the queue) and the labels of both."""
    generator = torch.Generator().manual_seed(0)
    keys = F.normalize(torch.randn(batch + queue, dims, generator=generator), dim=1)
    queries = F.normalize(torch.randn(batch, dims, generator=generator), dim=1)
    key_labels = (torch.rand(batch + queue, labels, generator=generator) < a_row / labels).float()
    return queries.requires_grad_(), keys, key_labels[:batch].clone(), key_labels


def by_products(queries: Tensor, keys: Tensor, query_labels: Tensor, key_labels: Tensor) -> Tensor:
    return mulsupcon(queries, keys, query_labels, key_labels, temperature=TAU)


def repeated(queries: Tensor, keys: Tensor, query_labels: Tensor, key_labels: Tensor) -> Tensor:
    """Each anchor once for each of its labels, as if it were a row of that class alone."""
    anchor, label = query_labels.nonzero(as_tuple=True)
    is_positive = key_labels.T[label]
    log_share = (queries[anchor] @ keys.T / TAU).log_softmax(dim=1)
    terms = -(is_positive * log_share).sum(dim=1) / is_positive.sum(dim=1)
    return terms.mean()


def seconds(losses: list[Callable[..., Tensor]], inputs: Inputs, rounds: int) -> list[float]:
    """The best time of each; they take turns, so that other work disturbs all alike."""
    best = [float("inf")] * len(losses)
    for _ in range(rounds):
        for k, loss in enumerate(losses):
            start = time.process_time()
            inputs[0].grad = None
            loss(*inputs).backward()
            best[k] = min(best[k], time.process_time() - start)
    return best


def forget_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def resident(field: str) -> float:
    """Megabytes of memory in use (VmRSS) or at most in use (VmHWM); Linux only."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field)) / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--queue", type=int, default=8192)
    parser.add_argument("--labels", type=int, default=1000)
    parser.add_argument("--labels-a-row", type=float, default=19)
    parser.add_argument("--dims", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    torch.set_num_threads(1)
    sizes = {
        "batch": options.batch,
        "queue": options.queue,
        "labels": options.labels,
        "a_row": options.labels_a_row,
        "dims": options.dims,
    }
    inputs = make_inputs(**sizes)
    values, gradients, peaks = [], [], []
    for loss in (by_products, repeated):
        inputs[0].grad = None
        forget_peak()
        before = resident("VmRSS")
        value = loss(*inputs)
        value.backward()
        peaks.append(resident("VmHWM") - before)
        values.append(value.item())
        gradients.append(inputs[0].grad.clone())
    apart = (gradients[0] - gradients[1]).norm() / gradients[1].norm()
    print(f"loss {values[0]:.6f} and {values[1]:.6f}; gradients differ by {apart:.1e}, relatively")
    if abs(values[0] - values[1]) > 1e-5 * abs(values[1]) or apart > 1e-5:
        raise SystemExit("the two forms do not agree")
    ours, theirs = seconds([by_products, repeated], inputs, options.rounds)
    print(f"products {ours:.3f} s, {peaks[0]:.0f} MB")
    print(f"repeated {theirs:.3f} s, {peaks[1]:.0f} MB")
    print(f"ratio    {theirs / ours:.1f} in time, {peaks[1] / peaks[0]:.1f} in memory")
    del inputs, gradients
    for name in sizes:
        row = []
        for factor in (0.5, 1, 2):
            kind = type(sizes[name])
            changed = make_inputs(**(sizes | {name: kind(sizes[name] * factor)}))
            (taken,) = seconds([by_products], changed, options.rounds)
            row.append(f"x{factor:g}: {taken:.3f} s")
        print(f"{name:<7} " + ", ".join(row))


if __name__ == "__main__":
    main()
