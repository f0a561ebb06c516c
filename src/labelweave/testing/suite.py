"""Collecting the checks and running them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from sklearn.base import clone

from labelweave.testing import (
    images,
    importance,
    inputs,
    known,
    labels,
    learning,
    lifecycle,
    randomness,
    selection,
    texts,
    whole,
)

__all__ = ["briefly_trained", "check_estimator", "estimator_checks", "test_instance"]

_EPOCHS = ("epochs", "pretrain_epochs")
_MODULES = (learning, labels, known, importance, inputs, randomness, lifecycle, selection)


def test_instance(cls: type) -> Any:
    """An estimator with the small settings that its class names in `_test_params`."""
    return cls(**cls._test_params()) if hasattr(cls, "_test_params") else cls()


test_instance.__test__ = False  # type: ignore[attr-defined]  # its name makes pytest curious


def briefly_trained(estimator: Any) -> Any:
    """A clone that trains for two epochs, where there are epochs: enough for checks of form."""
    found = clone(estimator)
    epochs = [name for name in found.get_params() if name.rpartition("__")[2] in _EPOCHS]
    return found.set_params(**dict.fromkeys(epochs, 2))


def estimator_checks(estimator: Any) -> list[tuple[str, Callable[[], None]]]:
    """Every check of the contract with its name, ready to be called.

    Parameters
    ----------
    estimator : an unfitted estimator
        It is cloned by each check and never fitted itself.
    """
    found: list[tuple[str, Callable[[], None]]] = []
    # A module of checks for some methods only says for which.
    modules = [m for m in _MODULES if not hasattr(m, "applies_to") or m.applies_to(estimator)]
    if texts.takes_texts(estimator):
        modules = [whole, texts]
    elif images.takes_images(estimator):
        modules = [whole, images]
    for module in modules:
        for name, check in vars(module).items():
            if name.startswith("check_"):
                given = estimator if hasattr(check, "learns") else briefly_trained(estimator)
                found.append((name.removeprefix("check_"), partial(_run, check, given)))
    return found


def check_estimator(estimator: Any) -> None:
    """Run the whole contract, scikit-learn's part included; the first failure is raised.

    A check that fails raises an AssertionError (or the error of the estimator) with the name
    of the check in its notes.
    """
    from sklearn.utils.estimator_checks import check_estimator as scikit_learn_checks

    for name, check in estimator_checks(estimator):
        try:
            check()
        except Exception as error:
            error.add_note(f"in the check {name!r} of {estimator!r}")
            raise
    scikit_learn_checks(briefly_trained(estimator))


def _run(check: Callable[[Any], None], estimator: Any) -> None:
    check(clone(estimator))
