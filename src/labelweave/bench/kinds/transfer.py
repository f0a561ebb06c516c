"""An encoder trained on one task, frozen and probed on another.

The encoder is trained on the data set that the scenario names as `source` or, with
``source = "other labels"``, on the same rows with a random half of the labels. A linear layer on
top of it then learns the labels of the cell's data set, or the other half. `source_options` go to
the reader of the source, such as ``{ images = true }``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from labelweave.bench.kinds import check_keys
from labelweave.bench.suite import DataEntry
from labelweave.data.catalog import is_catalog_name
from labelweave.exceptions import InputError

if TYPE_CHECKING:
    from labelweave.bench.running.fitting import Outcome
    from labelweave.bench.running.plan import Cell
    from labelweave.data import Dataset

OTHER_LABELS = "other labels"


def check_scenario(settings: Mapping[str, Any]) -> None:
    check_keys(settings, ("source", "source_options"), "setting of a transfer scenario called")
    if "source" not in settings:
        raise InputError("a transfer scenario names its source")


def check_options(options: Mapping[str, Any]) -> None:
    check_keys(
        options, ("source_settings", "source_published"), "option of a transferred method called"
    )


def other_data(settings: Mapping[str, Any]) -> tuple[DataEntry, ...]:
    """Return the data set on which the encoder is trained, if it is another one."""
    source = settings["source"]
    if source == OTHER_LABELS:
        return ()
    external = None if is_catalog_name(source) else f"the {source} data"
    options = settings.get("source_options", {})
    return (DataEntry(source, external=external, options=options),)


def run(cell: Cell, data: Dataset) -> Outcome:
    """Train the encoder, then fit and score.

    Where the encoder is trained, `source_settings` replace the settings of the suite, and
    `source_published` says which published form they start from, if it is another one.
    """
    import numpy as np

    from labelweave.bench.running.cell_data import load
    from labelweave.bench.running.fitting import fit, fit_and_score, quick_rows
    from labelweave.pipeline.data_parts import Parts

    parts = cell.protocol.parts(quick_rows(cell, data), cell.seed)
    if cell.scenario.settings["source"] == OTHER_LABELS:
        names = np.random.default_rng(cell.seed).permutation(data.label_names)
        half = len(names) // 2
        taught = Parts(*(part.select_labels(names[:half].tolist()) for part in parts))
        parts = Parts(*(part.select_labels(names[half:].tolist()) for part in parts))
    else:
        (entry,) = other_data(cell.scenario.settings)
        other = load(entry)
        taught = cell.protocol.parts(quick_rows(cell, other), cell.seed)
    teaching = replace(
        cell,
        keep=(),
        published=cell.options.get("source_published", cell.published),
        settings=cell.options.get("source_settings", cell.settings),
    )
    encoder, seconds = fit(teaching, taught)
    outcome = fit_and_score(replace(cell, settings={**cell.settings, "pretrained": encoder}), parts)
    outcome.fit_seconds += seconds
    return outcome
