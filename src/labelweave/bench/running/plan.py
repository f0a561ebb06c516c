"""From a suite to cells: which fits it asks for, and what cannot be run here.

A cell is named by a hash of all that goes in: method, settings, data with their checksum,
scenario, seed, protocol and code version. What does not change a result (the suite's name, how
a table calls a method, threads) stays out, so that two suites share the cells they have in
common.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from itertools import product
from typing import Any

from labelweave.bench.evaluation_protocol import PANEL, EvaluationProtocol
from labelweave.bench.kinds import kind_module, other_data, why_no_kind
from labelweave.bench.running.cell_data import why_missing
from labelweave.bench.suite import DataEntry, ScenarioEntry, Suite

__all__ = [
    "Cell",
    "Gap",
    "Plan",
    "Quick",
    "all_cells",
    "cell_name",
    "find_gaps",
    "identities_of",
    "make_plan",
]


@dataclass(frozen=True)
class Quick:
    """How a smoke run is cut down."""

    rows: int = 300
    epochs: int = 3
    steps: int = 10  # of an epoch of a pretraining


@dataclass(frozen=True)
class Cell:
    """One fit to run: everything that a worker must know."""

    suite: str
    kind: str
    method: str
    method_name: str
    settings: Mapping[str, Any]
    options: Mapping[str, Any]
    data: DataEntry
    scenario: ScenarioEntry
    seed: int
    protocol: EvaluationProtocol
    metrics: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    quick: Quick | None = None
    data_checksum: str = ""
    code_version: str = ""

    @property
    def identity(self) -> str:
        """Hash of what is asked for, whatever the seed and however data and code change."""
        return _digest(
            {
                "kind": self.kind,
                "method": self.method,
                "settings": self.settings,
                "options": self.options,
                "dataset": self.data.name,
                "reading": self.data.options,
                "scenario": self.scenario.settings,
                "protocol": asdict(self.protocol),
                "metrics": self.metrics,
                "keep": self.keep,
                "quick": None if self.quick is None else asdict(self.quick),
            }
        )

    @property
    def name(self) -> str:
        """Hash of all that goes in: the name of its file."""
        return cell_name(self.identity, self.seed, self.data_checksum, self.code_version)

    def describe(self) -> str:
        """The cell in a few words."""
        scenario = f" ({self.scenario.name})" if self.scenario.name else ""
        return (
            f"{self.method_name} on {self.data.name}{scenario}, seed {self.seed}, "
            f"{self.protocol.name}"
        )


def cell_name(identity: str, seed: int, data_checksum: str, code_version: str) -> str:
    """The name of a cell: a hash of what was asked for, the seed, the data and the code."""
    return _digest([identity, seed, data_checksum, code_version])


def _digest(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, default=_plain, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{value!r} cannot be part of a suite")


@dataclass(frozen=True)
class Gap:
    """A method or data set of a suite that cannot be run here, and why."""

    what: str
    name: str
    reason: str


@dataclass(frozen=True)
class Plan:
    """The cells of a suite that can be run, data set by data set, and the gaps."""

    suite: Suite
    cells: tuple[Cell, ...]
    gaps: tuple[Gap, ...] = field(default=())


def all_cells(suite: Suite, *, quick: Quick | None = None) -> list[Cell]:
    """Every cell that a suite asks for, whether it can be run here or not.

    >>> from labelweave.bench.suite import load_suite
    >>> len(all_cells(load_suite("mulsupcon-5")))
    18
    """
    more = tuple(sorted(set(suite.metrics) - set(PANEL)))
    return [
        Cell(
            suite=suite.name,
            kind=suite.kind,
            method=method.id,
            method_name=method.name,
            settings=method.settings_on(data.name),
            options=method.options,
            data=data,
            scenario=scenario,
            seed=seed,
            protocol=protocol,
            metrics=more,
            keep=suite.keep,
            quick=quick,
        )
        for data, scenario, method, protocol, seed in product(
            suite.data, suite.scenarios, suite.methods, suite.protocols, suite.seeds
        )
    ]


def identities_of(suite: Suite) -> set[str]:
    """The identities of all cells that a suite asks for, those of a smoke run too."""
    return {cell.identity for quick in (None, Quick()) for cell in all_cells(suite, quick=quick)}


def make_plan(suite: Suite, *, quick: Quick | None = None) -> Plan:
    """The cells of a suite that can be run, without checksums and code versions.

    Parameters
    ----------
    suite : Suite
    quick : Quick, optional
        Cut every cell down.

    Returns
    -------
    Plan
        Methods that are not built yet and data that are not here are listed as gaps. Two
        methods of the same id and settings are one cell.
    """
    gaps = find_gaps(suite)
    missing = {(gap.what, gap.name) for gap in gaps}
    if ("kind", suite.kind) in missing:
        return Plan(suite, (), gaps)
    module = kind_module(suite.kind)
    for scenario in suite.scenarios:
        module.check_scenario(scenario.settings)
    for method in suite.methods:
        module.check_options(method.options)
    cells: dict[tuple[str, int], Cell] = {}
    for cell in all_cells(suite, quick=quick):
        wanted = {
            ("data", cell.data.name),
            ("scenario", cell.scenario.name),
            ("method", cell.method_name),
        }
        if not wanted & missing:
            cells.setdefault((cell.identity, cell.seed), cell)
    found = list(cells.values())
    if quick is not None:  # its time may run out: every method once comes first
        found.sort(key=lambda cell: (cell.seed, suite.protocols.index(cell.protocol)))
        found.sort(key=lambda cell: suite.scenarios.index(cell.scenario))
    return Plan(suite, tuple(found), gaps)


def find_gaps(suite: Suite) -> tuple[Gap, ...]:
    """What a suite asks for and cannot have here."""
    return tuple(_gaps(suite))


def _gaps(suite: Suite) -> Iterator[Gap]:
    from labelweave.methods import list_methods

    if (reason := why_no_kind(suite.kind)) is not None:
        yield Gap("kind", suite.kind, reason)
    known = {method.id for method in list_methods()}
    for method in suite.methods:
        if method.id not in known:
            yield Gap("method", method.name, f"there is no method {method.id!r} yet")
    for data in suite.data:
        if (reason := why_missing(data)) is not None:
            yield Gap("data", data.name, reason)
    if why_no_kind(suite.kind) is None:
        for scenario in suite.scenarios:
            for data in other_data(suite.kind, scenario.settings):
                if (reason := why_missing(data)) is not None:
                    yield Gap("scenario", scenario.name, reason)
