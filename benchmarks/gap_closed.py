"""How much of the gap between two lines of a table each method closes.

Reads what `labelweave bench run SUITE` left and prints, for each metric and protocol, all columns
of each data set, and for each method the share of the gap from `--bottom` to `--top`: from the
union of teachers to the bound, which was trained on all rows with their labels; or from assuming
negatives to full annotation. A method is compared on the seeds that it and the two lines have. The
share over all data sets is the sum of the gains over the sum of the gaps: a set without a gap
cannot turn it upside down. It also names the data sets on which a method is worse than the bottom
line by more than its spread over the seeds. Last come the shares of all metrics, and their mean.

    labelweave bench run ant-2 --only emotions --only birds
    python benchmarks/gap_closed.py bench-results

    labelweave bench run cls-2-stand-in --only 'single label' --only '25% labels left'
    python benchmarks/gap_closed.py bench-results --suite cls-2-stand-in \\
        --bottom 'assume negative' --top 'full annotation' \\
        --only 'single label' --only '25% labels left'
"""

from __future__ import annotations

import argparse
import statistics
from typing import NamedTuple

from labelweave.bench.comparison import Comparison, Row, compare
from labelweave.bench.store import read_results
from labelweave.bench.suite import load_suite
from labelweave.metrics import get_metric


class Gain(NamedTuple):
    """What a method gains over the bottom line on a data set, what the top does, and its spread."""

    gain: float
    gap: float
    spread: float
    n_seeds: int


def rows_of(
    comparison: Comparison, metric: str, protocol: str, only: list[str]
) -> dict[str, dict[str, Row]]:
    """Data set to method to its figure."""
    found: dict[str, dict[str, Row]] = {}
    for row in comparison.rows:
        is_wanted = not only or any(part in row.condition for part in only)
        if row.metric == metric and row.protocol == protocol and row.mean is not None and is_wanted:
            found.setdefault(row.condition, {})[row.method] = row
    return found


def gain_of(figures: dict[str, Row], method: str, bottom: str, top: str, sign: int) -> Gain | None:
    """Over the seeds that all three have; None where there is none."""
    if not {method, bottom, top} <= figures.keys():
        return None
    scores = {
        name: dict(zip(figures[name].seeds, figures[name].values, strict=True))
        for name in (method, bottom, top)
    }
    seeds = sorted(set.intersection(*(set(values) for values in scores.values())))
    if not seeds:
        return None
    own, low, high = ([scores[name][seed] for seed in seeds] for name in (method, bottom, top))
    return Gain(
        sign * (statistics.fmean(own) - statistics.fmean(low)),
        sign * (statistics.fmean(high) - statistics.fmean(low)),
        statistics.stdev(own) if len(seeds) > 1 else 0.0,
        len(seeds),
    )


def show(
    comparison: Comparison, metric: str, protocol: str, options: argparse.Namespace
) -> dict[str, float]:
    """Print all of a metric; the share that each method closes."""
    sign = 1 if get_metric(metric).greater_is_better else -1
    table = rows_of(comparison, metric, protocol, options.only)
    methods = [entry.name for entry in comparison.suite.methods]
    print(f"\n{metric}, {protocol}")
    for condition, figures in table.items():
        print(f"  {condition}")
        for method in methods:
            if method in figures:
                row = figures[method]
                gain = gain_of(figures, method, options.bottom, options.top, sign)
                share = f" ({gain.gain / gain.gap:.0%})" if gain and gain.gap > 0 else ""
                seeds = f"{len(row.values)} seeds{share}"
                print(f"    {method:32s} {row.mean:.4f} ± {row.std:.4f}, {seeds}")
    shares = {}
    for method in methods:
        found = {
            condition: gain_of(figures, method, options.bottom, options.top, sign)
            for condition, figures in table.items()
        }
        gains = {c: gain for c, gain in found.items() if gain is not None}
        if method in (options.bottom, options.top) or not gains:
            continue
        total = sum(gain.gap for gain in gains.values())
        if total > 0:
            shares[method] = sum(gain.gain for gain in gains.values()) / total
        said = f"{shares[method]:.0%} of the gap" if total > 0 else "nothing: there is no gap"
        worse = [c for c, gain in gains.items() if -gain.gain > gain.spread]
        note = f"; worse than {options.bottom} by more than its spread on {worse}" if worse else ""
        seeds = sorted({gain.n_seeds for gain in gains.values()})
        print(f"  {method} closes {said} over {len(gains)} sets, {seeds} seeds{note}")
    return shares


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", nargs="?", default="bench-results")
    parser.add_argument("--suite", default="ant-2")
    parser.add_argument("--bottom", default="union, mean logit")
    parser.add_argument("--top", default="bound")
    parser.add_argument(
        "--only", action="append", default=[], help="part of a data set's or scenario's name"
    )
    options = parser.parse_args()
    suite = load_suite(options.suite)
    comparison = compare(read_results(options.results, full=False), suite)
    closed = {
        protocol.name: {
            metric: show(comparison, metric, protocol.name, options) for metric in suite.metrics
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
