"""Stratified folds: labelweave against iterative-stratification (and scikit-multilearn-ng).

    LABELWEAVE_DATA=/path/to/data python benchmarks/stratified_split.py [--folds 10] [--slow]

Seconds are CPU seconds, the best of several seeds for each side, all in this process. Balance is
the mean absolute deviation of a label's (or a pair of labels') share in a fold from its share in
all rows, times 10,000, as a mean over the seeds: smaller is better. `sizes` is the difference
between the largest and the smallest fold. `--slow` adds scikit-multilearn-ng, which takes minutes.
The real sets take part where LABELWEAVE_DATA is set.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Iterator

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import make_multilabel_classification

from labelweave.data.splits import stratified_folds

REAL_SETS = ("emotions", "scene", "yeast", "birds", "enron", "bibtex", "corel5k", "tmc2007-500")
Folds = Callable[[np.ndarray, int, int], np.ndarray]


def with_labelweave(Y: np.ndarray, n_folds: int, seed: int) -> np.ndarray:
    return stratified_folds(Y, n_folds, random_state=seed)


def with_iterstrat(Y: np.ndarray, n_folds: int, seed: int) -> np.ndarray:
    from iterstrat.ml_stratifiers import MultilabelStratifiedKFold

    splitter = MultilabelStratifiedKFold(n_folds, shuffle=True, random_state=seed)
    return _fold_numbers(splitter.split(Y, Y), len(Y))


def with_scikit_multilearn(Y: np.ndarray, n_folds: int, seed: int) -> np.ndarray:
    from skmultilearn.model_selection import IterativeStratification

    # Its own shuffling reads NumPy's global generator: rows are shuffled here instead.
    order = np.random.default_rng(seed).permutation(len(Y))
    fold = np.empty(len(Y), dtype=int)
    splitter = IterativeStratification(n_splits=n_folds, order=1)
    fold[order] = _fold_numbers(splitter.split(Y[order], Y[order]), len(Y))
    return fold


def _fold_numbers(splits: Iterator[tuple[np.ndarray, np.ndarray]], n_rows: int) -> np.ndarray:
    fold = np.empty(n_rows, dtype=int)
    for number, (_, test) in enumerate(splits):
        fold[test] = number
    return fold


def problems() -> Iterator[tuple[str, np.ndarray]]:
    """Label matrices: two synthetic ones of 20,000 x 50, then the real ones."""
    _, Y = make_multilabel_classification(
        20_000, 5, n_classes=50, n_labels=3, allow_unlabeled=True, random_state=0
    )
    yield "synthetic, 3 labels a row", Y
    yield (
        "synthetic, independent",
        (np.random.default_rng(0).random((20_000, 50)) < 0.1).astype(int),
    )
    if not os.environ.get("LABELWEAVE_DATA"):
        return
    from labelweave.data.catalog import load_dataset

    for name in REAL_SETS:
        Y = load_dataset(name).Y.to_numpy().astype(int)
        yield name, Y[:, Y.any(axis=0)]


def label_deviation(Y: np.ndarray, fold: np.ndarray, n_folds: int) -> float:
    shares = np.array([Y[fold == f].mean(axis=0) for f in range(n_folds)])
    return 1e4 * float(np.abs(shares - Y.mean(axis=0)).mean())


def pair_deviation(Y: np.ndarray, fold: np.ndarray, n_folds: int) -> float:
    """Over the pairs of labels that occur together at all."""
    labels = sp.csr_array(Y.astype(np.float64))
    pair_rates = (labels.T @ labels).toarray() / len(Y)
    pairs = np.triu(pair_rates, 1) > 0
    total = 0.0
    for f in range(n_folds):
        part = labels[np.flatnonzero(fold == f)]
        total += np.abs((part.T @ part).toarray() / part.shape[0] - pair_rates)[pairs].mean()
    return 1e4 * total / n_folds


def measure(make: Folds, Y: np.ndarray, n_folds: int, n_seeds: int) -> dict[str, float]:
    seconds, labels, pairs, sizes = [], [], [], []
    for seed in range(n_seeds):
        start = time.process_time()
        fold = make(Y, n_folds, seed)
        seconds.append(time.process_time() - start)
        labels.append(label_deviation(Y, fold, n_folds))
        pairs.append(pair_deviation(Y, fold, n_folds))
        sizes.append(np.ptp(np.bincount(fold, minlength=n_folds)))
    return {
        "seconds": min(seconds),
        "labels": float(np.mean(labels)),
        "pairs": float(np.mean(pairs)),
        "sizes": float(np.max(sizes)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folds", type=int, nargs="+", default=[5, 10])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--slow", action="store_true", help="add scikit-multilearn-ng")
    arguments = parser.parse_args()
    peers: dict[str, Folds] = {"labelweave": with_labelweave, "iterstrat": with_iterstrat}
    if arguments.slow:
        peers["skmultilearn"] = with_scikit_multilearn
    for n_folds in arguments.folds:
        print(f"\n{n_folds} folds, {arguments.seeds} seeds")
        print(f"{'labels of':27}{'rows x labels':>15}  {'by':13}{'seconds':>8}{'ratio':>7}"
              f"{'labels':>9}{'pairs':>9}{'sizes':>7}")  # fmt: skip
        for name, Y in problems():
            ours = None
            for peer, make in peers.items():
                measured = measure(make, Y, n_folds, arguments.seeds)
                ours = ours or measured
                shape = f"{Y.shape[0]} x {Y.shape[1]}"
                print(f"{name:27}{shape:>15}  {peer:13}{measured['seconds']:8.3f}"
                      f"{measured['seconds'] / ours['seconds']:7.1f}{measured['labels']:9.2f}"
                      f"{measured['pairs']:9.2f}{measured['sizes']:7.0f}", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
