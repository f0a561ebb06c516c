"""The settings of a method in a suite: what it starts from, and what decides the name of a cell.

A method starts from its defaults or, with ``published = true``, from the settings of its paper's
tables: the class method ``published(dataset)``. The settings of the suite are applied on top.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from sklearn.base import BaseEstimator

from labelweave.bench.suite import SOURCES
from labelweave.exceptions import InputError
from labelweave.methods import get_class, list_methods
from labelweave.pipeline.recipe import Recipe, check_parameters

_OF_THE_BENCH = ("threshold", "random_state")  # the protocol and the seed decide these


def published_settings(method: str, published: bool | str, dataset: str) -> dict[str, Any]:
    """Return the parameters of a method as published, where they differ from its defaults.

    * `published`: False for none, True for ``published(dataset)``, or its `source` or `form`.
    """
    if published is False:
        return {}
    cls: Any = get_class(method)
    if getattr(cls, "published", None) is None:
        raise InputError(
            f"{method} has no published settings: leave out `published` and give settings"
        )
    if published is True:
        return _changed(cls.published(dataset))
    which = "source" if published in SOURCES else "form"
    if which not in inspect.signature(cls.published).parameters:
        raise InputError(
            f"{method} has one published {which}, not {published!r}: write `published = true`"
        )
    return _changed(cls.published(dataset, **{which: published}))


def _changed(model: BaseEstimator) -> dict[str, Any]:
    """Return the parameters of an estimator that differ from the defaults of its class."""
    parameters = inspect.signature(type(model)).parameters
    return {
        name: value
        for name, value in model.get_params(deep=False).items()
        if name not in _OF_THE_BENCH
        and (isinstance(value, BaseEstimator) or _json(value) != _json(parameters[name].default))
    }


def resolved_settings(
    method: str, settings: Mapping[str, Any], published: bool | str, dataset: str
) -> dict[str, Any]:
    """Return all settings of a method that differ from its defaults, as values for JSON.

    An estimator inside the method is written as the name of its class and its own settings, so
    that it does not matter whether it comes from `published` or from a suite.

    >>> resolved_settings("mlknn", {"k": 3, "threshold": 0.4}, False, "scene")
    {'k': 3, 'threshold': 0.4}
    >>> resolved_settings("mlknn", {"k": 10}, False, "scene")  # the default
    {}
    """
    is_known = method in {one.id for one in list_methods()}
    if not is_known or (not settings and published is False):
        return dict(settings)
    return json.loads(_resolved(method, _json(settings), published, dataset))


@cache
def _resolved(method: str, settings: str, published: bool | str, dataset: str) -> str:
    start, on_top = published_settings(method, published, dataset), json.loads(settings)
    check_parameters(method, on_top)
    of_the_bench = {name: on_top[name] for name in _OF_THE_BENCH if name in on_top}
    before = {name: on_top[name] for name in on_top if name.startswith(("text__", "image__"))}
    model = Recipe(method, {**start, **on_top}).make()
    return _json({**_flat(model), **of_the_bench, **before})


def _flat(model: BaseEstimator) -> dict[str, Any]:
    """Return the changed parameters of an estimator and, prefixed, of those inside it."""
    flat: dict[str, Any] = {}
    for name, value in _changed(model).items():
        if isinstance(value, BaseEstimator):
            flat[name] = type(value).__name__
            flat |= {f"{name}__{inner}": one for inner, one in _flat(value).items()}
        else:
            flat[name] = value
    return flat


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=_plain)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, BaseEstimator):  # in a list
        return [type(value).__name__, _flat(value)]
    if value is inspect.Parameter.empty:  # a parameter without a default
        return None
    raise TypeError(f"{value!r} cannot be part of a suite")
