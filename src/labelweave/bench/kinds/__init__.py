"""Kinds of training, one module each: how a method is trained under a scenario, and scored.

Each module of this package is a kind and defines

check_scenario(settings) : None
    Raise an error for an unknown setting of a scenario.
check_options(options) : None
    Raise an error for an unknown option of a method.
run(cell, data) : Outcome
    Fit and score one cell.
other_data(settings) : tuple of DataEntry, optional
    Data sets that a scenario needs beside that of the cell.

`run` imports what is slow to import, because plans and comparisons do not need it. A suite may
name a kind that has no module; it is then listed as not available.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Collection, Iterable, Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any

from labelweave.exceptions import InputError

if TYPE_CHECKING:
    from labelweave.bench.suite import DataEntry

__all__ = ["check_keys", "kind_module", "other_data", "why_no_kind"]


def why_no_kind(kind: str) -> str | None:
    """Explain why cells of this kind cannot be run; None if they can.

    >>> why_no_kind("supervised") is None, why_no_kind("telepathic")
    (True, "training of the kind 'telepathic' is not built yet")
    """
    if kind.isidentifier() and importlib.util.find_spec(f"{__name__}.{kind}") is not None:
        return None
    return f"training of the kind {kind!r} is not built yet"


def kind_module(kind: str) -> ModuleType:
    """Import the module of a kind."""
    if (reason := why_no_kind(kind)) is not None:
        raise InputError(reason)
    return importlib.import_module(f"{__name__}.{kind}")


def other_data(kind: str, settings: Mapping[str, Any]) -> tuple[DataEntry, ...]:
    """Return the data sets that a scenario of this kind needs beside that of the cell."""
    module = kind_module(kind)
    module.check_scenario(settings)
    return module.other_data(settings) if hasattr(module, "other_data") else ()


def check_keys(given: Iterable[str], known: Collection[str], what: str) -> None:
    """Raise an error for an unknown key."""
    for key in given:
        if key not in known:
            names = ", ".join(known) or "none"
            raise InputError(f"there is no {what} {key!r} (there are: {names})")
