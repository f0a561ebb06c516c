"""A suite: the data sets, methods, metrics, seeds and protocols of one table.

A suite is a short TOML file. The package has one per published table, in `suites/`; docs/bench.md
describes the keys.
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
_REQUIRED = ("title", "kind", "data", "metrics", "seeds", "methods", "protocols")


@dataclass(frozen=True)
class DataEntry:
    """A data set of a suite.

    `source` is a name of the catalog, a file, or the name of data that the catalog does not
    have; `external` then describes them. `published` is the name in the published table, None
    where these are not the paper's rows and features. `options` go to the reader.
    """

    name: str
    source: str = ""
    published: str | None = None
    external: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "source", self.source or self.name)


SOURCES = ("program", "text", "cls")
FORMS = ("linear-probe", "transferred", "from-scratch")


@dataclass(frozen=True)
class MethodEntry:
    """A method of a suite: its name in the table, its id and its settings.

    With `published`, settings are applied on top of the class method `published` of the method:
    True, its source ("program", "text" or, of ASL, "cls"), or its form (of MulSupCon
    "linear-probe", "transferred" or "from-scratch"). `per_data` adds settings for single
    data sets, and `options` go to the kind of training. `line` is the name in the published table,
    and `setting` the column of that table, where its columns are kinds of training.
    """

    name: str
    id: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    per_data: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    published: bool | str = False
    line: str | None = None
    setting: str | None = None

    def settings_on(self, data: str) -> dict[str, Any]:
        """Return the method's settings on a data set."""
        return {**self.settings, **self.per_data.get(data, {})}


@dataclass(frozen=True)
class ScenarioEntry:
    """What is done to the labels; `setting` is its name in the published table."""

    name: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    setting: str | None = None


@dataclass(frozen=True)
class Suite:
    """The cells to run, and the published table to compare them with.

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
        """Return the suite as values for JSON; :meth:`from_dict` reads them back."""
        return asdict(self)

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Suite:
        """Build a suite from the values of :meth:`to_dict`."""
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
    """List the suites of the package, by name.

    >>> "mulsupcon-2" in [suite.name for suite in list_suites()]
    True
    """
    return [load_suite(name) for name in _shipped()]


def load_suite(name_or_path: str | PathLike[str]) -> Suite:
    """Load a suite of the package by its name, or your own from a TOML file.

    Parameters
    ----------
    name_or_path : str or path-like
        ``"c-gmvae-1"``, or a file that ends in ``.toml`` (or ``.json``, as a result folder
        keeps them).
    """
    path = Path(name_or_path)
    if path.suffix == ".json":
        try:
            return Suite.from_dict(json.loads(path.read_text("utf-8")))
        except (ValueError, KeyError, TypeError) as error:
            raise DataFileError(f"this is not a stored suite ({error})", path=path) from None
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
    """Map the names of the package's suites to their text."""
    folder = resources.files("labelweave.bench").joinpath("suites")
    files = [entry for entry in folder.iterdir() if entry.name.endswith(".toml")]
    texts = {entry.name.removesuffix(".toml"): entry.read_text("utf-8") for entry in files}
    return dict(sorted(texts.items()))


def _parse(name: str, text: str, origin: str) -> Suite:
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise DataFileError(f"this is not TOML: {error}", path=origin) from None
    return _build(name, _with_base(values, origin), origin)


def _with_base(values: dict[str, Any], origin: str) -> dict[str, Any]:
    """Add the keys of the suite that this one extends."""
    base = values.pop("extends", None)
    if base is None:
        return values
    if base not in _shipped():
        raise InputError(f"{origin} extends {base!r}, which is not a suite of the package")
    inherited = _with_base(tomllib.loads(_shipped()[base]), base)
    if "data" in values:
        inherited.pop("external", None)
    return inherited | values


def _build(name: str, values: dict[str, Any], origin: str) -> Suite:
    for key, value in values.items():
        if key not in _SUITE_KEYS:
            raise InputError(
                f"{origin} has the unknown key {key!r}; keys are {', '.join(_SUITE_KEYS)}"
            )
        if not isinstance(value, _SUITE_KEYS[key]):
            raise InputError(f"{origin}: {key} must be a {_SUITE_KEYS[key].__name__}")
    for key in _REQUIRED:
        if not values.get(key):
            raise InputError(f"{origin} has no {key}")
    if any(isinstance(seed, bool) or not isinstance(seed, int) for seed in values["seeds"]):
        raise InputError(f"{origin}: seeds must be whole numbers")
    external = values.get("external", {})
    return Suite(
        name=name,
        title=values["title"],
        kind=values["kind"],
        data=tuple(_data_entry(entry, external, origin) for entry in values["data"]),
        methods=tuple(
            _method_entry(method, entry, origin) for method, entry in values["methods"].items()
        ),
        metrics=_checked_metrics(values["metrics"]),
        seeds=tuple(values["seeds"]),
        protocols=tuple(
            EvaluationProtocol.from_settings(protocol, settings, origin)
            for protocol, settings in values["protocols"].items()
        ),
        scenarios=tuple(
            _scenario_entry(*item) for item in values.get("scenarios", {"": {}}).items()
        ),
        paper=values.get("paper"),
        table=values.get("table"),
        setting=values.get("setting"),
        stand_in=values.get("stand_in"),
        keep=tuple(values.get("keep", ())),
        notes=tuple(values.get("notes", ())),
    )


def _data_entry(values: Any, external: Mapping[str, str], origin: str) -> DataEntry:
    if isinstance(values, str):
        values = {"name": values, "published": values}
    try:
        entry = DataEntry(**{"external": external.get(values["name"]), **values})
    except (TypeError, KeyError):
        raise InputError(
            f"{origin}: a data set is a name, or a table with name, source, published and options, "
            f"not {values!r}"
        ) from None
    if entry.external is None:
        from labelweave.data.catalog import get_entry

        get_entry(entry.source)  # an unknown name is a mistake, not data that are missing
    return entry


def _method_entry(name: str, values: Any, origin: str) -> MethodEntry:
    if isinstance(values, str):
        values = {"id": values}
    try:
        entry = MethodEntry(name, **{"line": name, **values})
    except TypeError:
        raise InputError(
            f"{origin}: the method {name} has id, settings, published, per_data, options, line and "
            f"setting, not {sorted(values)}"
        ) from None
    if entry.published not in (True, False, *SOURCES, *FORMS):
        raise InputError(
            f"{origin}: published of the method {name} is true or one of "
            f"{', '.join(map(repr, (*SOURCES, *FORMS)))}, not {entry.published!r}"
        )
    return entry


def _scenario_entry(name: str, values: dict[str, Any]) -> ScenarioEntry:
    settings = dict(values)
    return ScenarioEntry(name, setting=settings.pop("setting", name or None), settings=settings)


def _checked_metrics(names: list[str]) -> tuple[str, ...]:
    from labelweave.metrics import get_metric

    return tuple(get_metric(name).name for name in names)
