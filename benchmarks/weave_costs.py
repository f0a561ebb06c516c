"""Predicted and measured processor seconds of the members of Weave, on samples of training parts.

python benchmarks/weave_costs.py --datasets emotions yeast scene enron --rows 300 2000
"""

from __future__ import annotations

import argparse
import time
from importlib import import_module

import numpy as np

import labelweave as lw
from labelweave.data.splits import split_dataset
from labelweave.dependent.weave_costs import DataSize, seconds_per_fit
from labelweave.dependent.weave_members import fit_clone, list_members
from labelweave.exceptions import InputError
from labelweave.threads import bounded_threads


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--datasets", nargs="+", default=["emotions", "yeast", "scene", "enron"])
    parser.add_argument("--rows", nargs="+", type=int, default=[300, 2000])
    parser.add_argument("--without", nargs="*", default=[], help="names of members")
    parser.add_argument("--longest", type=float, default=60.0, help="predicted seconds to try")
    options = parser.parse_args()
    import_module("torch")  # not a cost of the first network
    for name in options.datasets:
        data = lw.load_dataset(name)
        try:
            train, _ = data.split()
        except InputError:  # there is no official split
            train, _ = split_dataset(data, test_size=0.3, random_state=0)
        for n_rows in sorted({min(n, len(train.Y)) for n in options.rows}):
            sample = train[np.sort(np.random.RandomState(0).permutation(len(train.Y))[:n_rows])]
            size = DataSize.of(sample.X, sample.Y)
            for member in list_members("auto", sample.X, sample.Y.n_labels):
                predicted = seconds_per_fit(member, size)
                if (
                    predicted is None
                    or predicted > options.longest
                    or member.name in options.without
                ):
                    continue
                started = time.process_time()
                with bounded_threads(1):
                    fit_clone(member.estimator, sample.X, sample.Y, 0)
                measured = time.process_time() - started
                print(
                    f"{name:14} {size.rows:6} rows {size.features:6} features {size.labels:4} "
                    f"labels {member.name:16} predicted {predicted:7.2f} s measured "
                    f"{measured:7.2f} s ratio {measured / predicted:5.2f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
