"""Peak memory of each method while it is fitted and predicts, each in a process of its own.

Networks train one epoch: their memory does not grow with epochs. A method that is not done after
`--seconds` is stopped, and its peak so far is shown, marked with `>`.

    python benchmarks/peak_memory.py --dataset delicious
"""

from __future__ import annotations

import argparse
import resource
import signal
import subprocess
import sys

import labelweave as lw
from labelweave.methods import list_methods

ONE_EPOCH = {"epochs": 1, "pretrain_epochs": 1, "pretrain_steps": None}


def stop(*_: object) -> None:
    raise TimeoutError


def measure(method: str, dataset: str, seconds: int) -> None:
    """Fit and predict here; print the peak."""
    train, test = lw.load_dataset(dataset).split()
    before = peak()
    model = lw.make(method, random_state=0)
    known = model.get_params()
    model.set_params(**{name: value for name, value in ONE_EPOCH.items() if name in known})
    signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    mark = " "
    try:
        model.fit(train.X, train.Y)
        model.predict_proba(test.X)
    except TimeoutError:
        mark = ">"
    print(f"{method:16s} {mark}{peak():.2f} GB ({before:.2f} with the data alone)", flush=True)


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--dataset", default="delicious")
    parser.add_argument("--methods", nargs="+")
    parser.add_argument("--seconds", type=int, default=300)
    parser.add_argument("--here", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.here:
        return measure(options.here, options.dataset, options.seconds)
    names = [one.id for one in list_methods() if one.room == "dependent"]
    shared = ["--dataset", options.dataset, "--seconds", str(options.seconds)]
    for name in options.methods or names:
        subprocess.run(
            [sys.executable, __file__, "--here", name, *shared],
            check=False,
        )
    return None


if __name__ == "__main__":
    main()
