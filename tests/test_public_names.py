"""The names that type checkers and editors are told of are those that the package has."""

import ast
from importlib import import_module
from pathlib import Path

import labelweave as lw
from labelweave.registry import public_classes

STUB = Path(lw.__file__).with_suffix(".pyi")


def stated():
    """Name to the module that the stub takes it from."""
    tree = ast.parse(STUB.read_text(encoding="utf-8"))
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    ours = [node for node in imports if node.module.startswith("labelweave")]
    return {alias.name: node.module for node in ours for alias in node.names}


def test_every_public_name_is_in_the_stub():
    ours = {name for name, method in public_classes().items() if method.room != "plug-in"}
    missing = {*lw._NAMES, *lw._MODULES, *ours} - set(stated())
    assert not missing, f"add {sorted(missing)} to {STUB.name}"


def test_the_stub_names_nothing_else():
    for name, module in stated().items():
        here, there = getattr(lw, name), getattr(import_module(module), name)
        assert here is there, f"{STUB.name} takes {name} from {module}"
