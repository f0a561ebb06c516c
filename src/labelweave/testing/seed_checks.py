# ruff: noqa: NPY002 - the old global generator is what these checks are about
"""Checks of seeds, and that the global random generators are not used."""

from __future__ import annotations

import random
import sys
from typing import Any

import numpy as np

from labelweave.capabilities import capabilities
from labelweave.testing.check_tools import Check, fresh, linear, same


def check_same_seed_same_result(estimator: Any) -> None:
    """Two fits with the same seed, or with equal generators, predict the same bits."""
    X, Y = linear()
    first, second = (fresh(estimator, threshold="tuned").fit(X, Y) for _ in range(2))
    same(first.predict_proba(X), second.predict_proba(X), "two fits with one seed", exact=True)
    same(first.predict(X), second.predict(X), "label sets of two fits with one seed", exact=True)
    same(first.predict_proba(X), first.predict_proba(X), "two predictions", exact=True)
    generators = (fresh(estimator, random_state=np.random.RandomState(0)) for _ in range(2))
    one, other = (model.fit(X, Y).predict_proba(X) for model in generators)
    same(one, other, "two fits with equal generators", exact=True)


def check_any_number_of_jobs(estimator: Any) -> None:
    """One job and two give the same bits, with a seed."""
    X, Y = linear()
    one, two = (
        fresh(estimator, n_jobs=jobs, threshold="tuned").fit(X, Y).predict_proba(X)
        for jobs in (1, 2)
    )
    same(one, two, "one job and two", exact=True)


def check_different_seed(estimator: Any) -> None:
    """Another seed gives another model; without the capability `randomized` the same one."""
    X, Y = linear()
    one, other = (fresh(estimator, random_state=k).fit(X, Y).predict_proba(X) for k in (0, 1))
    if capabilities(estimator).randomized:
        assert not np.array_equal(one, other), (
            "two seeds give one model: if nothing is random, set the capability randomized to False"
        )
    else:
        same(one, other, "a method in which nothing is random", exact=True)


def check_global_generators_are_untouched(estimator: Any) -> None:
    """The states of NumPy's, Python's and torch's generators stay, with a seed and without."""
    X, Y = linear()
    for seed in (0, None):
        before = _states()
        fresh(estimator, random_state=seed, threshold="tuned").fit(X, Y).predict_proba(X)
        after = _states()
        for name, state in before.items():
            assert state == after[name], f"the global generator of {name} was used or seeded"


def check_result_does_not_depend_on_global_generators(estimator: Any) -> None:
    """Seeding the global generators does not change the model."""
    X, Y = linear()
    numpy_state, python_state = np.random.get_state(), random.getstate()
    torch = sys.modules.get("torch")
    torch_state = None if torch is None else torch.get_rng_state()
    predictions = []
    try:
        for seed in (1, 2):
            np.random.seed(seed)
            random.seed(seed)
            if torch is not None:
                torch.manual_seed(seed)
            predictions.append(fresh(estimator).fit(X, Y).predict_proba(X))
    finally:
        np.random.set_state(numpy_state)
        random.setstate(python_state)
        if torch is not None:
            torch.set_rng_state(torch_state)
    same(predictions[0], predictions[1], "two states of the global generators", exact=True)


def _states() -> dict[str, Any]:
    numpy_state: Any = np.random.get_state()
    states: dict[str, Any] = {
        "NumPy": [part.tobytes() if hasattr(part, "tobytes") else part for part in numpy_state],
        "Python": random.getstate(),
    }
    if (torch := sys.modules.get("torch")) is not None:
        states["torch"] = torch.get_rng_state().numpy().tobytes()
    return states


CHECKS = (
    Check(check_same_seed_same_result, of_variants=True),
    Check(check_different_seed, of_variants=True),
    Check(check_global_generators_are_untouched, of_variants=True),
    Check(check_result_does_not_depend_on_global_generators, of_variants=True),
)
"""For every estimator."""

OF_JOBS = (Check(check_any_number_of_jobs),)
"""For estimators with the parameter `n_jobs`."""
