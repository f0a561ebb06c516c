"""Parameters of methods as text: their documentation, `--set name=value`, and TOML."""

from __future__ import annotations

import datetime
import difflib
import inspect
import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from labelweave.exceptions import InputError

__all__ = [
    "Parameter",
    "check_names",
    "default_values",
    "describe_parameters",
    "example_setting",
    "parse_settings",
    "parse_value",
    "to_toml",
]


@dataclass(frozen=True)
class Parameter:
    """One constructor parameter: its name, default, type and documentation."""

    name: str
    default: Any
    type: str
    doc: str


def describe_parameters(cls: type) -> list[Parameter]:
    """The constructor parameters of a method, documented from its docstring and its bases'."""
    documented: dict[str, tuple[str, str]] = {}
    for base in reversed(cls.__mro__):
        for name, (kind, text) in _documented_parameters(base.__doc__ or "").items():
            if kind or name not in documented:  # the text of the base class is better than none
                plain = re.sub(r":\w+:`~?([^`]+)`", r"\1", text).replace("``", "`")
                documented[name] = (kind, plain)
    return [
        Parameter(name, default, *documented.get(name, ("", "")))
        for name, default in default_values(cls).items()
    ]


def default_values(cls: type) -> dict[str, Any]:
    """The constructor parameters of a class and their defaults; None where there is none."""
    values = {}
    for name, parameter in inspect.signature(cls).parameters.items():
        if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            values[name] = None if parameter.default is parameter.empty else parameter.default
    return values


def _documented_parameters(docstring: str) -> dict[str, tuple[str, str]]:
    """Name to (type, text) of the Parameters section of a numpydoc docstring."""
    lines = inspect.cleandoc(docstring).splitlines()
    documented: dict[str, tuple[str, str]] = {}
    names: list[str] = []
    inside = False
    for line, below in zip(lines, [*lines[1:], ""], strict=True):
        if below and set(below) == {"-"}:  # the title of a section
            inside = line.strip() == "Parameters"
            continue
        if not inside or not line.strip() or set(line) == {"-"}:
            continue
        if not line.startswith(" "):
            left, _, type_ = line.partition(" : ")
            names = [name.strip(" *") for name in left.split(",")]
            # The default is shown by itself, from the signature.
            kind = re.sub(r",?\s*(default\s*[=:]?\s*.*|optional)$", "", type_.strip())
            documented |= dict.fromkeys(names, (kind, ""))
        else:
            for name in names:
                kind, text = documented[name]
                documented[name] = (kind, f"{text} {line.strip()}".strip())
    return documented


def example_setting(parameters: Iterable[Parameter]) -> str:
    """A `name=value` that could follow --set, for the first parameter with a plain default."""
    shared = ("threshold", "validation_fraction", "random_state", "verbose")
    for parameter in parameters:
        if parameter.name not in shared and isinstance(parameter.default, int | float | str):
            return f"{parameter.name}={_literal(parameter.default)}"
    return "threshold=0.4"


def parse_value(text: str) -> Any:
    """The value of `--set name=value`: a TOML literal, `none`, or else the text itself.

    >>> parse_value("0.5"), parse_value("[256, 128]"), parse_value("relu"), parse_value("none")
    (0.5, [256, 128], 'relu', None)
    >>> parse_value("true"), parse_value("'true'")
    (True, 'true')
    """
    text = text.strip()
    if text.lower() in ("none", "null"):
        return None
    if text in ("True", "False"):  # as Python writes them
        return text == "True"
    try:
        parsed = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return text
    value = parsed.get("value")
    times = datetime.date | datetime.time
    return text if len(parsed) > 1 or isinstance(value, times) else value


def parse_settings(settings: Iterable[str], option: str = "--set") -> dict[str, Any]:
    """`name=value` texts as a dictionary; `option` is named in the message.

    >>> parse_settings(["k=5", "loss=asl"])
    {'k': 5, 'loss': 'asl'}
    """
    parsed = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals or not name.strip():
            raise InputError(f"{option} takes name=value, not {setting!r}")
        parsed[name.strip()] = parse_value(value)
    return parsed


def check_names(names: Iterable[str], known: Iterable[str], what: str) -> None:
    """Raise for the first name that is not known, with the nearest one that is.

    >>> check_names(["lerning_rate"], ["learning_rate", "k"], "parameter of mlp")
    Traceback (most recent call last):
    ...
    labelweave.exceptions.InputError: there is no parameter of mlp 'lerning_rate': did you mean \
'learning_rate'?
    """
    known = list(known)
    for name in names:
        if name in known:
            continue
        near = difflib.get_close_matches(name, known, n=2, cutoff=0.5)
        hint = (
            f"did you mean {' or '.join(map(repr, near))}?"
            if near
            else f"choose among {', '.join(known)}"
        )
        raise InputError(f"there is no {what} {name!r}: {hint}")


def to_toml(sections: Mapping[str, Mapping[str, Any]]) -> str:
    """Sections of plain values as TOML text; None has no TOML form and is written as "none".

    >>> print(to_toml({"parameters": {"lr": 0.001, "hidden": [64], "name": "a"}}))
    [parameters]
    lr = 0.001
    hidden = [64]
    name = "a"
    <BLANKLINE>
    """
    blocks = []
    for title, values in sections.items():
        lines = [f"[{title}]", *(f"{_key(key)} = {_literal(v)}" for key, v in values.items())]
        blocks.append("\n".join(lines) + "\n")
    return "\n".join(blocks)


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else json.dumps(key)


def _literal(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(_literal(item) for item in value)}]"
    return json.dumps("none" if value is None else str(value))
