"""Heat maps of label embeddings that a suite asked to keep."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from labelweave.bench.storing.records import Record
from labelweave.bench.suite import Suite
from labelweave.reporting.document import Block, Figure, Section, slug
from labelweave.reporting.numbers.labels import similar_side_by_side
from labelweave.reporting.plots.heatmap import Heat, heat_maps
from labelweave.reporting.run.selection import condition, of_one_protocol

__all__ = ["embeddings_section"]

_KEPT = "label_similarity"


def embeddings_section(suite: Suite, records: Sequence[Record], n_shown: int) -> Section | None:
    """One heat map a method and data set, of the first seed."""
    chosen, protocol = of_one_protocol(
        [one for one in records if (one["artifacts"] or {}).get(_KEPT)]
    )
    first: dict[tuple[str, str], Record] = {}
    for record in sorted(chosen, key=lambda one: one["seed"]):
        first.setdefault((condition(record), record["method_name"]), record)
    blocks: list[Block] = [
        _figure(suite, record, name, method, protocol, n_shown)
        for (name, method), record in first.items()
    ]
    return Section("Label embeddings", blocks) if blocks else None


def _figure(
    suite: Suite, record: Record, name: str, method: str, protocol: str, n_shown: int
) -> Figure:
    kept = record["artifacts"][_KEPT]
    values = np.array(kept["values"], dtype=float)
    shown = np.arange(min(len(values), n_shown))
    values = values[np.ix_(shown, shown)]
    np.fill_diagonal(values, np.nan)
    order = similar_side_by_side(values)
    which = "all labels" if len(shown) == len(kept["names"]) else f"the first {n_shown} labels"
    stem = slug(f"embeddings-{suite.name}-{name}-{method}")
    names = [kept["names"][j] for j in order]
    ordered = values[np.ix_(order, order)]
    off = ordered[np.isfinite(ordered)]
    said = f"from {off.min():.2f} to {off.max():.2f}" if len(off) else "of one label"
    return Figure(
        stem,
        heat_maps(
            stem,
            [Heat("inner products of label embeddings", ordered)],
            names,
            rows="label",
            columns="label",
            unit="inner product",
        ),
        f"Label embeddings of {method} on {name}",
        f"Heat map of inner products of {which}, {said}.",
        f"{which.capitalize()}, seed {record['seed']}, protocol {protocol}; similar labels stand "
        "side by side, the diagonal is left out.",
    )
