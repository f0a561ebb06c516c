"""Write `src/labelweave/__init__.pyi`: the public names, for type checkers and editors.

The package imports its names when they are first used, which type checkers cannot follow. The
stub is generated from the same two tables that the package uses, and a test compares.
"""

import importlib
import types
from pathlib import Path

import labelweave
from labelweave.methods import METHODS

STUB = Path(labelweave.__file__).with_suffix(".pyi")


def stub_text() -> str:
    """The text of the stub."""
    places = {name: _module_of(name) for name in labelweave._NAMES}
    places |= {method.class_name: method.module for method in METHODS}
    imports = sorted((module, name) for name, module in places.items())
    lines = [
        '"""The public names, for type checkers and editors. Written by tools/stub.py."""',
        "",
        "from typing import Any",
        "",
        *(f"from labelweave import {name} as {name}" for name in sorted(labelweave._MODULES)),
        *(f"from {module} import {name} as {name}" for module, name in imports),
        "",
        "__version__: str",
        "",
        "def __getattr__(name: str) -> Any: ...  # the classes of plug-ins",
    ]
    return "\n".join(lines) + "\n"


def _module_of(name: str) -> str:
    """The module that defines a public name."""
    value = getattr(importlib.import_module(labelweave._NAMES[name]), name)
    if isinstance(value, type | types.FunctionType):
        return value.__module__
    return labelweave._NAMES[name]


if __name__ == "__main__":
    STUB.write_text(stub_text(), encoding="utf-8")
