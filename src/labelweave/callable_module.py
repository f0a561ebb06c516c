"""Packages that can be called like the function of the same name."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

__all__ = ["make_callable"]


def make_callable(name: str, function: Callable[..., Any]) -> None:
    """Let the module of this name be called: it calls `function`, and stays a module.

    >>> import labelweave as lw
    >>> callable(lw.report), lw.report.__name__
    (True, 'labelweave.report')
    """

    class CallableModule(ModuleType):
        def __call__(self, *arguments: Any, **options: Any) -> Any:
            return function(*arguments, **options)

    sys.modules[name].__class__ = CallableModule
