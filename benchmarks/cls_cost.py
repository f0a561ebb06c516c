"""What CLS costs: its training against one network's, and the selection within a step.

Both train the same network on the same random data, with the same batches and epochs (ten, the
shortest run that CLS takes by itself), in this process on one thread. They take turns; the ratio is
one of CPU seconds of neighbouring runs, its median and range over the turns. Rates are given: an
estimate of `tau_h` adds a short run of one more network. The selection is timed
inside the training of CLS, so that it meets the caches as they are. Run it with

    python benchmarks/cls_cost.py [--rows 2000] [--repeat 7]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

import labelweave as lw
from labelweave.partial._selection.peer_networks import PeerTask

# Features and labels as in scene, tmc2007-500, corel5k and delicious.
SIZES = ((294, 6), (500, 22), (499, 374), (500, 983))


def timed(function: Callable[[], Any]) -> float:
    start = time.process_time()
    function()
    return time.process_time() - start


class SelectionClock:
    """CPU seconds spent in choosing labels, while it is installed."""

    def __enter__(self) -> SelectionClock:
        self.seconds = 0.0
        self.select = PeerTask.select

        def select(task: PeerTask, *arguments: Any) -> Any:
            start = time.process_time()
            selected = self.select(task, *arguments)
            self.seconds += time.process_time() - start
            return selected

        PeerTask.select = select  # type: ignore[method-assign]
        return self

    def __exit__(self, *_: object) -> None:
        PeerTask.select = self.select  # type: ignore[method-assign]


def measure(rows: int, features: int, labels: int, epochs: int, repeat: int) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, features)).astype(np.float32)
    Y = (rng.random((rows, labels)) < 2 / labels).astype(np.float32)
    base = lw.MLP(epochs=epochs, patience=None)
    alone = lw.make("an", base=base, threshold=0.5, random_state=0)
    rates = {"tau_h": 0.02, "tau_l": 0.02, "ramp": 1}
    both = lw.CLS(base=base, threshold=0.5, random_state=0, **rates)
    one, two, chosen = [], [], []
    for _ in range(repeat):
        one.append(timed(lambda: alone.fit(X, Y)))
        with SelectionClock() as clock:
            two.append(timed(lambda: both.fit(X, Y)))
        chosen.append(clock.seconds / two[-1])
    ratios = np.array(two) / np.array(one)
    print(
        f"{features:4d} features {labels:4d} labels: one network {np.median(one):6.2f} s, "
        f"CLS {np.median(two):6.2f} s, {np.median(ratios):.2f} times "
        f"({ratios.min():.2f} to {ratios.max():.2f}); selection {np.median(chosen):.1%} of CLS",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--repeat", type=int, default=7)
    options = parser.parse_args()
    torch.set_num_threads(1)
    measure(400, 20, 5, 1, 1)  # the first training of a process is slow; its figures say nothing
    for features, labels in SIZES:
        measure(options.rows, features, labels, options.epochs, options.repeat)


if __name__ == "__main__":
    main()
