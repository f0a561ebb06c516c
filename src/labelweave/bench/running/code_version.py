"""The version of the code that a cell depends on.

A cell must be run again when its code changes, and only then. The version is therefore a hash of
the source of the method's module and of the kind of training, and of every module of labelweave
that these import, directly or through others. A method may create another by its id: every id in
its code or in the settings of a cell counts like an import of that method. Comments, docstrings
and layout do not count, nor do modules that cannot change a score (:data:`HARMLESS`). Reading data
does not count either, because the data have a checksum of their own. A plug-in counts with its
module and the version of labelweave.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

_PACKAGE = "labelweave"
HARMLESS = (
    "labelweave.pipeline.model_folder",
    "labelweave.pipeline.parameters",
    "labelweave.pipeline.data_parts",
    "labelweave.pipeline.model_scores",
    "labelweave.bench.running.plan",
    "labelweave.bench.running.cell_data",
    "labelweave.bench.storing.records",
    "labelweave.bench.suite",
    "labelweave.cli",
    "labelweave.data._catalog",
    "labelweave.data.catalog",
    "labelweave.data.readers",
    "labelweave.data.reading",
    "labelweave.exceptions",
    "labelweave.export",
    "labelweave.files",
    "labelweave.nn.callbacks",
    "labelweave.nn.checkpoints",
    "labelweave.persistence",
    "labelweave.progress",
    "labelweave.methods",
    "labelweave.reporting",
)
"""Modules, with their submodules, that compute no score."""


def code_version(modules: Iterable[str]) -> str:
    """Hash the code that these modules depend on.

    * `modules`: Names of modules, such as ``"labelweave.dependent.br"``. Those of methods that the
      settings name are added by the caller; see :func:`methods_named_in`.

    >>> version = code_version(["labelweave.dependent.br"])
    >>> version == code_version(["labelweave.dependent.br"])
    True
    >>> version == code_version(["labelweave.dependent.mlknn"])
    False
    """
    wanted, seen = list(modules), set()
    harmless = tuple(f"{name}." for name in HARMLESS)
    while wanted:
        module = wanted.pop()
        if module not in seen and not f"{module}.".startswith(harmless):
            seen.add(module)
            wanted += _facts(module)[1]
    digests = [f"{module}:{_facts(module)[0]}" for module in sorted(seen)]
    return hashlib.sha256("\n".join(digests).encode()).hexdigest()[:16]


def methods_named_in(settings: Any) -> tuple[str, ...]:
    """List the modules of the methods whose ids are values of some settings, at any depth.

    >>> methods_named_in({"base": "mlknn", "members": ["br"], "k": 3})
    ('labelweave.dependent.br', 'labelweave.dependent.mlknn')
    """
    modules = _modules_by_id()
    return tuple(sorted(modules[text] for text in set(_texts(settings)) if text in modules))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts(inner)


@cache
def _modules_by_id() -> dict[str, str]:
    from labelweave.methods import list_methods

    return {method.id: method.module for method in list_methods()}


def _is_in_a_room(module: str) -> bool:
    from labelweave.methods import ROOMS

    return module.startswith(tuple(f"{_PACKAGE}.{room}." for room in ROOMS))


@cache
def _facts(module: str) -> tuple[str, tuple[str, ...]]:
    """Return a digest of a module's code, and the labelweave modules that it imports or names."""
    path = _source(module)
    if path is None:
        from labelweave import __version__

        return f"{_PACKAGE} {__version__}", ()
    tree = ast.parse(path.read_bytes())
    imported = {name for node in ast.walk(tree) for name in _imports(node)}
    needed = {name for name in imported if _source(name) is not None}
    bare = _without_docstrings(tree)
    if _is_in_a_room(module):
        constants = [node.value for node in ast.walk(bare) if isinstance(node, ast.Constant)]
        needed.update(methods_named_in(constants))
    return hashlib.sha256(ast.dump(bare).encode()).hexdigest(), tuple(sorted(needed))


@cache
def _source(module: str) -> Path | None:
    """Return the file of a module; None for a name that a module defines."""
    if module.partition(".")[0] == _PACKAGE:  # no import is needed to find these
        stem = Path(__file__).parents[2].joinpath(*module.split(".")[1:])
        for path in (stem.with_suffix(".py"), stem / "__init__.py"):
            if path.is_file():
                return path
        return None
    spec = importlib.util.find_spec(module)
    return Path(spec.origin) if spec is not None and spec.has_location and spec.origin else None


def _imports(node: ast.AST) -> list[str]:
    """List the modules of labelweave that an import statement may load."""
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
        names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    else:
        return []
    return [name for name in names if name.startswith(f"{_PACKAGE}.")]


def _without_docstrings(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                node.body = node.body[1:]
    return tree
