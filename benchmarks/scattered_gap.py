"""How much of the gap between the union of teachers and the bound each student closes.

Reads what `labelweave bench run ant-2` left and prints, for each metric and protocol, all columns
of each data set, and for each method the share of the gap from the union of teachers (`--union`) to
the bound, which was trained on all rows with their labels. The share over all data sets is the sum
of the gains over the sum of the gaps: a set without a gap cannot turn it upside down. It also names
the data sets on which a method is worse than the union by more than its spread over the draws.

    labelweave bench run ant-2 --only emotions --only birds
    python benchmarks/scattered_gap.py bench-results
"""

from __future__ import annotations

import argparse

from labelweave.bench.comparison import Comparison, Row, compare
from labelweave.bench.store import read_results
from labelweave.bench.suite import load_suite
from labelweave.metrics import get_metric

BOUND = "bound"
BESIDE = ("no labels", "teachers, own labels", "oracle", BOUND, "bound, MLP")


def rows_of(comparison: Comparison, metric: str, protocol: str) -> dict[str, dict[str, Row]]:
    """Data set to method to its figure."""
    found: dict[str, dict[str, Row]] = {}
    for row in comparison.rows:
        if row.metric == metric and row.protocol == protocol and row.mean is not None:
            found.setdefault(row.condition, {})[row.method] = row
    return found


def show(comparison: Comparison, metric: str, protocol: str, union: str) -> None:
    sign = 1 if get_metric(metric).greater_is_better else -1
    table = rows_of(comparison, metric, protocol)
    methods = [entry.name for entry in comparison.suite.methods]
    print(f"\n{metric}, {protocol}")
    for condition, figures in table.items():
        print(f"  {condition}, {len(next(iter(figures.values())).values)} draws")
        for method in methods:
            if method in figures:
                row = figures[method]
                print(f"    {method:24s} {row.mean:.4f} ± {row.std:.4f}")
    whole = {c: f for c, f in table.items() if union in f and BOUND in f}
    for method in methods:
        here = {c: f for c, f in whole.items() if method in f}
        if method in (union, *BESIDE) or not here:
            continue
        gains = {c: sign * (f[method].mean - f[union].mean) for c, f in here.items()}
        gaps = {c: sign * (f[BOUND].mean - f[union].mean) for c, f in here.items()}
        total = sum(gaps.values())
        share = f"{sum(gains.values()) / total:.0%}" if total > 0 else "no gap"
        worse = [c for c, gain in gains.items() if -gain > here[c][method].std]
        note = f"; worse than the union by more than its spread on {worse}" if worse else ""
        print(f"  {method} closes {share} of the gap over {len(here)} sets{note}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", nargs="?", default="bench-results")
    parser.add_argument("--suite", default="ant-2")
    parser.add_argument("--union", default="union, mean logit")
    options = parser.parse_args()
    suite = load_suite(options.suite)
    comparison = compare(read_results(options.results), suite)
    for protocol in suite.protocols:
        for metric in suite.metrics:
            show(comparison, metric, protocol.name, options.union)


if __name__ == "__main__":
    main()
