"""Search spaces: which values of a parameter `labelweave tune` may try.

A method offers its own as a class attribute of plain specs::

    tuning_space = {
        "lr": ("log", 1e-4, 1e-2),        # a number, spread evenly over orders of magnitude
        "dropout": ("float", 0.0, 0.6),   # a number
        "k": ("int", 3, 30),              # a whole number
        "width": ("int-log", 32, 1024),   # a whole number, over orders of magnitude
        "loss": ("choice", ["bce", "asl"]),
    }
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from labelweave.exceptions import InputError
from labelweave.pipeline.parameters import parse_value

__all__ = ["Range", "make_space"]

_NUMBERS = ("float", "log", "int", "int-log")


@dataclass(frozen=True)
class Range:
    """The values one parameter may take."""

    name: str
    kind: str
    low: Any = None
    high: Any = None
    choices: tuple[Any, ...] = ()

    def suggest(self, trial: Any) -> Any:
        """A value for an Optuna trial."""
        if self.kind == "choice":
            # Optuna keeps choices in its storage, where only simple values can be.
            return json.loads(trial.suggest_categorical(self.name, list(map(_key, self.choices))))
        if self.kind.startswith("int"):
            return trial.suggest_int(self.name, self.low, self.high, log=self.kind == "int-log")
        return trial.suggest_float(self.name, self.low, self.high, log=self.kind == "log")

    def stored(self, value: Any) -> Any:
        """A value as Optuna keeps it, or None if it lies outside."""
        if self.kind == "choice":
            return _key(value) if _key(value) in map(_key, self.choices) else None
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return value if is_number and self.low <= value <= self.high else None

    def restored(self, stored: Any) -> Any:
        """The value that Optuna kept."""
        return json.loads(stored) if self.kind == "choice" else stored

    def __str__(self) -> str:
        if self.kind == "choice":
            return f"{self.name}: {', '.join(map(str, self.choices))}"
        log = " (log)" if self.kind.endswith("log") else ""
        return f"{self.name}: {self.low:g} to {self.high:g}{log}"


def make_space(cls: type, overrides: Iterable[str]) -> dict[str, Range]:
    """The space of a method, with what `--space` says put over it.

    Parameters
    ----------
    cls : class of the method
    overrides : texts such as ``"lr=1e-4:1e-2:log"``, ``"loss=bce,asl"`` or ``"k=none"``, which
        takes k out of the search

    Examples
    --------
    >>> class Method:
    ...     tuning_space = {"k": ("int", 1, 9), "s": ("float", 0.1, 1.0)}
    >>> for range in make_space(Method, ["s=none", "lr=1e-3:0.1:log", "k=5,7"]).values():
    ...     print(range)
    k: 5, 7
    lr: 0.001 to 0.1 (log)
    """
    offered: Mapping[str, tuple[Any, ...]] = getattr(cls, "tuning_space", {})
    space = {name: _from_spec(name, spec) for name, spec in offered.items()}
    for text in overrides:
        name, equals, values = (part.strip() for part in text.partition("="))
        if not equals or not name or not values:
            raise InputError(
                f"--space takes name=low:high, name=low:high:log or name=a,b: {text!r}"
            )
        if values.lower() == "none":
            space.pop(name, None)
        else:
            space[name] = _from_text(name, values)
    return space


def _from_spec(name: str, spec: tuple[Any, ...]) -> Range:
    kind, *values = spec
    if kind == "choice":
        return Range(name, kind, choices=tuple(values[0]))
    if kind not in _NUMBERS or len(values) != 2:
        raise InputError(f"the tuning space of {name!r} is not valid: {spec!r}")
    return _checked(Range(name, kind, *values))


def _from_text(name: str, text: str) -> Range:
    low, colon, rest = text.partition(":")
    if not colon:
        listed = parse_value(text if text.startswith("[") else f"[{text}]")
        choices = listed if isinstance(listed, list) else [parse_value(t) for t in text.split(",")]
        return Range(name, "choice", choices=tuple(choices))
    high, _, log = rest.partition(":")
    ends = parse_value(low), parse_value(high)
    is_number = all(isinstance(end, int | float) and not isinstance(end, bool) for end in ends)
    if not is_number or log not in ("", "log"):
        raise InputError(f"--space {name}: {text!r} is not low:high or low:high:log in numbers")
    whole = all(isinstance(end, int) for end in ends)
    kind = ("int-log" if log else "int") if whole else (log or "float")
    return _checked(Range(name, kind, *ends))


def _checked(range: Range) -> Range:
    if not range.low <= range.high:
        raise InputError(f"the space of {range.name} is empty: {range.low} is above {range.high}")
    if range.kind.endswith("log") and range.low <= 0:
        raise InputError(f"the space of {range.name} is logarithmic, so it must start above 0")
    return range


def _key(value: Any) -> str:
    return json.dumps(value)
