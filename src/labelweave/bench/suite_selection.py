"""Narrowing a suite down, and making one of a user's own data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from labelweave.bench.evaluation_protocol import EvaluationProtocol
from labelweave.bench.running.plan import find_gaps
from labelweave.bench.suite import DataEntry, MethodEntry, Suite
from labelweave.exceptions import InputError

__all__ = ["own_suite", "parse_seeds", "quick_suite", "select"]

OWN_METRICS = ("f1_example", "f1_micro", "f1_macro", "map", "hamming_accuracy")
_QUICK_DATA = 2
_MOST_SEEDS = 1000  # more is a slip of the keyboard


def select(suite: Suite, only: Iterable[str]) -> Suite:
    """The part of a suite that these patterns name.

    A pattern is a name, or one with wildcards, of a data set, a scenario, a method (its name
    or id) or a protocol. Patterns of the same sort add up; different sorts narrow down. An id
    means every method that has it, unless one of them is called so: "CLS" is that line alone,
    and not its ablations.

    >>> from labelweave.bench.suite import load_suite
    >>> part = select(load_suite("c-gmvae-1"), ["scene", "yeast", "c-gmvae", "honest"])
    >>> [data.name for data in part.data], [method.name for method in part.methods]
    (['yeast', 'scene'], ['C-GMVAE'])
    """
    patterns = list(only)
    used: set[str] = set()
    changed: dict[str, Any] = {}
    for sort in ("data", "scenarios", "methods", "protocols"):
        entries = getattr(suite, sort)
        names = {entry.name.lower() for entry in entries}
        hits = {
            place: found
            for place, entry in enumerate(entries)
            if (found := [pattern for pattern in patterns if _matches(pattern, entry, names)])
        }
        if hits:
            used.update(*hits.values())
            changed[sort] = tuple(entries[place] for place in hits)
    for pattern in patterns:
        if pattern not in used:
            raise InputError(
                f"suite {suite.name} has no data set, scenario, method or protocol called "
                f"{pattern!r}"
            )
    return replace(suite, **changed)


def _matches(pattern: str, entry: Any, names: set[str]) -> bool:
    """Whether a pattern names an entry, where the entries of its sort have these names."""
    pattern = pattern.lower()
    if pattern in names:
        return entry.name.lower() == pattern
    return any(fnmatch(name.lower(), pattern) for name in (entry.name, getattr(entry, "id", "")))


def parse_seeds(text: str) -> tuple[int, ...]:
    """Seeds from the command line: how many, a list, or a range.

    >>> parse_seeds("3"), parse_seeds("4,7"), parse_seeds("5-8")
    ((0, 1, 2), (4, 7), (5, 6, 7, 8))
    """
    found: Sequence[int]
    try:
        if "," in text:
            found = [int(part) for part in text.split(",") if part.strip()]
        elif "-" in text:
            first, last = (int(part) for part in text.split("-"))
            found = range(first, last + 1)
        else:
            found = range(int(text))
    except ValueError:
        found = ()
    if len(found) > _MOST_SEEDS:
        raise InputError(f"--seeds asks for {len(found)} seeds, more than {_MOST_SEEDS}")
    if not found or min(found) < 0:
        raise InputError(
            f"--seeds is a number of seeds (3), a list (4,7) or a range (5-8), not {text!r}"
        )
    return tuple(dict.fromkeys(found))


def quick_suite(suite: Suite) -> Suite:
    """One seed and the two smallest data sets that are here."""
    missing = {gap.name for gap in find_gaps(suite) if gap.what == "data"}
    here = [entry for entry in suite.data if entry.name not in missing]
    smallest = sorted(here, key=_size)[:_QUICK_DATA]
    data = tuple(entry for entry in suite.data if entry in smallest or entry.name in missing)
    return replace(suite, data=data, seeds=suite.seeds[:1])


def _size(entry: DataEntry) -> int:
    from labelweave.data.catalog import list_datasets

    facts = {known.name: known.rows * known.labels for known in list_datasets()}
    return facts.get(entry.source, 0)


def own_suite(
    sources: Sequence[str],
    methods: Sequence[str],
    *,
    reading: Mapping[str, Any] | None = None,
    metrics: Sequence[str] = OWN_METRICS,
    seeds: Sequence[int] = (0, 1, 2),
    split: str = "auto",
    test_size: float | None = None,
) -> Suite:
    """A suite of one's own data: the honest protocol, and the default settings of the methods.

    Parameters
    ----------
    sources : sequence of str
        Files, or names of the catalog.
    methods : sequence of str
        Ids of methods, or ``["all"]`` for all that learn from labelled rows.
    reading : mapping, optional
        How to read the files.
    metrics, seeds, split, test_size
        As in a suite.
    """
    from labelweave.methods import list_methods

    known = [method.id for method in list_methods()]
    able = [method.id for method in list_methods() if method.room in ("dependent", "plug-in")]
    wanted = able if list(methods) == ["all"] else list(methods)
    for method in wanted:
        if method not in known:
            raise InputError(f"there is no method {method!r}: `labelweave methods` lists them")
    names = [_name_of(source) for source in sources]
    if len(set(names)) < len(names):
        raise InputError(f"two data sets are called {names[0]!r}: rename a file")
    return Suite(
        name=f"own-{'-'.join(names)}",
        title=f"{', '.join(names)}: methods with their default settings",
        kind="supervised",
        data=tuple(
            DataEntry(name, source=_found(source), options=dict(reading or {}))
            for name, source in zip(names, sources, strict=True)
        ),
        methods=tuple(MethodEntry(method, method) for method in wanted),
        metrics=tuple(metrics),
        seeds=tuple(seeds),
        protocols=(EvaluationProtocol("honest", split=split, test_size=test_size),),
    )


def _name_of(source: str) -> str:
    return Path(source).name.partition(".")[0] or "data"


def _found(source: str) -> str:
    """A file by its full path, which a worker elsewhere finds again; else the name."""
    return str(Path(source).resolve()) if Path(source).exists() else source
