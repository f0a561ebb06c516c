"""The section of heat maps of label embeddings, for suites that store them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from labelweave.bench.storing.records import Record
from labelweave.bench.suite import Suite
from labelweave.reporting.heat_maps import HeatMap, draw_heat_maps, similar_side_by_side
from labelweave.reporting.report_content import Block, Figure, Section, slug
from labelweave.reporting.run_records import condition, of_one_protocol

__all__ = ["embeddings_section"]

# What a suite keeps: title of the heat map, and unit of its values.
_MAPS = {
    "label_similarity": ("inner products of label embeddings", "inner product"),
    "class_similarity": ("softmax of the cosines of mean representations", "share"),
}


def embeddings_section(suite: Suite, records: Sequence[Record], n_shown: int) -> Section | None:
    """Return one heat map per method and data set, of the first seed; None if there is none."""
    blocks: list[Block] = []
    for kept in _MAPS:
        with_embeddings = [record for record in records if (record["artifacts"] or {}).get(kept)]
        chosen, protocol = of_one_protocol(with_embeddings)
        first: dict[tuple[str, str], Record] = {}
        for record in sorted(chosen, key=lambda one: one["seed"]):
            first.setdefault((condition(record), record["method_name"]), record)
        blocks += [_embedding_figure(suite, r, kept, protocol, n_shown) for r in first.values()]
    return Section("Label embeddings", blocks) if blocks else None


def _embedding_figure(
    suite: Suite, record: Record, kept: str, protocol: str, n_shown: int
) -> Figure:
    name, method = condition(record), record["method_name"]
    artifact = record["artifacts"][kept]
    title, unit = _MAPS[kept]
    n_labels = min(len(artifact["names"]), n_shown)
    values = np.array(artifact["values"], dtype=float)[:n_labels, :n_labels]
    np.fill_diagonal(values, np.nan)
    order = similar_side_by_side(values)
    ordered = values[np.ix_(order, order)]
    finite = ordered[np.isfinite(ordered)]
    span = f"from {finite.min():.2f} to {finite.max():.2f}" if len(finite) else "of one label"
    which = "all labels" if n_labels == len(artifact["names"]) else f"the first {n_shown} labels"
    stem = slug(f"embeddings-{suite.name}-{name}-{method}")
    return Figure(
        stem,
        draw_heat_maps(
            stem,
            [HeatMap(title, ordered)],
            [artifact["names"][j] for j in order],
            rows="label",
            columns="label",
            unit=unit,
        ),
        f"Label embeddings of {method} on {name}",
        f"Heat map of {title} of {which}, {span}.",
        f"{which.capitalize()}, seed {record['seed']}, protocol {protocol}; similar labels are "
        "placed side by side, the diagonal is left out.",
    )
