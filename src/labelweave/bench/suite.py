"""A suite: what one published table, or a user's own data, asks to be run.

A suite is a short TOML file; those of the package lie in `suites/`, one a published table.
See docs/bench.md for what a suite may say.
"""

from __future__ import annotations

import difflib
import json
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from importlib import resources
from os import PathLike
from pathlib import Path
from typing import Any

from labelweave.bench.evaluation_protocol import EvaluationProtocol
from labelweave.exceptions import DataFileError, InputError

__all__ = ["DataEntry", "MethodEntry", "ScenarioEntry", "Suite", "list_suites", "load_suite"]

_SUITE_KEYS = {
    "title": str,
    "paper": str,
    "table": str,
    "kind": str,
    "data": list,
    "metrics": list,
    "seeds": list,
    "methods": dict,
    "protocols": dict,
    "scenarios": dict,
    "setting": str,
    "external": dict,
    "keep": list,
    "notes": list,
    "extends": str,
    "stand_in": str,
}
_NEEDED = ("title", "kind", "data", "metrics", "seeds", "methods", "protocols")


@dataclass(frozen=True)
class DataEntry:
    """A data set of a suite.

    `source` is a name of the catalog, a file, or the name of data that the catalog does not
    have; `external` then says what they are. `published` is what the paper calls them, None
    where these are not the paper's rows and features. `options` tell the reader how to read.
    """

    name: str
    source: str = ""
    published: str | None = None
    external: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "source", self.source or self.name)


@dataclass(frozen=True)
class MethodEntry:
    """A method of a suite: its name in the table, its id in the table of methods and its settings.

    `per_data` adds settings for single data sets, `options` speaks to the kind of training,
    `published` is its name in the published table and `setting` the published setting it
    belongs to, where the table's settings are ways to train.
    """

    name: str
    id: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    per_data: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    published: str | None = None
    setting: str | None = None

    def settings_on(self, data: str) -> dict[str, Any]:
        """The method's settings on a data set."""
        return {**self.settings, **self.per_data.get(data, {})}


@dataclass(frozen=True)
class ScenarioEntry:
    """A condition that the labels are brought into; `setting` is what the paper calls it."""

    name: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    setting: str | None = None


@dataclass(frozen=True)
class Suite:
    """What to run and what to compare it with.

    Examples
    --------
    >>> suite = load_suite("c-gmvae-1")
    >>> suite.paper, suite.table, suite.metrics
    ('C-GMVAE', '1', ('f1_example', 'f1_micro'))
    """

    name: str
    title: str
    kind: str
    data: tuple[DataEntry, ...]
    methods: tuple[MethodEntry, ...]
    metrics: tuple[str, ...]
    seeds: tuple[int, ...]
    protocols: tuple[EvaluationProtocol, ...]
    scenarios: tuple[ScenarioEntry, ...] = (ScenarioEntry(),)
    paper: str | None = None
    table: str | None = None
    setting: str | None = None
    stand_in: str | None = None
    keep: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The suite as values that JSON can hold; :meth:`from_dict` reads them back."""
        return asdict(self)

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Suite:
        """The suite that `to_dict` gave."""
        parts = {
            "data": DataEntry,
            "methods": MethodEntry,
            "protocols": EvaluationProtocol,
            "scenarios": ScenarioEntry,
        }
        values = dict(stored)
        for name, kind in parts.items():
            values[name] = tuple(kind(**entry) for entry in stored[name])
        for name in ("metrics", "seeds", "keep", "notes"):
            values[name] = tuple(stored[name])
        return cls(**values)


def list_suites() -> list[Suite]:
    """The suites of the package, by name.

    >>> "mulsupcon-2" in [suite.name for suite in list_suites()]
    True
    """
    return [load_suite(name) for name in _shipped()]


def load_suite(name_or_path: str | PathLike[str]) -> Suite:
    """A suite of the package by its name, or one's own from a TOML file.

    Parameters
    ----------
    name_or_path : str or path-like
        ``"c-gmvae-1"``, or a file that ends in ``.toml`` (or ``.json``, as a result folder
        keeps them).

    Returns
    -------
    Suite
    """
    path = Path(name_or_path)
    if path.suffix == ".json":
        try:
            return Suite.from_dict(json.loads(path.read_text("utf-8")))
        except (ValueError, KeyError, TypeError) as error:
            raise DataFileError(f"this is no stored suite ({error})", path=path) from None
    if path.suffix == ".toml":
        if not path.is_file():
            raise DataFileError("there is no such file", path=path)
        return _parse(path.stem, path.read_text("utf-8"), str(path))
    name = str(name_or_path)
    if name not in _shipped():
        near = difflib.get_close_matches(name.lower(), _shipped(), n=2, cutoff=0.5)
        hint = f"did you mean {' or '.join(map(repr, near))}? " if near else ""
        raise InputError(f"there is no suite {name!r}: {hint}`labelweave bench list` lists them")
    return _parse(name, _shipped()[name], f"suite {name}")


@cache
def _shipped() -> dict[str, str]:
    """Name to text of the suites of the package."""
    folder = resources.files("labelweave.bench").joinpath("suites")
    files = [entry for entry in folder.iterdir() if entry.name.endswith(".toml")]
    texts = {entry.name.removesuffix(".toml"): entry.read_text("utf-8") for entry in files}
    return dict(sorted(texts.items()))


def _parse(name: str, text: str, shown: str) -> Suite:
    try:
        stated = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise DataFileError(f"this is no TOML: {error}", path=shown) from None
    return _build(name, _with_base(stated, shown), shown)


def _with_base(stated: dict[str, Any], shown: str) -> dict[str, Any]:
    """What a suite says, on top of what the suite that it extends says."""
    base = stated.pop("extends", None)
    if base is None:
        return stated
    if base not in _shipped():
        raise InputError(f"{shown} extends {base!r}, which is no suite of the package")
    below = _with_base(tomllib.loads(_shipped()[base]), base)
    if "data" in stated:
        below.pop("external", None)
    return below | stated


def _build(name: str, stated: dict[str, Any], shown: str) -> Suite:
    for key, value in stated.items():
        if key not in _SUITE_KEYS:
            raise InputError(f"{shown} has no use for {key!r}: it may say {', '.join(_SUITE_KEYS)}")
        if not isinstance(value, _SUITE_KEYS[key]):
            raise InputError(f"{shown}: {key} must be a {_SUITE_KEYS[key].__name__}")
    for key in _NEEDED:
        if not stated.get(key):
            raise InputError(f"{shown} does not say its {key}")
    if any(isinstance(seed, bool) or not isinstance(seed, int) for seed in stated["seeds"]):
        raise InputError(f"{shown}: seeds must be whole numbers")
    external = stated.get("external", {})
    return Suite(
        name=name,
        title=stated["title"],
        kind=stated["kind"],
        data=tuple(_data_entry(entry, external, shown) for entry in stated["data"]),
        methods=tuple(
            _method_entry(method, entry, shown) for method, entry in stated["methods"].items()
        ),
        metrics=_checked_metrics(stated["metrics"]),
        seeds=tuple(stated["seeds"]),
        protocols=tuple(
            EvaluationProtocol.from_settings(protocol, settings, shown)
            for protocol, settings in stated["protocols"].items()
        ),
        scenarios=tuple(
            _scenario_entry(*item) for item in stated.get("scenarios", {"": {}}).items()
        ),
        paper=stated.get("paper"),
        table=stated.get("table"),
        setting=stated.get("setting"),
        stand_in=stated.get("stand_in"),
        keep=tuple(stated.get("keep", ())),
        notes=tuple(stated.get("notes", ())),
    )


def _data_entry(stated: Any, external: Mapping[str, str], shown: str) -> DataEntry:
    if isinstance(stated, str):
        stated = {"name": stated, "published": stated}
    try:
        entry = DataEntry(**{"external": external.get(stated["name"]), **stated})
    except (TypeError, KeyError):
        raise InputError(
            f"{shown}: a data set is a name, or a table with name, source, published and options, "
            f"not {stated!r}"
        ) from None
    if entry.external is None:
        from labelweave.data.catalog import get_entry

        get_entry(entry.source)  # an unknown name is a mistake, not data that are missing
    return entry


def _method_entry(name: str, stated: Any, shown: str) -> MethodEntry:
    if isinstance(stated, str):
        stated = {"id": stated}
    try:
        return MethodEntry(name, **{"published": name, **stated})
    except TypeError:
        raise InputError(
            f"{shown}: the method {name} has id, settings, per_data, options, published and "
            f"setting, not {sorted(stated)}"
        ) from None


def _scenario_entry(name: str, stated: dict[str, Any]) -> ScenarioEntry:
    settings = dict(stated)
    return ScenarioEntry(name, setting=settings.pop("setting", name or None), settings=settings)


def _checked_metrics(names: list[str]) -> tuple[str, ...]:
    from labelweave.metrics import get_metric

    return tuple(get_metric(name).name for name in names)
