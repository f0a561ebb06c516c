"""Constructors that pass what they do not know on to their parent's."""

from __future__ import annotations

import inspect

__all__ = ["name_all_parameters"]


def name_all_parameters(cls: type) -> None:
    """Let `__init__(self, own, ..., **options)` count as if it named its parent's parameters.

    scikit-learn reads parameters from the signature; so do help() and editors. Called by
    `__init_subclass__` of a family of estimators.

    >>> class Parent:
    ...     def __init__(self, *, a=1): ...
    >>> class Child(Parent):
    ...     def __init__(self, b=2, **options): ...
    >>> name_all_parameters(Child)
    >>> inspect.signature(Child)
    <Signature (b=2, *, a=1)>
    """
    init = cls.__dict__.get("__init__")
    if init is None:
        return
    own = inspect.signature(init).parameters
    kept = [p for p in own.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
    if len(kept) < len(own):
        above = super(cls, cls).__init__  # type: ignore[arg-type]  # that of a mixin's parent too
        parent = inspect.signature(above).parameters
        kept += [p for name, p in parent.items() if name not in own]
        init.__signature__ = inspect.Signature(kept)
