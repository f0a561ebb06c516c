"""Ranking metrics and threshold sweeps against scikit-learn's, label by label or row by row.

Labels and scores are drawn with the size and density of delicious' test part (3,185 rows, 983
labels, 19 labels a row). Both run in this process; the best of several runs counts, and the two
values must agree. Run it with

    python benchmarks/metrics.py [--rows 3185] [--labels 983] [--repeat 3]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn import metrics as sk

import labelweave.metrics as lwm

THRESHOLDS = np.linspace(0.1, 0.9, 9)


def problem(n_rows: int, n_labels: int) -> tuple[np.ndarray, np.ndarray]:
    """Labels with a long tail of rare ones, and scores that know something about them."""
    rng = np.random.default_rng(0)
    rate = 1 / np.arange(1, n_labels + 1)
    rate = np.clip(rate * 19 / rate.sum(), 2 / n_rows, 0.6)
    Y = (rng.random((n_rows, n_labels)) < rate).astype(np.float32)
    Y[0] = 1  # every label occurs, so that scikit-learn's AUC is defined
    logits = rng.normal(size=Y.shape) + 1.5 * Y + np.log(rate)
    return Y, (1 / (1 + np.exp(-logits))).astype(np.float32)


def pairs() -> dict[str, tuple[Callable[..., Any], Callable[..., Any]]]:
    """Ours and scikit-learn's."""

    def swept_by_one(Y: np.ndarray, S: np.ndarray) -> np.ndarray:
        predicted = [np.greater_equal(S, threshold) for threshold in THRESHOLDS]
        return np.array([sk.f1_score(Y, P, average="samples", zero_division=0) for P in predicted])

    return {
        "mAP": (lwm.mean_average_precision, sk.average_precision_score),
        "macro AUC": (lwm.auc_macro, sk.roc_auc_score),
        "label-ranking AP": (lwm.lrap, sk.label_ranking_average_precision_score),
        "ranking loss": (lwm.ranking_loss, sk.label_ranking_loss),
        "coverage": (lwm.coverage, sk.coverage_error),
        "example F1, 9 thresholds": (lambda Y, S: lwm.sweep_f1(Y, S, THRESHOLDS), swept_by_one),
    }


def best_time(run: Callable[[], Any], times: int) -> tuple[float, Any]:
    seconds, value = [], None
    for _ in range(times):
        start = time.perf_counter()
        value = run()
        seconds.append(time.perf_counter() - start)
    return min(seconds), value


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=3185)
    parser.add_argument("--labels", type=int, default=983)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    Y, S = problem(options.rows, options.labels)
    print(f"{options.rows} rows x {options.labels} labels, {Y.sum(axis=1).mean():.1f} labels a row")
    print(f"{'metric':<20}{'ours, s':>10}{'theirs, s':>11}{'ratio':>8}")
    for name, (ours, theirs) in pairs().items():
        mine, value = best_time(lambda run=ours: run(Y, S), options.repeat)
        other, expected = best_time(lambda run=theirs: run(Y, S), options.repeat)
        np.testing.assert_allclose(value, expected, rtol=1e-6)
        print(f"{name:<20}{mine:>10.3f}{other:>11.3f}{other / mine:>8.1f}")


if __name__ == "__main__":
    main()
