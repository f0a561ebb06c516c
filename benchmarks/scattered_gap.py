"""How much of the gap between the union of teachers and the bound each method closes.

Reads what `labelweave bench run ant-2` left and prints, for each metric and protocol, all columns
of each data set, and for each method the share of the gap from the union of teachers (`--union`) to
the bound, which was trained on all rows with their labels. A method is compared on the draws that
it, the union and the bound have. The share over all data sets is the sum of the gains over the sum
of the gaps: a set without a gap cannot turn it upside down. It also names the data sets on which a
method is worse than the union by more than its spread over the draws. Last come the shares of all
metrics, and their mean.

    labelweave bench run ant-2 --only emotions --only birds
    python benchmarks/scattered_gap.py bench-results
"""

from __future__ import annotations

import argparse
import statistics
from typing import NamedTuple

from labelweave.bench.comparison import Comparison, Row, compare
from labelweave.bench.store import read_results
from labelweave.bench.suite import load_suite
from labelweave.metrics import get_metric

BOUND = "bound"
BESIDE = ("no labels", "teachers, own labels", "oracle", BOUND, "bound, MLP")


class Gain(NamedTuple):
    """What a method gains over the union on a data set, what the bound does, and its spread."""

    gain: float
    gap: float
    spread: float
    n_draws: int


def rows_of(comparison: Comparison, metric: str, protocol: str) -> dict[str, dict[str, Row]]:
    """Data set to method to its figure."""
    found: dict[str, dict[str, Row]] = {}
    for row in comparison.rows:
        if row.metric == metric and row.protocol == protocol and row.mean is not None:
            found.setdefault(row.condition, {})[row.method] = row
    return found


def gain_of(figures: dict[str, Row], method: str, union: str, sign: int) -> Gain | None:
    """Over the draws that all three have; None where there is none."""
    if not {method, union, BOUND} <= figures.keys():
        return None
    scores = {
        name: dict(zip(figures[name].seeds, figures[name].values, strict=True))
        for name in (method, union, BOUND)
    }
    draws = sorted(set.intersection(*(set(values) for values in scores.values())))
    if not draws:
        return None
    own, base, top = ([scores[name][draw] for draw in draws] for name in (method, union, BOUND))
    return Gain(
        sign * (statistics.fmean(own) - statistics.fmean(base)),
        sign * (statistics.fmean(top) - statistics.fmean(base)),
        statistics.stdev(own) if len(draws) > 1 else 0.0,
        len(draws),
    )


def show(comparison: Comparison, metric: str, protocol: str, union: str) -> dict[str, float]:
    """Print all of a metric; the share that each method closes."""
    sign = 1 if get_metric(metric).greater_is_better else -1
    table = rows_of(comparison, metric, protocol)
    methods = [entry.name for entry in comparison.suite.methods]
    print(f"\n{metric}, {protocol}")
    for condition, figures in table.items():
        print(f"  {condition}")
        for method in methods:
            if method in figures:
                row = figures[method]
                print(f"    {method:32s} {row.mean:.4f} ± {row.std:.4f}, {len(row.values)} draws")
    shares = {}
    for method in methods:
        found = {c: gain_of(figures, method, union, sign) for c, figures in table.items()}
        gains = {c: gain for c, gain in found.items() if gain is not None}
        if method in (union, *BESIDE) or not gains:
            continue
        total = sum(gain.gap for gain in gains.values())
        if total > 0:
            shares[method] = sum(gain.gain for gain in gains.values()) / total
        said = f"{shares[method]:.0%} of the gap" if total > 0 else "nothing: there is no gap"
        worse = [c for c, gain in gains.items() if -gain.gain > gain.spread]
        note = f"; worse than the union by more than its spread on {worse}" if worse else ""
        draws = sorted({gain.n_draws for gain in gains.values()})
        print(f"  {method} closes {said} over {len(gains)} sets, {draws} draws{note}")
    return shares


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", nargs="?", default="bench-results")
    parser.add_argument("--suite", default="ant-2")
    parser.add_argument("--union", default="union, mean logit")
    options = parser.parse_args()
    suite = load_suite(options.suite)
    comparison = compare(read_results(options.results), suite)
    closed = {
        protocol.name: {
            metric: show(comparison, metric, protocol.name, options.union)
            for metric in suite.metrics
        }
        for protocol in suite.protocols
    }
    for protocol, by_metric in closed.items():
        print(f"\nShares of the gap, {protocol}: {', '.join(by_metric)}; mean")
        for method in [entry.name for entry in suite.methods]:
            shares = [by_metric[metric].get(method) for metric in by_metric]
            known = [share for share in shares if share is not None]
            if known:
                told = " ".join("no gap" if one is None else f"{one:+6.0%}" for one in shares)
                print(f"  {method:32s} {told}  {statistics.fmean(known):+6.0%}")


if __name__ == "__main__":
    main()
