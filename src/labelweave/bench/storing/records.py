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
    """One finished cell.

    Attributes
    ----------
    schema : int
    cell : str
        Its name: a hash of everything that decides the result, see
        :mod:`labelweave.bench.running.plan`.
    identity : str
        A hash of what was run, without seed, data checksum and code version: the cells of one
        figure in a table share it.
    suite : str
        The suite that ran it first; other suites share the cell.
    kind : str
        How the method is trained: "supervised", "partial", ...
    method : str
        The id in the table of methods.
    method_name : str
        Its name in the suite, such as "MulSupCon, linear probe".
    settings : dict
        Parameters that differ from the defaults of the method.
    dataset : str
    dataset_facts : dict
        rows, features, labels, cardinality.
    scenario : str
        Name of the scenario, "" where the labels are complete.
    scenario_settings : dict
    seed : int
    protocol : str
        "honest" or "as-published".
    protocol_settings : dict
        split, test_size, validation, threshold: see :mod:`labelweave.bench.evaluation_protocol`.
    rows : dict
        Rows of train, validation and test part.
    scores : dict of str to float or None
        Test scores by name of metric; None where the metric is undefined.
    thresholds : dict of str to float
        The threshold of each metric of label sets.
    seconds : Seconds
    memory : Memory
    history : dict of str to list, or None
        One list per column with one entry per epoch, for methods that train in epochs.
    artifacts : dict
        What the suite keeps for plots, such as {"label_similarity": {"names", "values"}}.
    data_checksum, code_version : str
    versions : dict of str to str
        Packages.
    machine : dict
        host, system, processor, cores, memory_gb, threads (of this cell).
    finished : str
        Time in UTC, ISO 8601.
    warnings : list of str
        Warnings of the packages, each once.
    error : Failure or None
        A failed cell has no scores.
    """

    schema: int
    cell: str
    identity: str
    suite: str
    kind: str
    method: str
    method_name: str
    settings: dict[str, Any]
    dataset: str
    dataset_facts: dict[str, Any]
    scenario: str
    scenario_settings: dict[str, Any]
    seed: int
    protocol: str
    protocol_settings: dict[str, Any]
    rows: dict[str, int]
    scores: dict[str, float | None]
    thresholds: dict[str, float]
    seconds: Seconds
    memory: Memory
    history: dict[str, list[Any]] | None
    artifacts: dict[str, Any]
    data_checksum: str
    code_version: str
    versions: dict[str, str]
    machine: dict[str, Any]
    finished: str
    warnings: list[str]
    error: Failure | None
