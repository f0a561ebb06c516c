"""From a suite to cells: the fits that it needs, and those that cannot be run here.

The name of a cell is a hash of everything that decides its result: method, settings, data with
their checksum, scenario, seed, protocol and code version. The name of the suite, the name of the
method in its table and the number of threads are no part of it, so that suites share cells.
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
from labelweave.bench.running.method_settings import resolved_settings
from labelweave.bench.suite import DataEntry, ScenarioEntry, Suite


@dataclass(frozen=True)
class Quick:
    """The limits of a smoke run."""

    rows: int = 300
    epochs: int = 3
    steps: int = 10  # per epoch of pretraining


@dataclass(frozen=True)
class Cell:
    """One fit to run, with everything that a worker needs."""

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
    published: bool | str = False
    data_checksum: str = ""
    code_version: str = ""

    @property
    def resolved(self) -> dict[str, Any]:
        """All settings of the method that differ from its defaults."""
        return resolved_settings(self.method, self.settings, self.published, self.data.source)

    @property
    def identity(self) -> str:
        """Hash of what is run, without the seed and the versions of data and code."""
        return _digest(
            {
                "kind": self.kind,
                "method": self.method,
                "settings": self.resolved,
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
        """Hash of everything that decides the result: the name of the cell's file."""
        return cell_name(self.identity, self.seed, self.data_checksum, self.code_version)

    def describe(self) -> str:
        """Describe the cell in a few words."""
        scenario = f" ({self.scenario.name})" if self.scenario.name else ""
        return (
            f"{self.method_name} on {self.data.name}{scenario}, seed {self.seed}, "
            f"{self.protocol.name}"
        )


def cell_name(identity: str, seed: int, data_checksum: str, code_version: str) -> str:
    """Return the name of a cell: a hash of its identity, seed, data and code."""
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
    """The cells of a suite that can be run, by data set, and the gaps."""

    suite: Suite
    cells: tuple[Cell, ...]
    gaps: tuple[Gap, ...] = field(default=())


def all_cells(suite: Suite, *, quick: Quick | None = None) -> list[Cell]:
    """List every cell of a suite, whether it can be run here or not.

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
            published=method.published,
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
    """Return the identities of all cells of a suite, including those of a smoke run."""
    return {cell.identity for quick in (None, Quick()) for cell in all_cells(suite, quick=quick)}


def make_plan(suite: Suite, *, quick: Quick | None = None) -> Plan:
    """List the cells of a suite that can be run, without checksums and code versions.

    * `quick`: Limits of a smoke run.

    Methods that do not exist and data that are not available are listed as gaps. Two methods of the
    same id and settings share their cells.
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
    planned = list(cells.values())
    if quick is not None:  # time may run out: each method comes once first
        planned.sort(key=lambda cell: (cell.seed, suite.protocols.index(cell.protocol)))
        planned.sort(key=lambda cell: suite.scenarios.index(cell.scenario))
    return Plan(suite, tuple(planned), gaps)


def find_gaps(suite: Suite) -> tuple[Gap, ...]:
    """List the methods and data of a suite that are not available here."""
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
