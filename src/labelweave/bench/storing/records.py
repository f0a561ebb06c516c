"""The record of a cell, as runner, store, comparison and report share it.

A cell is one fit: a method with its settings on a data set, under a scenario, with a seed and a
protocol. Its record is a dictionary for JSON with the fields of :class:`Record`.
"""

from __future__ import annotations

from typing import Any, TypedDict

__all__ = ["HEAVY_FIELDS", "SCHEMA", "Failure", "Memory", "Record", "Seconds"]

SCHEMA = 1
# Not read by default, because only plots need them.
HEAVY_FIELDS = ("history", "artifacts")


class Seconds(TypedDict):
    """Time of a cell: of the fit alone, of all of it, and of the processor."""

    fit: float
    wall: float
    cpu: float


class Memory(TypedDict):
    """Memory of the process that ran the cell, in MB (10^6 bytes).

    `how` is ``"per cell"`` where the system can reset the peak before each cell (Linux), else
    ``"since start"``, which includes earlier cells of the same worker.
    """

    peak: float
    before: float
    how: str


class Failure(TypedDict):
    """Why a cell has no scores."""

    type: str
    message: str
    trace: str


class Record(TypedDict):
    """One finished cell."""

    schema: int
    cell: str  # Its name: a hash of all that decides the result (labelweave.bench.running.plan)
    # A hash of what was run, without seed, data checksum and code version: the cells of one figure
    # in a table share it
    identity: str
    suite: str  # The suite that ran it first; other suites share the cell
    kind: str  # How the method is trained: "supervised", "partial", ...
    method: str  # The id in the table of methods
    method_name: str  # Its name in the suite, such as "MulSupCon, linear probe"
    settings: dict[str, Any]  # All parameters that differ from the defaults of the method
    dataset: str
    dataset_facts: dict[str, Any]  # rows, features, labels, cardinality
    scenario: str  # "" where the labels are complete
    scenario_settings: dict[str, Any]
    seed: int
    protocol: str  # "honest" or "as-published"
    protocol_settings: dict[str, Any]  # split, test_size, validation, threshold
    rows: dict[str, int]  # Rows of the train, validation and test part
    scores: dict[str, float | None]  # Of the test rows, by metric; None where it is undefined
    thresholds: dict[str, float]  # The threshold of each metric of label sets
    seconds: Seconds
    memory: Memory
    # One list per column with one entry per epoch, for methods that train in epochs
    history: dict[str, list[Any]] | None
    artifacts: dict[str, Any]  # What the suite keeps for plots: {"label_similarity": {...}}
    data_checksum: str
    code_version: str
    versions: dict[str, str]  # Of the packages
    machine: dict[str, Any]  # host, system, processor, cores, memory_gb, threads (of this cell)
    finished: str  # Time in UTC, ISO 8601
    warnings: list[str]  # Of the packages, each once
    error: Failure | None  # A failed cell has no scores
