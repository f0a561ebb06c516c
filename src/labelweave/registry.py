"""Every method under its id, found without importing it.

A method joins by a decorator on its class, in a file of one of the four rooms::

    @register("mlknn", summary="k nearest neighbours with Bayes' rule")
    class MLkNN(MultiLabelClassifier): ...

The decorators are read from the source files, so that listing the methods imports neither
the methods nor torch. Other packages add theirs through the entry-point group
``labelweave.methods`` (``my-id = "my_package.module:MyClass"``).
"""

from __future__ import annotations

import ast
import importlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any, TypeVar

from labelweave.exceptions import InputError

__all__ = ["ROOMS", "Method", "get_class", "list_methods", "make", "register"]

ROOMS = ("dependent", "partial", "scattered", "unseen")
PLUGIN_GROUP = "labelweave.methods"
# Model folders name the estimators that stand around a method by these ids.
RESERVED_IDS = (
    "text",
    "image",
    "calibrated",
    "sentence-embedder",
    "fast-embedder",
    "tfidf-embedder",
    "image-encoder",
    "label-tree",
    "resnet",
)
T = TypeVar("T", bound=type)


@dataclass(frozen=True)
class Method:
    """Where a method lives and what it is, known without importing it."""

    id: str
    room: str
    module: str
    class_name: str
    summary: str

    def load(self) -> type:
        """Import the class."""
        return getattr(importlib.import_module(self.module), self.class_name)


def register(id: str, *, summary: str) -> Callable[[T], T]:
    """Class decorator that gives a method its id. Both arguments must be literals."""

    def mark(cls: T) -> T:
        cls.method_id = id  # type: ignore[attr-defined]
        cls.method_summary = summary  # type: ignore[attr-defined]
        return cls

    return mark


@cache
def _methods() -> dict[str, Method]:
    found: dict[str, Method] = {}
    for method in (*_methods_of_rooms(), *_methods_of_plugins()):
        if method.id in RESERVED_IDS:
            raise InputError(
                f"{method.module}.{method.class_name} has the id {method.id!r}, which labelweave "
                "keeps for itself: give it another"
            )
        if method.id in found:
            other = found[method.id]
            raise InputError(
                f"two methods have the id {method.id!r}: {other.module}.{other.class_name} "
                f"and {method.module}.{method.class_name}"
            )
        found[method.id] = method
    return found


def _methods_of_rooms() -> list[Method]:
    package = Path(__file__).parent
    return [
        Method(id, room, f"labelweave.{room}.{path.stem}", class_name, summary)
        for room in ROOMS
        for path in sorted((package / room).glob("*.py"))
        for id, class_name, summary in _decorated_classes(path)
    ]


def _decorated_classes(path: Path) -> list[tuple[str, str, str]]:
    found = []
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if not isinstance(node, ast.ClassDef):
            continue
        for call in node.decorator_list:
            if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "register":
                keywords = {k.arg: ast.literal_eval(k.value) for k in call.keywords}
                found.append((ast.literal_eval(call.args[0]), node.name, keywords["summary"]))
    return found


def _methods_of_plugins() -> list[Method]:
    return [
        Method(
            id=point.name,
            room="plug-in",
            module=point.module,
            class_name=point.attr,
            summary=f"from {point.dist.name if point.dist else point.module}",
        )
        for point in metadata.entry_points(group=PLUGIN_GROUP)
    ]


def list_methods(room: str | None = None) -> list[Method]:
    """All methods, or those of one room, in the order of their ids.

    >>> "mlknn" in [method.id for method in list_methods("dependent")]
    True
    """
    if room is not None and room not in (*ROOMS, "plug-in"):
        raise InputError(f"there is no room {room!r}: choose one of {', '.join(ROOMS)}")
    chosen = (m for m in _methods().values() if room is None or m.room == room)
    return sorted(chosen, key=lambda method: method.id)


def get_class(id: str) -> type:
    """The class of a method, imported now.

    >>> get_class("mlknn").__name__
    'MLkNN'
    """
    method = _methods().get(id)
    if method is None:
        import difflib

        near = difflib.get_close_matches(id, _methods(), n=1, cutoff=0.5)
        hint = f"; did you mean {near[0]!r}?" if near else "; `labelweave methods` lists them"
        raise InputError(f"there is no method {id!r}{hint}")
    return method.load()


def make(id: str, **parameters: Any) -> Any:
    """An estimator of this method with these parameters.

    >>> make("mlknn", k=5).k
    5
    """
    return get_class(id)(**parameters)


def public_classes() -> dict[str, Method]:
    """Class name to method, for the lazy names of the package.

    A plug-in's class never hides one of the library that has the same name.
    """
    ours_last = sorted(_methods().values(), key=lambda method: method.room != "plug-in")
    return {method.class_name: method for method in ours_last}
