"""The overhead of the training loop over bare torch and of weights; two processes equal one.

Both sides train the same MLP on the same batches of scene (1,211 x 294, 6 labels; random
numbers of that shape where the data set is not at hand), in turns, in one process:

    python benchmarks/training_loop.py
    python benchmarks/training_loop.py --weights

The second fits the library's MLP with weights of the rows and without.

Bare torch here is as lean as a loop gets: rows taken from tensors, fused AdamW, no check, no
history. Times are CPU seconds of one thread, which other work on the machine hardly moves.
The processes are started with `torchrun` on this machine.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch
from torch import nn

from labelweave.exceptions import LabelweaveError
from labelweave.labels import LabelMatrix, as_labels
from labelweave.nn.batches import Batches
from labelweave.nn.encoders import MLPEncoder
from labelweave.nn.losses import bce
from labelweave.nn.task import SupervisedTask
from labelweave.nn.training import LoopSettings, train

HIDDEN = (256, 512, 256)
BATCH, LR, DECAY = 32, 1e-3, 1e-4


def scene() -> tuple[np.ndarray, LabelMatrix]:
    try:
        from labelweave import load_dataset

        data, _ = load_dataset("scene").split()
        return np.asarray(data.X, dtype=np.float32), data.Y
    except LabelweaveError:
        rng = np.random.default_rng(0)
        X = rng.random((1211, 294), dtype=np.float32)
        return X, as_labels((rng.random((1211, 6)) < 0.18).astype(np.float32))


def make_network(n_features: int, n_labels: int) -> nn.Module:
    torch.manual_seed(0)
    encoder = MLPEncoder(n_features, HIDDEN, dropout=0.5)
    return nn.Sequential(encoder, nn.Linear(encoder.n_out, n_labels))


def bare(X: np.ndarray, Y: LabelMatrix, epochs: int) -> tuple[float, nn.Module]:
    network = make_network(X.shape[1], Y.n_labels)
    x, y = torch.from_numpy(X), torch.from_numpy(Y.to_numpy())
    optimizer = torch.optim.AdamW(network.parameters(), lr=LR, weight_decay=DECAY, fused=True)
    n_batches = -(-len(X) // BATCH)
    started = time.process_time()
    for epoch in range(epochs):
        order = torch.from_numpy(np.random.default_rng([0, epoch]).permutation(len(X)))
        for k in range(n_batches):
            rows = order[len(X) * k // n_batches : len(X) * (k + 1) // n_batches]
            logits = network(x.index_select(0, rows))
            loss = nn.functional.binary_cross_entropy_with_logits(logits, y.index_select(0, rows))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return time.process_time() - started, network


def looped(X: np.ndarray, Y: LabelMatrix, epochs: int) -> tuple[float, nn.Module]:
    network = make_network(X.shape[1], Y.n_labels)
    task = SupervisedTask(network, bce, {"lr": LR, "weight_decay": DECAY})
    started = time.process_time()
    train(task, Batches(X, Y, batch_size=BATCH), LoopSettings(epochs=epochs))
    return time.process_time() - started, network


def overhead(epochs: int, rounds: int) -> None:
    X, Y = scene()
    bare(X, Y, 1), looped(X, Y, 1)  # first calls import and allocate
    ratios = []
    for number in range(rounds):
        if number % 2:  # whoever goes second finds a warmer machine
            (plain, one), (ours, other) = bare(X, Y, epochs), looped(X, Y, epochs)
        else:
            (ours, other), (plain, one) = looped(X, Y, epochs), bare(X, Y, epochs)
        ratios.append(ours / plain)
        print(f"bare torch {plain:.2f} s, the loop {ours:.2f} s, ratio {ours / plain:.3f}")
    same = all(
        torch.allclose(a, b, atol=1e-5)
        for a, b in zip(one.parameters(), other.parameters(), strict=True)
    )
    low, _, high = statistics.quantiles(ratios, n=4)
    print(
        f"median ratio of {rounds} rounds {statistics.median(ratios):.3f} (to reach: < 1.10), "
        f"half of them in {low:.3f} to {high:.3f}; same weights: {same}"
    )


def weights(epochs: int, rounds: int) -> None:
    from labelweave.dependent.mlp import MLP

    X, Y = scene()
    row_weight = np.random.default_rng(0).uniform(0.5, 2, len(X))

    def seconds(**weight: np.ndarray) -> float:
        started = time.process_time()
        MLP(epochs=epochs, patience=None, random_state=0).fit(X, Y, **weight)
        return time.process_time() - started

    seconds(), seconds(sample_weight=row_weight)  # first calls import and allocate
    ratios = []
    for number in range(rounds):
        if number % 2:
            without, with_weights = seconds(), seconds(sample_weight=row_weight)
        else:
            with_weights, without = seconds(sample_weight=row_weight), seconds()
        ratios.append(with_weights / without)
        print(f"without weights {without:.2f} s, with {with_weights:.2f} s, ratio {ratios[-1]:.3f}")
    low, _, high = statistics.quantiles(ratios, n=4)
    print(
        f"median ratio of {rounds} rounds {statistics.median(ratios):.3f} (to reach: <= 1.05), "
        f"half of them in {low:.3f} to {high:.3f}"
    )


SCRIPT = """
import os, sys, torch
sys.path.insert(0, sys.argv[2])
from training_loop import scene
from labelweave.dependent.mlp import MLP
model = MLP(epochs=5, random_state=0).fit(*scene())
if os.environ.get("RANK", "0") == "0":
    torch.save(model.network_.state_dict(), sys.argv[1])
"""


def processes() -> None:
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "train.py"
        script.write_text(SCRIPT)
        torchrun = [
            *("-m", "torch.distributed.run", "--nproc-per-node", "2", "--rdzv-backend", "c10d"),
            *("--rdzv-endpoint", "127.0.0.1:0", "--local-addr", "127.0.0.1"),
        ]
        weights = []
        for name, how in (("one", []), ("two", torchrun)):
            out = Path(folder) / f"{name}.pt"
            here = str(Path(__file__).parent)
            command = [sys.executable, *how, str(script), str(out), here]
            subprocess.run(command, check=True, capture_output=True)
            weights.append(torch.load(out, weights_only=True))
    gap = max((weights[0][name] - weights[1][name]).abs().max().item() for name in weights[0])
    print(f"two processes against one: largest difference of a weight {gap:.2g}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=31)
    parser.add_argument("--skip-processes", action="store_true")
    parser.add_argument("--weights", action="store_true")
    options = parser.parse_args()
    if options.weights:
        weights(options.epochs, options.rounds)
        return
    overhead(options.epochs, options.rounds)
    if not options.skip_processes:
        processes()


if __name__ == "__main__":
    main()
