"""Select a part of a suite, or make a suite of your own data."""

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

OWN_METRICS = ("f1_example", "f1_micro", "f1_macro", "map", "hamming_accuracy")
_QUICK_DATA = 2
_MOST_SEEDS = 1000  # more is a typing error


def select(suite: Suite, only: Iterable[str]) -> Suite:
    """Select the part of a suite that matches some patterns.

    A pattern is the name, with or without wildcards, of a data set, a scenario, a method (its
    name or id) or a protocol. A suite keeps the data sets that match any pattern, and likewise
    its scenarios, methods and protocols; what no pattern matches stays whole. An id selects every
    method with that id, unless one of them has it as its name: "CLS" is that line alone, without
    its ablations.

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
        matched = {
            place: matching
            for place, entry in enumerate(entries)
            if (matching := [pattern for pattern in patterns if _matches(pattern, entry, names)])
        }
        if matched:
            used.update(*matched.values())
            changed[sort] = tuple(entries[place] for place in matched)
    for pattern in patterns:
        if pattern not in used:
            raise InputError(
                f"suite {suite.name} has no data set, scenario, method or protocol called "
                f"{pattern!r}"
            )
    return replace(suite, **changed)


def _matches(pattern: str, entry: Any, names: set[str]) -> bool:
    """Return whether a pattern matches an entry; `names` are those of all entries of its sort."""
    pattern = pattern.lower()
    if pattern in names:
        return entry.name.lower() == pattern
    return any(fnmatch(name.lower(), pattern) for name in (entry.name, getattr(entry, "id", "")))


def with_settings(suite: Suite, texts: Iterable[str]) -> Suite:
    """Apply `NAME=VALUE` to every method that has the parameter, or `METHOD:NAME=VALUE` to some.

    Where a method has `source_settings`, they are changed too.

    >>> from labelweave.bench.suite import load_suite
    >>> changed = with_settings(load_suite("vectors"), ["MLkNN:k=5"])
    >>> [dict(method.settings) for method in changed.methods if method.id == "mlknn"]
    [{'k': 5}]
    """
    from labelweave.methods import list_methods
    from labelweave.pipeline.parameters import parse_settings
    from labelweave.pipeline.recipe import check_parameters, defaults

    known = {method.id for method in list_methods()}
    methods = [method for method in suite.methods if method.id in known]
    names = {method.name.lower() for method in methods}
    for left, value in parse_settings(texts).items():
        pattern, _, name = left.rpartition(":")
        chosen = [method for method in methods if not pattern or _matches(pattern, method, names)]
        if pattern:
            for method in chosen:
                check_parameters(method.id, [name])
        else:
            outer = name.partition("__")[0]
            chosen = [method for method in chosen if outer in defaults(method.id)]
        if not chosen:
            what = f"method {pattern!r}" if pattern else f"method with the parameter {name!r}"
            raise InputError(f"suite {suite.name} has no {what}")
        methods = [_changed(one, name, value) if one in chosen else one for one in methods]
    by_name = {method.name: method for method in methods}
    return replace(suite, methods=tuple(by_name.get(one.name, one) for one in suite.methods))


def _changed(method: MethodEntry, name: str, value: Any) -> MethodEntry:
    options = dict(method.options)
    if "source_settings" in options:
        options["source_settings"] = {**options["source_settings"], name: value}
    per_data = {data: {**settings, name: value} for data, settings in method.per_data.items()}
    settings = {**method.settings, name: value}
    return replace(method, settings=settings, per_data=per_data, options=options)


def parse_seeds(text: str) -> tuple[int, ...]:
    """Parse the seeds of the command line: a number of seeds, a list, or a range.

    >>> parse_seeds("3"), parse_seeds("4,7"), parse_seeds("5-8")
    ((0, 1, 2), (4, 7), (5, 6, 7, 8))
    """
    seeds: Sequence[int]
    try:
        if "," in text:
            seeds = [int(part) for part in text.split(",") if part.strip()]
        elif "-" in text:
            first, last = (int(part) for part in text.split("-"))
            seeds = range(first, last + 1)
        else:
            seeds = range(int(text))
    except ValueError:
        seeds = ()
    if len(seeds) > _MOST_SEEDS:
        raise InputError(f"--seeds asks for {len(seeds)} seeds, more than {_MOST_SEEDS}")
    if not seeds or min(seeds) < 0:
        raise InputError(
            f"--seeds is a number of seeds (3), a list (4,7) or a range (5-8), not {text!r}"
        )
    return tuple(dict.fromkeys(seeds))


def quick_suite(suite: Suite) -> Suite:
    """Reduce a suite to one seed and the two smallest data sets that are available."""
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
    """Make a suite of your own data: the honest protocol, and methods with default settings.

    * `sources`: Files, or names of the catalog.
    * `methods`: Ids of methods, or ``["all"]`` for all that learn from labelled rows.
    * `reading`: How to read the files.
    * `metrics`, `seeds`, `split`, `test_size`: As in a suite.
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
            DataEntry(name, source=_full_path(source), options=dict(reading or {}))
            for name, source in zip(names, sources, strict=True)
        ),
        methods=tuple(MethodEntry(method, method) for method in wanted),
        metrics=tuple(metrics),
        seeds=tuple(seeds),
        protocols=(EvaluationProtocol("honest", split=split, test_size=test_size),),
    )


def _name_of(source: str) -> str:
    return Path(source).name.partition(".")[0] or "data"


def _full_path(source: str) -> str:
    """Return the full path of a file, for workers in other folders; a name stays as it is."""
    return str(Path(source).resolve()) if Path(source).exists() else source
