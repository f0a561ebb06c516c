"""How much of the gap between two lines of a table each method closes.

Reads what `labelweave bench run SUITE` left and prints, for each metric and protocol, all columns
of each data set, and for each method the share of the gap from `--bottom` to `--top`: from the
union of teachers to the bound, which was trained on all rows with their labels; or from assuming
negatives to full annotation. A method is compared on the seeds that it and the two lines have. The
share over all data sets is the sum of the gains over the sum of the gaps: a set without a gap
cannot turn it upside down. It also names the data sets on which a method is worse than the bottom
line by more than its spread over the seeds. Last come the shares of all metrics, their mean, and
between which two values the mean lies in 95 of 100 samples of as many seeds, drawn from these with
replacement for each data set (where every data set has three seeds or more).

    labelweave bench run ant-2-plus --only emotions --only birds
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

import numpy as np

from labelweave.bench.comparing.comparison import Comparison, Row, compare
from labelweave.bench.storing.store import read_results
from labelweave.bench.suite import load_suite
from labelweave.metrics import get_metric

_FEWEST_SEEDS = 3  # with fewer nothing can be said of the spread


class Gain(NamedTuple):
    """What a method and the top line gain over the bottom line on a data set, seed by seed."""

    gains: np.ndarray
    gaps: np.ndarray
    spread: float

    @property
    def gain(self) -> float:
        return float(self.gains.mean())

    @property
    def gap(self) -> float:
        return float(self.gaps.mean())

    @property
    def n_seeds(self) -> int:
        return len(self.gains)


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
    own, low, high = (
        np.array([scores[name][seed] for seed in seeds]) for name in (method, bottom, top)
    )
    spread = float(own.std(ddof=1)) if len(seeds) > 1 else 0.0
    return Gain(sign * (own - low), sign * (high - low), spread)


def show(
    comparison: Comparison, metric: str, protocol: str, options: argparse.Namespace
) -> dict[str, dict[str, Gain]]:
    """Print all of a metric; the gains of each method by data set, where there is a gap."""
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
    kept = {}
    for method in methods:
        found = {
            condition: gain_of(figures, method, options.bottom, options.top, sign)
            for condition, figures in table.items()
        }
        gains = {c: gain for c, gain in found.items() if gain is not None}
        if method in (options.bottom, options.top) or not gains:
            continue
        closed = share_closed(gains)
        if closed is not None:
            kept[method] = gains
        said = "nothing: there is no gap" if closed is None else f"{closed:.0%} of the gap"
        worse = [c for c, gain in gains.items() if -gain.gain > gain.spread]
        note = f"; worse than {options.bottom} by more than its spread on {worse}" if worse else ""
        counts = sorted({gain.n_seeds for gain in gains.values()})
        print(f"  {method} closes {said} over {len(gains)} sets, {counts} seeds{note}")
    return kept


def share_closed(gains: dict[str, Gain]) -> float | None:
    """The share over all data sets; None where there is no gap."""
    total = sum(gain.gap for gain in gains.values())
    return sum(gain.gain for gain in gains.values()) / total if total > 0 else None


def interval(by_metric: list[dict[str, Gain]], n_samples: int = 2000) -> str:
    """In words, where the mean share lies when the seeds of each data set are drawn anew."""
    sizes = {c: gain.n_seeds for gains in by_metric for c, gain in gains.items()}
    same = all(gains.keys() == sizes.keys() for gains in by_metric)
    if min(sizes.values()) < _FEWEST_SEEDS or not same:
        return ""
    random = np.random.default_rng(0)
    # The same seeds for all metrics: shares of one sample belong together.
    drawn = {c: random.integers(n, size=(n_samples, n)) for c, n in sizes.items()}
    shares = [
        sum(gain.gains[drawn[c]].mean(axis=1) for c, gain in gains.items())
        / sum(gain.gaps[drawn[c]].mean(axis=1) for c, gain in gains.items())
        for gains in by_metric
    ]
    low, high = np.percentile(np.mean(shares, axis=0), [2.5, 97.5])
    return f" [{low:+.0%}, {high:+.0%}]"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", nargs="?", default="bench-results")
    parser.add_argument("--suite", default="ant-2-plus")
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
            found = [by_metric[metric].get(method) for metric in by_metric]
            shares = [None if gains is None else share_closed(gains) for gains in found]
            known = [share for share in shares if share is not None]
            if known:
                text = " ".join("no gap" if one is None else f"{one:+6.0%}" for one in shares)
                spread = interval([gains for gains in found if gains is not None])
                print(f"  {method:32s} {text}  {statistics.fmean(known):+6.0%}{spread}")


if __name__ == "__main__":
    main()
